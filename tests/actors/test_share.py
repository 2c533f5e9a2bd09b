"""How terminals share what may be under way, and what becomes of it when one of them ends."""

from __future__ import annotations

import trio
import trio.testing

from actors.share import LIMIT, LITTLE, Share
from ahpd.terminals.port import CommandBegan, Output
from tests.actors.support import actions, settled
from tests.actors.terminals import T2, T, bench, claim


async def test_what_is_little_goes_at_once_and_what_is_much_in_turns() -> None:
    share = Share()
    order: list[str] = []

    async def bring(name: str, size: int) -> None:
        await share.take(size)
        order.append(name)

    await share.take(LIMIT)
    async with trio.open_nursery() as nursery:
        for name in ("first", "second", "third"):
            nursery.start_soon(bring, name, LIMIT // 2)
            await trio.testing.wait_all_tasks_blocked()
        await bring("key", LITTLE)
        assert order == ["key"]
        share.give(LITTLE)
        share.give(LIMIT)
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(order) == ["first", "key", "second"]
        share.give(LIMIT // 2)
    assert order[3:] == ["third"]
    assert share.taken == LIMIT


async def test_one_that_brings_more_than_there_is_gets_its_turn_alone() -> None:
    share = Share()
    await share.take(3 * LIMIT)
    with trio.move_on_after(1) as scope:
        await share.take(LITTLE + 1)
    assert scope.cancelled_caught
    share.give(3 * LIMIT)
    assert share.taken == 0
    await share.take(LITTLE + 1)


async def test_who_is_cancelled_in_the_moment_of_its_turn_gives_it_back() -> None:
    share = Share()
    await share.take(LIMIT)
    async with trio.open_nursery() as nursery:
        scope = trio.CancelScope()

        async def bring() -> None:
            with scope:
                await share.take(LIMIT)

        nursery.start_soon(bring)
        await trio.testing.wait_all_tasks_blocked()
        scope.cancel(reason="the test wants to know")
        share.give(LIMIT)
    assert share.taken == 0


async def test_a_key_goes_ahead_of_what_another_terminal_floods_with() -> None:
    async with bench() as it:
        flood = it.process
        await it.ann.request("createTerminal", channel=T2, claim=claim())
        await it.bob.subscribe(T2)
        it.host.journal.longest = 0.5  # type: ignore[attr-defined]
        for number in range(40):
            flood.say("x" * (128 << 10))
            if number == 20:
                it.process.say("key")
            await trio.sleep(0.01)
        await trio.sleep(10)
        it.host.journal.longest = 0.0  # type: ignore[attr-defined]
        await trio.sleep(60)
        await settled()
        heard = [m["params"] for m in it.bob.inbox if m.get("method") == "action"]
        said = [
            (each["channel"], each["action"]["data"])
            for each in heard
            if each["action"]["type"] == "terminal/data"
        ]
        assert "".join(data for uri, data in said if uri == T) == "x" * (40 * 128 << 10)
        assert [uri for uri, _ in said].index(T2) <= 3, "what was under way, and no more"


async def test_what_is_under_way_when_a_terminal_ends_is_given_back() -> None:
    async with bench() as it:
        share = it.host.tables.share
        for number in range(5):
            uri = f"ahp-terminal:/flood{number}"
            await it.ann.request("createTerminal", channel=uri, claim=claim())
            it.host.journal.longest = 1.0  # type: ignore[attr-defined]
            for _ in range(20):
                it.process.say("x" * (64 << 10))
            await trio.sleep(0.1)
            await it.ann.request("disposeTerminal", channel=uri)
            it.host.journal.longest = 0.0  # type: ignore[attr-defined]
        await trio.sleep(30)
        await settled()
        assert share.taken == 0


async def test_pieces_of_one_message_stay_in_order() -> None:
    async with bench() as it:
        it.host.journal.longest = 1.0  # type: ignore[attr-defined]
        await it.shows("a")
        for piece in ("b", "c", CommandBegan("ls"), Output("d"), "e"):
            it.process.say(piece)
            await trio.testing.wait_all_tasks_blocked(0.001)
        await trio.sleep(30)
        said = [a.get("data", a["type"]) for a in actions(it.bob, T)]
        assert said == ["a", "bc", "terminal/commandExecuted", "de"]
