"""``data:`` URIs are resources that anybody can read: previews of edits are named by them."""

from __future__ import annotations

from typing import Any

import pytest

from actors.data_uris import read_data
from ahpd.protocol.errors import ErrorCode, ProtocolError
from tests.actors.support import room
from tests.harness import Refused, running_host


@pytest.mark.parametrize(
    ("uri", "encoding", "data", "coded", "kind"),
    [
        ("data:,a%20b%C3%A4", None, "a b\u00e4", "utf-8", "text/plain"),
        ("data:text/plain;charset=utf-8,new%0Asame%0A", None, "new\nsame\n", "utf-8", "text/plain"),
        ("DATA:text/x;base64,YWI%3D", None, "ab", "utf-8", "text/x"),
        ("data:,ab", "base64", "YWI=", "base64", "text/plain"),
        ("data:image/png,%89%00", None, "iQA=", "base64", "image/png"),
        ("data:,%00", None, "AA==", "base64", "text/plain"),
        ("data:,%00", "utf-8", "\0", "utf-8", "text/plain"),
        ("data:,", None, "", "utf-8", "text/plain"),
    ],
)
def test_what_it_holds(uri: str, encoding: Any, data: str, coded: str, kind: str) -> None:
    found = read_data(uri, encoding)
    assert (found.data, found.encoding, found.content_type) == (data, coded, kind)


@pytest.mark.parametrize(
    ("uri", "encoding", "why"),
    [
        ("data:text/plain", None, "no comma"),
        ("data:;base64,!", None, "no base64"),
        ("data:,%89", "utf-8", "no text"),
    ],
)
def test_what_holds_nothing(uri: str, encoding: Any, why: str) -> None:
    with pytest.raises(ProtocolError, match=why) as refused:
        read_data(uri, encoding)
    assert refused.value.code == ErrorCode.INVALID_PARAMS


async def test_clients_read_them_on_a_host_without_files() -> None:
    async with running_host() as host:
        ann = await room(host)
        found = await ann.request("resourceRead", uri="data:text/plain,Hi")
        assert found == {"data": "Hi", "encoding": "utf-8", "contentType": "text/plain"}
        with pytest.raises(Refused) as refused:
            await ann.request("resourceRead", uri="data:text/plain")
        assert refused.value.code == ErrorCode.INVALID_PARAMS
