"""Files of the host's machine, asked for over a connection (RULES 13)."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.host import Settings
from ahpd.resources.files import FileLimits, FileResources
from tests.actors.support import S, refused, settled
from tests.harness import Refused, running_host

pytestmark = pytest.mark.real_time


def serving(folder: Path) -> dict[str, Any]:
    """A host that serves this folder."""
    return {"resources": FileResources(), "settings": Settings(served=(folder.as_uri(),))}


async def test_everything_inside_works_and_outside_is_denied_with_the_grant(tmp_path: Path) -> None:
    inside = tmp_path / "w"
    inside.mkdir()
    (tmp_path / "x").write_text("outside")
    async with running_host(**serving(inside)) as host:
        ann = await host.peer("ann")
        await ann.hello()
        uri = f"{inside.as_uri()}/a"
        assert await ann.request("resourceWrite", uri=uri, data="A", encoding="utf-8") == {}
        got = await ann.request("resourceRead", uri=uri)
        assert (got["data"], got["encoding"]) == ("A", "utf-8")
        assert await ann.request("resourceDelete", uri=uri) == {}
        with refused(-32008, "does not exist"):
            await ann.request("resourceRead", uri=uri)
        outside = f"{tmp_path.as_uri()}/x"
        for method in ("resourceRead", "resourceMkdir", "resourceRequest"):
            with pytest.raises(Refused) as caught:
                await ann.request(method, uri=outside)
            data: Any = caught.value.data
            assert (caught.value.code, data["request"]["uri"]) == (-32009, outside)
        for bad in ("http://x/y", "x/y", "file://otherhost/a", f"{inside.as_uri()}/%00"):
            for method in ("resourceRead", "resourceRequest", "createResourceWatch"):
                with refused(-32602):
                    await ann.request(method, uri=bad)
        with refused(-32602, "nobody has both"):
            await ann.request("resourceCopy", source=uri, destination="virtual://bob/x")
        with refused(-32009):
            await ann.request("resourceMove", source=uri, destination="untitled:x")


async def test_a_directory_of_a_session_is_served_as_long_as_there_is_the_session(
    tmp_path: Path,
) -> None:
    (tmp_path / "a").write_text("A")
    async with running_host(resources=FileResources()) as host:
        ann = await host.peer("ann")
        await ann.hello()
        uri = f"{tmp_path.as_uri()}/a"
        with refused(-32009):
            await ann.request("resourceRead", uri=uri)
        await ann.request("createSession", channel=S, workingDirectories=[tmp_path.as_uri()])
        assert (await ann.request("resourceRead", uri=uri))["data"] == "A"
        await ann.request("disposeSession", channel=S)
        await settled()
        with refused(-32009):
            await ann.request("resourceRead", uri=uri)


@pytest.mark.parametrize("nowhere", ["file:///", "file:///.", "file://localhost/", "file:////"])
async def test_quirk_21_a_session_without_a_folder_opens_nothing(nowhere: str) -> None:
    async with running_host(resources=FileResources()) as host:
        ann = await host.peer("ann")
        await ann.hello()
        await ann.request("createSession", channel=S, workingDirectories=[nowhere])
        with refused(-32009):
            await ann.request("resourceRead", uri="file:///etc/hostname")


async def test_the_longest_file_that_is_read_fits_into_an_answer(tmp_path: Path) -> None:
    content = os.urandom(16 << 20)
    (tmp_path / "a").write_bytes(content)
    async with running_host(**serving(tmp_path)) as host:
        ann = await host.peer("ann")
        await ann.hello()
        got = await ann.request("resourceRead", uri=f"{tmp_path.as_uri()}/a")
        assert (got["encoding"], len(got["data"])) == ("base64", -(-len(content) // 3) * 4)
        assert await ann.request("ping") is None


async def test_a_slow_file_system_holds_up_nothing_else_on_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = tmp_path / "slow", tmp_path / "quick"
    for folder in (slow, quick):
        folder.mkdir()
        (folder / "a").write_text("A")
    go_on = threading.Event()
    look = os.stat

    def hanging(path: Any, **more: Any) -> Any:
        if path == b"slow":
            go_on.wait(60)
        return look(path, **more)

    monkeypatch.setattr(os, "stat", hanging)
    resources = FileResources(FileLimits(within=3.0, threads=4))
    settings = Settings(served=(slow.as_uri(), quick.as_uri()))
    try:
        async with running_host(resources=resources, settings=settings) as host:
            ann = await host.peer("ann")
            await ann.hello()
            ids = [await ann.call("resourceRead", uri=f"{slow.as_uri()}/a") for _ in range(10)]
            with trio.fail_after(60):
                for _ in range(5):
                    got = await ann.request("resourceRead", uri=f"{quick.as_uri()}/a")
                    assert got["data"] == "A"
                    assert (await ann.request("listSessions"))["items"] == []
            assert not [it for it in ann.inbox if it.get("id") in ids], "they hang still"
            for id in ids:
                with refused(-32603, "did not answer within 3 s"):
                    await ann.answer_to(id)
    finally:
        go_on.set()
