"""What the tests of ACP share: an agent's process at work, and a turn with it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

from ahpd.agents.acp.agent import AcpAgent
from ahpd.agents.acp.backend import AcpBackend
from ahpd.agents.events import Event, Outcome
from ahpd.agents.port import AgentFailed, OpenRequest, Permission
from ahpd.protocol.uris import URI
from tests.agents.support import Screen, prompt

ROGUE = Path(__file__).with_name("rogue.py")

#: Seconds after which anything that waits for a process fails. No test measures time.
PATIENCE = 60


@attrs.define
class AtWork:
    """A backend that runs, and what it says beside its turns."""

    backend: AcpBackend
    beside: Screen
    log: Path
    gone: AgentFailed | None = None

    async def turn(
        self, text: str, then: Callable[[Event], None] | None = None
    ) -> tuple[Outcome, Screen]:
        """A whole turn; `then` hears each event."""
        screen = Screen(then)
        with trio.fail_after(PATIENCE):
            return await self.backend.prompt(prompt(text), screen), screen

    def decide(self, option_id: str | None = None, *, approved: bool = True) -> Any:
        """Something that answers what is asked."""

        def then(event: Event) -> None:
            if type(event).__name__ == "ToolAsks":
                call_id = event.call_id  # type: ignore[union-attr]
                self.backend.answer(Permission(call_id, approved=approved, option_id=option_id))

        return then

    def sent(self, method: str | None = None) -> list[dict[str, Any]]:
        """What the agent was sent, or what of it has this method."""
        if not self.log.exists():
            return []
        found = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [each for each in found if method is None or each.get("method") == method]


def rogue(folder: Path, *start: str, limit: int = 64 << 20, name: str = "rogue") -> AcpAgent:
    """The agent that misbehaves; `start` says how."""
    environment = {"ROGUE_HOME": str(folder), "ROGUE_LOG": str(folder / "log")}
    command = (sys.executable, "-S", str(ROGUE), *start)
    return AcpAgent(name, command, environment, "1", limit)


def request(folder: Path, conversation: str | None = None) -> OpenRequest:
    return OpenRequest(
        session=URI("rogue:/s"),
        chat=URI("ahp-chat:/c"),
        working_directories=(URI(folder.as_uri()),),
        conversation=conversation,
    )


@asynccontextmanager
async def at_work(
    agent: AcpAgent, folder: Path, conversation: str | None = None
) -> AsyncIterator[AtWork]:
    """A backend of the agent's, as a host runs it; nothing of it is left after the block."""
    with trio.fail_after(PATIENCE):
        backend = await agent.open(request(folder, conversation))
    made = AtWork(backend, Screen(), folder / "log")

    async def aside() -> None:
        try:
            await backend.aside(made.beside)
        except AgentFailed as error:
            made.gone = error

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(aside)
            try:
                yield made
            finally:
                nursery.cancel_scope.cancel("the test is over")
    finally:
        with trio.CancelScope(shield=True):
            await backend.close()
    assert not lives(backend), "something of the agent is left"


def lives(backend: AcpBackend) -> bool:
    """Whether anything of an agent's process group does, zombies of others aside."""
    group = backend._process.pid
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            return True
    return False


def open_fds() -> Mapping[str, str]:
    """What this process has open, by number."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[name] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
    return found
