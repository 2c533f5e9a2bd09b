"""A program that reads many connections, with so little Python that it is not what is measured.

What comes is read into one large buffer and looked through by a search of C's, for a mark that
stands once in every message. Nothing is decoded while it runs, but the whole stream of one
connection is kept, and taken apart afterwards.

Whoever starts it is told when all connections are there, and the outcome. Between the two it may
be told to go on, when it reads until then.
"""

from __future__ import annotations

import json
import re
import select
import sys
import time
from collections.abc import Sequence
from typing import Any

import attrs
import orjson

from ahpd.bench.daemon import digest
from ahpd.bench.processes import BenchFailed, Program, say
from ahpd.bench.sockets import STUCK, WebSocket, texts

#: Stands once in each message that is counted, and nowhere else. Rare letters make it fast to find.
MARK = b"<|*^~#@#~^*|>"
#: The same where messages hold the time, in microseconds, at which they were made: after this.
BEFORE_TIME = '"content":"'

_ROOM = 1 << 20
#: Seconds between two looks when there is much to read: the host has the processor meanwhile.
_LOOK = 0.001
#: Seconds between two signs of life: a silent peer that answers no ping is given up.
_SIGN = 10.0
#: Bytes that the kernel takes for a connection that is not read.
_STALLED_BYTES = 4096


@attrs.frozen
class Sample:
    """What came on one connection: its messages with the mark, and the text that they add up to."""

    messages: int
    size: int
    digest: str
    first_seq: int
    last_seq: int


@attrs.frozen
class Outcome:
    """How the reading went. `finished`: when the last message that counts had come."""

    finished: float
    cpu: float
    #: Bytes of the sampled connection, and of the others that were read.
    bytes: Sequence[int]
    sample: Sample | None
    #: Microseconds from the making of a message to here.
    latencies: Sequence[int]


class Readers:
    """The program, from outside."""

    def __init__(
        self,
        port: int,
        path: str = "/",
        *,
        greetings: Sequence[Sequence[Any]],
        count: int,
        stalled: int = 0,
        times: bool = False,
        before_time: str = BEFORE_TIME,
        skip: int = 0,
        envelopes: bool = True,
    ) -> None:
        """One connection for each of `greetings`, of which the last `stalled` are not read.

        Each gets `count` messages that count; of those that hold times (`before_time` stands before
        each, and nowhere else before a number), the first `skip` are left out. `envelopes`: they
        are a host's, and can be verified.
        """
        self.program = Program(
            "ahpd.bench.readers",
            port=port,
            path=path,
            greetings=greetings,
            count=count,
            stalled=stalled,
            times=times,
            before_time=before_time,
            skip=skip,
            envelopes=envelopes,
        )

    def ready(self) -> None:
        """Wait until all of them hear."""
        self.program.hear()

    def outcome(self) -> Outcome:
        """Wait for the outcome."""
        told = self.program.hear()
        sample = told.pop("sample")
        return Outcome(**told, sample=None if sample is None else Sample(**sample))

    def __enter__(self) -> Readers:
        """They read."""
        return self

    def __exit__(self, *_: object) -> None:
        """They are gone."""
        self.program.__exit__()


# ---- inside the program --------------------------------------------------------------------------


class _Reading:
    """One connection: how much has come on it, and the last bytes, which may be half a mark."""

    def __init__(self, socket: WebSocket) -> None:
        self.socket = socket
        self.size = self.count = 0
        self.tail = b""
        self.kept: bytearray | None = None


