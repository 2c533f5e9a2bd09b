"""What tests of a conversation share: what people dispatch to what an agent asks, and one turn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs

from actors.host import Settings
from ahpd.agents.events import Event
from ahpd.protocol.uris import URI
from tests.actors.support import C, at_work, room, settled, started
from tests.harness import Puppet, PuppetAgent, RawPeer, RunningHost, running_host


@attrs.define
class Stage:
    """A host with one peer, Ann, and an agent that works on her turn ``t1``."""

    host: RunningHost
    ann: RawPeer
    agent: PuppetAgent
    puppet: Puppet

    async def says(self, *events: Event) -> None:
        """The agent says these, and everybody hears them."""
        self.puppet.say(*events)
        await settled()

    async def mutters(self, *events: Event) -> None:
        """The agent says these beside its turns."""
        self.puppet.mutter(*events)
        await settled()

    async def why(self, action: Any, channel: URI = C) -> str | None:
        """Why Ann's action is refused; None when it is not."""
        seq = await self.ann.dispatch(channel, action)
        reason: str | None = (await self.ann.answered(seq))["params"].get("rejectionReason")
        await settled()
        return reason

    def state(self, channel: URI = C) -> Any:
        """The host's state of a channel, as JSON."""
        found = self.host.ledger.find(channel)
        assert found is not None, channel
        return found.state.wire()

    def parts(self, channel: URI = C) -> Any:
        """The parts of the running turn, or of the last one."""
        chat = self.state(channel)
        return (chat.get("activeTurn") or chat["turns"][-1])["responseParts"]

    def call(self, channel: URI = C, place: int = -1) -> Any:
        """One of its tool calls."""
        calls = [p["toolCall"] for p in self.parts(channel) if p["kind"] == "toolCall"]
        return calls[place]


@asynccontextmanager
async def stage(
    agent: PuppetAgent | None = None,
    *,
    subscribe: Sequence[URI] | None = None,
    settings: Settings | None = None,
) -> AsyncIterator[Stage]:
    """A stage on which the agent works."""
    agent = agent or PuppetAgent()
    async with running_host(agent, settings=settings) as host:
        ann = await (room(host) if subscribe is None else room(host, subscribe=subscribe))
        await ann.dispatch(C, started("t1"))
        yield Stage(host, ann, agent, await at_work(agent, "t1"))


def draft(request: str, question: str, value: Any, state: str = "draft") -> dict[str, Any]:
    answer = value if value is None or "state" in value else {"state": state, "value": value}
    action = {"type": "chat/inputAnswerChanged", "requestId": request, "questionId": question}
    return action if answer is None else {**action, "answer": answer}


def completed(request: str, response: str = "accept", **answers: Any) -> dict[str, Any]:
    action = {"type": "chat/inputCompleted", "requestId": request, "response": response}
    given = {key: {"state": "submitted", "value": value} for key, value in answers.items()}
    return {**action, "answers": given} if given else action


def text(value: str) -> dict[str, Any]:
    return {"kind": "text", "value": value}


def result_confirmed(turn_id: str, call: str, *, approved: bool) -> dict[str, Any]:
    return {
        "type": "chat/toolCallResultConfirmed",
        "turnId": turn_id,
        "toolCallId": call,
        "approved": approved,
    }


def given_up(turn_id: str, call: str, *, success: bool = False) -> dict[str, Any]:
    return {
        "type": "chat/toolCallComplete",
        "turnId": turn_id,
        "toolCallId": call,
        "result": {"success": success, "pastTenseMessage": "Gave up"},
    }


def truncated(turn_id: str | None = None) -> dict[str, Any]:
    action = {"type": "chat/truncated"}
    return action if turn_id is None else {**action, "turnId": turn_id}


def resumed(turn_id: str) -> dict[str, Any]:
    return {"type": "chat/turnResume", "turnId": turn_id}
