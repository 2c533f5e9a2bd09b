"""`Show`: a host on which the scenes are played, with an agent that can all or next to nothing.

A scene tries one thing and says what came of it: None when it was done, else in words why not. It
is played twice, once with each agent, and what a row of the table says must be what happened.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import attrs

from ahpd.agents.events import Done, Event
from ahpd.agents.port import ConfigContext, Configuration
from ahpd.protocol.common import ProtectedResourceMetadata
from ahpd.protocol.model import JSON
from ahpd.protocol.root import (
    AgentCapabilities,
    MultipleChatsCapability,
    MultipleWorkingDirectoriesCapability,
    SessionModelInfo,
)
from ahpd.protocol.session import (
    SessionConfigPropertySchema,
    SessionConfigSchema,
    SessionConfigValueItem,
)
from ahpd.protocol.uris import ROOT, URI, annotations_of
from ahpd.resources.files import FileResources
from tests.actors.served.table import Kind
from tests.actors.support import C, S, actions, at_work, room, settled, started
from tests.actors.talk import Stage
from tests.harness import (
    PuppetAgent,
    PuppetLogs,
    PuppetTerminals,
    RawPeer,
    puppet_telemetry,
    running_host,
)

RESOURCE = "https://files.example/mcp"

#: A dispatch that nobody answers, and something that is never said.
IGNORED, NOT_SAID = "ignored", "not said"

#: What came of a scene: None when it was done.
Outcome: TypeAlias = str | None


class Able(PuppetAgent):
    """An agent that can do all that there is."""

    def __init__(self) -> None:
        super().__init__()
        self.changed: Callable[[], None] = lambda: None
        self.info = self.info.evolve(
            capabilities=AgentCapabilities(
                multiple_chats=MultipleChatsCapability(fork=True, side_chat=True),
                multiple_working_directories=MultipleWorkingDirectoriesCapability(),
            ),
            protected_resources=(ProtectedResourceMetadata(resource=RESOURCE, required=False),),
        )

    def watch(self, changed: Callable[[], None]) -> None:
        """See `Changing`."""
        self.changed = changed

    def learn(self, name: str) -> None:
        """It learns of a model."""
        model = SessionModelInfo(id=name, provider="puppet", name=name)
        self.info = self.info.evolve(models=(model,))
        self.changed()

    async def config_schema(self, context: ConfigContext) -> Configuration:
        """See `Configurable`."""
        mode = SessionConfigPropertySchema(
            type="string", title="Mode", default="plan", enum_dynamic=True, session_mutable=True
        )
        return Configuration(SessionConfigSchema(properties={"mode": mode}))

    async def config_values(
        self, context: ConfigContext, key: str, query: str
    ) -> Sequence[SessionConfigValueItem]:
        """See `Configurable`."""
        return (SessionConfigValueItem(value="act", label="Act"),)

    def config_refusal(self, key: str, value: JSON) -> str | None:
        """See `Configurable`."""
        return None


class Bare(PuppetAgent):
    """An agent that works on turns and can do nothing beyond that."""

    def __init__(self) -> None:
        super().__init__(takes_steering=False)
        self.can_resume = self.can_rewind = self.can_switch = self.can_control = False
        self.info = self.info.evolve(capabilities=None)


@attrs.define
class Show(Stage):
    """See the module's docstring. Ann and Bob hear the root, the session and its chat."""

    bob: RawPeer
    is_able: bool
    terminals: PuppetTerminals
    logs: PuppetLogs

    async def work(self, turn_id: str = "t1") -> None:
        """A turn is started, and the agent works on it."""
        await self.ann.dispatch(C, started(turn_id))
        self.puppet = await at_work(self.agent, turn_id)

    async def done(self, turn_id: str = "t1") -> None:
        """A turn, from its start to its end."""
        await self.work(turn_id)
        self.puppet.end(Done())
        await settled()

    async def can(self, *events: Event) -> None:
        """The agent says these in its turn, if it is one that can."""
        if self.is_able:
            await self.says(*events)

    async def can_beside(self, *events: Event) -> None:
        """The same beside its turns."""
        if self.is_able:
            await self.mutters(*events)

    async def why(self, action: Any, channel: URI = C, who: RawPeer | None = None) -> Outcome:
        """Why an action is not taken; None when it is, and then everybody else has heard it."""
        sender = who or self.ann
        here = [len(peer.inbox) for peer in (self.ann, self.bob)]
        seq = await sender.dispatch(channel, action)
        await settled()
        origin = {"clientId": sender.name, "clientSeq": seq}
        heard = [
            [it["params"] for it in peer.inbox[start:] if it["params"].get("origin") == origin]
            for peer, start in zip((self.ann, self.bob), here, strict=True)
        ]
        mine = heard[0] if sender is self.ann else heard[1]
        if not mine:
            return IGNORED
        (answer,) = mine
        assert (answer["channel"], answer["action"]) == (channel, action)
        reason: Outcome = answer.get("rejectionReason")
        if reason is None:
            assert heard[0] == heard[1], "an echo goes to everybody who listens"
        else:
            assert len(heard[0]) + len(heard[1]) == 1, "a refusal is its sender's alone"
        return reason

    def said(self, channel: URI | None = None) -> list[Any]:
        """The actions that Ann has heard."""
        return actions(self.ann, channel)

    def heard(self) -> set[tuple[Kind, str]]:
        """All that the host has sent on any connection, without what it refused."""
        found: set[tuple[Kind, str]] = set()
        for tap in self.host.taps.all:
            for way, frame in tap.frames:
                name = frame.get("method")
                if way != "h2c" or name is None or name == "unsubscribe":
                    continue
                found.add(("request" if "id" in frame else "notification", name))
                if name == "action" and "rejectionReason" not in frame["params"]:
                    found.add(("action", frame["params"]["action"]["type"]))
        return found


