"""``ahpd wire show``: a capture as a timeline, line by line as it is read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import attrs
from rich.console import Console
from rich.text import Text

from ahpd.cli.shown import cut, line, safe, width
from ahpd.cli.words import count
from ahpd.protocol.capture import Captured, parse_line
from ahpd.protocol.jsontext import ParseError
from ahpd.protocol.uris import default_chat_session

#: Cells of a channel's name; more is cut in the middle, where it says least.
CHANNEL = 28
#: Requests without an answer that are remembered for one connection and way.
OPEN = 10_000

_ARROWS = {"c2h": ("→", "->", "cyan"), "h2c": ("←", "<-", "green")}
_OTHER = {"c2h": "h2c", "h2c": "c2h"}


@attrs.frozen
class Wanted:
    """What is shown: of these connections, and with one of these words; all when there are none."""

    conns: Sequence[str] = ()
    words: Sequence[str] = ()

    def takes(self, event: Event) -> bool:
        """Whether it is shown."""
        if self.conns and event.conn not in self.conns:
            return False
        found = f"{event.what} {event.channel}".lower()
        return not self.words or any(word.lower() in found for word in self.words)


@attrs.define
class Event:
    """One frame in words. `took` is how long its answer took, in seconds; `size` in bytes."""

    way: str
    conn: str
    what: str
    channel: str = ""
    about: str = ""
    is_bad: bool = False
    at: float | None = None
    took: float | None = None
    size: int = 0
    times: int = 1
    until: float | None = None
    value: Any = None

    def continues(self, before: Event) -> bool:
        """Whether it is of the same kind as the one before it, and can share its line."""
        mine = (self.way, self.conn, self.what, self.channel)
        theirs = (before.way, before.conn, before.what, before.channel)
        is_answer = self.took is not None or self.what.startswith(("=", "✗"))
        return mine == theirs and not (self.is_bad or before.is_bad or is_answer)


@attrs.define
class _Open:
    """A request that waits for its answer."""

    method: str
    channel: str
    at: float | None


class Timeline:
    """Prints events as they come; a run of the same kind is printed when it is over."""

    def __init__(
        self, wanted: Wanted, *, fold: bool, full: bool = False, as_json: bool = False
    ) -> None:
        self._wanted = wanted
        self._as_json = as_json
        self._fold = fold
        self._full = full
        self._console = Console(highlight=False, soft_wrap=True)
        encoding = (self._console.encoding or "").lower().replace("-", "")
        self._plain = encoding != "utf8"
        self._began: float | None = None
        self._open: dict[tuple[str, str], dict[str, _Open]] = {}
        self._held: Event | None = None
        self._frames = self._shown = 0
        self._conns: set[str] = set()

    def add(self, text: bytes, number: int) -> None:
        """The next line of a capture."""
        if not text.strip():
            return
        try:
            captured = parse_line(text)
        except ParseError as error:
            self._flush()
            self._note(f"line {number}: {line(str(error))}")
            return
        self._frames += 1
        event = self._event(captured, len(text))
        self._conns.add(event.conn)
        if captured.lost:
            self._flush()
            self._note(f"{count(captured.lost, 'frame')} left out here")
        if not self._wanted.takes(event):
            return
        self._shown += 1
        held = self._held
        if held is not None and self._fold and event.continues(held):
            held.times += 1
            held.size += event.size
            held.until = event.at
            return
        self._flush()
        self._held = event

    def end(self) -> None:
        """That was all."""
        self._flush()
        if self._as_json:
            return
        waiting = sum(len(each) for each in self._open.values())
        told = f"{count(self._frames, 'frame')} of {count(len(self._conns), 'connection')}"
        if self._shown != self._frames:
            told += f", {self._shown} shown"
        if waiting:
            told += f", {count(waiting, 'request')} without an answer"
        self._say(Text(told, style="dim"))

    # ---- from frames to events -----------------------------------------------------------------

    def _event(self, captured: Captured, size: int) -> Event:
        frame, way, conn = captured.frame, captured.way, captured.conn or "-"
        at = _seconds(captured.at)
        if at is not None and self._began is None:
            self._began = at
        if not isinstance(frame, dict):
            about = _brief(frame)
            return Event(way, conn, "no message", about=about, is_bad=True, at=at, size=size)
        method, id = frame.get("method"), frame.get("id")
        if isinstance(method, str):
            params = frame.get("params")
            event = _call(way, conn, method, params if isinstance(params, dict) else {})
            if "id" in frame:
                self._asked(event, id, at)
                event.about = f"#{id} {event.about}".rstrip()
        else:
            event = self._answer(way, conn, frame, at)
        event.at, event.size, event.value = at, size, frame
        return event

    def _asked(self, event: Event, id: object, at: float | None) -> None:
        waiting = self._open.setdefault((event.conn, event.way), {})
        waiting[json.dumps(id)] = _Open(event.what, event.channel, at)
        if len(waiting) > OPEN:
            del waiting[next(iter(waiting))]

    def _answer(self, way: str, conn: str, frame: dict[str, Any], at: float | None) -> Event:
        id = frame.get("id")
        asked = self._open.get((conn, _OTHER[way]), {}).pop(json.dumps(id), None)
        method, channel = (asked.method, asked.channel) if asked is not None else ("?", "")
        error = frame.get("error")
        if isinstance(error, dict):
            about = f"#{id} {error.get('code')}: {error.get('message')}"
            event = Event(way, conn, f"✗ {method}", channel, about, is_bad=True)
        else:
            result = frame.get("result")
            event = Event(way, conn, f"= {method}", channel, f"#{id} {_result(result)}".rstrip())
        if asked is not None and asked.at is not None and at is not None:
            event.took = at - asked.at
        return event

    # ---- from events to lines ------------------------------------------------------------------

    def _flush(self) -> None:
        event, self._held = self._held, None
        if event is None:
            return
        if self._as_json:
            self._print_json(_facts(event))
            return
        mark, plain, colour = _ARROWS[event.way]
        text = Text(no_wrap=True)
        text.append(f"{self._moment(event.at):>10} ", style="dim")
        text.append(f"{event.conn:>3} ", style="dim")
        text.append(f"{plain if self._plain else mark} ", style=colour)
        style = "red" if event.is_bad else "bold" if event.way == "c2h" else ""
        what = event.what.replace("✗", "x") if self._plain else event.what
        text.append(line(what), style=style)
        if event.times > 1:
            text.append(f" x{event.times}", style="magenta")
        if event.channel:
            text.append(f"  {line(_middle(event.channel))}", style="blue")
        if event.about and event.times == 1:
            text.append(f"  {line(event.about)}")
        self._say(text, tail=self._figures(event))
        if self._full:
            shown = json.dumps(event.value, ensure_ascii=self._plain, indent=2)
            self._console.print(Text(safe(shown), style="dim"))

    def _note(self, text: str) -> None:
        if self._as_json:
            self._print_json({"note": text})
        else:
            self._say(Text(text, style="red"))

    def _print_json(self, value: dict[str, Any]) -> None:
        self._console.out(json.dumps(value), highlight=False)

    def _figures(self, event: Event) -> str:
        parts = []
        if event.took is not None:
            parts.append(_spoken(event.took))
        if event.until is not None and event.at is not None:
            parts.append(f"over {_spoken(event.until - event.at)}")
        parts.append(f"{event.size} B" if event.size < 10_000 else f"{event.size // 1024} KiB")
        return ", ".join(parts)

    def _say(self, text: Text, *, tail: str = "") -> None:
        """A line, cut to the terminal's width; the figures stand at its end."""
        if not self._console.is_terminal:
            self._console.print(Text.assemble(text, f"  ({tail})") if tail else text)
            return
        room = self._console.width - (len(tail) + 3 if tail else 0)
        if width(text.plain) > room:
            text.truncate(max(room, 10), overflow="ellipsis")
        if tail:
            text.append(f"  {tail}", style="dim")
        self._console.print(text)

    def _moment(self, at: float | None) -> str:
        return "" if at is None or self._began is None else f"{at - self._began:.3f}"


