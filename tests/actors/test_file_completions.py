"""``@`` and ``#file:`` in a message: files in the session's folders (RULES 22)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ahpd.resources.files import FileResources
from tests.actors.support import C, S, message, settled, started
from tests.harness import RawPeer, running_host

pytestmark = pytest.mark.real_time


async def complete(peer: RawPeer, before: str, after: str = "") -> list[Any]:
    offset = len(before.encode("utf-16-le")) // 2
    asked = {"channel": C, "kind": "userMessage", "text": before + after, "offset": offset}
    items: list[Any] = (await peer.request("completions", **asked))["items"]
    return items


async def test_files_are_offered_with_ranges_in_utf_16_units(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for name in ("src/main.py", "src/ärger.py", "file.txt"):
        (tmp_path / name).touch()
    async with running_host(resources=FileResources()) as host:
        ann = await host.peer("ann")
        await ann.hello()
        await ann.request("createSession", channel=S, workingDirectories=[tmp_path.as_uri()])
        await settled()
        (item,) = await complete(ann, "𐍈 look @mai", " now")
        assert item == {
            "insertText": "@src/main.py ",
            "rangeStart": 8,
            "rangeEnd": 12,
            "attachment": {
                "type": "resource",
                "label": "src/main.py",
                "uri": f"{tmp_path.as_uri()}/src/main.py",
            },
        }
        (item,) = await complete(ann, "#file:ÄRG")
        assert item["insertText"] == "#file:src/ärger.py "
        assert (item["rangeStart"], item["rangeEnd"]) == (0, 9)
        for typed in ("@", "#", "#fi", "#file", "#file:"):
            assert len(await complete(ann, f"x {typed}")) == 3, typed
        (item,) = await complete(ann, "#main")
        assert item["insertText"] == "#file:src/main.py "
        for typed in ("a@main", "@main ", "#chat:main", "main", "@none"):
            assert await complete(ann, typed) == [], typed
        await ann.subscribe(C)
        sent = message("@src/main.py", attachments=[item["attachment"]])
        answer = await ann.answered(await ann.dispatch(C, {**started("t1"), "message": sent}))
        assert "rejectionReason" not in answer["params"]


async def test_a_session_without_a_folder_offers_no_files() -> None:
    async with running_host(resources=FileResources()) as host:
        ann = await host.peer("ann")
        await ann.hello()
        await ann.request("createSession", channel=S, workingDirectories=["file:///"])
        await settled()
        assert await complete(ann, "@") == []
