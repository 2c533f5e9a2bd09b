"""The root channel: the agents, the host's settings, how many sessions there are (RULES 7)."""

from __future__ import annotations

from typing import Any, TypeAlias

from actors.desk import Desk
from actors.host import LEAST_BYTES, Host
from actors.messages import Dispatch, SessionsCounted
from ahpd.protocol.actions import StateAction
from ahpd.protocol.common import ConfigPropertySchema, ConfigSchema
from ahpd.protocol.faults import shown
from ahpd.protocol.model import JSON
from ahpd.protocol.root import (
    RootActiveSessionsChangedAction,
    RootAgentsChangedAction,
    RootConfigChangedAction,
    RootConfigState,
    RootState,
)
from ahpd.protocol.uris import ROOT
from supervisors import Actor

Incoming: TypeAlias = Dispatch | SessionsCounted

_QUEUE, _REPLAY = "clientQueueBytes", "replayBytes"

#: The host's own settings; their values are whole numbers of bytes.
_SCHEMA = {
    _QUEUE: ConfigPropertySchema(
        type="number",
        title="Bytes that may wait for a client that does not read",
        description="A client with more waiting is disconnected. At least 1 MiB.",
    ),
    _REPLAY: ConfigPropertySchema(
        type="number",
        title="Bytes kept for clients that come back",
        description="Longer absences are answered with snapshots. At least 1 MiB.",
    ),
}


class Root(Actor[Incoming]):
    """See the module's docstring."""

    kind = "root"

    def __init__(self, host: Host) -> None:
        self._host = host

    async def on_start(self) -> None:
        """Say what the agents are now, and how many sessions there are."""
        channel = self._host.ledger.find(ROOT)
        assert channel is not None
        self._desk = Desk(self._host, channel)
        agents = tuple(agent.info for agent in self._host.agents.values())
        self._desk.say(RootAgentsChangedAction(agents=agents))
        self._counted(len(self._host.catalogue or ()))

    async def handle(self, message: Incoming) -> Any:
        """One message; see `actors.messages` for what each says."""
        match message:
            case Dispatch():
                self._take(message)
            case SessionsCounted():
                self._counted(message.count)

    def _take(self, dispatch: Dispatch) -> None:
        """Settings; the good ones of a push that also holds bad ones are taken (R-7.6)."""
        bad = _faults(dispatch.action)
        action = self._desk.take(dispatch, lambda _, __: "; ".join(bad.values()) or None)
        if bad and isinstance(dispatch.action, RootConfigChangedAction):
            good = {k: v for k, v in dispatch.action.config.items() if k not in bad}
            action = RootConfigChangedAction(config=good)
            if not self._desk.say(action):
                return
        if action is not None:
            self._apply()

    def _apply(self) -> None:
        """Use the settings as they are now."""
        values = self._desk.state.config.values
        self._host.settings.client_queue_bytes = int(values[_QUEUE])
        self._host.window.limit_bytes = int(values[_REPLAY])

    def _counted(self, count: int) -> None:
        self._desk.say(RootActiveSessionsChangedAction(active_sessions=count))


def _faults(action: StateAction | None) -> dict[str, str]:
    """Setting -> why it is refused."""
    if not isinstance(action, RootConfigChangedAction):
        return {}
    faults = {key: reason for key, value in action.config.items() if (reason := _fault(key, value))}
    if action.replace and not faults.keys() and action.config.keys() != _SCHEMA.keys():
        missing = ", ".join(sorted(_SCHEMA.keys() - action.config.keys()))
        return dict.fromkeys(action.config, f"replacing all settings needs {missing} too") or {
            "": f"replacing all settings needs {missing}"
        }
    return faults


def _fault(key: str, value: JSON) -> str | None:
    if key not in _SCHEMA:
        return f"there is no setting {key}"
    whole = isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value)
    if not whole or value < LEAST_BYTES:
        return f"{key} must be a whole number of at least {LEAST_BYTES}, not {shown(value)}"
    return None


def root_state(host: Host) -> RootState:
    """The root as it is when the host starts."""
    return RootState(
        agents=tuple(agent.info for agent in host.agents.values()),
        active_sessions=0,
        config=RootConfigState(
            schema=ConfigSchema(type="object", properties=_SCHEMA),
            values={
                _QUEUE: host.settings.client_queue_bytes,
                _REPLAY: host.window.limit_bytes,
            },
        ),
    )
