"""The agent of a session that was kept, when this host is started without it.

The session is there all the same: it can be read, named, archived and ended, and works again when
the agent is back. Until then a turn in it fails, and says why.
"""

from __future__ import annotations

from ahpd.agents.port import AgentFailed, Backend, OpenRequest
from ahpd.protocol.root import AgentInfo


class AbsentAgent:
    """Stands for an agent that is not there; an `Agent`."""

    can_resume = False
    can_rewind = False
    can_switch = False
    can_control = False

    def __init__(self, provider: str) -> None:
        self.info = AgentInfo(provider=provider, display_name=provider, description="", models=())

    async def open(self, request: OpenRequest) -> Backend:
        """See `Agent`: it cannot be."""
        name = self.info.provider
        raise AgentFailed(
            f"this host was started without the agent {name}, which this session uses"
        )

    async def forget(self, request: OpenRequest) -> None:
        """See `Agent`: what it keeps it keeps."""
        raise AgentFailed(f"this host was started without the agent {self.info.provider}")
