"""What a crash report says; see `ahpd.daemon.crashes`. Bounded in every part."""

from __future__ import annotations

import hashlib
import platform
import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress

from msgspec import Struct

from actors.host import Host
from actors.ledger import Channel, Entry
from ahpd import __version__
from ahpd.daemon.outlines import Outliner
from ahpd.protocol.jsontext import dumps
from ahpd.transports.redaction import Redactor
from supervisors import ActorGone, Crash, Report, System, sys

#: Frames of one exception whose local names are shown: the innermost.
FRAMES = 20
#: Exceptions whose frames are shown: those in groups, and those that others came from.
EXCEPTIONS = 20
#: Local names of one frame that are shown.
LOCALS = 30
#: Messages that waited, channels of the actor, and envelopes of each, that are shown.
MESSAGES, CHANNELS, ENVELOPES = 20, 20, 20
#: Bytes of a state whose checksum is made.
STATE_BYTES = 1 << 20
#: Characters of one traceback.
TRACEBACK = 100_000


class Incident(Struct, frozen=True):
    """A crash and the tree it happened in; `at` is ISO 8601."""

    report: Report
    crash: Crash
    at: str
    host: Host
    system: System | None


def text_of(incident: Incident, redact: Redactor) -> str:
    """The report. Sync; it takes some milliseconds."""
    return "\n".join(_Teller(incident, redact).lines()) + "\n"


class _Teller:
    def __init__(self, incident: Incident, redact: Redactor) -> None:
        self._incident = incident
        self._redact = redact
        self._outline = Outliner(redact)

    def lines(self) -> Iterator[str]:
        """Part by part."""
        report, crash = self._incident.report, self._incident.crash
        channels = self._incident.host.ledger.channels.values()
        yield f"An actor crashed: {report.path or 'root'}"
        yield ""
        yield f"at           {self._incident.at}"
        yield f"incarnation  {report.incarnation}"
        yield f"exception    {self._redact(crash.text[:1000])}"
        yield f"next         {report.next or report.note.value}"
        yield f"ahpd         {__version__}, Python {platform.python_version()}"
        yield f"on           {platform.platform()}"
        told = self._redact(crash.traceback[-TRACEBACK:])
        yield from _section("traceback", told.splitlines())
        yield from _section("local names", self._frames(crash))
        yield from _section("messages", self._messages(report, crash))
        yield from _section("the actor", self._actor(crash))
        for channel in [each for each in channels if each.path == report.path][:CHANNELS]:
            yield from _section(f"channel {channel.uri}", self._channel(channel))

    def _frames(self, crash: Crash) -> Iterator[str]:
        for error in _all_of(crash.error):
            yield f"{type(error).__name__}:"
            frames = list(traceback.walk_tb(error.__traceback__))
            for frame, line in frames[-FRAMES:]:
                code = frame.f_code
                yield f"  {code.co_qualname} ({code.co_filename}:{line})"
                names = list(frame.f_locals.items())
                for name, value in names[:LOCALS]:
                    yield f"      {self._outline.named(name, value)}"
                if len(names) > LOCALS:
                    yield f"      … {len(names) - LOCALS} more"

    def _messages(self, report: Report, crash: Crash) -> Iterator[str]:
        yield f"in hand  {self._outline(crash.in_hand)}"
        if self._incident.system is None:
            return
        with suppress(ActorGone):
            seen = sys.inspect(self._incident.system.ref(report.path))
            for message in seen.waiting[:MESSAGES]:
                yield f"waits    {self._outline(message)}"
            if len(seen.waiting) > MESSAGES:
                yield f"waits    … {len(seen.waiting) - MESSAGES} more"
            for taken, message in seen.recent:
                yield f"{report.at - taken:8.3f} s before  {self._outline(message)}"

    def _actor(self, crash: Crash) -> Iterator[str]:
        actor = crash.actor
        if actor is None:
            yield "it had not begun"
            return
        for name, value in vars(actor).items():
            if name != "_life":
                yield self._outline.named(name, value)

    def _channel(self, channel: Channel) -> Iterator[str]:
        yield f"number  {channel.seq}"
        yield f"state   {self._outline(channel.state)}"
        size = self._incident.host.recorder.size_of(channel)
        if size is None or size > STATE_BYTES:
            yield f"sha256  not made: {'never written' if size is None else f'{size} bytes'}"
        else:
            text = dumps(channel.state.wire())
            yield f"sha256  {hashlib.sha256(text).hexdigest()}, of {len(text)} bytes"
        for entry in self._incident.host.window.last_of(channel.uri, ENVELOPES):
            yield f"{entry.seq:>9}  {_what(entry)}"


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield ""
    yield f"--- {title}"
    yield from lines


def _what(entry: Entry) -> str:
    if entry.action is None:
        return "a dispatch that changed nothing"
    kind = getattr(entry.action, "type", type(entry.action).__name__)
    return f"{kind}, {len(entry.params)} bytes"


def _all_of(error: BaseException) -> Iterator[BaseException]:
    """An exception, those in it, and those that it came from, each once; not very many."""
    left = [error]
    seen: set[int] = set()
    while left and len(seen) < EXCEPTIONS:
        each = left.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseExceptionGroup):
            left += reversed(each.exceptions)
        left += [other for other in (each.__cause__, each.__context__) if other is not None]
