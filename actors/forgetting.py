"""What agents keep of conversations that have ended here is deleted too, where they can (R-8.26).

It happens after the end was answered and the backends are closed, and nothing waits for it. What an
agent does not manage is logged: there is nobody left who could do more about it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

import trio

from actors.host import Host
from ahpd.agents.port import Agent, OpenRequest

_log = logging.getLogger("ahpd.agents")

#: Seconds that an agent gets for one conversation.
FORGET_WITHIN = 30.0


async def forget(host: Host, agent: Agent, requests: Iterable[OpenRequest]) -> None:
    """Have the agent delete what it keeps of these chats; never raises an error of the agent's."""
    for request in requests:
        if host.ledger.find(request.chat) is not None:
            continue  # made anew under the same name: what the agent keeps may be the new one's
        with trio.move_on_after(FORGET_WITHIN) as scope:
            try:
                await agent.forget(request)
            except Exception:  # noqa: BLE001 an agent's own code: the chat is gone all the same
                _log.exception("%s: the agent did not delete its copy", request.chat)
        if scope.cancelled_caught:
            _log.warning("%s: the agent did not delete its copy in time", request.chat)
