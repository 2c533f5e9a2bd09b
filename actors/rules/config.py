"""Which settings of a session a client may change, and to what (R-8.41 to R-8.43, R-22.13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from actors.rules.values import fault, same
from ahpd.protocol.model import JSON, Object
from ahpd.protocol.session import SessionConfigSchema, SessionConfigState
from ahpd.protocol.session_actions import SessionConfigChangedAction

#: Why an agent does not take a value for a setting, in its own words; None: it does.
Refusal: TypeAlias = Callable[[str, JSON], str | None]


def takes_all(key: str, value: JSON) -> str | None:
    """Of an agent that takes whatever fits."""
    return None


def judge(
    config: SessionConfigState | None, action: SessionConfigChangedAction, refuses: Refusal
) -> str | None:
    """Why a client may not change these settings; None when it may."""
    if config is None:
        return "this session has nothing to configure"
    for key, value in action.config.items():
        reason = _change(config, key, value, refuses)
        if reason is not None:
            return reason
    return _dropped(config, action) if action.replace else None


def _change(config: SessionConfigState, key: str, value: JSON, refuses: Refusal) -> str | None:
    schema = config.schema.properties.get(key)
    if schema is None:
        return f"there is no setting {key}"
    if key in config.values and same(config.values[key], value):
        return None  # said again with the others, and no change
    if schema.read_only or not schema.session_mutable:
        return f"the setting {key} cannot be changed after the start"
    wrong = fault(schema, value)
    return f"{key} {wrong}" if wrong is not None else refuses(key, value)


def _dropped(config: SessionConfigState, action: SessionConfigChangedAction) -> str | None:
    """Replacing all takes away what is not named, which may be fixed or needed."""
    for key in config.values.keys() - action.config.keys():
        schema = config.schema.properties.get(key)
        if schema is None or schema.read_only or not schema.session_mutable:
            return f"the setting {key} cannot be taken away"
        if key in (config.schema.required or ()):
            return f"the setting {key} is needed"
    return None


def resolved(schema: SessionConfigSchema, chosen: Object) -> dict[str, JSON]:
    """What was chosen, and the default of everything else (R-22.8).

    A choice for a setting that the others made go away, or that does not fit it any more, is no
    choice: the client asks again after each one just to learn of that. A setting that is only
    shown has the agent's value.
    """
    values = {}
    for key, each in schema.properties.items():
        wanted = key in chosen and not each.read_only and fault(each, chosen[key]) is None
        if wanted:
            values[key] = chosen[key]
        elif each.default is not None:
            values[key] = each.default
    return values


def at_creation(schema: SessionConfigSchema, chosen: Object) -> str | None:
    """Why a session cannot begin with these values; None when it can (R-8.13)."""
    values = resolved(schema, chosen)
    for key, value in chosen.items():
        each = schema.properties.get(key)
        if each is None:
            return f"there is no setting {key}"
        wrong = fault(each, value)
        if wrong is not None:
            return f"{key} {wrong}"
        if each.read_only and not (key in values and same(values[key], value)):
            return f"the setting {key} is only shown"
    missing = [key for key in schema.required or () if key not in values]
    return f"the setting {missing[0]} is needed" if missing else None
