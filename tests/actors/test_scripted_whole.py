"""One scripted turn that asks in every way, from its file to three screens that answer together."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import trio

from actors.messages import Authorize
from ahpd.agents.script import load_script
from ahpd.agents.scripted import ScriptedAgent
from ahpd.protocol.uris import ROOT
from tests.actors.support import C, S, approved, ending, room, settled, started
from tests.actors.talk import completed, draft, result_confirmed, text
from tests.harness import differences, running_host

SCRIPT = Path(__file__).parents[2] / "fixtures" / "scripts" / "asks.json"


async def test_every_way_to_ask_is_answered_by_two_and_by_a_third_from_the_list() -> None:
    agent = ScriptedAgent(
        "puppet", load_script(SCRIPT), now=lambda: datetime(2026, 9, 21, tzinfo=UTC)
    )
    async with running_host(agent) as host:
        ann, bob = await room(host), await room(host, "bob")
        eve = await room(host, "eve", subscribe=(S,))

        async def waiting() -> Any:
            await trio.sleep(1)
            session: Any = host.ledger.channels[S].state.wire()
            (entry,) = session["inputNeeded"]
            return entry

        async with host.client("laptop", subscriptions=(ROOT, S, C)) as laptop:
            await ann.dispatch(C, started("t1"))
            first = await waiting()
            await ann.dispatch(C, draft(first["request"]["id"], "name", text("Ahp"), "submitted"))
            await bob.dispatch(
                C, draft(first["request"]["id"], "count", {"kind": "number", "value": 3})
            )
            await settled()
            await eve.dispatch(first["chat"], completed(first["request"]["id"]))
            url = await waiting()
            assert url["request"]["url"] == "https://example.org/sign-in"
            await bob.dispatch(C, completed(url["request"]["id"]))
            risky = await waiting()
            assert risky["toolCall"]["riskAssessment"]["safety"] == 0.2
            await eve.dispatch(risky["chat"], approved("t1", risky["toolCall"]["toolCallId"]))
            result = await waiting()
            assert result["toolCall"]["status"] == "pending-result-confirmation"
            await ann.dispatch(
                C, result_confirmed("t1", result["toolCall"]["toolCallId"], approved=True)
            )
            paused = await waiting()
            assert paused["kind"] == "toolAuthentication"
            host.system.ref(host.ledger.channels[C].path).cast(
                Authorize(paused["chat"], paused["toolCall"]["toolCallId"], "token")
            )
            worker = await waiting()
            assert worker["chat"] != C
            await laptop.subscribe(worker["chat"])
            await eve.dispatch(
                worker["chat"], approved(worker["turnId"], worker["toolCall"]["toolCallId"])
            )
            assert (await ending(ann, "t1"))["type"] == "chat/turnComplete"
            await trio.sleep(1)
            chat: Any = host.ledger.channels[C].state.wire()
            assert chat["backgroundWork"][0]["label"] == "Watch the build"
            await trio.sleep(60)
            assert differences(laptop, host) == []
            assert "backgroundWork" not in host.ledger.channels[C].state.wire()
        session: Any = host.ledger.channels[S].state.wire()
        assert "inputNeeded" not in session
        assert len(session["customizations"]) == 3
        kinds = [part["kind"] for part in chat["turns"][0]["responseParts"]]
        assert kinds.count("inputRequest") == 2
        assert kinds[0] == "systemNotification"
        assert chat["turns"][0]["usage"]["_meta"]["ahpd.cost"]["currency"] == "USD"
        started_turns, ended_turns = host.stream.turns()
        assert started_turns == ended_turns
