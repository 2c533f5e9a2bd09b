"""Watches on files of this machine, over a connection and through crashes (RULES 14)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.host import Settings
from ahpd.protocol.uris import ROOT
from ahpd.resources import watching
from ahpd.resources.files import FileResources
from supervisors import sys
from tests.actors.support import actions, refused, room
from tests.harness import FileMedium, RawPeer, RunningHost, running_host
from tests.resources.test_watching import marks, none_left, replace

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.skipif("os.uname().sysname != 'Linux'", reason="inotify"),
]


def serving(folder: Path, **more: Any) -> dict[str, Any]:
    settings = Settings(served=(folder.as_uri(),), **more)
    return {"resources": FileResources(), "settings": settings}


async def watch(peer: RawPeer, folder: Path, **more: Any) -> str:
    """A watch that this peer hears; its channel."""
    asked = {"uri": folder.as_uri(), "recursive": True, **more}
    channel: str = (await peer.request("createResourceWatch", **asked))["channel"]
    await peer.subscribe(channel)
    return channel


async def hear(peer: RawPeer, channel: str, *uris: str) -> None:
    """Wait until all of these have been told."""

    def told() -> set[str]:
        said = actions(peer, channel)
        return {item["uri"] for action in said for item in action["changes"]["items"]}

    with trio.move_on_after(30):
        while not set(uris) <= told():
            await trio.sleep(0.01)
        peer.inbox.clear()
        return
    raise AssertionError(f"not told: {set(uris) - told()}")


async def gone(host: RunningHost, channel: str, before: int) -> None:
    """Wait until nothing is left of a watch."""
    with trio.fail_after(20):
        while host.ledger.find(channel) is not None:
            await trio.sleep(0.01)
        while host.system.supervisor("watch").which_children():
            await trio.sleep(0.01)
    assert not host.tables.own_watches
    await none_left(before)


async def test_r_14_1_every_watch_has_a_channel_of_its_own(tmp_path: Path) -> None:
    async with running_host(**serving(tmp_path)) as host:
        ann = await host.peer("ann")
        await ann.hello()
        one = await watch(ann, tmp_path)
        other = await watch(ann, tmp_path, excludes={"items": ["*.tmp"]})
        assert one != other
        state = (await ann.subscribe(other))["state"]
        assert state == {
            "root": tmp_path.as_uri(), "recursive": True, "excludes": {"items": ["*.tmp"]},
        }  # fmt: skip
        (tmp_path / "a.tmp").touch()
        replace(tmp_path / "b", "1")
        await hear(ann, one, f"{tmp_path.as_uri()}/a.tmp", f"{tmp_path.as_uri()}/b")
        for code, uri in ((-32008, f"{tmp_path.as_uri()}/nope"), (-32009, "file:///etc")):
            with refused(code):
                await ann.request("createResourceWatch", uri=uri)


async def test_b64_the_kernel_watches_no_more_when_the_last_one_is_gone(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    async with running_host(**serving(tmp_path)) as host:
        before = marks()
        for way in ("cut", "unsubscribe"):
            ann, bob = await host.peer(f"ann-{way}"), await host.peer(f"bob-{way}")
            await ann.hello()
            await bob.hello()
            channel = await watch(ann, tmp_path)
            await bob.subscribe(channel)
            assert marks() > before
            if way == "cut":
                ann.cut()
            else:
                await ann.notify("unsubscribe", channel=channel)
            (tmp_path / way).touch()
            await hear(bob, channel, f"{tmp_path.as_uri()}/{way}")
            await bob.notify("unsubscribe", channel=channel)
            await gone(host, channel, before)


async def test_b64_a_watch_that_nobody_ever_heard_ends_with_its_connection(tmp_path: Path) -> None:
    async with running_host(**serving(tmp_path)) as host:
        before = marks()
        ann = await host.peer("ann")
        await ann.hello()
        asked = await ann.request("createResourceWatch", uri=tmp_path.as_uri())
        ann.cut()
        await gone(host, asked["channel"], before)


async def test_r_14_3_or_after_a_while(tmp_path: Path) -> None:
    async with running_host(**serving(tmp_path, unheard_within=0.2)) as host:
        before = marks()
        ann = await host.peer("ann")
        await ann.hello()
        asked = await ann.request("createResourceWatch", uri=tmp_path.as_uri())
        await gone(host, asked["channel"], before)


async def test_there_are_only_so_many_watches(tmp_path: Path) -> None:
    async with running_host(**serving(tmp_path, watches=2)) as host:
        ann = await host.peer("ann")
        await ann.hello()
        channels = [await watch(ann, tmp_path) for _ in range(2)]
        with refused(-32603, "limits.watches"):
            await watch(ann, tmp_path)
        await ann.notify("unsubscribe", channel=channels[0])
        with trio.fail_after(20):
            while len(host.tables.own_watches) > 1:
                await trio.sleep(0.01)
        await watch(ann, tmp_path)


@pytest.mark.parametrize("victim", ["watch", "watching", "watches"])
async def test_an_actor_that_is_killed_misses_nothing(tmp_path: Path, victim: str) -> None:
    """Changes go on while the actor is killed over and over: in the end all have been told."""
    async with running_host(**serving(tmp_path)) as host:
        ann = await host.peer("ann")
        await ann.hello()
        channel = await watch(ann, tmp_path)
        path = victim
        if victim == "watch":
            (child,) = host.system.supervisor("watch").which_children()
            path = child.path
        uris = []
        for number in range(4):
            for other in range(20):
                folder = tmp_path / f"{number}-{other}"
                folder.mkdir()
                (folder / "f").touch()
                uris += [folder.as_uri(), (folder / "f").as_uri()]
                await trio.sleep(0.005)
                if other == 10:
                    sys.kill(host.system.ref(path))
        await hear(ann, channel, *uris)
        await host.system.wait_for(path)
        await ann.notify("unsubscribe", channel=channel)
        with trio.fail_after(20):
            while host.tables.own_watches:
                await trio.sleep(0.01)


async def test_a_watch_that_fails_too_often_says_so_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_host(**serving(tmp_path), crashes=["watch/"]) as host:
        before = marks()
        ann = await host.peer("ann")
        await ann.hello()
        channel = await watch(ann, tmp_path)

        def broken(*_: Any) -> None:
            raise OSError("the disk is on fire")

        monkeypatch.setattr(watching.FolderWatch, "_look", broken)
        over = trio.Event()

        async def change() -> None:
            while not over.is_set():
                (tmp_path / os.urandom(4).hex()).touch()
                await trio.sleep(0.05)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(change)
            said = await ann.expect_action("resourceWatch/changed", channel=channel)
            over.set()
        assert said["action"]["changes"]["items"] == [{"uri": tmp_path.as_uri(), "type": "updated"}]
        await gone(host, channel, before)
        assert any("failed too often" in record.getMessage() for record in caplog.records)
        with refused(-32008):
            await ann.subscribe(channel)


async def test_r_14_12_after_a_restart_a_watch_is_missing(tmp_path: Path) -> None:
    journal = FileMedium(tmp_path / "journal.db")
    async with running_host(journal=journal, **serving(tmp_path)) as host:
        bob = await room(host, "bob")
        channel = await watch(bob, tmp_path)
        await bob.request("ping")
        await host.restart()
        bob = await host.peer("bob")
        answer = await bob.request(
            "reconnect", clientId="bob", lastSeenServerSeq=0, subscriptions=[ROOT, channel]
        )
        assert channel in answer.get("missing", [channel])
        assert channel not in [each["resource"] for each in answer.get("snapshots", [])]
