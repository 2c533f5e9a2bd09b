"""The whole tree at a glance, on a host in the test's own process."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from ahpd.agents.events import ActivityChanged, Done
from ahpd.inspection import memory, slices
from ahpd.inspection.words import brief, seconds, size
from supervisors import sys
from tests.actors.support import C, S, at_work, channel_of, room, settled, started
from tests.harness import Puppet, PuppetAgent, RunningHost, running_host
from tests.inspection.support import NotDone, inspector_of, looking


async def rows(host: RunningHost, under: str | None = None) -> dict[str, Any]:
    """The rows by path."""
    async with looking(inspector_of(host)) as looker:
        found = await looker.ask("ps", **({} if under is None else {"under": under}))
    return {row["path"]: row for row in found["actors"]} | {"": found}


async def in_a_turn(host: RunningHost, agent: PuppetAgent) -> tuple[str, Puppet]:
    """Somebody in a session with a turn that runs; the path of its chat."""
    ann = await room(host)
    await ann.dispatch(C, started("t1"))
    return channel_of(host, C).path, await at_work(agent, "t1")


async def test_it_says_what_every_actor_does_and_how_much() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        chat, puppet = await in_a_turn(host, agent)
        puppet.say(ActivityChanged("Reading the tests"))
        await trio.sleep(7)
        found = await rows(host)
        assert found[chat]["doing"] == "in a turn for 7.0 s: Reading the tests"
        assert found[chat]["channel"] == C
        assert found[chat]["phase"] == "running"
        assert found[chat]["handled"] > 0
        assert found[chat]["memoryBytes"]["state"] > 0
        assert found[chat]["mailbox"]["limit"] == 4096
        above = found[chat]["supervisor"]
        assert found[above]["kind"] == "supervisor"
        assert found[above]["mailbox"] is None
        assert found["sequencer"]["doing"] == "idle"
        [connection] = [row for path, row in found.items() if path.startswith("connections/")]
        assert connection["doing"] == "client ann, hears 3 channels"
        assert found[""]["troubles"] == []
        assert found[""]["serverSeq"] == host.ledger.seq
        assert found[""]["memoryBytes"] == pytest.approx(memory.resident(None), rel=0.5)
        paths = [path for path in found if path]
        assert paths == sorted(paths)
        assert set(paths) == set(sys.paths(host.system))
        puppet.end(Done())
        await settled()


async def test_only_what_is_below_a_path_is_walked() -> None:
    async with running_host() as host:
        await room(host)
        base = channel_of(host, S).path.rpartition("/")[0]
        found = await rows(host, base)
        assert [path for path in found if path] == [base, *sys.paths(host.system, base)]
        assert (await rows(host, "chat/0")).keys() == {"", f"{base}/chat/0"}
        async with looking(inspector_of(host)) as looker:
            with pytest.raises(NotDone, match="there is no actor nothing"):
                await looker.ask("ps", under="nothing")


async def test_a_paused_actor_with_a_full_mailbox_is_told_first() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        chat, puppet = await in_a_turn(host, agent)
        sys.suspend(host.system.ref(chat))
        puppet.say(ActivityChanged("Reading"))
        await trio.sleep(5)
        found = await rows(host)
        assert found[chat]["phase"] == "suspended"
        assert found[chat]["mailbox"]["count"] == 1
        assert found[chat]["mailbox"]["oldestSeconds"] == pytest.approx(5, abs=0.1)
        told = [each["why"] for each in found[""]["troubles"] if each["path"] == chat]
        assert told == [
            "paused by somebody who looks inside",
            "1 messages wait, the oldest for 5.0 s",
        ]
        sys.resume(host.system.ref(chat))
        puppet.end(Done())
        await settled()
        assert (await rows(host))[""]["troubles"] == []


async def test_one_that_waits_in_the_middle_of_a_message_says_where_and_for_whom() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        sys.suspend(host.system.ref("catalogue"))
        async with trio.open_nursery() as nursery:
            other = "puppet:/5e551000-0000-4000-8000-00000000000f"
            nursery.start_soon(lambda: ann.request("createSession", channel=other))
            await trio.sleep(3)
            found = await rows(host)
            waiting = {each["path"]: each["why"] for each in found[""]["troubles"]}
            assert "the oldest for 3.0 s" in waiting["catalogue"]
            sys.resume(host.system.ref("catalogue"))


async def test_a_crash_is_told_for_a_while_and_kept_in_the_row() -> None:
    async with running_host() as host:
        await room(host)
        chat = channel_of(host, C).path
        sys.kill(host.system.ref(chat), "by the test")
        await trio.sleep(10)
        found = await rows(host)
        assert found[chat]["restarts"] == 1
        assert found[chat]["lastCrash"]["text"] == "killed: by the test"
        assert {"path": chat, "why": "failed 10.0 s ago: killed: by the test"} in found[""][
            "troubles"
        ]
        await trio.sleep(60)
        found = await rows(host)
        assert found[""]["troubles"] == []
        assert found[chat]["lastCrash"]["agoSeconds"] == pytest.approx(70, abs=0.5)


async def test_everybody_else_has_a_turn_between_any_two_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slices, "SLICE", 0.0)
    async with running_host() as host:
        await room(host)
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                await trio.lowlevel.checkpoint()
                turns += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(other)
            inspector = inspector_of(host)
            async with looking(inspector) as looker:
                found = await looker.ask("ps")
            nursery.cancel_scope.cancel()
        assert turns >= len(found["actors"])


async def test_requests_that_make_no_sense_are_answered_and_hurt_nobody() -> None:
    async with running_host() as host, looking(inspector_of(host)) as looker:
        with pytest.raises(NotDone, match="there is no fly here"):
            await looker.ask("fly")
        with pytest.raises(NotDone, match="under: expected a text"):
            await looker.ask("ps", under=3)
        with pytest.raises(NotDone, match="ahpd ps shows their paths"):
            await looker.ask("ps", under="  ")
        assert (await looker.ask("ps"))["actors"]


def test_words_for_times_and_sizes() -> None:
    assert [seconds(each) for each in (0.0034, 2.14, 600, 9000)] == [
        "3 ms", "2.1 s", "10 min", "2 h",
    ]  # fmt: skip
    assert [size(each) for each in (12, 1536, 3 << 20, 5 << 30)] == [
        "12 B", "1.5 KiB", "3.0 MiB", "5.0 GiB",
    ]  # fmt: skip
    assert brief(ValueError("x")) == "ValueError"


def test_a_process_that_is_gone_has_nothing_in_memory() -> None:
    assert memory.resident(2**22 + 1) is None
