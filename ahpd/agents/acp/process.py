"""One agent's process: pipes, a process group of its own, and an end that is always an end.

What it writes to standard error is read all the time, or it would stand still; the newest of it is
kept for people, and all of it goes to the log.

Nothing here has tasks of its own: whoever runs the agent calls `read`, `write` and `drain` in tasks
of theirs. Each can be cancelled at any time and called again; no byte is lost or sent twice.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import trio

from ahpd.agents.port import AgentFailed
from ahpd.transports.lines import LINE_LIMIT, LineSplitter, LineTooLong

_log = logging.getLogger("ahpd.agents.acp")

#: Bytes asked of a pipe, and given to one, at a time.
PIECE = 64 * 1024
#: Bytes of standard error that are kept.
TAIL_BYTES = 16 * 1024
#: Characters of one logged line of it.
LOGGED_LINE = 500
#: Seconds that the process may take to end when its input ends, when its group gets SIGTERM, and
#: when it gets SIGKILL. All three have to fit into what a host grants a backend's `close`.
EOF_WITHIN = 1.5
TERM_WITHIN = 1.5
KILL_WITHIN = 1.0
#: And for the rest of a group that was killed: who has to reap it may not.
GONE_WITHIN = 0.2
_LOOK_EVERY = 0.02


class AgentGone(AgentFailed):
    """The agent's process is over, or as good as that; the message is for people."""


