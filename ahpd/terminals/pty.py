"""Processes on the kernel's pseudo-terminals.

A process is started by ``vfork`` and ``exec`` alone, of a line of ``/bin/sh`` that makes the
terminal its controlling one and becomes the process: no Python runs between fork and exec, where a
lock that another thread holds would be held for ever (hazard B62). That is why this is not
`ptyprocess`, which does all of that in Python there: it forks with `pty.fork`, sets the size,
closes descriptors and changes the folder in the child. The process leads a session of its own, and
is found to have ended by waiting for it, not by what can be read: a job that it left behind may
hold the terminal open for as long as it likes (B07).

When it has ended everything that the kernel still holds is read, and then this side is closed,
which hangs up what is left. Those processes are killed when the terminal is closed for good.
"""

from __future__ import annotations

import fcntl
import math
import os
import signal
import socket
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from secrets import token_hex
from typing import TypeVar

import trio
from msgspec import Struct

from ahpd.terminals import sessions
from ahpd.terminals.decoding import Decoding
from ahpd.terminals.marks import Marks
from ahpd.terminals.port import (
    Ended,
    Fault,
    Piece,
    Spawn,
    SpawnFailed,
    Terminal,
    TerminalOver,
)
from ahpd.terminals.shells import Line, line_for

T = TypeVar("T")

#: Bytes that are read in one go, if there are so many.
CHUNK = 256 << 10
#: Bytes that are read in the loop. Where there are more the next reads are a thread's: the kernel
#: may have a reader wait for a millisecond and more while a program floods its terminal.
NEAR = 4 << 10
#: Bytes that the kernel is asked for: it never gives more than 4096 of a terminal's.
AT_ONCE = 8 << 10
#: Seconds that a read in a thread goes on while more comes.
READ_WITHIN = 0.004
#: Bytes that the kernel can hold for the reader, and so the most that may still have to be read
#: when the process has ended; what comes later is of those it left behind.
HELD = 1 << 20
#: Seconds that what may be the beginning of a mark is held.
UNSURE_WITHIN = 0.05
#: Seconds that processes may take to end when the terminal hangs up, when they are asked to, and
#: when they are killed, which a process that waits for a disk may not notice.
HANG_UP_WITHIN, TERMINATE_WITHIN, KILL_WITHIN = 1.0, 1.0, 2.0
#: Seconds between two looks at whether they have.
LOOK_EVERY = 0.02

#: What is exec'd first. The session has no terminal yet, so the one it opens becomes its own.
_TAKE_TERMINAL = 'tty=$1; shift; exec 0<>"$tty" 1>&0 2>&0; exec "$@"'
#: Erasing in cooked mode knows characters of several bytes. (Linux; not in `termios`.)
_IUTF8 = 0o40000
_HANGUP_STEPS = (
    (signal.SIGHUP, HANG_UP_WITHIN),
    (signal.SIGTERM, TERMINATE_WITHIN),
    (signal.SIGKILL, KILL_WITHIN),
)


class PtyTerminals:
    """Starts processes on pseudo-terminals: the person's shell, with its integration if it has one.

    `environment` is what they start with; None: this process's own. See the port.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = environment
        #: Those that flood are read in turns.
        self._readers = trio.CapacityLimiter(4)
        #: Of its own: starting and looking at processes waits for none of the host's disks.
        self._threads = trio.CapacityLimiter(16)
        #: For waiting, where the kernel has no other way: one for each terminal.
        self._waiters = trio.CapacityLimiter(math.inf)

    def tells(self) -> bool:
        """See the port."""
        environment = dict(os.environ if self._environment is None else self._environment)
        return line_for(environment, None).nonce is not None

    async def spawn(self, spawn: Spawn) -> Terminal:
        """See the port."""
        start = partial(_start, spawn, self._environment)
        started = await trio.to_thread.run_sync(start, limiter=self._threads)
        return PtyTerminal(started, self._threads, self._waiters, self._readers)


class _Started(Struct, frozen=True):
    """A process that runs: the master's descriptor, and one of the process if there are such."""

    line: Line
    master: int
    process: subprocess.Popen[bytes]
    pidfd: int | None


