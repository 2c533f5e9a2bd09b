"""A puppet whose sessions can be configured, in every way there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import trio

from ahpd.agents.port import ConfigContext, Configuration, OpenRequest
from ahpd.protocol.model import JSON, Object
from ahpd.protocol.session import (
    SessionConfigPropertySchema,
    SessionConfigSchema,
    SessionConfigValueItem,
)
from tests.harness.agent import Puppet, PuppetAgent

_Property = SessionConfigPropertySchema

#: What can always be set; `branch` is there only in a worktree.
SETTINGS: dict[str, SessionConfigPropertySchema] = {
    "isolation": _Property(
        type="string", title="Where", enum=("folder", "worktree"), default="folder"
    ),
    "mode": _Property(
        type="string", title="Mode", enum=("ask", "plan"), default="ask", session_mutable=True
    ),
    "voice": _Property(type="string", title="Voice", default="calm", session_mutable=True),
    "tags": _Property(
        type="array",
        title="Tags",
        items=_Property(type="string", title="Tag"),
        min_items=1,
        max_items=2,
        session_mutable=True,
    ),
    "version": _Property(type="string", title="Version", default="7", read_only=True),
    "budget": _Property(type="number", title="Budget", session_mutable=True),
}
BRANCH = _Property(type="string", title="Branch", enum=("main",), default="main", enum_dynamic=True)


class TunablePuppet(Puppet):
    """A puppet that takes other settings while it lives."""

    def __init__(self, agent: PuppetAgent, request: OpenRequest) -> None:
        super().__init__(agent, request)
        self.configured: list[dict[str, Any]] = []

    def configure(self, values: Object) -> None:
        """See `Tunable`."""
        self.configured.append(dict(values))


class ConfiguredAgent(PuppetAgent):
    """`tunable`: its backends take other settings while they live. `answers_in`: it takes long.

    `options` are those of every puppet.
    """

    def __init__(self, *, tunable: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self.tunable = tunable
        self.answers_in = 0.0

    def make(self, request: OpenRequest) -> Puppet:
        """A puppet for a chat."""
        return TunablePuppet(self, request) if self.tunable else Puppet(self, request)

    async def config_schema(self, context: ConfigContext) -> Configuration:
        """See `Configurable`."""
        await trio.sleep(self.answers_in)
        properties = dict(SETTINGS)
        if context.values.get("isolation") == "worktree":
            properties["branch"] = BRANCH
        return Configuration(
            SessionConfigSchema(properties=properties), chat_scoped=frozenset({"voice"})
        )

    async def config_values(
        self, context: ConfigContext, key: str, query: str
    ) -> Sequence[SessionConfigValueItem]:
        """See `Configurable`."""
        assert key == "branch"
        await trio.sleep(self.answers_in)
        folder = (context.working_directory or "").rpartition("/")[2]
        names = ("main", f"{folder}-next", "fix")
        return tuple(
            SessionConfigValueItem(value=name, label=name.title())
            for name in names
            if query in name
        )

    def config_refusal(self, key: str, value: JSON) -> str | None:
        """See `Configurable`."""
        if key == "budget" and value > 100:
            return "nobody here has that much"
        return None
