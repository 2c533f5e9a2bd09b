"""The scripted agent: plays a script with exact timing and faults, for tests and the demo.

This is what the host is told of it. What plays, and the built-in script, are imported when the
first chat is opened: an editor that starts the host need not wait for them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING

import trio
from msgspec import Struct, field

from ahpd.agents.port import OpenRequest
from ahpd.protocol.root import (
    AgentCapabilities,
    AgentInfo,
    MultipleChatsCapability,
    SessionModelInfo,
)

if TYPE_CHECKING:
    from ahpd.agents.playing import ScriptedBackend
    from ahpd.agents.script import Script

_CAPABILITIES = AgentCapabilities(multiple_chats=MultipleChatsCapability(fork=True, side_chat=True))
_MODELS = (("script-large", "Script Large"), ("script-small", "Script Small"))


class ScriptedAgent(Struct, frozen=True, eq=False):
    """An agent called `name` whose every chat plays `script`. Implements `Agent`.

    `script` is None for the built-in one; `title` is what people see for the name.
    """

    name: str
    script: Script | None
    #: Where the tags of resumed turns come from; a seeded one makes them the same in every run.
    random: Random = field(default_factory=Random)
    capabilities: AgentCapabilities = _CAPABILITIES

    can_rewind: bool = True
    can_switch: bool = True
    can_control: bool = True
    #: Tells the time, for what a script says with one.
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    title: str | None = None

    @property
    def can_resume(self) -> bool:
        """True: `ahpd.agents.playing` says where a new backend goes on."""
        return True

    @property
    def info(self) -> AgentInfo:
        """What clients are told. Both models play the same script."""
        return AgentInfo(
            provider=self.name,
            display_name=f"{self.title or self.name} (scripted)",
            description="Plays a script instead of thinking: for trying things out and for tests.",
            models=tuple(
                SessionModelInfo(id=each, provider=self.name, name=name) for each, name in _MODELS
            ),
            capabilities=self.capabilities,
        )

    def takes_up(self, waiting: str) -> bool:
        """True for what a step asked: its id says which one that is."""
        from ahpd.agents.plays import place_of  # noqa: PLC0415 - see the module

        return place_of(waiting) is not None

    async def open(self, request: OpenRequest) -> ScriptedBackend:
        """A backend that shares nothing with the others. A checkpoint; never fails."""
        from ahpd.agents.playing import ScriptedBackend  # noqa: PLC0415 - see the module

        await trio.lowlevel.checkpoint()
        return ScriptedBackend(self.script or _builtin(), self.random, self.now)

    async def forget(self, request: OpenRequest) -> None:
        """A script keeps nothing. A checkpoint."""
        await trio.lowlevel.checkpoint()


def _builtin() -> Script:
    from ahpd.agents.builtin import BUILTIN  # noqa: PLC0415 - see the module

    return BUILTIN
