"""The settings of the host that clients see and push: one table (R-7.5 to R-7.7, quirk 48).

Three kinds. The host's *own* have a value always, and it acts on them. Those *of a window* are
pushed by each editor when it connects; they are declared so that none is refused, kept so that they
can be read back, and change nothing here. Those *of one connection* are about that client alone:
they are kept on its connection, and nobody else is shown them.

`globalAutoApproveEnabled` is of the second kind on purpose: a window that approves everything does
so for itself, by answering; that it says so is no reason for the host to run a tool for anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Literal

from msgspec import Struct

from actors.host import LEAST_BYTES, MOST_BYTES, Host
from actors.rules.values import fault
from ahpd.protocol.common import ConfigPropertySchema, ConfigSchema, JsonPrimitive
from ahpd.protocol.faults import shown
from ahpd.protocol.model import JSON, Object
from ahpd.protocol.root import RootConfigChangedAction, RootConfigState, RootState


class Scope(Enum):
    """Whose a setting is."""

    OWN = "the host's own"
    WINDOW = "pushed by windows, and kept"
    CONNECTION = "of one connection"


class Setting(Struct, frozen=True):
    """One setting. `read` and `apply` are of the host's own: where the value is when it runs."""

    schema: ConfigPropertySchema
    scope: Scope = Scope.WINDOW
    #: The window may send a value of any type, whatever the schema says.
    any_type: bool = False
    #: Why a value of the right type is refused all the same.
    check: Callable[[Any], str | None] | None = None
    read: Callable[[Host], JSON] | None = None
    apply: Callable[[Host, Any], None] | None = None

    def fault(self, value: JSON) -> str | None:
        """Why a value is refused, to be read after its name."""
        wrong = None if self.any_type else fault(self.schema, value)
        return wrong if wrong is not None or self.check is None else self.check(value)


_Type = Literal["string", "number", "boolean", "array", "object"]


def _window(type: _Type, title: str, enum: tuple[JsonPrimitive, ...] | None = None) -> Setting:
    return Setting(ConfigPropertySchema(type=type, title=title, enum=enum))


def _list(title: str) -> Setting:
    items = ConfigPropertySchema(type="string", title="Entry")
    return Setting(ConfigPropertySchema(type="array", title=title, items=items))


def _of_connection(type: _Type, title: str, *, any_type: bool = False) -> Setting:
    return Setting(ConfigPropertySchema(type=type, title=title), Scope.CONNECTION, any_type)


def _bytes(value: float) -> str | None:
    # Nor 2097152.0: the value goes to every replica as it is, and some read only whole numbers.
    if isinstance(value, int) and LEAST_BYTES <= value <= MOST_BYTES:
        return None
    return f"must be a whole number from {LEAST_BYTES} to {MOST_BYTES}, not {shown(value)}"


def _milliseconds(value: float) -> str | None:
    return None if 0 <= value <= 1e12 else f"must be from 0 to 1e12, not {shown(value)}"


def _own(
    title: str,
    description: str,
    check: Callable[[Any], str | None],
    read: Callable[[Host], JSON],
    apply: Callable[[Host, Any], None],
) -> Setting:
    schema = ConfigPropertySchema(type="number", title=title, description=description)
    return Setting(schema, Scope.OWN, check=check, read=read, apply=apply)


def _set_queue(host: Host, value: float) -> None:
    host.settings.client_queue_bytes = int(value)


def _set_replay(host: Host, value: float) -> None:
    host.window.limit_bytes = int(value)


def _set_patience(host: Host, value: float) -> None:
    host.settings.client_tool_within = value / 1000.0


def _window_fault(value: float) -> str | None:
    return None if 0 <= value <= 1000 else f"must be from 0 to 1000, not {shown(value)}"


def _set_window(host: Host, value: float) -> None:
    host.settings.delta_window = value / 1000.0


