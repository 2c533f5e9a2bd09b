"""The types that a round-trip case can name: whatever `ahpd.protocol` has, and JSON-RPC messages.

A case gives a type by its name in the protocol. Most are a class or an alias of that name. A few
definitions stand for nothing that travels alone; what they mean is put together here.
"""

from __future__ import annotations

import functools
import importlib
import operator
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, TypeAlias

import ahpd.protocol
from ahpd.protocol.actions import ACTIONS
from ahpd.protocol.codec import DecodeError, decoder, encode
from ahpd.protocol.jsonrpc import (
    BadFrame,
    Failure,
    Frame,
    Notification,
    Request,
    Success,
    classify,
    failure,
    notification,
    request,
    success,
)
from ahpd.protocol.methods import HOST_NOTIFICATIONS
from ahpd.protocol.model import JSON, Object, Unknown
from ahpd.protocol.shapes import NUMBER, shape_of

#: Decodes a JSON value and encodes it again; raises `ValueError` when it cannot be decoded.
RoundTrip: TypeAlias = Callable[[JSON], JSON]


def round_trip_of(name: str) -> RoundTrip | None:
    """The round trip through the type of this name, or None when there is no such type."""
    kinds = _MESSAGES.get(name)
    if kinds is not None:
        return functools.partial(_message_again, name, kinds)
    hint = type_named(name)
    return None if hint is None else functools.partial(_value_again, name, hint)


def _value_again(name: str, hint: Any, value: JSON) -> JSON:
    try:
        return encode(hint, decoder(hint)(value))
    except DecodeError as error:
        raise ValueError(f"{name}: {error.fault}") from None


@functools.cache
def type_named(name: str) -> Any:
    """The class or union of this name in the protocol; None when there is none."""
    derived = _derived().get(name)
    if derived is not None:
        return derived
    return next((hint for hint in _declared(name) if _is_type(hint)), None)


def _declared(name: str) -> Iterator[Any]:
    for info in pkgutil.iter_modules(ahpd.protocol.__path__):
        found = vars(importlib.import_module(f"ahpd.protocol.{info.name}")).get(name)
        if found is not None:
            yield found


def _is_type(hint: Any) -> bool:
    try:
        shape_of(hint)
    except TypeError:
        return False
    return True


@functools.cache
def _derived() -> Mapping[str, Any]:
    channels = {info.channel for info in ACTIONS.values()}
    actions = {
        f"{channel[0].upper()}{channel[1:]}Action": _union(
            cls for info in ACTIONS.values() if info.channel == channel for cls in info.classes
        )
        for channel in channels
    }
    notices = [method.params for name, method in HOST_NOTIFICATIONS.items() if name != "action"]
    return {
        **actions,
        "ProtocolNotification": _union(notices),
        "AhpErrorCode": Annotated[int, NUMBER],
        "JsonRpcErrorCode": Annotated[int, NUMBER],
        "AhpErrorDetailsMap": Object,
    }


def _union(members: Iterable[Any]) -> Any:
    return functools.reduce(operator.or_, [*members, Unknown])


_MESSAGES: Mapping[str, tuple[type[Frame], ...]] = {
    "JsonRpcMessage": (Request, Notification, Success, Failure),
    "ProtocolMessage": (Request, Notification, Success, Failure),
    "JsonRpcRequest": (Request,),
    "JsonRpcNotification": (Notification,),
    "JsonRpcResponse": (Success, Failure),
    "JsonRpcSuccessResponse": (Success,),
    "JsonRpcErrorResponse": (Failure,),
}


def _message_again(name: str, kinds: tuple[type[Frame], ...], value: JSON) -> JSON:
    try:
        message = classify(value)
    except BadFrame as error:
        raise ValueError(f"{name}: {error}") from None
    if not isinstance(message, kinds):
        raise ValueError(f"{name}: this is a {type(message).__name__}")  # noqa: TRY004 - peer data
    again = _written(message)
    if "params" not in value and again.get("params") == {}:
        del again["params"]  # the same message: an absent object of params is an empty one
    return again


def _written(message: Frame) -> dict[str, JSON]:
    match message:
        case Request():
            return request(message.id, message.method, message.params)
        case Notification():
            return notification(message.method, message.params)
        case Success():
            return success(message.id, message.result)
        case Failure():
            return failure(message.id, message.error)
