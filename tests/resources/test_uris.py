"""`file:` URIs and names: any bytes there and back."""

from __future__ import annotations

import random
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpd.protocol.errors import ProtocolError
from ahpd.resources.uris import LONGEST, to_name, to_path, to_uri

names = st.binary(min_size=1, max_size=12).filter(lambda raw: not {0, 0x2F} & set(raw))
#: Names that hold what other names are shown with.
tricky = st.lists(
    st.sampled_from([b"\xff", b"\x80", b"a", b"%41", b"\xf4\x8f\x9e\x80", b"\xf4\x8f\x9f\xbf",
                     b"\xf4\x8f", "é".encode(), b" ", b"#", b"?", b"\n"]),
    min_size=1,
    max_size=6,
).map(b"".join)  # fmt: skip


@given(st.lists(names | tricky, max_size=4))
def test_a_path_comes_back_from_its_uri(steps: list[bytes]) -> None:
    path = b"/" + b"/".join(steps)
    uri = to_uri(path)
    assert to_path(uri, "m") == path
    assert uri.isascii()


@given(names | tricky)
def test_a_name_that_was_shown_names_the_same_file(raw: bytes) -> None:
    shown = to_name(raw)
    assert shown.encode().decode() == shown, "it is text that JSON can hold"
    assert to_path("file:///w/" + quote(shown), "m") == b"/w/" + raw


def test_no_two_names_look_alike() -> None:
    seed = 20261130
    rng = random.Random(seed)
    pieces = [b"\xff", b"\xf4\x8f\x9f\xbf", b"\x9f", b"\xf4", b"\x8f", b"\xbf", b"x"]
    raws = {b"".join(rng.choices(pieces, k=rng.randint(1, 5))) for _ in range(3000)}
    assert len({to_name(raw) for raw in raws}) == len(raws), f"seed {seed}"


def test_plain_names_look_as_they_do_everywhere() -> None:
    assert to_name("Grüße 日本.txt".encode()) == "Grüße 日本.txt"
    for text in ("/w/a b/c#d?e%f", "/w/ü/(1)+@=.txt", "/"):
        assert to_uri(text.encode()) == Path(text).as_uri()


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///w/a", b"/w/a"),
        ("FILE://localhost/w/a", b"/w/a"),
        ("file:/w/a", b"/w/a"),
        ("file:///w/a%2fb", b"/w/a/b"),
        ("file:///c%3A/x", b"/c:/x"),
        ("file:///w/%FF%zz", b"/w/\xff%zz"),
        ("file:///w/ä", "/w/ä".encode()),
        ("file:///", b"/"),
    ],
)
def test_what_a_uri_names(uri: str, path: bytes) -> None:
    assert to_path(uri, "m") == path


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("http://x/y", "no"),
        ("w/a", "not a file: URI"),
        ("", "not a file: URI"),
        ("file://otherhost/w", "otherhost"),
        ("file:w/a", "absolute"),
        ("file:", "absolute"),
        ("file:///w/%00", "NUL"),
        ("file:///w?x", "%3F"),
        ("file:///w#x", "%23"),
        ("file:///" + "x" * LONGEST, "bytes"),
    ],
)
def test_what_names_no_file_is_refused_in_words(uri: str, words: str) -> None:
    with pytest.raises(ProtocolError, match=words) as caught:
        to_path(uri, "resourceRead")
    assert caught.value.code == -32602
    assert len(str(caught.value)) < 400
