"""The MCP servers of plugins that lie on this machine: what their ``.mcp.json`` says."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from functools import partial
from urllib.parse import unquote, urlsplit

import trio

from ahpd.agents.acp.servers import Server, merged, read_servers
from ahpd.agents.acp.tolerant import dict_of, read_json
from ahpd.protocol.jsontext import ParseError
from ahpd.protocol.uris import URI

_log = logging.getLogger("ahpd.agents.acp")

#: Bytes of such a file that are read, and seconds that reading all of them may take.
MOST_BYTES = 1 << 20
WITHIN = 5.0
_THREADS = 4


async def servers_of(plugins: Iterable[URI]) -> Sequence[Server]:
    """The servers of these plugins, in bounded time. One that cannot be read has none."""
    paths = [path for path in map(_path, plugins) if path is not None]
    if not paths:
        return ()
    limiter = trio.CapacityLimiter(_THREADS)
    read = partial(_read_all, paths)
    with trio.move_on_after(WITHIN):
        return await trio.to_thread.run_sync(read, limiter=limiter, abandon_on_cancel=True)
    _log.warning("the MCP servers of plugins could not be read in %g s", WITHIN)
    return ()


def _path(uri: URI) -> str | None:
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    return os.path.join(unquote(parts.path), ".mcp.json")


def _read_all(paths: Sequence[str]) -> Sequence[Server]:
    return merged(*(_read(path) for path in paths))


def _read(path: str) -> Sequence[Server]:
    """Blocks."""
    try:
        # A FIFO of that name would be waited for for ever.
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(number, "rb") as file:
            told = read_json(file.read(MOST_BYTES))
    except FileNotFoundError:
        return ()
    except (OSError, ParseError) as error:
        _log.warning("%s: the MCP servers in it cannot be read: %s", path, error)
        return ()
    found = read_servers(dict_of(told, "mcpServers") or told)
    for fault in found.faults:
        _log.warning("%s: %s", path, fault)
    return found.servers