class _Counter:
    """Reads until every connection has had its messages."""

    def __init__(self, job: Any) -> None:
        self.job = job
        self.latencies: list[int] = []
        before = job["before_time"].encode()
        self.time = re.compile(re.escape(before) + rb"(\d{16}) ")
        self.pattern_size = len(before) + 17 if job["times"] else len(MARK)
        self.buffer = bytearray(self.pattern_size + _ROOM)
        self.room = memoryview(self.buffer)[self.pattern_size :]

    def read(self, readings: Sequence[_Reading]) -> float:
        """Read; the time at which the last one that counts had come."""
        for reading in readings:
            early = bytes(reading.socket.received)
            self.room[: len(early)] = early
            self.look(reading, len(early))
        waiting = {each.socket.socket.fileno(): each for each in readings}
        poll = select.epoll()
        for descriptor, reading in waiting.items():
            reading.socket.socket.setblocking(False)
            poll.register(descriptor, select.EPOLLIN)
        unhurried = not self.job["times"]
        wanted, left = self.job["count"], len(waiting)
        sign = time.monotonic() + _SIGN
        while left:
            if time.monotonic() > sign:
                sign += _SIGN
                for reading in readings:
                    reading.socket.pong()
            events = poll.poll(STUCK)
            if not events:
                counts = sorted(each.count for each in readings)
                raise BenchFailed(f"of {wanted} messages came {counts[0]} to {counts[-1]}")
            for descriptor, _ in events:
                reading = waiting[descriptor]
                size = reading.socket.socket.recv_into(self.room)
                if not size:
                    raise BenchFailed(f"a connection was ended after {reading.count} messages")
                before = reading.count
                self.look(reading, size)
                left -= before < wanted <= reading.count
            if unhurried and left:
                time.sleep(_LOOK)
        return time.monotonic()

    def look(self, reading: _Reading, size: int) -> None:
        """Take what was read into the room."""
        buffer, edge = self.buffer, self.pattern_size
        start, end = edge - len(reading.tail), edge + size
        buffer[start:edge] = reading.tail
        if self.job["times"]:
            now = time.time_ns() // 1000
            found = self.time.findall(buffer, start, end)
            skipped = max(0, self.job["skip"] - reading.count)
            self.latencies.extend(now - int(each) for each in found[skipped:])
            reading.count += len(found)
        else:
            reading.count += buffer.count(MARK, start, end)
        reading.size += size
        reading.tail = bytes(buffer[max(start, end - edge + 1) : end])
        if reading.kept is not None:
            reading.kept += self.room[:size]


def verified(stream: bytes | bytearray, count: int) -> Sample:
    """What came on a connection, taken apart. Raises `BenchFailed` for what is not as it must be.

    Numbers only grow; a chat's text comes in one part, which the first message begins.
    """
    seqs: list[int] = []
    said: list[str] = []
    for text in texts(stream):
        message = orjson.loads(text)
        if message.get("method") != "action":
            continue
        envelope = message["params"]
        if seqs and envelope["serverSeq"] <= seqs[-1]:
            raise BenchFailed(f"number {envelope['serverSeq']} came after {seqs[-1]}")
        seqs.append(envelope["serverSeq"])
        action = envelope["action"]
        if action["type"] == "chat/delta":
            said.append(action["content"])
        elif action["type"] == "chat/responsePart":
            said.append(action["part"]["content"])
    whole = "".join(said).encode()
    came = whole.count(MARK) or len(said)  # a message may hold several that were merged
    if came != count:
        raise BenchFailed(f"{came} messages of {count}")
    return Sample(len(said), len(whole), digest(whole), seqs[0], seqs[-1])


def _connected(job: Any) -> tuple[list[_Reading], list[WebSocket]]:
    greetings = job["greetings"]
    stalled_from = len(greetings) - job["stalled"]
    readings, stalled = [], []
    for number, greeting in enumerate(greetings):
        is_read = number < stalled_from
        socket = WebSocket(
            job["port"], job["path"], receive_bytes=None if is_read else _STALLED_BYTES
        )
        for message in greeting:
            socket.send(orjson.dumps(message))
            answer = socket.receive()
            while b'"id":' not in answer[:64]:
                answer = socket.receive()
            if b'"error":' in answer[:64]:
                raise BenchFailed(answer[:500].decode())
        if is_read:
            readings.append(_Reading(socket))
        else:
            stalled.append(socket)
    return readings, stalled


def main(job: Any) -> None:
    """Do what the argument says."""
    readings, stalled = _connected(job)
    if job["envelopes"]:
        readings[0].kept = bytearray()
    counter = _Counter(job)
    say("ready")
    before = time.process_time()
    finished = counter.read(readings)
    cpu = time.process_time() - before
    kept = readings[0].kept
    say(
        {
            "finished": finished,
            "cpu": cpu,
            "bytes": [each.size for each in readings],
            "sample": None if kept is None else attrs.asdict(verified(kept, job["count"])),
            "latencies": counter.latencies,
        }
    )
    sys.stdin.read()  # connections stay as they are until whoever reads has looked at the host
    for socket in stalled:
        socket.close()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
