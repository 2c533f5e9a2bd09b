"""Whether a frame is legal: the one place that every frame a test produces goes through.

A `FrameChecker` is fed the frames of a connection in order and says what is wrong with each. It is
made from the wire types and the tables of `methods` and `errors` alone. *Strict* means what
`faults` means by it: undeclared keys, unknown variants and null for an absent key are faults.

It remembers the open requests of each direction (R-1.13), so that a result is held against the
method that asked for it. Methods outside the protocol (``x-…``, a vendor's own, what flows on
``mcp://``) are counted and passed over, with their answers (R-1.22, R-21).

Beyond what the protocol's schema can say, these are faults too:

* an id that is neither a number nor a string; a request without an id, a notification with one;
* a key that JSON-RPC does not declare; an answer with both a result and an error; a method that
  is no string;
* a method that this side may not send (R-1.23 to R-1.25);
* a result other than ``null`` of a method that succeeds with ``null`` (R-1.27);
* error data that does not fit its code, or is missing where it is required (R-23.1);
* with `whole`, which says that the frames are one connection's from its first on: an answer to
  nothing that is open, and an id used again while it is open (R-1.9).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeGuard

import attrs

from ahpd.protocol.capture import Way, parse_line
from ahpd.protocol.errors import ERROR_DATA, ERROR_DATA_REQUIRED
from ahpd.protocol.faults import faults, shown
from ahpd.protocol.jsonrpc import Id
from ahpd.protocol.jsontext import ParseError
from ahpd.protocol.methods import METHODS, Method
from ahpd.protocol.model import JSON
from ahpd.protocol.shapes import Null, Shape, shape_of

_SENDER: Mapping[Way, Literal["client", "host"]] = {"c2h": "client", "h2c": "host"}
_OTHER: Mapping[Way, Way] = {"c2h": "h2c", "h2c": "c2h"}

#: Methods that a host sends too, to a client on whose files it made a watch.
_WATCHING = frozenset({"subscribe", "unsubscribe"})

_CALL_KEYS = frozenset({"jsonrpc", "id", "method", "params"})
_ANSWER_KEYS = frozenset({"jsonrpc", "id", "result", "error"})
_ERROR_KEYS = frozenset({"code", "message", "data"})


@attrs.frozen
class FrameFault:
    """What is wrong with one frame.

    `number` counts frames from 1. `method` is the call's, or that of the request answered; None
    when it cannot be told. `path` leads to the place inside the frame; ``.`` is the frame, and
    an empty one the line of a capture that holds no frame.
    """

    number: int
    method: str | None
    path: str
    message: str

    def __str__(self) -> str:
        """``7: chat/turnStarted: params/action/turnId: expected string, got nothing``."""
        where = [] if not self.path else [self.method or "frame"]
        if self.path not in ("", "."):
            where.append(self.path)
        return ": ".join([str(self.number), *where, self.message])


@attrs.frozen
class _Wrong:
    """A fault before it is known in which frame."""

    path: str
    message: str


class FrameChecker:
    """Judges frames, one after the other.

    `frames` counts them, `passed_over` those of methods outside the protocol.
    """

    def __init__(self, *, whole: bool = False) -> None:
        self.frames = 0
        self.passed_over = 0
        self._whole = whole
        #: Direction of the request -> id -> method.
        self._open: dict[Way, dict[Id, str]] = {"c2h": {}, "h2c": {}}

    def check(self, way: Way, frame: JSON, number: int | None = None) -> list[FrameFault]:
        """The faults of the next frame, and remembers it when it is a request.

        `number` is told in the faults in place of the count, for instance a line's.
        """
        self.frames += 1
        method, wrongs = self._judge(way, frame)
        at = self.frames if number is None else number
        return [FrameFault(at, method, wrong.path, wrong.message) for wrong in wrongs]

    def check_line(self, line: bytes | str, number: int) -> list[FrameFault]:
        """As `check`, for the frame on a line of a capture; an empty line holds none."""
        if not line.strip():
            return []
        try:
            captured = parse_line(line)
        except ParseError as error:
            self.frames += 1
            return [FrameFault(number, None, "", str(error))]
        return self.check(captured.way, captured.frame, number)

    def open_requests(self, way: Way) -> Mapping[Id, str]:
        """The requests sent this way that have no answer yet: id -> method."""
        return dict(self._open[way])

    def _judge(self, way: Way, frame: JSON) -> tuple[str | None, list[_Wrong]]:
        if not isinstance(frame, dict):
            return None, [_Wrong(".", f"expected one message object, got {shown(frame)}")]
        if "method" in frame:
            method = frame["method"]
            return method if isinstance(method, str) else None, list(self._call(way, frame))
        if "result" in frame or "error" in frame:
            asked = self._asked(way, frame)
            return asked, list(self._answer(way, frame, asked))
        return None, [_Wrong(".", "neither a call, a result nor an error")]

    def _call(self, way: Way, frame: dict[str, JSON]) -> Iterator[_Wrong]:
        yield from _envelope(frame, _CALL_KEYS)
        name = frame["method"]
        if not isinstance(name, str):
            yield _Wrong("method", f"expected string, got {shown(name)}")
            return
        if "id" in frame:
            yield from self._opened(way, frame["id"], name)
        method = METHODS.get(name)
        if method is None:
            self.passed_over += 1
            return
        if method.is_request != ("id" in frame):
            yield _Wrong("id", "a request needs one" if method.is_request else "a notification")
        if not method.sent_by(_SENDER[way]) and not (way == "h2c" and name in _WATCHING):
            yield _Wrong("method", f"the {_SENDER[way]} may not send {name}")
        yield from _fit("params", _params(method), frame.get("params", {}))

    def _opened(self, way: Way, id: JSON, method: str) -> Iterator[_Wrong]:
        if not _is_id(id):
            yield _Wrong("id", f"expected a number or a string, got {shown(id)}")
            return
        if self._whole and id in self._open[way]:
            yield _Wrong("id", f"{shown(id)} is still open, for {self._open[way][id]}")
        self._open[way][id] = method

    def _asked(self, way: Way, frame: dict[str, JSON]) -> str | None:
        """The method of the request that an answer closes; None when it answers none known."""
        id = frame.get("id")
        return self._open[_OTHER[way]].pop(id, None) if _is_id(id) else None

    def _answer(self, way: Way, frame: dict[str, JSON], asked: str | None) -> Iterator[_Wrong]:
        yield from _envelope(frame, _ANSWER_KEYS)
        id = frame.get("id")
        if not _is_id(id):
            # The sender of an error may not have been able to read the request's id.
            if "result" in frame or id is not None:
                yield _Wrong("id", f"expected a number or a string, got {shown(id)}")
        elif self._whole and asked is None:
            yield _Wrong("id", f"{shown(id)} is no open request of the {_SENDER[_OTHER[way]]}")
        if "result" in frame and "error" in frame:
            yield _Wrong(".", "both a result and an error")
        if asked is not None and asked not in METHODS:
            self.passed_over += 1
            return
        if "error" in frame:
            yield from _error(frame["error"])
        elif asked is not None and METHODS[asked].is_request:
            yield from _fit("result", _result(METHODS[asked]), frame["result"])


def check_frames(frames: Iterable[tuple[Way, JSON]], *, whole: bool = True) -> list[FrameFault]:
    """The faults of the frames of one connection."""
    checker = FrameChecker(whole=whole)
    return [fault for way, frame in frames for fault in checker.check(way, frame)]


def _is_id(value: JSON) -> TypeGuard[Id]:
    return isinstance(value, (int, float, str)) and not isinstance(value, bool)


def _envelope(frame: dict[str, JSON], keys: frozenset[str]) -> Iterator[_Wrong]:
    if frame.get("jsonrpc") != "2.0":
        yield _Wrong("jsonrpc", f'expected "2.0", got {_shown_at(frame, "jsonrpc")}')
    for key in frame.keys() - keys:
        yield _Wrong(str(key), f"no such key in a message, got {shown(frame[key])}")


def _error(error: JSON) -> Iterator[_Wrong]:
    if not isinstance(error, dict):
        yield _Wrong("error", f"expected object, got {shown(error)}")
        return
    code, message = error.get("code"), error.get("message")
    if isinstance(code, bool) or not isinstance(code, int):
        yield _Wrong("error/code", f"expected integer, got {_shown_at(error, 'code')}")
    elif code in ERROR_DATA and ("data" in error or code in ERROR_DATA_REQUIRED):
        yield from _fit("error/data", shape_of(ERROR_DATA[code]), error.get("data"))
    if not isinstance(message, str):
        yield _Wrong("error/message", f"expected string, got {_shown_at(error, 'message')}")
    for key in error.keys() - _ERROR_KEYS:
        yield _Wrong(f"error/{key}", f"no such key in an error, got {shown(error[key])}")


def _fit(prefix: str, shape: Shape, value: Any) -> Iterator[_Wrong]:
    for fault in faults(shape, value, strict=True):
        path = prefix if fault.where == "." else f"{prefix}/{fault.where}"
        yield _Wrong(path, f"expected {fault.expected}, got {fault.found}")


@functools.cache
def _params(method: Method) -> Shape:
    return shape_of(method.params)


@functools.cache
def _result(method: Method) -> Shape:
    return Null() if method.result is None else shape_of(method.result)


def _shown_at(value: dict[str, JSON], key: str) -> str:
    return shown(value[key]) if key in value else "nothing"
