"""An agent on strings: it does what the test tells it, when the test tells it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TypeAlias

import trio

from ahpd.agents.events import Event, Outcome, Stopped
from ahpd.agents.port import (
    AgentFailed,
    Answer,
    EventSink,
    OpenRequest,
    Permission,
    Prompt,
    ServerRequest,
)
from ahpd.protocol.customizations import CustomizationEnablement
from ahpd.protocol.messages import Message
from ahpd.protocol.root import (
    AgentCapabilities,
    AgentInfo,
    MultipleChatsCapability,
    MultipleWorkingDirectoriesCapability,
)
from ahpd.protocol.uris import URI

Deed: TypeAlias = Sequence[Event] | Outcome | Exception


class Puppet:
    """The backend of one chat. `deaf`: it does not obey a cancel until it is no longer deaf."""

    def __init__(self, agent: PuppetAgent, request: OpenRequest) -> None:
        self.agent = agent
        self.request = request
        #: The turn it works on; None while it is idle.
        self.prompted: Prompt | None = None
        self.prompts: list[Prompt] = []
        #: What it has said, in turns and beside them.
        self.said: list[Event] = []
        #: Every answer it got, and those to calls that asked for permission.
        self.answers: list[Answer] = []
        self.permissions: list[Permission] = []
        #: What it was told to forget, to switch and to do with servers.
        self.rewinds: list[str | None] = []
        self.switched: dict[str, Sequence[CustomizationEnablement]] = {}
        self.controlled: list[tuple[str, ServerRequest]] = []
        self.steered: list[Message] = []
        self.cancels = 0
        self.deaf = False
        self.closed = False
        self._deeds: deque[Deed] = deque()
        self._news = trio.Event()
        self._asides: deque[Deed] = deque()
        self._aside_news = trio.Event()

    # ---- the strings ------------------------------------------------------------------------

    def say(self, *events: Event) -> None:
        """Have it say these in one piece; nothing happens while it is idle."""
        self._pull(events)

    def end(self, outcome: Outcome) -> None:
        """Have it end the turn."""
        self._pull(outcome)

    def crash(self, error: Exception) -> None:
        """Have it raise: `AgentFailed` if it breaks down as agents do, else a bug of its own."""
        self._pull(error)

    def hear(self) -> None:
        """No longer deaf; it obeys a cancel that came before."""
        self.deaf = False
        self._wake()

    def mutter(self, *events: Event) -> None:
        """Have it say these beside the turns, whether or not one runs."""
        self._asides.append(events)
        self._aside_news.set()

    def collapse(self, error: Exception) -> None:
        """Have it break down beside the turns."""
        self._asides.append(error)
        self._aside_news.set()

    def _pull(self, deed: Deed) -> None:
        if self.prompted is not None:
            self._deeds.append(deed)
            self._wake()

    def _wake(self) -> None:
        self._news.set()

    # ---- a backend --------------------------------------------------------------------------

    async def prompt(self, prompt: Prompt, events: EventSink) -> Outcome:
        """See `Backend`."""
        assert self.prompted is None, f"{prompt.turn_id}: {self.prompted} still runs"
        assert not self.closed, f"{prompt.turn_id}: prompted after it was closed"
        self.prompted = prompt
        self.prompts.append(prompt)
        self.cancels = 0
        self._deeds.clear()
        try:
            return await self._work(events)
        finally:
            self.prompted = None

    async def _work(self, events: EventSink) -> Outcome:
        while True:
            if self.cancels and not self.deaf:
                return Stopped()
            if not self._deeds:
                self._news = trio.Event()
                await self._news.wait()
                continue
            deed = self._deeds.popleft()
            if isinstance(deed, Exception):
                raise deed
            if not isinstance(deed, Sequence):
                return deed
            await events(deed)
            self.said += deed

    async def aside(self, events: EventSink) -> None:
        """See `Backend`."""
        while True:
            if not self._asides:
                self._aside_news = trio.Event()
                await self._aside_news.wait()
                continue
            deed = self._asides.popleft()
            if isinstance(deed, Exception):
                raise deed
            if isinstance(deed, Sequence):
                await events(deed)
                self.said += deed

    def answer(self, answer: Answer) -> None:
        """See `Backend`."""
        self.answers.append(answer)
        if isinstance(answer, Permission):
            self.permissions.append(answer)

    async def rewind(self, turn_id: str | None) -> None:
        """See `Backend`."""
        assert self.prompted is None, f"rewound to {turn_id} while {self.prompted} runs"
        await trio.sleep(self.agent.rewinds_in)
        if self.agent.rewinding_fails is not None:
            raise AgentFailed(self.agent.rewinding_fails)
        self.rewinds.append(turn_id)

    def switch(self, customization_id: str, enablement: Sequence[CustomizationEnablement]) -> None:
        """See `Backend`."""
        self.switched[customization_id] = enablement

    def control(self, server_id: str, request: ServerRequest) -> None:
        """See `Backend`."""
        self.controlled.append((server_id, request))

    def steer(self, message: Message) -> bool:
        """See `Backend`."""
        if self.agent.takes_steering:
            self.steered.append(message)
        return self.agent.takes_steering

    def cancel(self) -> None:
        """See `Backend`."""
        self.cancels += 1
        self._wake()

    async def close(self) -> None:
        """See `Backend`."""
        assert not self.closed, f"{self.request.chat}: closed twice"
        self.closed = True
        await trio.lowlevel.checkpoint()


#: Several chats a session, made in every way there is.
ALL_CHATS = MultipleChatsCapability(fork=True, side_chat=True)


class PuppetAgent:
    """Makes puppets. `broken`: opening one fails with this; `opens_in`: it takes that long.

    It can do everything unless told otherwise, at any time; `rewinding_fails`: it can, but fails
    with this, or (`rewinds_in`) it takes that long.
    """

    def __init__(
        self,
        provider: str = "puppet",
        *,
        takes_steering: bool = True,
        can_resume: bool = True,
        chats: MultipleChatsCapability | None = ALL_CHATS,
        directories: MultipleWorkingDirectoriesCapability | None = None,
    ) -> None:
        self.can_resume = can_resume
        self.takes_steering = takes_steering
        self.can_rewind = True
        self.can_switch = True
        self.can_control = True
        self.rewinding_fails: str | None = None
        self.rewinds_in = 0.0
        self.broken: str | None = None
        self.opens_in = 0.0
        #: Every puppet ever made, and the last one of each chat.
        self.made: list[Puppet] = []
        self.of: dict[URI, Puppet] = {}
        #: What it was asked to delete.
        self.forgotten: list[OpenRequest] = []
        self.info = AgentInfo(
            provider=provider,
            display_name="Puppet",
            description="Does what the test says",
            models=(),
            capabilities=AgentCapabilities(
                multiple_chats=chats, multiple_working_directories=directories
            ),
        )

    def make(self, request: OpenRequest) -> Puppet:
        """A puppet for a chat."""
        return Puppet(self, request)

    async def open(self, request: OpenRequest) -> Puppet:
        """See `Agent`."""
        await trio.sleep(self.opens_in)
        if self.broken is not None:
            raise AgentFailed(self.broken)
        puppet = self.of[request.chat] = self.make(request)
        self.made.append(puppet)
        return puppet

    async def forget(self, request: OpenRequest) -> None:
        """See `Agent`."""
        puppet = self.of.get(request.chat)
        assert puppet is None or puppet.closed, f"{request.chat}: still open"
        await trio.sleep(self.opens_in)
        if self.broken is not None:
            raise AgentFailed(self.broken)
        self.forgotten.append(request)
