"""Pages of turns: views, cursors, and subscribers that hold different parts of a chat (B53)."""

from __future__ import annotations

from typing import Any

import pytest

from actors.host import Settings
from actors.paging import Page, Window, cursor_of, newest, page_before, turn_of
from ahpd.agents.events import Done, TextChunk
from ahpd.protocol.chat import ChatState, ResponseParts, Turn, Turns
from ahpd.protocol.connection import SubscribeView
from ahpd.protocol.messages import Message, MessageOrigin
from ahpd.protocol.uris import ROOT
from tests.actors.support import C, S, actions, at_work, ending, refused, room, settled, started
from tests.harness import PuppetAgent, RawPeer, RunningHost, differences, running_host
from tests.harness.replicas import state_of


def turn(number: int, text: str = "Go on") -> Turn:
    return Turn(
        id=f"t{number}",
        started_at="2026-09-21T14:13:20.000Z",
        duration=1,
        message=Message(text=text, origin=MessageOrigin(kind="user")),
        response_parts=ResponseParts(),
        usage=None,
        state="complete",
    )


def put_turns(host: RunningHost, count: int, text: str = "Go on") -> None:
    """Give the chat a history, as one that was stored."""
    channel = host.ledger.find(C)
    assert channel is not None
    channel.state = channel.state.evolve(turns=Turns([turn(n, text) for n in range(count)]))


def ids(turns: Any) -> list[str]:
    return [each["id"] for each in turns]


def names(start: int, end: int) -> list[str]:
    return [f"t{number}" for number in range(start, end)]


# ---- pure ----------------------------------------------------------------------------------------


@pytest.fixture
def chat() -> ChatState:
    return ChatState(
        resource=C,
        title="",
        status=1,
        modified_at="2026-09-21T14:13:20.000Z",
        turns=Turns([turn(number) for number in range(10)]),
    )


@pytest.mark.parametrize(
    "text", ["", "x", "before:t3", "dDM", "YmVmb3JlOg", "\ud800", "=", "é", " "]
)
def test_what_is_no_cursor_of_ours_names_no_page(chat: ChatState, text: str) -> None:
    assert page_before(chat, text, 5) is None


def test_a_cursor_names_its_turn_and_is_refused_once_that_is_gone(chat: ChatState) -> None:
    assert turn_of(cursor_of("t\u00e93/x")) == "t\u00e93/x"
    assert page_before(chat, cursor_of("gone"), 5) is None
    assert page_before(chat, cursor_of("t3"), 5) == Page(tuple(chat.turns[:3]), 0, 3, None)
    assert page_before(chat, cursor_of("t9"), 5) == Page(
        tuple(chat.turns[4:9]), 4, 9, cursor_of("t4")
    )
    assert page_before(chat, cursor_of("t0"), 5) == Page((), 0, 0, None)


@pytest.mark.parametrize(("count", "start"), [(0, 9), (1, 9), (3, 7), (10, 0), (99, 0)])
def test_the_newest_turns_have_a_cursor_for_what_is_older(
    chat: ChatState, count: int, start: int
) -> None:
    part, place = newest(chat, count)
    assert place == start
    assert list(part.turns) == list(chat.turns[start:])
    assert part.turns_next_cursor == (cursor_of(f"t{start}") if start else None)


def test_a_window_takes_the_page_that_adjoins_it_and_no_other() -> None:
    window = Window(10, 50)
    assert not window.takes(11, 10, 40)  # a hole
    assert not window.takes(12, 50, 60)  # nothing new
    assert window.takes(13, 30, 50)
    assert window.takes(14, 20, 70)
    assert not window.takes(15, 20, 50)
    assert [window.as_of(seen).start for seen in (10, 12, 13, 14, 99)] == [50, 50, 30, 20, 20]


# ---- a host --------------------------------------------------------------------------------------

VIEWS: list[tuple[Any, int]] = [
    (None, 100),
    ({}, 100),
    ({"turns": 20}, 20),
    ({"turns": 100}, 100),
    ({"turns": 5000}, 100),
    ({"turns": 1e300}, 100),
    ({"turns": 0}, 1),
    ({"turns": -1}, 100),
    ({"turns": 7.5}, 7),
    ({"unknown": True}, 100),
]


@pytest.mark.parametrize(("view", "count"), VIEWS, ids=repr)
async def test_r_4_26_a_view_is_advice_about_how_many_turns_to_give(view: Any, count: int) -> None:
    """The last turn is always given: it may be resumed, which only who has it can follow."""
    async with running_host(provoked=["c2h"]) as host:
        ann = await room(host, subscribe=())
        put_turns(host, 100)
        snapshot = await ann.subscribe(C, **({} if view is None else {"view": view}))
        assert ids(snapshot["state"]["turns"]) == names(100 - count, 100)
        assert ("turnsNextCursor" in snapshot["state"]) == (count < 100)


async def fetch(peer: RawPeer, cursor: str | None = None) -> Any:
    """The page that comes before the answer (R-9.72), or None."""
    here = len(peer.inbox)
    params = {} if cursor is None else {"cursor": cursor}
    assert await peer.request("fetchTurns", channel=C, **params) == {}
    pages = [a for a in actions(peer, C) if a["type"] == "chat/turnsLoaded"]
    peer.inbox[here:] = []
    return pages[-1] if pages else None


