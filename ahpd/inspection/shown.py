"""Any value as plain JSON, for people to look at: bounded, and without what is nobody's business.

For states there is `views`, which leaves nothing out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from enum import Enum
from itertools import islice
from typing import Any

from msgspec import Struct

from actors.credentials import Secret
from actors.ledger import Channel
from ahpd.inspection.words import cut
from ahpd.protocol.discreet import Discreet
from ahpd.protocol.model import JSON, Wire
from ahpd.protocol.persistent import Text

#: Characters of a text, values of a list or an object, and levels, that are shown.
TEXT, VALUES, LEVELS = 400, 40, 8
HIDDEN = "***"


def plain(value: Any, levels: int = LEVELS) -> JSON:
    """The value as JSON; what is cut short ends in an ellipsis. Never fails."""
    match value:
        case int() if not -(1 << 63) <= value < 1 << 63:
            return str(value)  # more than can be written
        case None | bool() | int() | float():
            return value
        case Secret():
            return HIDDEN
        case str() | Text():
            return cut(str(value), TEXT)
        case Enum():
            return plain(value.value, levels)
        case Channel():
            return {"$": "Channel", "uri": value.uri, "path": value.path}
    if levels <= 0:
        return "…"
    match value:
        case Wire():
            names = type(value).wire_names
            held = {wire: getattr(value, name) for name, wire in names.items()}
            known = {key: each for key, each in held.items() if each is not None}
            return _object({**known, **value.extra}, levels)
        case Struct():
            hidden = value.hidden if isinstance(value, Discreet) else ()
            fields = {
                name: Secret() if name in hidden else getattr(value, name, None)
                for name in value.__struct_fields__
            }
            return {"$": type(value).__name__, **_object(fields, levels)}
        case Mapping():
            return _object(value, levels)
        case Sequence() | Set() if not isinstance(value, (bytes, bytearray, memoryview)):
            shown = [plain(each, levels - 1) for each in islice(value, VALUES)]
            return [*shown, f"… {len(value) - VALUES} more"] if len(value) > VALUES else shown
        case _:
            return in_words(value)


def _object(value: Mapping[Any, Any], levels: int) -> dict[str, JSON]:
    shown = {str(key): plain(each, levels - 1) for key, each in islice(value.items(), VALUES)}
    if len(value) > VALUES:
        shown["…"] = f"{len(value) - VALUES} more"
    return shown


def in_words(value: object, length: int = TEXT) -> str:
    """What an object says of itself; never fails, whatever its ``repr`` does."""
    try:
        return cut(repr(value), length)
    except Exception as error:  # noqa: BLE001 a foreign method may raise anything
        return f"<{type(value).__name__}, whose repr failed: {type(error).__name__}>"
