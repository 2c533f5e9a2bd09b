"""Which sessions there are: making and ending them, lists, and what root subscribers are told."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import trio

from actors.summaries import session_summary
from ahpd.agents.events import ActivityChanged, Done, Failed, ToolAsks, ToolStarted
from ahpd.agents.port import AgentFailed, OpenRequest
from ahpd.protocol.uris import ROOT, URI, default_chat
from supervisors import sys
from tests.actors.support import (
    C2,
    S2,
    C,
    S,
    answer,
    approved,
    at_work,
    cancelled,
    ending,
    message,
    pending,
    refused,
    room,
    settled,
    started,
    turn,
)
from tests.harness import Puppet, PuppetAgent, RawPeer, RunningHost, SlowJournal, running_host
from tests.harness.replicas import state_of


class MoodyAgent(PuppetAgent):
    """Takes 0, 1 ms or 2 s to open, and sometimes does not."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._dice = Random(seed)

    async def open(self, request: OpenRequest) -> Puppet:
        await trio.sleep(self._dice.choice((0, 0.001, 2)))
        if self._dice.random() < 0.25:
            raise AgentFailed("not today")
        return await super().open(request)


def ends_of_opening(host: RunningHost, session: str) -> list[int]:
    """The numbers under which a session was said to be ready, or not to become it."""
    return [
        entry.seq
        for entry in host.stream.said(URI(session))
        if getattr(entry.action, "type", "") in ("session/ready", "session/creationFailed")
    ]


# ---- B25 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
async def test_b25_creating_subscribing_and_dispatching_in_one_go(seed: int) -> None:
    """30 sessions a run: whatever the agent does, the channel is there at once (quirk 29)."""
    agent = MoodyAgent(seed)
    async with running_host(agent, journal=SlowJournal(seed, 0.003)) as host:
        ann = await host.peer("ann")
        await ann.hello(subscribe=())
        for number in range(30):
            session = f"puppet:/{seed}-{number}"
            chat = default_chat(session)
            create = await ann.call("createSession", channel=session)
            one = await ann.call("subscribe", channel=session)
            two = await ann.call("subscribe", channel=chat)
            await ann.dispatch(chat, started("t1"))
            assert await ann.answer_to(create) is None
            snapshot = (await ann.answer_to(one))["snapshot"]
            # An agent that is quick may be open by now; then that is what the snapshot says.
            is_open = any(seq <= snapshot["fromSeq"] for seq in ends_of_opening(host, session))
            assert (snapshot["state"]["lifecycle"] != "creating") == is_open
            assert snapshot["state"]["defaultChat"] == chat
            assert (await ann.answer_to(two))["snapshot"]["state"]["turns"] == []
            with refused(-32003):
                await ann.request("createSession", channel=session)
            echo = await ann.expect_action("chat/turnStarted", channel=chat)
            await trio.sleep(5)
            assert len(ends_of_opening(host, session)) == 1
            state = state_of(host, session)
            if state["lifecycle"] == "failed":
                assert state["creationError"]["message"] == "not today"
                again = (await ann.subscribe(session))["state"]
                assert again["lifecycle"] == "failed"
                if "rejectionReason" in echo:  # it failed before the turn was looked at
                    continue
            else:
                assert state["lifecycle"] == "ready"
            assert "rejectionReason" not in echo
            puppet = agent.of.get(chat)
            if puppet is not None and puppet.prompted is not None:
                puppet.end(Done())
            await ending(ann, "t1")
        with refused(-32001):
            await ann.subscribe("ahp-session:/never")
        assert host.ledger.find("ahp-session:/never") is None


@pytest.mark.parametrize("at", ["session", "chat/0"])
async def test_r_8_4_a_session_gets_ready_also_when_who_opens_it_is_killed(at: str) -> None:
    agent = PuppetAgent()
    agent.opens_in = 1.0
    async with running_host(agent) as host:
        await room(host)
        await trio.sleep(0.5)
        sys.kill(host.system.ref(host.ledger.channels[S].path.replace("/session", f"/{at}")))
        await trio.sleep(10)
        assert state_of(host, S)["lifecycle"] == "ready"


async def test_r_8_4_a_session_gets_ready_also_when_its_first_chat_is_ended_meanwhile() -> None:
    agent = PuppetAgent()
    agent.opens_in = 1.0
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.request("createChat", channel=S, chat=C2)
        await ann.request("disposeChat", channel=C)
        await trio.sleep(10)
        assert (state_of(host, S)["lifecycle"], state_of(host, S)["defaultChat"]) == ("ready", C2)


