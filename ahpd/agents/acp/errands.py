"""What an agent is asked that belongs to no chat that is open: by a process for that alone."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from ahpd.agents.acp import handshake
from ahpd.agents.acp.handshake import Abilities
from ahpd.agents.acp.rpc import METHOD_NOT_FOUND, Asked, Link
from ahpd.agents.acp.signin import Grant
from ahpd.agents.port import AgentFailed
from ahpd.protocol.model import JSON

T = TypeVar("T")

if TYPE_CHECKING:
    from ahpd.agents.acp.agent import AcpAgent

#: Seconds that one of these may take to answer.
WITHIN = 30.0


class Errand:
    """Hears nothing, and does nothing for the agent. A `Listener`."""

    def __init__(self) -> None:
        self.link: Link | None = None

    def heard(self, method: str, params: dict[str, Any]) -> None:
        """See `Listener`."""

    def asked(self, request: Asked) -> None:
        """See `Listener`."""
        if self.link is not None:
            self.link.refuse(request, METHOD_NOT_FOUND, f"{request.method} is not served here")

    async def room(self) -> None:
        """See `Listener`."""


async def errand(
    agent: AcpAgent, do: Callable[[Link, Abilities], Awaitable[T]], listener: Errand | None = None
) -> T:
    """What `do` gives, with a process of the agent's that has been greeted.

    Raises `AgentFailed`. However it ends, no process is left.
    """
    process = await agent.start(Grant(), tempfile.gettempdir())
    done: list[T] = []
    failed: AgentFailed | None = None
    try:
        listener = listener or Errand()
        link = listener.link = Link(process, listener)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.run)
            try:
                about = Abilities(agent.name, agent.command, conceal=process.concealed)
                able = await handshake.initialize(link, about, agent.version, {})
                agent.learned.meet(able)
                done.append(await do(link, able))
            except AgentFailed as error:  # out of the nursery it would be a group
                failed = error
            nursery.cancel_scope.cancel("the errand is done")
    finally:
        with trio.CancelScope(shield=True):  # some seconds at most: see `end`
            await process.end()
    if failed is not None:
        raise failed
    return done[0]


async def sign_out(agent: AcpAgent) -> None:
    """Have the agent forget who is signed in. Raises `AgentFailed`."""

    async def do(link: Link, able: Abilities) -> None:
        if able.signs_out:
            await handshake.asked(link, "logout", {}, WITHIN, able)

    await errand(agent, do)


async def delete(agent: AcpAgent, conversation: str) -> None:
    """Have the agent delete a conversation, if it can. Raises `AgentFailed`."""

    async def do(link: Link, able: Abilities) -> None:
        if able.deletes:
            params: JSON = {"sessionId": conversation}
            await handshake.asked(link, "session/delete", params, WITHIN, able)

    await errand(agent, do)
