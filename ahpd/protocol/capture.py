"""Lines of a wire capture, in either of two shapes; each line is one JSON object.

* *frames*: ``{"dir": "c2h" | "h2c", "frame": {…}}``. ``c2h`` is what a client sent, ``h2c`` what
  the host did. Beside them may stand ``conn``, which of several connections it was, ``at``, when
  (ISO 8601), and ``lost``, how many frames before it were left out.
* *ahplog*, as other hosts and inspectors have it: the message itself, with all that in one more
  key, ``"_ahpLog": {"ts": …, "dir": "c2s" | "s2c", "connectionId": …, "lost": …}``. A message that
  is no JSON object is the text ``_raw`` there.

Other keys are for whoever wrote the line and are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast, get_args

import attrs

from ahpd.protocol.faults import shown
from ahpd.protocol.jsontext import ParseError, dumps, loads
from ahpd.protocol.model import JSON

#: Which way a frame went.
Way: TypeAlias = Literal["c2h", "h2c"]

#: The key of the second shape, and the names of the ways in it.
LOG_KEY, RAW_KEY = "_ahpLog", "_raw"
LOG_WAYS: Mapping[Way, str] = {"c2h": "c2s", "h2c": "s2c"}
_WAYS: Mapping[str, Way] = {name: way for way, name in LOG_WAYS.items()}


@attrs.frozen
class Captured:
    """One frame and its way. The frame may be anything: judging it is `strict`'s part.

    `conn`, `at` and `lost` are as in the module, where the line has them.
    """

    way: Way
    frame: JSON
    conn: str | None = None
    at: str | None = None
    lost: int = 0


def parse_line(line: bytes | str) -> Captured:
    """The frame that a line of a capture holds; raises `ParseError` when it holds none."""
    record = loads(line)
    if not isinstance(record, dict):
        raise ParseError(f"expected an object with dir and frame, got {shown(record)}")
    about = record.get(LOG_KEY)
    if isinstance(about, dict) and "dir" not in record:
        return _logged(record, about)
    way = record.get("dir")
    if not isinstance(way, str) or way not in get_args(Way):
        found = shown(way) if "dir" in record else "nothing"
        raise ParseError(f'dir: expected "c2h" or "h2c", got {found}')
    if "frame" not in record:
        raise ParseError("frame: expected any value, got nothing")
    return _with(cast("Way", way), record["frame"], record, conn="conn", at="at")


def _logged(record: dict[str, JSON], about: dict[str, JSON]) -> Captured:
    way = about.get("dir")
    if not isinstance(way, str) or way not in _WAYS:
        found = shown(way) if "dir" in about else "nothing"
        raise ParseError(f'{LOG_KEY}/dir: expected "c2s" or "s2c", got {found}')
    message: JSON = {key: value for key, value in record.items() if key != LOG_KEY}
    if record.keys() == {RAW_KEY, LOG_KEY}:
        message = record[RAW_KEY]
    return _with(_WAYS[way], message, about, conn="connectionId", at="ts")


def _with(way: Way, frame: JSON, about: dict[str, JSON], *, conn: str, at: str) -> Captured:
    number, moment, lost = about.get(conn), about.get(at), about.get("lost")
    return Captured(
        way,
        frame,
        None if number is None else str(number),
        moment if isinstance(moment, str) else None,
        lost if isinstance(lost, int) else 0,
    )


def line_of(way: Way, frame: JSON, **more: Any) -> bytes:
    """The line of the first shape that stands for a frame, with its line break."""
    return dumps({"dir": way, **more, "frame": frame}) + b"\n"
