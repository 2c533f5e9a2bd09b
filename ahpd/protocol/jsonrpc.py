"""JSON-RPC 2.0 messages as AHP uses them: one message a frame, no batches (RULES 1).

The two directions have id spaces of their own (R-1.13): whoever keeps open requests keeps those it
sent apart from those it received. Ids are handed back exactly as they came (R-1.12); a number is
usual, whole ones of any size included, a string is taken, anything else is no id.
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from msgspec import Struct

from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.faults import shown
from ahpd.protocol.jsontext import Fragment, ParseError, loads
from ahpd.protocol.model import JSON, Object

Id: TypeAlias = int | float | str


class Request(Struct, frozen=True):
    """A call that wants exactly one answer (R-1.9)."""

    id: Id
    method: str
    params: Object


class Notification(Struct, frozen=True):
    """A call that never gets an answer, not even an error (R-1.10)."""

    method: str
    params: Object


class Success(Struct, frozen=True):
    """The result of a request of this side."""

    id: Id
    result: JSON


class Failure(Struct, frozen=True):
    """The error that answers a request of this side; `id` is None when the peer could not tell."""

    id: Id | None
    error: ProtocolError


Frame: TypeAlias = Request | Notification | Success | Failure


class BadFrame(ProtocolError):
    """A frame that is no message. `id` is its id when it has a usable one, for the answer.

    `answerable` is False for what must not be answered: a broken response, or a notification whose
    params are broken. A call without an id counts as a notification only when its version and its
    method are right; anything else is answered, with the id null.
    """

    def __init__(
        self, code: int, message: str, id: Id | None = None, *, answerable: bool = True
    ) -> None:
        super().__init__(code, message)
        self.id = id
        self.answerable = answerable


def parse(text: bytes | str) -> Frame:
    """The message in one frame.

    Raises `BadFrame`: -32700 for what is not JSON, -32600 for what is no message.
    """
    try:
        value = loads(text)
    except ParseError as error:
        raise BadFrame(ErrorCode.PARSE_ERROR, str(error)) from None
    if isinstance(value, dict) and isinstance(value.get("id"), float):
        value["id"] = _exact_id(text)
    return classify(value)


def _exact_id(text: bytes | str) -> JSON:
    """The id of a message, whole if it was written so: beyond 64 bits it came out as a float.

    The slower reader of the standard library, which keeps all digits; `loads` has let only as many
    through as fit a float.
    """
    id: JSON = json.loads(text)["id"]
    return id


def classify(value: JSON) -> Frame:
    """The message that a plain JSON value is (R-1.11); raises `BadFrame` (-32600)."""
    if not isinstance(value, dict):
        what = "a batch" if isinstance(value, list) else shown(value)
        raise BadFrame(ErrorCode.INVALID_REQUEST, f"expected one message object, got {what}")
    if "method" in value:
        return _call(value)
    if "result" in value or "error" in value:
        return _answer(value)
    raise BadFrame(
        ErrorCode.INVALID_REQUEST,
        "an object with neither method nor result nor error is no message",
        _usable(value.get("id")),
    )


def _usable(id: JSON) -> Id | None:
    """The value when it can be an id; ``True`` is no number, and objects are no keys."""
    return id if isinstance(id, (int, float, str)) and not isinstance(id, bool) else None


def _call(value: dict[str, JSON]) -> Request | Notification:
    has_id = "id" in value
    id = _usable(value.get("id"))
    if has_id and id is None:
        raise BadFrame(
            ErrorCode.INVALID_REQUEST, f"id must be a number or a string, got {shown(value['id'])}"
        )
    _check_version(value, id, answerable=True)
    method, params = value["method"], value.get("params")
    if not isinstance(method, str):
        raise BadFrame(
            ErrorCode.INVALID_REQUEST,
            f"method must be a string, got {shown(method)}",
            id,
        )
    if params is None:
        params = {}
    if not isinstance(params, dict):
        raise BadFrame(
            ErrorCode.INVALID_PARAMS,
            f"{method}: params must be an object, got {shown(params)}",
            id,
            answerable=has_id,
        )
    return Notification(method, params) if id is None else Request(id, method, params)


def _answer(value: dict[str, JSON]) -> Success | Failure:
    id = _usable(value.get("id"))
    _check_version(value, id, answerable=False)
    if ("result" in value) == ("error" in value):
        raise BadFrame(
            ErrorCode.INVALID_REQUEST, "an answer holds a result or an error", answerable=False
        )
    if "error" not in value:
        if id is None:
            raise BadFrame(ErrorCode.INVALID_REQUEST, "a result without an id", answerable=False)
        return Success(id, value["result"])
    error = value["error"]
    code = error.get("code") if isinstance(error, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    if isinstance(code, bool) or not isinstance(code, int) or not isinstance(message, str):
        raise BadFrame(
            ErrorCode.INVALID_REQUEST,
            "an error needs an integer code and a string message",
            answerable=False,
        )
    return Failure(id, ProtocolError(code, message, error.get("data")))


def _check_version(value: dict[str, JSON], id: Id | None, *, answerable: bool) -> None:
    if value.get("jsonrpc") != "2.0":
        raise BadFrame(
            ErrorCode.INVALID_REQUEST,
            f'jsonrpc must be "2.0", got {shown(value.get("jsonrpc"))}',
            id,
            answerable=answerable,
        )


def _written(id: Id | None) -> Any:
    """An id as it is put into a message; `dumps` writes no whole number beyond 64 bits itself."""
    is_long = isinstance(id, int) and not -(1 << 63) <= id < 1 << 64
    return Fragment(str(id).encode()) if is_long else id


def request(id: Id, method: str, params: JSON) -> dict[str, JSON]:
    """A request as a plain JSON value."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def notification(method: str, params: JSON) -> dict[str, JSON]:
    """A notification as a plain JSON value."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def success(id: Id, result: JSON) -> dict[str, JSON]:
    """A successful answer as a plain JSON value."""
    return {"jsonrpc": "2.0", "id": _written(id), "result": result}


def failure(id: Id | None, error: ProtocolError) -> dict[str, JSON]:
    """An error answer as a plain JSON value; ``data`` is left out when there is none (R-1.37)."""
    body: dict[str, JSON] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return {"jsonrpc": "2.0", "id": _written(id), "error": body}
