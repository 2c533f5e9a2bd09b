"""This process's own terminal, raw while something else speaks through it, and sane after."""

from __future__ import annotations

import os
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import trio

IN, OUT = 0, 1

#: What ends the modes that a program may have left: the other screen, a scroll region, a hidden or
#: odd cursor, colours, line drawing, keys, mice and windows that say more, bracketed paste. The
#: first two move the cursor, which is why it is saved before each and put back after it.
_SANE = (
    "\x1b7\x1b[?1049l\x1b7\x1b[r\x1b8\x1b[?25h\x1b[0 q\x1b[0m\x1b(B\x0f\x1b[?7h\x1b[?1l\x1b>"
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\x1b[?2004l\x1b[>4;0m"
)
#: What makes it sane and empty, for a screen that is drawn anew.
ANEW = f"{_SANE}\x1b[H\x1b[2J"
#: Bytes that are written between two looks at whether the terminal takes more.
_PORTION = 1024


def is_there() -> bool:
    """Whether both input and output are terminals."""
    return os.isatty(IN) and os.isatty(OUT)


@contextmanager
def raw() -> Iterator[None]:
    """Keys come as they are pressed, and output goes as it is; undone however the block ends."""
    before = termios.tcgetattr(IN)
    tty.setraw(IN, termios.TCSANOW)
    try:
        yield
    finally:
        with suppress(OSError):  # it may be gone: that is why the block ended
            os.write(OUT, _SANE.encode())
        with suppress(termios.error):
            termios.tcsetattr(IN, termios.TCSADRAIN, before)


async def read() -> bytes:
    """What was typed; empty when the terminal is gone. A checkpoint."""
    await trio.lowlevel.wait_readable(IN)
    try:
        return os.read(IN, 4096)
    except OSError:
        return b""


async def write(data: bytes) -> None:
    """Show this. The descriptors are shared with whoever started us, so they stay blocking."""
    for start in range(0, len(data), _PORTION):
        await trio.lowlevel.wait_writable(OUT)
        os.write(OUT, data[start : start + _PORTION])


def size() -> tuple[int, int]:
    """Its columns and rows."""
    found = os.get_terminal_size(OUT)
    return max(found.columns, 1), max(found.lines, 1)
