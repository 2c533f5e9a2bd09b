"""Lines of a wire capture: one JSON object each, ``{"dir": "c2h" | "h2c", "frame": {…}}``.

``c2h`` is what a client sent, ``h2c`` what the host did. Other keys of a line are for whoever
wrote it and are not looked at.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, cast, get_args

import attrs

from ahpd.protocol.faults import shown
from ahpd.protocol.jsontext import ParseError, dumps, loads
from ahpd.protocol.model import JSON

#: Which way a frame went.
Way: TypeAlias = Literal["c2h", "h2c"]


@attrs.frozen
class Captured:
    """One frame and its way. The frame may be anything: judging it is `strict`'s part."""

    way: Way
    frame: JSON


def parse_line(line: bytes | str) -> Captured:
    """The frame that a line of a capture holds; raises `ParseError` when it holds none."""
    record = loads(line)
    if not isinstance(record, dict):
        raise ParseError(f"expected an object with dir and frame, got {shown(record)}")
    way = record.get("dir")
    if not isinstance(way, str) or way not in get_args(Way):
        found = shown(way) if "dir" in record else "nothing"
        raise ParseError(f'dir: expected "c2h" or "h2c", got {found}')
    if "frame" not in record:
        raise ParseError("frame: expected any value, got nothing")
    return Captured(cast("Way", way), record["frame"])


def line_of(way: Way, frame: JSON) -> bytes:
    """The line that stands for a frame, with its line break."""
    return dumps({"dir": way, "frame": frame}) + b"\n"
