"""What can be set in an agent's session: its modes and configuration options, as settings. Pure.

Where an agent has both, its options count and its modes do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct, structs

from ahpd.agents.acp.tolerant import dict_of, dicts_of, text_of
from ahpd.agents.port import Configuration
from ahpd.protocol.model import JSON
from ahpd.protocol.session import SessionConfigPropertySchema, SessionConfigSchema

#: The settings that an agent's modes, and the models of older ones, are.
MODE = "mode"
MODEL = "model"

#: The updates that bring one value: of which setting, and where it is.
SETTING_OF: Mapping[str, tuple[str, str]] = {
    "current_mode_update": (MODE, "currentModeId"),
    "current_model_update": (MODEL, "currentModelId"),
}


class Setting(Struct, frozen=True):
    """A setting with its value. `kind` is how the agent is told another one."""

    kind: Literal["select", "boolean", "mode", "model"]
    value: JSON
    schema: SessionConfigPropertySchema


def settings_of(answer: Any) -> Mapping[str, Setting] | None:
    """The settings in an answer or update of the agent's, by id; None when it tells of none."""
    told = dict_of(answer)
    if isinstance(told.get("configOptions"), list):
        return dict(_options(told))
    if dict_of(told, "modes") or dict_of(told, "models"):
        return {**dict(_modes(told)), **dict(_models(told))}
    return None


def _options(told: Any) -> Iterator[tuple[str, Setting]]:
    for each in dicts_of(told, "configOptions"):
        key, value = text_of(each, "id"), each.get("currentValue")
        kind = text_of(each, "type")
        if key is None:
            continue
        title, description = text_of(each, "name") or key, text_of(each, "description")
        if kind == "boolean" and isinstance(value, bool):
            schema = SessionConfigPropertySchema(
                type="boolean",
                title=title,
                description=description,
                default=value,
                session_mutable=True,
            )
            yield key, Setting("boolean", value, schema)
        elif kind == "select" and isinstance(value, str):
            choices = [
                inner
                for outer in dicts_of(each, "options")
                for inner in (dicts_of(outer, "options") if "options" in outer else [outer])
            ]
            yield key, Setting("select", value, _choice(title, description, value, choices))


def _modes(told: Any) -> Iterator[tuple[str, Setting]]:
    now = text_of(told, "modes", "currentModeId")
    if now is None:
        return
    choices = [
        {**each, "value": each.get("id")} for each in dicts_of(told, "modes", "availableModes")
    ]
    yield MODE, Setting("mode", now, _choice("Mode", None, now, choices))


def _models(told: Any) -> Iterator[tuple[str, Setting]]:
    """In no schema any more, and still what many agents have (hazard 21)."""
    now = text_of(told, "models", "currentModelId")
    if now is None:
        return
    choices = [
        {**each, "value": each.get("modelId")}
        for each in dicts_of(told, "models", "availableModels")
    ]
    yield MODEL, Setting("model", now, _choice("Model", None, now, choices))


def _choice(
    title: str, description: str | None, value: str, choices: list[dict[str, Any]]
) -> SessionConfigPropertySchema:
    """One of several; the value that counts is one of them, whatever the agent says."""
    found = {key: each for each in choices if (key := text_of(each, "value")) is not None}
    found.setdefault(value, {"name": value})
    said = [text_of(each, "description") or "" for each in found.values()]
    return SessionConfigPropertySchema(
        type="string",
        title=title,
        description=description,
        default=value,
        enum=tuple(found),
        enum_labels=tuple(text_of(each, "name") or key for key, each in found.items()),
        enum_descriptions=tuple(said) if any(said) else None,
        session_mutable=True,
    )


def configuration(settings: Mapping[str, Setting]) -> Configuration:
    """What can be set in a session; each chat has its own process, and so its own values."""
    properties = {key: each.schema for key, each in settings.items()}
    return Configuration(SessionConfigSchema(properties=properties), frozenset(properties))


def request_for(session: str, key: str, setting: Setting, value: JSON) -> tuple[str, JSON]:
    """The method and the params that set it to another value."""
    if setting.kind == "mode":
        return "session/set_mode", {"sessionId": session, "modeId": value}
    if setting.kind == "model":
        return "session/set_model", {"sessionId": session, "modelId": value}
    params: dict[str, JSON] = {"sessionId": session, "configId": key, "value": value}
    if setting.kind == "boolean":
        params["type"] = "boolean"
    return "session/set_config_option", params


def with_value(settings: Mapping[str, Setting], key: str, value: JSON) -> Mapping[str, Setting]:
    """The same with another value of one of them."""
    return {**settings, key: structs.replace(settings[key], value=value)}


def changed(before: Mapping[str, Setting], after: Mapping[str, Setting]) -> dict[str, JSON]:
    """The values that are others now, of settings that were there."""
    return {
        key: each.value
        for key, each in after.items()
        if key in before and before[key].value != each.value
    }
