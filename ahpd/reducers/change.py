"""What all reducers share: telling a change from none, and lists whose items have ids.

The host finds out that an action changed nothing by identity: a reducer then returns the very
state that it was given. So every handler here builds a new value only when something differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from ahpd.protocol.model import Unknown, Wire, WireType

S = TypeVar("S")
T = TypeVar("T")
W = TypeVar("W", bound=Wire)

#: Action class -> the function that applies it. The second argument is of the key's class.
Handlers: TypeAlias = Mapping[WireType, Callable[[S, Any], S]]


def dispatch(handlers: Handlers[S], state: S, action: Wire) -> S:
    """Apply `action`; one that is not in the table changes nothing (R-5.24, R-5.31)."""
    handler = handlers.get(type(action))
    return state if handler is None else handler(state, action)


def unchanged(state: S, _: object) -> S:
    """The handler of actions that are only requests to the host, or only events."""
    return state


def same(one: object, other: object) -> bool:
    """Whether two values are the same on the wire, but for null in place of an absent key.

    Python's own ``==`` will not do: there True is 1, and it recurses into open objects, which
    peers may nest deeper than the interpreter allows.
    """
    pairs = [(one, other)]
    while pairs:
        one, other = pairs.pop()
        if one is other:
            continue
        if isinstance(one, bool) or isinstance(other, bool):
            return False
        if isinstance(one, Wire):
            if type(one) is not type(other):
                return False
            names = type(one).wire_names
            pairs += [(getattr(one, name), getattr(other, name)) for name in names]
            pairs.append((_present(one.extra), _present(other.extra)))
        elif isinstance(one, Mapping):
            if not isinstance(other, Mapping) or one.keys() != other.keys():
                return False
            pairs += [(value, other[key]) for key, value in one.items()]
        elif isinstance(one, Sequence) and not isinstance(one, str):
            if not isinstance(other, Sequence) or isinstance(other, str) or len(one) != len(other):
                return False
            pairs += zip(one, other, strict=True)
        elif one != other:
            return False
    return True


def _present(extra: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in extra.items() if value is not None} if extra else extra


def changed(value: W, **fields: Any) -> W:
    """`value` with `fields` set, or `value` itself when it has them all already."""
    for name, field in fields.items():
        if not same(getattr(value, name), field):
            return value.evolve(**fields)
    return value


def id_of(item: Any) -> object:
    """The ``id`` of a list's item, also of a variant that is not known here (R-9.99)."""
    return item.raw.get("id") if isinstance(item, Unknown) else item.id


def resource_of(item: Any) -> object:
    """The ``resource`` of a list's item."""
    return item.resource


def place_of(items: Sequence[T], wanted: object, key: Callable[[T], object] = id_of) -> int:
    """The first place of the item whose key is `wanted`, or -1."""
    return next((place for place, item in enumerate(items) if key(item) == wanted), -1)


def put(items: tuple[T, ...] | None, item: T, key: Callable[[T], object] = id_of) -> tuple[T, ...]:
    """`items` with `item` in place of the one with its key, or at the end."""
    items = items or ()
    place = place_of(items, key(item), key)
    return (*items, item) if place < 0 else with_item(items, place, item)


def with_item(items: tuple[T, ...], place: int, item: T) -> tuple[T, ...]:
    """`items` with the one at `place` changed; `items` itself when it is the same already."""
    if same(items[place], item):
        return items
    return (*items[:place], item, *items[place + 1 :])


def without(
    items: tuple[T, ...], wanted: object, key: Callable[[T], object] = id_of
) -> tuple[T, ...]:
    """`items` without those whose key is `wanted`; `items` itself when there is none."""
    kept = tuple(item for item in items if key(item) != wanted)
    return items if len(kept) == len(items) else kept
