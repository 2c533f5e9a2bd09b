"""What the tests of agents share: a sink that remembers, and a turn in a task of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import trio

from ahpd.agents.events import Event, Outcome, TextChunk
from ahpd.agents.playing import ScriptedBackend
from ahpd.agents.port import OpenRequest, Prompt
from ahpd.agents.script import parse_script
from ahpd.agents.scripted import ScriptedAgent
from ahpd.protocol.messages import Message, MessageOrigin
from ahpd.protocol.model import JSON
from ahpd.protocol.uris import URI

REQUEST = OpenRequest(session=URI("ahp-session:/s"), chat=URI("ahp-chat:/c"))


def message(text: str) -> Message:
    return Message(text=text, origin=MessageOrigin(kind="user"))


def prompt(text: str = "hello", turn_id: str = "t1", *, resume: bool = False) -> Prompt:
    return Prompt(turn_id, message(text), resume=resume)


def backend(*steps: JSON) -> ScriptedBackend:
    """A backend whose every turn plays the steps."""
    return ScriptedBackend(parse_script({"turns": [{"steps": list(steps)}]}))


async def opened(script: JSON) -> ScriptedBackend:
    return await ScriptedAgent("test", parse_script(script)).open(REQUEST)


@attrs.define
class Screen:
    """A sink: keeps events with the time they came at, and the size of each call.

    `then` is called with each event once it is kept.
    """

    then: Callable[[Event], None] | None = None
    events: list[Event] = attrs.field(factory=list)
    times: list[float] = attrs.field(factory=list)
    calls: list[int] = attrs.field(factory=list)

    async def __call__(self, events: Sequence[Event]) -> None:
        self.calls.append(len(events))
        for event in events:
            self.events.append(event)
            self.times.append(trio.current_time())
            if self.then is not None:
                self.then(event)

    @property
    def text(self) -> str:
        return "".join(each.text for each in self.events if isinstance(each, TextChunk))

    def only(self, cls: type[Event]) -> list[Event]:
        return [each for each in self.events if isinstance(each, cls)]


async def blocked(_: Sequence[Event]) -> None:
    """A sink that never takes anything."""
    await trio.sleep_forever()


@attrs.define
class Running:
    """A turn that plays in a task of its own; `outcome` is there once it ended."""

    backend: ScriptedBackend
    screen: Screen = attrs.field(factory=Screen)
    outcome: Outcome | None = None

    async def run(self, what: Prompt) -> None:
        self.outcome = await self.backend.prompt(what, self.screen)
