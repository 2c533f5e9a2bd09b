"""Every frame of every connection: kept, judged, and held against what numbers must do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from ahpd.protocol.capture import Way
from ahpd.protocol.jsontext import ParseError, loads
from ahpd.protocol.strict import FrameChecker


@attrs.frozen
class _Read:
    """A frame that carries no id: what is known about it does not depend on its connection."""

    frame: Any
    faults: tuple[str, ...]
    number: int | None


class Taps:
    """All connections of one host. `faults` is what was wrong with any of them.

    `provoked` are patterns of faults that the test commits on purpose, as `re.search` takes them.
    """

    def __init__(self, provoked: Sequence[str] = ()) -> None:
        self.faults: list[str] = []
        self.all: list[Tap] = []
        self._provoked = [re.compile(pattern) for pattern in provoked]
        # An envelope goes to many peers as the same bytes: it is read and judged once.
        self._known: dict[bytes, _Read] = {}

    def tap(self, name: str) -> Tap:
        """The tap of a new connection."""
        made = Tap(name, self)
        self.all.append(made)
        return made

    def fault(self, text: str) -> None:
        """Something is wrong; the test fails when the host is done."""
        if not any(pattern.search(text) for pattern in self._provoked):
            self.faults.append(text)

    def known(self, text: bytes) -> _Read | None:
        """What was found out about a notification that another peer got already."""
        return self._known.get(text)

    def remember(self, text: bytes, read: _Read) -> None:
        """Keep it for the next peer."""
        if len(self._known) > 4096:
            self._known.clear()
        self._known[text] = read


class Tap:
    """One connection: `frames` are those that were sent, in order, as (way, frame).

    Both ends note a frame when they send it, so what is lost on the way is judged as well.
    """

    def __init__(self, name: str, taps: Taps) -> None:
        self.name = name
        self.frames: list[tuple[Way, Any]] = []
        #: The number of the last envelope that the host sent.
        self.number = -1
        self._taps = taps
        self._checker = FrameChecker(whole=True)

    def passed(self, way: Way, text: bytes) -> None:
        """A frame was sent."""
        read = self._taps.known(text) if way == "h2c" else None
        if read is None:
            read = self._read(way, text)
        self.frames.append((way, read.frame))
        for fault in read.faults:
            self._taps.fault(f"{self.name}: {way} {fault}: {text!r:.600}")
        if way == "h2c":
            if read.number is not None:
                self._grow(read.number, text)
            else:
                self._look(read.frame, text)

    def _read(self, way: Way, text: bytes) -> _Read:
        try:
            frame = loads(text)
        except ParseError as error:
            return _Read(None, (f"no JSON: {error}",), None)
        faults = tuple(map(str, self._checker.check(way, frame)))
        number = None
        if isinstance(frame, dict) and frame.get("method") == "action":
            number = int(frame["params"]["serverSeq"])
        read = _Read(frame, faults, number)
        if way == "h2c" and isinstance(frame, dict) and "id" not in frame:
            self._taps.remember(text, read)
        return read

    def _look(self, frame: Any, text: bytes) -> None:
        """A replay holds envelopes too, and what follows it has to be above them."""
        result = frame.get("result") if isinstance(frame, dict) else None
        if isinstance(result, dict) and result.get("type") == "replay":
            for envelope in result["actions"]:
                self._grow(int(envelope["serverSeq"]), text)

    def _grow(self, number: int, text: bytes) -> None:
        if number <= self.number:
            self._taps.fault(f"{self.name}: {number} after {self.number}: {text!r:.600}")
        self.number = number

    def notifications(self, method: str) -> Iterator[Any]:
        """The params of the host's notifications of this method."""
        for way, frame in self.frames:
            if way == "h2c" and isinstance(frame, dict) and frame.get("method") == method:
                yield frame["params"]
