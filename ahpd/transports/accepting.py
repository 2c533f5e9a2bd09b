"""Takes connections off listening sockets, also when the process has no descriptor left for them.

As trio's `serve_listeners`, which tells of that with a traceback ten times a second: a log that
fills the disk is a second fault. Here it is said once, and once when it is over.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Awaitable, Callable, Sequence

import trio

_log = logging.getLogger("ahpd.transports")

#: What a connection cannot be taken for now, though the listener is well.
_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
#: Seconds until it is tried again: the first time, and at most.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0


async def serve_listeners(
    handler: Callable[[trio.SocketStream], Awaitable[None]],
    listeners: Sequence[trio.abc.Listener[trio.SocketStream]],
    where: str,
) -> None:
    """Give each connection to `handler`, in a task of its own, until cancelled.

    `handler` raises no Exception; its stream is closed when it returns. `where` is for the log.
    Raises OSError when a listener is broken.
    """
    async with trio.open_nursery() as nursery:
        for listener in listeners:
            nursery.start_soon(_accept, handler, listener, where, nursery)


async def _accept(
    handler: Callable[[trio.SocketStream], Awaitable[None]],
    listener: trio.abc.Listener[trio.SocketStream],
    where: str,
    nursery: trio.Nursery,
) -> None:
    pause = 0.0
    async with listener:
        while True:
            try:
                stream = await listener.accept()
            except OSError as error:
                if error.errno not in _SHORTAGES:
                    raise
                if not pause:
                    why = os.strerror(error.errno)
                    _log.error("%s: no connection can be taken now: %s; retrying", where, why)
                pause = min(pause * 2 or FIRST_PAUSE, LONGEST_PAUSE)
                await trio.sleep(pause)
                continue
            if pause:
                _log.warning("%s: connections are taken again", where)
                pause = 0.0
            nursery.start_soon(_serve, handler, stream)


async def _serve(
    handler: Callable[[trio.SocketStream], Awaitable[None]], stream: trio.SocketStream
) -> None:
    try:
        await handler(stream)
    finally:
        await trio.aclose_forcefully(stream)
