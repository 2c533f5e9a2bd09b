"""Characters survive however reads cut their bytes."""

from __future__ import annotations

import pytest

from ahpd.terminals.decoding import Decoding

TEXT = "aé€😀z"


def test_every_split_gives_the_same() -> None:
    data = TEXT.encode()
    for cut in range(len(data) + 1):
        decoding = Decoding()
        assert decoding.feed(data[:cut]) + decoding.feed(data[cut:]) + decoding.finish() == TEXT
    decoding = Decoding()
    assert "".join(decoding.feed(bytes([each])) for each in data) == TEXT


@pytest.mark.parametrize("data", [b"\xff", b"a\xc3z", b"\xed\xa0\x80", b"\xf0\x9f\x98"])
def test_what_is_no_text_is_shown_as_such_and_can_be_said(data: bytes) -> None:
    decoding = Decoding()
    text = "".join(decoding.feed(bytes([each])) for each in data) + decoding.finish()
    assert "\ufffd" in text
    assert text.encode()
    assert decoding.feed(b"ok") == "ok"
