"""MCP servers that an agent is to have, as they are written down, and as ACP spells them. Pure.

They are written as editors and plugins write them: by name, ``{"command", "args", "env"}`` or
``{"type": "http" | "sse", "url", "headers"}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from ahpd.agents.acp.tolerant import text_of
from ahpd.protocol.discreet import Discreet
from ahpd.protocol.model import JSON


class Server(Discreet, frozen=True):
    """One server. `values` are of its environment, or the headers it is asked with."""

    hidden = frozenset({"values", "url", "args"})

    name: str
    kind: Literal["stdio", "http", "sse"]
    command: str = ""
    args: Sequence[str] = ()
    url: str = ""
    values: Mapping[str, str] = {}

    def wire(self) -> JSON:
        """As ACP spells it."""
        values = [{"name": name, "value": value} for name, value in self.values.items()]
        if self.kind == "stdio":
            args = list(self.args)
            return {"name": self.name, "command": self.command, "args": args, "env": values}
        return {"type": self.kind, "name": self.name, "url": self.url, "headers": values}


class Read(Struct, frozen=True):
    """The servers that were written down, and what is wrong with the others; no value is in it."""

    servers: Sequence[Server] = ()
    faults: Sequence[str] = ()


def read_servers(written: Any) -> Read:
    """The servers in a table of them; one that is switched off (``"disabled"``) is left out."""
    servers: list[Server] = []
    faults: list[str] = []
    for name, each in written.items() if isinstance(written, Mapping) else ():
        found = _server(str(name), each)
        if isinstance(found, Server):
            servers.append(found)
        elif found is not None:
            faults.append(f"the MCP server {name}: {found}; it is left out")
    return Read(tuple(servers), tuple(faults))


def _server(name: str, written: Any) -> Server | str | None:
    if not isinstance(written, Mapping):
        return "this is no table"
    if written.get("disabled") is True or written.get("enabled") is False:
        return None
    told = dict(written)
    kind, command, url = text_of(told, "type"), told.get("command"), text_of(told, "url")
    if kind not in (None, "stdio", "http", "sse", "streamable-http", "streamableHttp"):
        return f"its type {kind!r} is not known"
    if url and kind != "stdio":
        headers = _texts(told.get("headers"))
        if headers is None:
            return "its headers are no table of strings"
        return Server(name, "sse" if kind == "sse" else "http", url=url, values=headers)
    words = [command] if isinstance(command, str) else command
    words = words if isinstance(words, list | tuple) else []
    args = told.get("args", [])
    args = args if isinstance(args, list | tuple) else [None]
    if not words or not words[0]:
        return "it has neither a command nor a url"
    if not all(isinstance(each, str) for each in (*words, *args)):
        return "its command and args are not all strings"
    environment = _texts(told.get("env"))
    if environment is None:
        return "its env is no table of strings"
    return Server(name, "stdio", words[0], (*words[1:], *args), values=environment)


def _texts(told: Any) -> Mapping[str, str] | None:
    """A table of strings; numbers and the like are written as such. None: it is none."""
    if told is None:
        return {}
    if not isinstance(told, Mapping):
        return None
    if not all(isinstance(each, str | int | float) for each in told.values()):
        return None
    return {str(key): str(each) for key, each in told.items()}


def merged(*many: Sequence[Server]) -> Sequence[Server]:
    """All of them; of two with one name the later counts."""
    return tuple({each.name: each for some in many for each in some}.values())


def for_agent(
    servers: Sequence[Server], takes: Mapping[str, Any]
) -> tuple[list[JSON], Sequence[str]]:
    """What an agent is given, and what people are told of those that it does not take.

    `takes` are its `mcpCapabilities`: servers by command every agent takes.
    """
    given = [each for each in servers if each.kind == "stdio" or takes.get(each.kind) is True]
    told = [
        f"The agent cannot use the MCP server {each.name}: it takes none by {each.kind}."
        for each in servers
        if each not in given
    ]
    return [each.wire() for each in given], told
