"""`Deaf`: the host's end of a link to an agent that is asked something and not worked with."""

from __future__ import annotations

from typing import Any

import trio

from ahpd.agents.acp.rpc import METHOD_NOT_FOUND, Asked, Link


class Deaf:
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
        """See `Listener`. A checkpoint."""
        await trio.lowlevel.checkpoint()
