"""Judges the frames of a capture, each connection for itself."""

from __future__ import annotations

from collections.abc import Iterator

from ahpd.protocol.capture import parse_line
from ahpd.protocol.jsontext import ParseError
from ahpd.protocol.strict import FrameChecker, FrameFault


class Connections:
    """A `FrameChecker` for each connection that the lines of one capture name.

    Answers are held against the requests of their own connection, and ids may be the same on two.
    """

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole
        self._by_name: dict[str | None, FrameChecker] = {}
        self._no_frames = 0

    @property
    def frames(self) -> int:
        """Lines that hold a frame, or should."""
        return self._no_frames + sum(each.frames for each in self._by_name.values())

    @property
    def passed_over(self) -> int:
        """Frames of methods outside the protocol."""
        return sum(each.passed_over for each in self._by_name.values())

    def check_line(self, line: bytes, number: int) -> Iterator[FrameFault]:
        """The faults of a line; an empty one has none."""
        if not line.strip():
            return
        try:
            captured = parse_line(line)
        except ParseError as error:
            self._no_frames += 1
            yield FrameFault(number, None, "", str(error))
            return
        checker = self._by_name.get(captured.conn)
        if checker is None:
            checker = self._by_name[captured.conn] = FrameChecker(whole=self._whole)
        yield from checker.check(captured.way, captured.frame, number)