def _facts(event: Event) -> dict[str, Any]:
    """An event for programs; times are Unix seconds, and seconds."""
    return {
        "at": event.at,
        "until": event.until,
        "conn": event.conn,
        "dir": event.way,
        "what": event.what,
        "channel": event.channel,
        "about": event.about,
        "bad": event.is_bad,
        "answeredAfter": event.took,
        "bytes": event.size,
        "frames": event.times,
    }


def _call(way: str, conn: str, method: str, params: dict[str, Any]) -> Event:
    channel = params.get("channel")
    where = channel if isinstance(channel, str) else ""
    action = params.get("action")
    if method in ("action", "dispatchAction") and isinstance(action, dict):
        number = params.get("serverSeq", params.get("clientSeq"))
        sign = "seq" if method == "action" else "clientSeq"
        reason = params.get("rejectionReason")
        about = f"{sign} {number} {_content(action)}".rstrip()
        if reason is not None:
            return Event(way, conn, str(action.get("type")), where, f"refused: {reason}", True)
        what = str(action.get("type"))
        return Event(way, conn, what if method == "action" else f"dispatch {what}", where, about)
    return Event(way, conn, method, where, _content(params))


#: What of an action or of params says most, in this order.
_TELLING = ("content", "data", "message", "title", "activity", "uri", "clientId", "subscriptions",
            "toolName", "toolCallId", "turnId", "provider", "payload")  # fmt: skip


def _content(params: dict[str, Any]) -> str:
    for key in _TELLING:
        value = params.get(key)
        if value not in (None, "", [], {}):
            return _brief(value)
    return ""


def _result(result: Any) -> str:
    if isinstance(result, dict):
        if "snapshots" in result:
            snapshots = count(len(result["snapshots"]), "snapshot")
            return f"{snapshots}, serverSeq {result.get('serverSeq')}"
        if isinstance(result.get("snapshot"), dict):
            return f"snapshot at {result['snapshot'].get('fromSeq')}"
        if result.get("type") == "replay":
            return count(len(result.get("actions", ())), "envelope")
    return "" if result in (None, {}) else _brief(result)


def _brief(value: Any) -> str:
    """A value in some words."""
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        value = value["text"]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return cut(line(text[:500]), 60)


def _middle(channel: str) -> str:
    session = default_chat_session(channel)
    if session is not None:
        return f"chat of {_middle(session)}"
    if width(channel) <= CHANNEL:
        return channel
    head = channel.partition(":")[0] + ":" if ":" in channel[: CHANNEL // 2] else ""
    return f"{head}…{channel[len(head) - CHANNEL + 1 :]}"


def _seconds(moment: str | None) -> float | None:
    try:
        return None if moment is None else datetime.fromisoformat(moment).timestamp()
    except ValueError:
        return None


def _spoken(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
