"""The settings of one conversation, kept the same on both sides: people set them, and the agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ahpd.agents.acp import handshake
from ahpd.agents.acp.handshake import Abilities
from ahpd.agents.acp.rpc import Answered, Link, RpcFault
from ahpd.agents.acp.settings import (
    SETTING_OF,
    Setting,
    changed,
    request_for,
    settings_of,
    with_value,
)
from ahpd.agents.acp.tolerant import text_of
from ahpd.agents.events import Event, SettingsChanged
from ahpd.protocol.model import JSON, Object


class Tuning:
    """See the module. `say` says what changed, `note` tells people of what the agent refused."""

    def __init__(
        self, link: Link, say: Callable[[Sequence[Event]], None], note: Callable[[str], None]
    ) -> None:
        self._link = link
        self._say = say
        self._note = note
        self._session = ""
        self._able = Abilities()
        #: What can be set, with its values.
        self.settings: Mapping[str, Setting] = {}

    def begin(self, session: str, able: Abilities, answer: JSON) -> None:
        """The conversation has begun; the `answer` to that says what can be set."""
        self._session, self._able = session, able
        self.settings = settings_of(answer) or {}

    async def set_all(self, values: Object) -> None:
        """Set what is not as it is wanted. Raises `AgentFailed` when there is no answer."""
        for key, value in values.items():
            setting = self.settings.get(key)
            if setting is None or setting.value == value:
                continue
            method, params = request_for(self._session, key, setting, value)
            try:
                answer = await self._link.request(method, params, handshake.SET_WITHIN)
            except RpcFault as fault:
                self._note(self._not_set(setting, value, fault))
            else:
                self.settings = settings_of(answer) or with_value(self.settings, key, value)

    def configure(self, values: Object) -> None:
        """See `Tunable`. A setting that the agent does not take goes back to what it was."""
        for key, value in values.items():
            setting = self.settings.get(key)
            if setting is None or setting.value == value or self._link.ended is not None:
                continue
            method, params = request_for(self._session, key, setting, value)
            self._link.call(method, params, partial(self._was_set, key, setting, value))
            self.settings = with_value(self.settings, key, value)

    def _was_set(self, key: str, before: Setting, value: JSON, answer: Answered | None) -> None:
        if answer is None:
            return
        if answer.fault is None:
            self._take(settings_of(answer.result))
            return
        self._note(self._not_set(before, value, answer.fault))
        if key in self.settings:
            self._take(with_value(self.settings, key, before.value))

    def _not_set(self, setting: Setting, value: JSON, fault: RpcFault) -> str:
        why = handshake.told(fault, self._able)
        return f"The agent does not take {value!r} for {setting.schema.title}: {why}"

    def _take(self, settings: Mapping[str, Setting] | None) -> None:
        if settings is None:
            return
        values = changed(self.settings, settings)
        self.settings = settings
        if values:
            self._say([SettingsChanged(values)])

    def heard(self, update: dict[str, Any]) -> None:
        """The agent may say what its settings are now; any other update is ignored."""
        kind = text_of(update, "sessionUpdate") or ""
        if kind == "config_option_update":
            self._take(settings_of(update))
        elif kind in SETTING_OF:
            key, name = SETTING_OF[kind]
            known, value = self.settings.get(key), text_of(update, name)
            if known is not None and value is not None and known.kind == key:
                self._take(with_value(self.settings, key, value))