Scene: TypeAlias = Callable[[Show], Awaitable[Outcome]]
Story: TypeAlias = Callable[[Show], Awaitable[None]]
#: name -> scene, as the files of scenes have it.
Scenes: TypeAlias = dict[str, Scene]


@asynccontextmanager
async def show(*, is_able: bool) -> AsyncIterator[Show]:
    """A host with one session, in which nothing runs."""
    agent = Able() if is_able else Bare()
    terminals, logs = PuppetTerminals(), PuppetLogs()
    async with running_host(
        agent,
        resources=FileResources(),
        terminals=terminals,
        telemetry=puppet_telemetry(logs),
    ) as host:
        ann = await room(host)
        bob = await room(host, "bob")
        for peer in (ann, bob):
            if host.ledger.find(annotations_of(S)) is not None:
                await peer.subscribe(annotations_of(S))
        await settled()
        yield Show(host, ann, agent, agent.of[C], bob, is_able, terminals, logs)


def dispatched(
    action: JSON, channel: URI = C, effect: Callable[[Show], object] = lambda _: True
) -> Scene:
    """Ann dispatches this, and then that holds."""

    async def scene(it: Show) -> Outcome:
        reason = await it.why(action, channel)
        assert reason is not None or effect(it), it.state(channel)
        return reason

    return scene


def told(story: Story, *names: str, kind: Kind = "action") -> Scenes:
    """In this story the host says these."""

    def scene(name: str) -> Scene:
        async def play(it: Show) -> Outcome:
            it.ann.inbox.clear()
            await story(it)
            await settled()
            own = [each for each in it.said() if each["type"] == name]
            told = [each for each in it.ann.inbox if each.get("method") == name]
            return None if (own if kind == "action" else told) else NOT_SAID

        return play

    return {name: scene(name) for name in names}


__all__ = [
    "IGNORED",
    "NOT_SAID",
    "RESOURCE",
    "ROOT",
    "Able",
    "Bare",
    "C",
    "Outcome",
    "S",
    "Scene",
    "Scenes",
    "Show",
    "dispatched",
    "settled",
    "show",
    "told",
]
