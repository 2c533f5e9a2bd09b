"""What clients are told when an actor of theirs is set aside, and when it is back."""

from __future__ import annotations

import trio

from actors.caretaker import Caretaker
from ahpd.agents.events import Done, TextChunk
from supervisors import sys
from tests.actors.support import C, S, at_work, ending, room, started, turn
from tests.harness import PuppetAgent, running_host
from tests.harness.replicas import state_of


async def test_the_turn_of_a_parked_chat_ends_and_its_state_says_why() -> None:
    """And the session's row and the list with it, until somebody starts it again by hand."""
    agent = PuppetAgent()
    async with running_host(agent) as host:
        caretaker = Caretaker(host.tables)
        caretaker.attach(host.system)
        ann = await room(host)
        path = host.ledger.channels[C].path
        for number in range(20):
            if host.parked():
                break
            await ann.dispatch(C, started(f"t{number}"))
            (await at_work(agent, f"t{number}")).say(TextChunk("x"))
            sys.kill(host.system.ref(path))
            here = len(host.reports)
            await trio.sleep(0.5)
            for report in host.reports[here - 1 :]:
                caretaker(report)
            await ending(ann, f"t{number}")
        assert host.parked() == [path]
        assert path in state_of(host, C)["activity"]
        await trio.sleep(1)
        row = (await ann.request("listSessions"))["items"][0]
        assert row["status"] & 31 == 2
        assert path in row["activity"]
        started_turns, ended_turns = host.stream.turns()
        assert started_turns == ended_turns
        supervisor = host.system.supervisor(host.ledger.channels[S].path.rpartition("/")[0])
        here = len(host.reports)
        await supervisor.restart_child("chat-0")
        for report in host.reports[here:]:
            caretaker(report)
        await trio.sleep(1)
        assert not state_of(host, C).get("activity")
        assert (await turn(ann, agent, "again", Done()))["type"] == "chat/turnComplete"
