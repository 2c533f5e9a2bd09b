"""A chat that fails too often, as its clients see it."""

from __future__ import annotations

from typing import Any

import trio

from actors.caretaker import Caretaker
from actors.connection import serve_connection
from actors.sentences import set_aside as sentence
from actors.tree import make_host, tree
from ahpd.agents.builtin import BUILTIN
from ahpd.agents.scripted import ScriptedAgent
from ahpd.daemon.control import PrivateTransport
from ahpd.journal.memory import MemoryJournal
from ahpd.transports.memory import memory_pair
from supervisors import Note, Report, running
from supervisors.faults import Fault, FaultKind, Injection, Plan
from tests.daemon.support import CHAT, SESSION, Peer, turn
from tests.wire import Wiretap

#: Every message breaks the chat once it was handled, until nothing is left of this.
PLAN = Plan(tuple(Fault(FaultKind.RAISE, "*/chat/0", number, after=True) for number in range(2, 8)))


def start(number: int) -> Any:
    params = turn("hang")
    params["clientSeq"] = number
    params["action"]["turnId"] = f"t{number}"
    return params


async def test_it_says_so_and_comes_back_when_somebody_restarts_it(wire: Wiretap) -> None:
    host = make_host([ScriptedAgent("demo", BUILTIN)], wall=lambda: 0, steady=lambda: 0, seed=1)
    caretaker = Caretaker(host)
    parked: list[str] = []

    def report(report: Report) -> None:
        caretaker(report)
        if report.note is Note.PARKED:
            parked.append(report.path)

    far, near = memory_pair()
    plan = Injection(PLAN)
    async with (
        running(tree(host, MemoryJournal()), report=report, faults=plan) as system,
        trio.open_nursery() as nursery,
    ):
        caretaker.attach(system)
        await system.wait_for("connections")
        nursery.start_soon(serve_connection, system, host, PrivateTransport(near, system))
        client = Peer(far, wire.connection())
        await client.hello()
        await client.request("createSession", channel=SESSION)
        await client.request("subscribe", channel=CHAT)
        await client.request("subscribe", channel=SESSION)
        number = 0
        while not parked:
            number += 1
            await client.send("dispatchAction", start(number))
            await trio.sleep(10)

        path = host.ledger.channels[CHAT].path
        assert parked == [path]
        chat = (await client.request("subscribe", channel=CHAT))["snapshot"]["state"]
        assert chat["activity"] == sentence(path)
        assert f"ahpd restart {path}" in chat["activity"]
        assert "activeTurn" not in chat
        assert chat["turns"][-1]["state"] == "error"
        session = (await client.request("subscribe", channel=SESSION))["snapshot"]["state"]
        assert session["activity"] == chat["activity"]

        client.heard.clear()
        await client.send("dispatchAction", start(99))
        while True:
            message = await client.next()
            if message.get("params", {}).get("origin", {}).get("clientSeq") == 99:
                break
        assert "set aside" in message["params"]["rejectionReason"]

        assert await client.request("x-ahpd/restartActor", path=path) is None
        await trio.sleep(1)
        for channel in (CHAT, SESSION):
            state = (await client.request("subscribe", channel=channel))["snapshot"]["state"]
            assert "activity" not in state
        assert len(plan.fired) == len(PLAN.faults)
        await client.send("dispatchAction", start(100))
        await client.until_action("chat/delta")
        await far.close()


async def test_a_parked_session_says_so_too(wire: Wiretap) -> None:
    host = make_host([ScriptedAgent("demo", BUILTIN)], wall=lambda: 0, steady=lambda: 0, seed=1)
    caretaker = Caretaker(host)
    path = "session/11111111-1111-4111-8111-111111111111/session"
    far, near = memory_pair()
    async with (
        running(tree(host, MemoryJournal()), report=caretaker) as system,
        trio.open_nursery() as nursery,
    ):
        caretaker.attach(system)
        await system.wait_for("connections")
        nursery.start_soon(serve_connection, system, host, near)
        client = Peer(far, wire.connection())
        await client.hello()
        await client.request("createSession", channel=SESSION)
        await trio.sleep(1)
        assert host.ledger.channels[SESSION].path == path
        for note, activity in ((Note.PARKED, sentence(path)), (Note.STARTED, None)):
            caretaker(Report(0.0, note, path, 1, ""))
            await trio.sleep(1)
            state = (await client.request("subscribe", channel=SESSION))["snapshot"]["state"]
            assert state.get("activity") == activity
        caretaker(Report(0.0, Note.PARKED, "listeners/websocket", 1, ""))
        await far.close()