async def test_an_agent_that_raises_something_odd_when_it_opens_fails_the_session_alone() -> None:
    class Odd(PuppetAgent):
        async def open(self, request: OpenRequest) -> Puppet:
            raise ZeroDivisionError("division by zero")

    async with running_host(Odd()) as host:
        ann = await room(host)
        await settled()
        assert state_of(host, S)["lifecycle"] == "failed"
        params = await answer(ann, await ann.dispatch(C, started("t1")))
        assert "could not be started" in params["rejectionReason"]
        with refused(-32602, "could not be started"):
            await ann.request("createChat", channel=S, chat=C2)
        assert host.exits() == []


CREATIONS: list[tuple[dict[str, Any], int | None]] = [
    ({"provider": "nobody"}, -32002),
    ({"channel": ROOT}, -32003),
    ({"channel": C}, -32003),
    ({"channel": S}, -32003),
    ({"activeClient": {"clientId": "bob", "tools": []}}, -32602),
    ({"activeClient": {"clientId": "ann", "tools": []}}, None),
    ({"provider": "puppet"}, None),
    ({"workingDirectories": ["file:///c%3A/x", "file:///y"]}, None),
    ({"workingDirectories": ["file:///"]}, None),
    ({"_meta": {"x": 1}, "progressToken": "p"}, None),
]


@pytest.mark.parametrize(("params", "code"), CREATIONS, ids=repr)
async def test_what_a_session_is_created_with(params: dict[str, Any], code: int | None) -> None:
    async with running_host() as host:
        ann = await room(host)
        params = {"channel": S2, **params}
        before = list(host.ledger.channels)
        if code is not None:
            with refused(code):
                await ann.request("createSession", **params)
            assert list(host.ledger.channels) == before
            return
        assert await ann.request("createSession", **params) is None
        state = state_of(host, S2)
        held = params.get("workingDirectories")
        assert state.get("workingDirectories") == (held and held[:1])  # one, not several
        clients = [each["clientId"] for each in state["activeClients"]]
        assert clients == (["ann"] if "activeClient" in params else [])
        assert state["defaultChat"] == default_chat(S2) == state["chats"][0]["resource"]
        assert state_of(host, default_chat(S2))["resource"] == default_chat(S2)


async def test_b41_a_session_of_the_same_name_starts_clean() -> None:
    agent = PuppetAgent()
    async with running_host(agent, journal=SlowJournal(4, 0.02)) as host:
        ann = await room(host)
        await trio.sleep(1)
        # Those of the same name are ended while their agents still open.
        agent.opens_in = 1.0
        before = len(ends_of_opening(host, S))
        await ann.dispatch(C, {"type": "chat/draftChanged", "draft": message("x")})
        await ann.dispatch(S, {"type": "session/titleChanged", "title": "Old"})
        for _ in range(3):
            ids = [await ann.call("disposeSession", channel=S)]
            ids.append(await ann.call("createSession", channel=S))
            ids.append(await ann.call("subscribe", channel=S))
            await ann.answer_to(ids[0])
            await ann.answer_to(ids[1])
            state = (await ann.answer_to(ids[2]))["snapshot"]["state"]
            assert (state["title"], state["lifecycle"]) == ("", "creating")
        await ann.expect_action("session/ready", channel=S)
        await trio.sleep(10)
        assert len(ends_of_opening(host, S)) == before + 1
        assert "draft" not in state_of(host, C)


async def test_r_8_22_what_a_disposal_tells_and_to_whom() -> None:
    async with running_host() as host:
        ann, bob = await room(host), await room(host, "bob", subscribe=(ROOT,))
        assert await ann.request("disposeSession", channel=S) is None
        await bob.expect("root/sessionRemoved", session=S)
        with refused(-32001):
            await ann.request("disposeSession", channel=S)
        for channel, code in ((S, -32001), (C, -32008)):
            with refused(code):
                await ann.subscribe(channel)
        assert (await ann.request("listSessions"))["items"] == []
        assert list(host.ledger.channels) == [ROOT]
        await settled()
        assert host.system.registry.under("session") == []


# ---- the list ------------------------------------------------------------------------------------


async def many(host: RunningHost, peer: RawPeer, count: int) -> list[str]:
    """Sessions that were modified one after the other, a second apart; the newest last."""
    uris = [f"puppet:/list-{number:02}" for number in range(count)]
    for uri in uris:
        await peer.request("createSession", channel=uri)
        await trio.sleep(1)
    return uris


async def listed(peer: RawPeer, **params: Any) -> tuple[list[str], str | None]:
    result = await peer.request("listSessions", **params)
    return [item["resource"] for item in result["items"]], result.get("nextCursor")


