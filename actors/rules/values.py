"""Whether a value fits the schema of a setting: the small part of JSON Schema that there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ahpd.protocol.common import ConfigPropertySchema
from ahpd.protocol.faults import shown
from ahpd.protocol.model import JSON

#: JSON Schema's word for a type -> whether a value is of it; `True` is no number.
_TYPES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("a string", lambda value: isinstance(value, str)),
    "number": (
        "a number",
        lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    ),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "array": ("an array", lambda value: isinstance(value, (list, tuple))),
    "object": ("an object", lambda value: isinstance(value, Mapping)),
}


def fault(schema: ConfigPropertySchema, value: JSON) -> str | None:
    """Why a value does not fit, to be read after its name; None when it does (R-8.43)."""
    words, fits = _TYPES[schema.type]
    if not fits(value):
        return f"must be {words}, not {shown(value)}"
    # What an `enumDynamic` property lists is only where its choice begins.
    listed = None if getattr(schema, "enum_dynamic", None) else schema.enum
    if listed is not None and not any(same(value, each) for each in listed):
        return f"must be one of {', '.join(map(shown, listed))}, not {shown(value)}"
    if schema.type == "array":
        return _array(schema, value)
    return _object(schema, value) if schema.type == "object" else None


def same(one: JSON, two: JSON) -> bool:
    """Whether two JSON values are the same; Python thinks so of ``True`` and ``1`` too."""
    return isinstance(one, bool) is isinstance(two, bool) and bool(one == two)


def _array(schema: ConfigPropertySchema, value: Any) -> str | None:
    """R-22.14."""
    least, most = schema.min_items, schema.max_items
    if least is not None and len(value) < least:
        return f"must have at least {least} items, not {len(value)}"
    if most is not None and len(value) > most:
        return f"must have at most {most} items, not {len(value)}"
    for place, item in enumerate(value):
        wrong = fault(schema.items, item) if schema.items is not None else None
        if wrong is not None:
            return f"[{place}] {wrong}"
    return None


def _object(schema: ConfigPropertySchema, value: Any) -> str | None:
    known = schema.properties or {}
    for key in schema.required or ():
        if key not in value:
            return f"must have {key}"
    for key, item in value.items():
        rule = known.get(key, schema.additional_properties)
        wrong = fault(rule, item) if rule is not None else None
        if wrong is not None:
            return f"/{key} {wrong}"
    return None