def _start(spawn: Spawn, base: Mapping[str, str] | None) -> _Started:
    """Start it. Blocks. Raises `SpawnFailed`."""
    environment = dict(os.environ if base is None else base)
    line = line_for(environment, spawn.command)
    environment.update(line.environment)
    environment.update(spawn.environment)
    cwd = spawn.cwd or os.path.expanduser("~")
    _look_at_folder(cwd)
    if not os.access(line.program, os.X_OK):
        raise SpawnFailed(f"the shell {line.program} cannot be run")
    opened: list[int] = []
    try:
        master, slave = os.openpty()
        opened += [master, slave]
        _set_size(slave, spawn.cols, spawn.rows)
        _know_utf8(slave)
        os.set_blocking(master, False)
        process = subprocess.Popen(
            ["/bin/sh", "-c", _TAKE_TERMINAL, "ahpd", os.ttyname(slave), *line.arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env=environment,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # ValueError: a NUL in the environment
        for descriptor in opened:
            os.close(descriptor)
        reason = error.strerror if isinstance(error, OSError) else error
        raise SpawnFailed(f"the shell {line.program} cannot be started: {reason}") from error
    os.close(slave)
    return _Started(line, master, process, _pidfd(process.pid))


def _look_at_folder(cwd: str) -> None:
    try:
        os.stat(cwd)
        is_folder, may_enter = os.path.isdir(cwd), os.access(cwd, os.X_OK)
    except FileNotFoundError:
        raise SpawnFailed(f"there is no folder {cwd}", Fault.NOT_FOUND) from None
    except PermissionError:
        raise SpawnFailed(f"the folder {cwd} cannot be entered", Fault.NOT_ALLOWED) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SpawnFailed(f"the folder {cwd}: {reason}") from error
    if not is_folder:
        raise SpawnFailed(f"{cwd} is no folder", Fault.NOT_FOUND)
    if not may_enter:
        raise SpawnFailed(f"the folder {cwd} cannot be entered", Fault.NOT_ALLOWED)


def _pidfd(pid: int) -> int | None:
    """A descriptor that can be read when the process has ended; None where there are none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _set_size(descriptor: int, cols: int, rows: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


def _know_utf8(slave: int) -> None:
    with suppress(termios.error):
        modes = termios.tcgetattr(slave)
        modes[0] |= _IUTF8
        termios.tcsetattr(slave, termios.TCSANOW, modes)


def _gives_keys(master: int) -> bool:
    """Whether what is typed comes key by key, and not by the line."""
    try:
        return not termios.tcgetattr(master)[3] & termios.ICANON
    except termios.error:
        return False


def _is_here(host: str) -> bool:
    return host in ("", "localhost") or host == socket.gethostname()


def _read(descriptor: int, most: int, within: float = math.inf) -> tuple[bytes, bool]:
    """What can be read now, and whether more may come; no more than `most`, nor for longer."""
    taken: list[bytes] = []
    left, until = most, time.monotonic() + within
    try:
        while left > 0:
            data = os.read(descriptor, min(left, AT_ONCE))
            if not data:
                return b"".join(taken), False
            taken.append(data)
            left -= len(data)
            if time.monotonic() > until:
                break
    except BlockingIOError:
        pass
    except OSError:  # EIO: nobody has the other side open (hazard B08)
        return b"".join(taken), False
    return b"".join(taken), True


class PtyTerminal:
    """See the port.

    Invariant: `_master` is None from the moment on at which its descriptor is closed, and is looked
    at in the same step in which it is used: no other file's number is ever written to.
    """

    def __init__(
        self,
        started: _Started,
        threads: trio.CapacityLimiter,
        waiters: trio.CapacityLimiter,
        readers: trio.CapacityLimiter,
    ) -> None:
        self.title = os.path.basename(started.line.program)
        self._master: int | None = started.master
        self._process = started.process
        self._pidfd = started.pidfd
        self._threads = threads
        self._waiters = waiters
        self._readers = readers
        #: Held while a thread reads, so that the descriptor stays open as long.
        self._in_use = trio.Lock()
        #: There was more than is read in the loop.
        self._floods = False
        self._decoding = Decoding()
        self._marks = Marks(started.line.nonce or token_hex(16), _is_here)
        self._reaping = trio.Lock()
        self._ended: Ended | None = None
        #: Bytes that were read since.
        self._late = 0
        #: Around the reader's wait, which the process's end cuts short.
        self._waiting: trio.CancelScope | None = None
        #: Who was left in its session when it had ended.
        self._left: frozenset[sessions.Member] = frozenset()
        self._closed = False

    # ---- output ---------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """Its process, which may have ended."""
        return self._process.pid

    async def read(self) -> Sequence[Piece]:
        """See the port."""
        await trio.lowlevel.checkpoint()
        while self._master is not None:
            if self._late > HELD:
                return self._drained()
            data, can_more = await self._some()
            if self._ended is not None:
                self._late += len(data)
            pieces = self._marks.feed(self._decoding.feed(data)) if data else ()
            if pieces:
                return pieces
            if data:
                continue
            if can_more and self._ended is None:
                if not await self._readable() and self._marks.is_unsure:
                    return self._marks.release()
                continue
            if self._ended is None:  # it has let go of the terminal, and lives
                await self.wait()
                continue
            return self._drained()
        return ()

    async def _some(self) -> tuple[bytes, bool]:
        """What can be read now, and whether more may come."""
        assert self._master is not None
        if not self._floods:
            data, can_more = _read(self._master, NEAR)
            self._floods = len(data) >= NEAR
            return data, can_more
        async with self._in_use:
            if self._master is None:  # let go of meanwhile
                return b"", False
            read = partial(_read, self._master, CHUNK, READ_WITHIN)
            data, can_more = await trio.to_thread.run_sync(read, limiter=self._readers)
        self._floods = len(data) >= NEAR
        return data, can_more

    async def _readable(self) -> bool:
        """Wait until there is something to read; False when the process ended, or after a while."""
        assert self._master is not None
        within = UNSURE_WITHIN if self._marks.is_unsure else math.inf
        with trio.move_on_after(within) as self._waiting, suppress(trio.ClosedResourceError):
            await trio.lowlevel.wait_readable(self._master)
        return not self._waiting.cancelled_caught

    def _drained(self) -> Sequence[Piece]:
        """All that the kernel held has been read: this side is let go of.

        A little may come from those that were left behind, and is the end of the output.
        """
        data = b"" if self._master is None else _read(self._master, HELD)[0]
        text = self._decoding.feed(data) + self._decoding.finish()
        pieces = [*self._marks.feed(text), *self._marks.finish()]
        self._let_go()
        return pieces

    def _let_go(self) -> None:
        master, self._master = self._master, None
        if master is not None:
            trio.lowlevel.notify_closing(master)
            os.close(master)

    # ---- input ----------------------------------------------------------------------------------

    async def write(self, data: bytes) -> None:
        """See the port."""
        await trio.lowlevel.checkpoint()
        rest = memoryview(data)
        while rest:
            if self._master is None:
                raise TerminalOver
            try:
                rest = rest[os.write(self._master, rest) :]
            except BlockingIOError:
                try:
                    await trio.lowlevel.wait_writable(self._master)
                except trio.ClosedResourceError:
                    raise TerminalOver from None
            except OSError:
                raise TerminalOver from None

    def resize(self, cols: int, rows: int) -> None:
        """See the port."""
        if self._master is not None:
            with suppress(OSError):  # hung up in this moment
                _set_size(self._master, cols, rows)

    # ---- its end --------------------------------------------------------------------------------

    async def wait(self) -> Ended:
        """See the port."""
        await trio.lowlevel.checkpoint()
        async with self._reaping:
            if self._ended is None:
                await self._exit()
                # Before it is waited for: until then nobody else's session can have its number.
                find = partial(sessions.members, self._process.pid)
                self._left = await trio.to_thread.run_sync(find, limiter=self._threads)
                self._ended = self._collect()
                if self._waiting is not None:
                    self._waiting.cancel(reason="the process ended")
        return self._ended

    async def _exit(self) -> None:
        """Until the process has ended; it is still to be waited for, if that can be seen at all."""
        if self._pidfd is not None:
            await trio.lowlevel.wait_readable(self._pidfd)
            return
        await trio.to_thread.run_sync(
            self._process.wait, abandon_on_cancel=True, limiter=self._waiters
        )

    def _collect(self) -> Ended:
        code = self._process.poll()
        assert code is not None, "the kernel said that it has ended"
        if self._pidfd is not None:
            trio.lowlevel.notify_closing(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        return Ended(code) if code >= 0 else Ended(None, -code)

    async def is_reading(self) -> bool:
        """See the port."""
        await trio.lowlevel.checkpoint()
        if self._ended is not None or self._master is None:
            return False
        look = partial(sessions.is_reading, self._process.pid, keys=_gives_keys(self._master))
        return await self._in_thread(look)

    async def close(self) -> None:
        """See the port."""
        with trio.CancelScope(shield=True):
            if not self._closed:
                self._closed = True
                await self._end_all()
            async with self._in_use:
                self._let_go()

    async def _end_all(self) -> None:
        for number, within in _HANGUP_STEPS:
            with trio.move_on_after(within):
                await self._signal(number)
                while await self._members() or self._ended is None:
                    if self._ended is None:
                        with trio.move_on_after(LOOK_EVERY):
                            await self.wait()
                    else:
                        await trio.sleep(LOOK_EVERY)
                return

    async def _members(self) -> frozenset[sessions.Member]:
        """Who is in its session; nobody once the session's number may be another's."""
        if self._ended is not None and not self._left:
            return frozenset()
        here = await self._in_thread(partial(sessions.members, self._process.pid))
        if self._ended is None:
            return here
        if here & self._left:  # they hold the number, and so do those that they started
            self._left |= here
            return here
        return frozenset()

    async def _signal(self, number: signal.Signals) -> None:
        here = await self._members()
        if here:
            sessions.send((each.pid for each in here), number)
        elif self._ended is None:
            sessions.send_to_group(self._process.pid, number)

    async def _in_thread(self, blocking: Callable[[], T]) -> T:
        return await trio.to_thread.run_sync(blocking, limiter=self._threads)