async def test_r_7_23_the_list_is_whole_and_newest_first_and_paged_only_when_asked() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob = await host.peer("ann"), await host.peer("bob")
        await ann.hello()
        await bob.hello()
        uris = await many(host, ann, 9)
        assert await listed(ann) == (uris[::-1], None)
        assert await listed(ann, limit=100) == (uris[::-1], None)
        assert await listed(ann, limit=9) == (uris[::-1], None)
        found: list[str] = []
        page, cursor = await listed(ann, limit=4)
        while cursor is not None:
            found += page
            await ann.request("createSession", channel=f"puppet:/new-{len(found)}")
            if uris[0] in [*host.ledger.channels] and len(found) == 4:
                await ann.request("disposeSession", channel=uris[0])
            page, cursor = await listed(ann, limit=4, cursor=cursor)
        assert found + page == uris[:0:-1]  # no skip and no double of those nobody touched
        _, cursor = await listed(ann, limit=4)
        for peer, wrong in ((bob, cursor), (ann, "zzz"), (ann, ""), (ann, "\u00e9"), (ann, "YQ==")):
            with refused(-32602, "cursor"):
                await listed(peer, limit=4, cursor=wrong)
        for limit in (0, -1, 1.5):
            with refused(-32602, "limit"):
                await listed(ann, limit=limit)


async def test_the_order_goes_by_the_moment_not_by_how_a_client_spells_it() -> None:
    """A turn's start is its client's to write, in any offset (R-9.58)."""
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await host.peer("ann")
        await ann.hello()
        first, second = await many(host, ann, 2)
        chat = default_chat(first)
        start = started("t1") | {"startedAt": "2026-09-22T01:13:25.000+11:00"}  # 5 s later
        await ann.dispatch(chat, start)
        await at_work(agent, "t1", chat)
        await settled()
        agent.of[chat].end(Done())
        await trio.sleep(1)
        assert (await listed(ann))[0] == [first, second]


async def test_quirk_26_while_sessions_are_being_read_the_list_is_an_error_never_empty() -> None:
    async with running_host() as host:
        ann = await room(host)
        catalogue, host.tables.catalogue = host.tables.catalogue, None
        with refused(-32603, "still being read"):
            await ann.request("listSessions")
        with refused(-32603, "still being read"):
            await ann.request("createSession", channel=S2)
        host.tables.catalogue = catalogue
        assert (await listed(ann))[0] == [S]


# ---- what root subscribers are told (B16, B50) ---------------------------------------------------


class Rows:
    """A list of sessions kept as a client keeps it: added, removed, changed."""

    def __init__(self) -> None:
        self.rows: dict[str, Any] = {}

    def read(self, peer: RawPeer) -> None:
        for told in peer.inbox:
            params = told.get("params", {})
            match told.get("method"):
                case "root/sessionAdded":
                    assert params["summary"]["resource"] not in self.rows
                    self.rows[params["summary"]["resource"]] = params["summary"]
                case "root/sessionRemoved":
                    del self.rows[params["session"]]
                case "root/sessionSummaryChanged":
                    changes = params["changes"]
                    assert changes
                    assert not changes.keys() & {"resource", "provider", "createdAt"}
                    row = self.rows[params["session"]]
                    assert any(row.get(key) != value for key, value in changes.items())
                    row.update(changes)
        peer.inbox.clear()

    def plain(self) -> dict[str, Any]:
        return {uri: _without_empty(row) for uri, row in self.rows.items()}


def _without_empty(row: Any) -> Any:
    """What was cleared is sent as empty, and is left out of a whole row."""
    return {key: value for key, value in row.items() if value not in ("", [], ())} | {
        "chats": [{k: v for k, v in chat.items() if v != ""} for chat in row.get("chats", ())]
    }