class AgentProcess:
    """See the module. Made by `start_process`; `end` must be called once."""

    def __init__(
        self, process: trio.Process, *, limit: int = LINE_LIMIT, secrets: Sequence[str] = ()
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._in: trio.abc.SendStream = process.stdin
        self._in_fd = process.stdin.fileno()  # type: ignore[attr-defined]
        self._out: trio.abc.ReceiveStream = process.stdout
        self._err: trio.abc.ReceiveStream = process.stderr
        self._splitter = LineSplitter(limit)
        self._waiting: deque[memoryview] = deque()
        self._news = trio.Event()
        #: Nothing waits to be written.
        self.is_drained = trio.Event()
        self.is_drained.set()
        #: The longest first: one may be a part of another.
        self._secrets = sorted({each for each in secrets if each}, key=len, reverse=True)
        self._tail = bytearray()
        self._is_tail_cut = False
        #: Its standard error has ended.
        self.said_all = trio.Event()

    @property
    def pid(self) -> int:
        """Its process id, which is its group's too."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, negative for a signal; None: it has not ended, or nobody waited."""
        return self._process.returncode

    async def wait(self) -> None:
        """Until it has ended; its children may live on."""
        await self._process.wait()

    # ---- what it says ------------------------------------------------------------------------

    async def read(self) -> Sequence[bytes] | None:
        """The lines that the next piece of its output completes, perhaps none; None at the end.

        A last line without its newline is a line. Raises `LineTooLong` for one over the limit.
        """
        try:
            piece = await self._out.receive_some(PIECE)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            piece = b""
        if piece:
            return self._splitter.feed(bytes(piece))
        return self._splitter.finish() or None

    async def drain(self) -> None:
        """Read what it writes to standard error, to the end."""
        line = bytearray()
        while not self.said_all.is_set():
            try:
                piece = await self._err.receive_some(PIECE)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                piece = b""
            if not piece:
                self.said_all.set()
            self._tail += piece
            if len(self._tail) > TAIL_BYTES:
                del self._tail[:-TAIL_BYTES]
                self._is_tail_cut = True
            *whole, rest = (line + piece).split(b"\n")
            for each in whole:
                _log.debug("agent %d: %s", self.pid, self.beginning(bytes(each), LOGGED_LINE))
            line = bytearray(rest[: LOGGED_LINE + 1])

    def tail(self, size: int = 2000) -> str:
        """The newest of its standard error, at most so many characters, fit to be shown."""
        text = bytes(self._tail)
        if self._is_tail_cut:
            ends = (each[-n:] for each in self._parts() for n in range(1, len(each)))
            text = text[max((len(end) for end in ends if text.startswith(end)), default=0) :]
        return self.shown(text).strip()[-size:]

    def shown(self, text: bytes) -> str:
        """As text fit to be shown, without the secrets that it was given."""
        return self.concealed(_shown(text))

    def beginning(self, text: bytes, size: int) -> str:
        """The first of it, at most so many bytes, fit to be shown."""
        if len(text) > size:
            text = text[:size]
            parts = (each[:n] for each in self._parts() for n in range(1, len(each)))
            text = text[
                : size - max((len(part) for part in parts if text.endswith(part)), default=0)
            ]
        return self.shown(text)

    def _parts(self) -> Iterator[bytes]:
        """The secrets, of which one that is cut through must not be shown a part."""
        return (each.encode(errors="surrogateescape") for each in self._secrets)

    def concealed(self, text: str) -> str:
        """The text without the secrets that the agent was given: it may say what it has."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    # ---- what it is told ---------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Have `data` written after what waits already. Never blocks."""
        self._waiting.append(memoryview(data))
        self._news.set()
        if self.is_drained.is_set():
            self.is_drained = trio.Event()

    async def write(self) -> None:
        """Write what waits, for ever. Returns when the agent does not take anything any more."""
        while True:
            if not self._waiting:
                self.is_drained.set()
                self._news = trio.Event()
                await self._news.wait()
                continue
            try:
                await trio.lowlevel.wait_writable(self._in_fd)
                data = self._waiting[0]
                sent = os.write(self._in_fd, data[:PIECE])
            except BlockingIOError:
                continue
            except (OSError, trio.ClosedResourceError):
                self._waiting.clear()
                self.is_drained.set()
                return
            # In the same step as the write: a cancel comes before it or after this.
            if sent == len(data):
                self._waiting.popleft()
            else:
                self._waiting[0] = data[sent:]

    # ---- its end -----------------------------------------------------------------------------

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal to the whole group; False when nobody is in it any more."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return False
        except PermissionError:  # what is left of it belongs to somebody else
            _log.warning("agent %d: its group cannot be signalled", self.pid)
            return False
        return True

    async def end(self) -> None:
        """Have the process and all of its group end: EOF, SIGTERM, SIGKILL, each within a bound.

        Takes `EOF_WITHIN` + `TERM_WITHIN` + `KILL_WITHIN` at most. However it ends, also cancelled,
        the group has been killed, and no pipe to it is open.
        """
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._discard)
                nursery.start_soon(self.drain)
                await self._end_in_steps()
                nursery.cancel_scope.cancel("the agent has ended")
        finally:
            self.signal(signal.SIGKILL)
            for stream in (self._in, self._out, self._err):
                with trio.move_on_after(0.1, shield=True), suppress(OSError):
                    await stream.aclose()
            with trio.move_on_after(KILL_WITHIN, shield=True):
                await self._process.wait()  # or it stays a zombie
            with trio.move_on_after(GONE_WITHIN, shield=True):
                await self._group_over()
            if self._process.returncode is None:
                _log.warning("agent %d: does not end, not even by SIGKILL", self.pid)

    async def _end_in_steps(self) -> None:
        await self._in.aclose()
        if await self._over(EOF_WITHIN):
            return
        self.signal(signal.SIGTERM)
        await self._over(TERM_WITHIN)

    async def _over(self, within: float) -> bool:
        """Wait for the process and all of its group; whether they are over."""
        with trio.move_on_after(within):
            await self._process.wait()
            await self._group_over()
            return True
        return False

    async def _group_over(self) -> None:
        """Nobody tells when its children have ended."""
        while self._group_lives():  # noqa: ASYNC110
            await trio.sleep(_LOOK_EVERY)

    def _group_lives(self) -> bool:
        try:
            os.killpg(self.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    async def _discard(self) -> None:
        """What it still says, so that it does not stand still on a full pipe."""
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while await self._out.receive_some(PIECE):
                pass


async def start_process(
    command: Sequence[str],
    environment: Mapping[str, str],
    cwd: str,
    *,
    limit: int = LINE_LIMIT,
    secrets: Sequence[str] = (),
) -> AgentProcess:
    """Start an agent in a folder, with this added to the host's own environment.

    `secrets` are not shown in what people see of its output. Raises `AgentFailed` when that cannot
    be.
    """
    try:
        process = await trio.lowlevel.open_process(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env={**os.environ, **environment},
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        if not await trio.Path(cwd).is_dir():
            raise AgentFailed(f"the working directory {cwd} is not there") from None
        reason = error.strerror if isinstance(error, OSError) else error
        raise AgentFailed(f"the agent's program {command[0]} cannot be started: {reason}") from None
    return AgentProcess(process, limit=limit, secrets=secrets)


def _shown(text: bytes) -> str:
    """As text without what steers a terminal."""
    decoded = text.decode(errors="replace").replace("\r\n", "\n")
    return "".join(
        each if each.isprintable() or each in "\n\t" else "\N{REPLACEMENT CHARACTER}"
        for each in decoded
    )


__all__ = ["AgentGone", "AgentProcess", "LineTooLong", "start_process"]