SETTINGS: Mapping[str, Setting] = {
    "clientQueueBytes": _own(
        "Bytes that may wait for a client that does not read",
        "A client with more waiting is disconnected. 1 MiB to 1 TiB.",
        _bytes,
        lambda host: host.settings.client_queue_bytes,
        _set_queue,
    ),
    "replayBytes": _own(
        "Bytes kept for clients that come back",
        "Longer absences are answered with snapshots. 1 MiB to 1 TiB.",
        _bytes,
        lambda host: host.window.limit_bytes,
        _set_replay,
    ),
    "clientToolTimeoutMs": _own(
        "Milliseconds that a client may keep silent about a call of its tool",
        "After that the call fails and the turn goes on. 0 waits for ever.",
        _milliseconds,
        lambda host: host.settings.client_tool_within * 1000.0,
        _set_patience,
    ),
    "deltaWindowMs": _own(
        "Milliseconds in which an agent's text may be gathered",
        "Text that follows other text is sent together; the first is never held. 0 to 1000.",
        _window_fault,
        lambda host: host.settings.delta_window * 1000.0,
        _set_window,
    ),
    "defaultShell": _of_connection("string", "The shell that this window opens"),
    "workspaceTrust": _of_connection(
        "boolean", "Whether this window trusts its folder", any_type=True
    ),
    # ---- telemetry
    "telemetryLevel": _window(
        "string", "How much the editor reports about itself", ("all", "error", "crash", "off")
    ),
    "editTelemetryEnabled": _window("boolean", "The editor reports on edits"),
    "disableRepoInfoTelemetry": _window("boolean", "The editor reports nothing on repositories"),
    # ---- approvals
    "globalAutoApproveEnabled": _window("boolean", "The window approves every tool call"),
    "autoApprovePolicyRestricted": _window("boolean", "A policy forbids approving unseen"),
    "terminalAutoApproveEnabled": _window("boolean", "The window's rules for commands apply"),
    "terminalAutoApproveRules": _window("object", "The window's rules for commands"),
    "editAutoApprovePatterns": _window("object", "Files that the window lets agents edit unasked"),
    "autoReplyEnabled": _window("boolean", "The window answers an agent's questions by itself"),
    # ---- network
    "http.proxy": _window("string", "The editor's proxy"),
    "http.noProxy": _list("Hosts that the editor reaches without its proxy"),
    "http.proxyKerberosServicePrincipal": _window("string", "The editor's proxy, to Kerberos"),
    "systemProxyEnabled": _window("boolean", "The proxy is the system's"),
    # ---- agents and their sessions
    "sessionSyncEnabled": _window("boolean", "Sessions are kept with the editor's service"),
    "preferLongContextEnabled": _window("boolean", "Models with a long context come first"),
    "codexAgentEnabled": _window("boolean", "The editor offers Codex"),
    "copilotMultiRootEnabled": _window("boolean", "Copilot may have several folders"),
    "claudeMultiRootEnabled": _window("boolean", "Claude may have several folders"),
    "codexMultiRootEnabled": _window("boolean", "Codex may have several folders"),
    "migrateLegacyCopilotCliEnabled": _window("boolean", "Older Copilot sessions are taken over"),
    "githubMcpServerEnabled": _window("boolean", "The editor offers GitHub's MCP server"),
    "mcpServers": _window("object", "MCP servers that the editor knows"),
    "automationsEnabled": _window("boolean", "The editor shows automations"),
    "automationRunTimeoutMinutes": _window("number", "Minutes that the editor gives a run"),
    "canvasesEnabled": _window("boolean", "The editor shows canvases"),
}  # fmt: skip


def config_state(host: Host) -> RootConfigState:
    """The settings as they are when the host starts: only its own have values."""
    return RootConfigState(
        schema=ConfigSchema(
            type="object", properties={key: each.schema for key, each in SETTINGS.items()}
        ),
        values=own_values(host),
    )


def own_values(host: Host) -> dict[str, JSON]:
    """The host's own settings as it uses them."""
    return {key: each.read(host) for key, each in SETTINGS.items() if each.read is not None}


def left_values(left: Object, begun_with: Object, now: Object) -> dict[str, JSON]:
    """The settings of a host that was `left` like this and now starts with these own ones.

    What is started with another value than before counts; else what was set since.
    """
    values = {key: value for key, value in left.items() if key in SETTINGS}
    for key, value in now.items():
        if key not in values or begun_with.get(key) != value:
            values[key] = value
    return values


def apply(host: Host, values: Object) -> None:
    """Use the host's own settings as they are now."""
    for key, setting in SETTINGS.items():
        if setting.apply is not None:
            setting.apply(host, values[key])


class Push(Struct, frozen=True):
    """A push of settings, taken apart. `faults`: setting -> why it is refused."""

    shared: dict[str, JSON]
    own: dict[str, JSON]
    faults: dict[str, str]

    @property
    def reason(self) -> str | None:
        """Why the push as a whole is refused; what is good in it is taken all the same (R-7.6)."""
        return "; ".join(self.faults.values()) or None


def sort_push(action: RootConfigChangedAction) -> Push:
    """Which settings of a push are for all, for its connection alone, or not to be had."""
    push = Push({}, {}, {})
    for key, value in action.config.items():
        setting = SETTINGS.get(key)
        if setting is None:
            push.faults[key] = f"there is no setting {key}"
        elif (wrong := setting.fault(value)) is not None:
            push.faults[key] = f"{key} {wrong}"
        elif setting.scope is Scope.CONNECTION:
            push.own[key] = value
        else:
            push.shared[key] = value
    missing = [key for key, each in SETTINGS.items() if each.scope is Scope.OWN]
    missing = [key for key in missing if key not in action.config]
    if action.replace and not push.faults and missing:
        # Nothing of it is taken then: what it would leave out the host cannot be without.
        return Push({}, {}, {"": f"replacing all settings needs {', '.join(missing)} too"})
    return push


def own_view(state: RootState, own: Object) -> RootState:
    """The root as a connection sees it that has settings of its own."""
    if state.config is None or not own:
        return state
    values = {**state.config.values, **own}
    return state.evolve(config=state.config.evolve(values=values))