@pytest.mark.parametrize("seed", range(4))
async def test_b16_b50_rows_and_counts_equal_a_recount_after_random_actions(seed: int) -> None:
    """Each change is told once; nothing is told of a session after it was removed."""
    dice = Random(seed)
    agent = PuppetAgent()
    uris = [f"puppet:/r{number}" for number in range(3)]
    async with running_host(agent) as host:
        ann, bob = await host.peer("ann"), await host.peer("bob")
        await ann.hello(subscribe=())
        await bob.hello()
        rows = Rows()
        for number in range(150):
            uri = dice.choice(uris)
            chat = default_chat(uri)
            puppet = agent.of.get(chat)
            match dice.randrange(12):
                case 0:
                    await ann.call("createSession", channel=uri)
                case 1 if dice.random() < 0.4:
                    await ann.call("disposeSession", channel=uri)
                case 2 | 3 | 4:
                    await ann.dispatch(chat, started(f"t{number}", f"Do {number}"))
                case 5:
                    await ann.dispatch(chat, cancelled(f"t{number - 1}"))
                case 6 if puppet is not None:
                    puppet.say(ActivityChanged(dice.choice([None, "Busy", "Very busy"])))
                    puppet.say(ToolStarted(f"c{number}", "run", "Run"))
                    puppet.say(ToolAsks(f"c{number}", "Run it"))
                case 7 if puppet is not None and puppet.prompted is not None:
                    call = f"c{number - 1}"
                    await ann.dispatch(chat, approved(puppet.prompted.turn_id, call))
                case 8:
                    bit = dice.choice(["isRead", "isArchived"])
                    await ann.dispatch(
                        uri, {"type": f"session/{bit}Changed", bit: dice.random() < 0.5}
                    )
                case 9:
                    await ann.dispatch(uri, {"type": "session/titleChanged", "title": f"{number}"})
                case 10:
                    await ann.dispatch(chat, pending(f"q{number}"))
                case _ if puppet is not None:
                    puppet.end(Done() if dice.random() < 0.6 else Failed("no"))
            if dice.random() < 0.2:
                await trio.sleep(dice.uniform(0, 0.3))
            if dice.random() < 0.5:
                continue
            await settled()
            rows.read(bob)
            here = {c.uri for c in host.ledger.channels.values() if c.kind == "session"}
            assert rows.rows.keys() == here
            assert state_of(host, ROOT)["activeSessions"] == len(here)
            for uri_, row in rows.plain().items():
                channel = host.ledger.find(uri_)
                assert channel is not None
                counted = session_summary(uri_, channel.state, row["createdAt"]).wire()
                assert row == _without_empty(counted)
                own = state_of(host, default_chat(uri_))
                assert counted["status"] & 31 == own["status"] & 31
                waiting = [
                    part["toolCall"]["toolCallId"]
                    for part in own.get("activeTurn", {}).get("responseParts", ())
                    if part.get("toolCall", {}).get("status") == "pending-confirmation"
                ]
                needed = channel.state.wire().get("inputNeeded", ())
                assert [entry["toolCall"]["toolCallId"] for entry in needed] == waiting
            items = (await bob.request("listSessions"))["items"]
            assert {i["resource"]: _without_empty(i) for i in items} == rows.plain()


@pytest.mark.parametrize("how", ["leave", "close", "disposeChat"])
async def test_b16_the_end_of_a_turn_reaches_the_list_though_everybody_leaves(how: str) -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob = await room(host), await room(host, "bob", subscribe=(ROOT,))
        await ann.request("createChat", channel=S, chat=C2)
        await ann.dispatch(C, started("t1"))
        (await at_work(agent, "t1")).end(Done())
        if how == "disposeChat":
            await ann.call("disposeChat", channel=C)
        for channel in (S, C):
            await ann.notify("unsubscribe", channel=channel)
        if how == "close":
            await ann.close()
        await trio.sleep(1)
        rows = Rows()
        rows.rows[S] = {}
        bob.inbox[:] = [it for it in bob.inbox if it.get("method") == "root/sessionSummaryChanged"]
        rows.read(bob)
        assert rows.rows[S]["status"] & 31 == 1
        assert (await bob.request("listSessions"))["items"][0]["status"] & 31 == 1


# ---- versions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "has_chats"), [("0.9.0", False), ("0.10.0", True), ("1.0.0", True)]
)
async def test_r_2_14_a_0_9_client_is_told_no_chats_in_summaries(
    version: str, has_chats: bool
) -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, old = await room(host), await host.peer("old")
        await old.hello(versions=[version])
        await ann.request("createSession", channel=S2)
        await turn(ann, agent, "t1", Done())
        await ann.request("createChat", channel=S, chat=C2)
        await trio.sleep(1)
        summaries = [
            m["params"].get("summary") or m["params"]["changes"]
            for m in old.inbox
            if m.get("method") in ("root/sessionAdded", "root/sessionSummaryChanged")
        ]
        summaries += (await old.request("listSessions"))["items"]
        assert len(summaries) > 4
        assert all(summaries)  # nothing is told that says nothing
        assert any("chats" in each for each in summaries) == has_chats
        assert any("defaultChat" in each for each in summaries) == has_chats


async def test_r_2_10_after_a_reconnect_the_version_is_the_last_one_negotiated() -> None:
    async with running_host() as host:
        ann, old = await room(host), await host.peer("old")
        await old.hello(versions=["0.9.0"])
        old.cut()
        old = await host.peer("old")
        await old.request(
            "reconnect", clientId="old", lastSeenServerSeq=host.ledger.seq, subscriptions=[ROOT]
        )
        await ann.request("createSession", channel=S2)
        assert "chats" not in (await old.expect("root/sessionAdded"))["summary"]