async def test_b53_fetching_to_the_start_while_deltas_arrive() -> None:
    agent = PuppetAgent()
    async with running_host(agent, settings=Settings(page=30)) as host:
        ann = await room(host, subscribe=(ROOT, S))
        put_turns(host, 100)
        snapshot = await ann.subscribe(C, view={"turns": 20})
        held, cursor = ids(snapshot["state"]["turns"]), snapshot["state"]["turnsNextCursor"]
        await ann.dispatch(C, started("new"))
        puppet = await at_work(agent, "new")
        while cursor is not None:
            puppet.say(TextChunk("more "))
            page = await fetch(ann, cursor)
            held = ids(page["turns"]) + held
            cursor = page.get("turnsNextCursor")
        assert held == names(0, 100)
        assert await fetch(ann) is None  # all loaded
        with refused(-32602, "cursor"):
            await fetch(ann, "nonsense")


async def test_b53_a_cursor_stays_right_while_turns_are_added() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host, subscribe=(ROOT, S))
        put_turns(host, 30)
        state = (await ann.subscribe(C, view={"turns": 10}))["state"]
        for number in range(3):
            await ann.dispatch(C, started(f"later{number}"))
            (await at_work(agent, f"later{number}")).end(Done())
            await ending(ann, f"later{number}")
        page = await fetch(ann, state["turnsNextCursor"])
        assert ids(page["turns"]) == names(0, 20)
        assert "turnsNextCursor" not in page


async def test_b53_without_a_cursor_the_next_older_page_comes_also_after_a_replay() -> None:
    async with running_host(settings=Settings(page=10)) as host:
        ann = await room(host, subscribe=(ROOT,))
        put_turns(host, 50)
        await ann.subscribe(C, view={"turns": 10})
        assert ids((await fetch(ann))["turns"]) == names(30, 40)
        seen = host.ledger.seq
        ann.wire.hold("down")
        lost = await ann.call("fetchTurns", channel=C)
        await settled()
        assert lost
        ann.cut()
        ann.wire.release()
        again = await host.peer("ann")
        result = await again.request(
            "reconnect", clientId="ann", lastSeenServerSeq=seen, subscriptions=[C]
        )
        [missed] = result["actions"]
        assert ids(missed["action"]["turns"]) == names(20, 30)
        assert ids((await fetch(again))["turns"]) == names(10, 20)
        assert ids((await fetch(again))["turns"]) == names(0, 10)
        assert await fetch(again) is None


async def test_b53_subscribers_with_different_parts_each_stay_whole() -> None:
    """A page is kept from a subscriber in whose part it would leave a hole."""
    async with running_host(settings=Settings(page=30)) as host:
        ann = await room(host)
        put_turns(host, 200)
        part = SubscribeView(turns=10)
        async with (
            host.client("all", subscriptions=(C,)) as everything,
            host.client("much", subscriptions=()) as much,
            host.client("little", subscriptions=()) as little,
        ):
            await everything.until(C, lambda chat: len(chat.turns) == 200)
            await much.subscribe(C, view=part)
            await little.subscribe(C, view=part)
            ann.inbox.clear()
            await fetch(ann, cursor_of("t190"))
            await much.until(C, lambda chat: len(chat.turns) == 40)
            newcomer = await host.peer("newcomer")
            await newcomer.hello(subscribe=())
            state = (await newcomer.subscribe(C, view={"turns": 5}))["state"]
            await fetch(ann, cursor_of("t160"))
            await much.until(C, lambda chat: len(chat.turns) == 70)
            await settled()
            assert "chat/turnsLoaded" not in [a["type"] for a in actions(newcomer)]
            page = await fetch(newcomer, state["turnsNextCursor"])
            assert ids(page["turns"]) == names(165, 195)
            for client in (everything, much, little):
                assert differences(client, host) == []


async def test_b53_who_holds_everything_gets_the_page_without_a_cursor() -> None:
    async with running_host(settings=Settings(page=5)) as host:
        ann = await room(host, subscribe=(ROOT,))
        put_turns(host, 30)
        await ann.subscribe(C)
        page = await fetch(ann, cursor_of("t20"))
        assert ids(page["turns"]) == names(15, 20)
        assert "turnsNextCursor" not in page
        assert len(state_of(host, C)["turns"]) == 30


@pytest.mark.parametrize("way", ["subscribe", "initialize", "reconnect"])
async def test_b53_a_snapshot_of_60_mib_does_not_hold_up_others(way: str) -> None:
    """While it is written, others get their turn: counted in their pings, not in time."""
    async with running_host(provoked=["h2c"]) as host:
        ann, bob = await room(host, subscribe=()), await room(host, "bob", subscribe=())
        put_turns(host, 600, text="x" * 100_000)
        if way == "reconnect":
            host.tables.window.evicted_up_to = host.ledger.seq + 1  # too long away
            await ann.close()
        if way != "subscribe":
            ann = await host.peer("ann")
        here = len(bob.inbox)
        if way == "subscribe":
            id = await ann.call("subscribe", channel=C)
        elif way == "initialize":
            id = await ann.call(
                "initialize",
                clientId="ann",
                protocolVersions=["1.0.0"],
                initialSubscriptions=[C],
            )
        else:
            id = await ann.call("reconnect", clientId="ann", lastSeenServerSeq=0, subscriptions=[C])
        pings = 0
        while not any(it.get("id") == id for it in ann.inbox):
            await bob.request("ping")
            pings += 1
        assert pings >= 20
        result = await ann.answer_to(id)
        snapshot = result["snapshot"] if way == "subscribe" else result["snapshots"][0]
        assert len(snapshot["state"]["turns"]) == 600
        assert len(bob.inbox) == here
