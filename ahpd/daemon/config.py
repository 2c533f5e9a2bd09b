"""What can be set: every key of the configuration file with its default and its meaning.

The metadata of a field says what values it takes (`expected`, for people, and `fits`; of a `secret`
one a wrong value is not shown), and both
the file and the flags are held against it. What reads the file is `ahpd.daemon.config_file`: a
host that has none does without its imports.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import attrs

from actors.rules.names import is_provider_name

#: Names of log levels, from the most to the least talkative.
LEVELS = ("debug", "info", "warning", "error")
#: What log lines come from, and what that says; a level may be set for each alone.
SUBSYSTEMS: Mapping[str, str] = {
    "agents": "what agents do, and the runs of their turns",
    "agents.acp": "programs that speak ACP, and all that they say on standard error",
    "connections": "clients: who comes, who goes, what fails for them",
    "daemon": "the process itself",
    "inspection": "who looks inside",
    "journal": "what is kept, and what cannot be",
    "resources": "files, and watches on them",
    "sessions": "sessions, and the turns of their chats",
    "telemetry": "what is sent to a collector",
    "transports": "sockets",
    "tree": "supervision: starts, crashes, restarts",
    "wire": "captures",
}

_MIB = 1 << 20

#: As HTTP has it.
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_AGENT_NAME = re.compile(r"[a-z][a-z0-9+.-]*")
#: What an agent may be called: its name is the scheme of its sessions' URIs.
AGENT_NAME = (
    "a name of lower-case letters, digits, + - and . that begins with a letter and is no scheme of"
    " files, the web or the protocol"
)


def _setting(default: Any, expected: str, fits: Callable[[Any], bool]) -> Any:
    return attrs.field(default=default, metadata={"expected": expected, "fits": fits})


def _is_collector(url: str) -> bool:
    """Whether requests can be sent to this base URL; who sends them is for headers to say."""
    try:
        parts = urlsplit(url)
        there = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port or an address that is none
        return False
    sendable = url.isascii() and url.isprintable() and not {" ", "@"} & set(url)
    return bool(there) and sendable and not parts.query and not parts.fragment


def _are_headers(headers: Mapping[str, str]) -> bool:
    return all(
        _HEADER_NAME.fullmatch(name) and value.isascii() and value.isprintable()
        for name, value in headers.items()
    )


def _whole(default: int, least: int, most: int, unit: str) -> Any:
    expected = f"a whole number of {unit} from {least} to {most}"
    return _setting(default, expected, lambda value: least <= value <= most)


def _one_of(default: str, *words: str) -> Any:
    expected = "one of " + ", ".join(f'"{word}"' for word in words)
    return _setting(default, expected, lambda value: value in words)


def _no_limit(default: float) -> Any:
    expected = "a number of seconds from 0 (without a limit) to 86400"
    return _setting(default, expected, lambda value: 0 <= value <= 86_400)


def _seconds(default: float, most: float = 86_400.0) -> Any:
    return _setting(
        default, f"a number of seconds over 0, at most {most:g}", lambda value: 0 < value <= most
    )


#: Keys of an agent that mean nothing to a script.
_OF_PROGRAMS = ("command", "env", "tokens", "auth_method", "files")


@attrs.frozen
class AgentConfig:
    """``[agents.NAME]``: an agent that sessions can be started with."""

    #: What drives it: ``scripted`` plays a script, ``acp`` runs a program that speaks ACP.
    kind: str = _setting(
        "scripted", 'the kind of an agent: "scripted" or "acp"', lambda v: v in ("scripted", "acp")
    )
    #: What people see for its name.
    title: str | None = _setting(None, "a title", bool)
    #: Its script, from the folder of the configuration file; none: the built-in one.
    script: str | None = _setting(None, "the name of a file", bool)
    #: The program and its arguments.
    command: tuple[str, ...] = _setting((), "a program and its arguments", bool)
    #: What is added to the environment that it runs in. It may hold secrets.
    env: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    #: Into which variable the token goes that a client hands over for a resource.
    tokens: Mapping[str, str] = attrs.field(factory=dict)
    #: The way that it is to sign in by, one of its own.
    auth_method: str | None = _setting(None, "the id of a way to sign in", bool)
    #: Whether the host runs commands for it, on terminals of the session.
    terminals: bool = True
    #: Whether the host reads and writes files for it, in the chat's folders.
    files: bool = False
    #: Whether it is asked what conversations it keeps, which are then in lists.
    conversations: bool = True

    @property
    def fault(self) -> tuple[str, str] | None:
        """The key that does not go with the kind, and what was expected; None: all is well."""
        if self.kind == "acp" and not self.command:
            return "command", "the program to run, as an array of strings"
        if self.kind == "acp" and self.script is not None:
            return "script", "a key that goes with the kind: no script"
        for key in _OF_PROGRAMS if self.kind == "scripted" else ():
            if getattr(self, key):
                return key, 'a key that goes with the kind, which is "scripted"'
        return None


@attrs.frozen
class LimitsConfig:
    """``[limits]``: what one client, one message or one wait may cost."""

    #: Bytes that may wait for a client that does not read; settable while the host runs.
    client_queue_bytes: int = _whole(16 * _MIB, _MIB, 1 << 40, "bytes")
    #: Bytes of envelopes kept for clients that come back; settable while the host runs.
    replay_bytes: int = _whole(32 * _MIB, _MIB, 1 << 40, "bytes")
    #: Envelopes kept for clients that come back.
    replay_envelopes: int = _whole(1000, 1, 10_000_000, "envelopes")
    #: Bytes of one message of a client's.
    message_bytes: int = _whole(64 * _MIB, 1024, 1 << 30, "bytes")
    #: Seconds that a client which went away keeps its place in sessions.
    grace_seconds: float = _seconds(30.0)
    #: Seconds that a cancelled agent may take to stop before it is made to.
    cancel_seconds: float = _seconds(10.0)
    #: Seconds that an agent may say nothing in a turn in which it does not wait for people.
    silence_seconds: float = _no_limit(0.0)
    #: Seconds that a client may say nothing of a call of its tool; settable while the host runs.
    client_tool_seconds: float = _no_limit(600.0)
    #: Seconds that a client may take to answer what the host asks it.
    client_answer_seconds: float = _seconds(60.0)
    #: Seconds that a watch may be there without anybody who hears it.
    watch_seconds: float = _seconds(30.0)
    #: Watches on files that there may be at a time.
    watches: int = _whole(1000, 1, 1_000_000, "watches")
    #: Bytes of the longest file that is read in one go.
    read_bytes: int = _whole(16 * _MIB, 1024, 1 << 30, "bytes")
    #: Entries of the largest folder that is listed.
    list_entries: int = _whole(100_000, 1, 10_000_000, "entries")
    #: Seconds that a request for a file may take.
    file_seconds: float = _seconds(30.0)
    #: Requests for files that may be at work at a time, half of them in any one served folder.
    file_threads: int = _whole(32, 2, 1000, "requests")
    #: Seconds that a request may wait for another part of the host.
    request_seconds: float = _seconds(30.0)
    #: Requests of one connection that may be open at a time; more wait unread.
    open_requests: int = _whole(256, 1, 100_000, "requests")
    #: Milliseconds in which an agent's text that follows other text may be gathered.
    delta_window_ms: float = _setting(
        0.0, "a number of milliseconds from 0 to 1000", lambda value: 0 <= value <= 1000
    )
    #: Turns in one page of older ones.
    page_turns: int = _whole(50, 1, 100_000, "turns")
    #: Seconds after which a session is ended that nobody ever used or hears; none: never.
    draft_seconds: float | None = _setting(
        None, "a number of seconds of at least 60", lambda value: value >= 60
    )
    #: Terminals that there may be, those that have ended included.
    terminals: int = _whole(256, 1, 100_000, "terminals")
    #: Characters of a terminal's output that are kept.
    terminal_scrollback: int = _whole(_MIB, 1000, 1 << 30, "characters")
    #: Bytes that may wait for a program that does not read its terminal.
    terminal_input_bytes: int = _whole(4 * _MIB, 4096, 1 << 30, "bytes")
    #: Seconds that an ordered stop may take before what is left is cut off.
    stop_seconds: float = _seconds(20.0)
    #: Bytes that may wait for the journal before nothing more is read from clients and agents.
    unkept_bytes: int = _whole(64 * _MIB, _MIB, 1 << 40, "bytes")
    #: Bytes of a capture (``--wire``) that may wait for its disk; what is over is left out.
    wire_bytes: int = _whole(64 * _MIB, _MIB, 1 << 40, "bytes")


@attrs.frozen
class LogConfig:
    """``[log]``: what is written about what happens, and where."""

    #: The least important level that is written.
    level: str = _one_of("info", *LEVELS)
    #: The same for single subsystems, in place of `level`.
    levels: Mapping[str, str] = attrs.field(
        factory=dict,
        metadata={
            "expected": f"levels ({', '.join(LEVELS)}) by subsystem ({', '.join(SUBSYSTEMS)})",
            "fits": lambda value: (
                value.keys() <= SUBSYSTEMS.keys() and set(value.values()) <= set(LEVELS)
            ),
        },
    )
    #: How a line looks: for people, or as a JSON object.
    format: str = _one_of("text", "text", "json")
    #: Where lines go instead of standard error, from the folder of the configuration file.
    file: str | None = _setting(None, "the name of a file", bool)
    #: Bytes after which the log file is moved aside: that one, or the background daemon's.
    max_bytes: int = _whole(10 * _MIB, 1024, 1 << 40, "bytes")
    #: How many that were moved aside are kept.
    keep: int = _whole(5, 0, 1000, "files")
    #: Reports on crashes that are kept in the state folder; 0: none are written.
    crash_reports: int = _whole(50, 0, 100_000, "files")


@attrs.frozen
class WireConfig:
    """``[wire]``: how captures are written (``--wire``)."""

    #: The shape of a line: "frames", for the checker; "ahplog", for inspectors of other hosts'.
    format: str = _one_of("frames", "frames", "ahplog")
    #: Bytes after which the file is moved aside.
    max_bytes: int = _whole(256 * _MIB, 64 * 1024, 1 << 40, "bytes")
    #: How many that were moved aside are kept.
    keep: int = _whole(4, 0, 1000, "files")


@attrs.frozen
class TelemetryConfig:
    """``[telemetry]``: what is sent to a collector; clients that subscribe get theirs anyway."""

    #: The collector's base URL, for OTLP over HTTP: ``http://127.0.0.1:4318``; none: none.
    endpoint: str | None = _setting(
        None,
        "the URL of a collector, as http://127.0.0.1:4318",
        _is_collector,
    )
    #: Headers that go with each request. They may hold secrets.
    headers: Mapping[str, str] = attrs.field(
        factory=dict,
        repr=False,
        metadata={
            "expected": "names of headers, with values of printable ASCII characters",
            "fits": _are_headers,
            "secret": True,
        },
    )
    #: The least important log records that are sent.
    level: str = _one_of("info", *LEVELS)
    #: Seconds between two batches of metrics, for subscribers too.
    metrics_seconds: float = _seconds(10.0)
    #: Bytes that may wait for the collector; what is over is left out.
    queue_bytes: int = _whole(8 * _MIB, 64 * 1024, 1 << 40, "bytes")


@attrs.frozen
class JournalConfig:
    """``[journal]``: what is kept on disk."""

    #: What a change that clients were told of is safe from: "process", a killed process, and within
    #: a second a loss of power; "power", a loss of power, at the cost of a disk's sync each time.
    durability: str = _one_of("process", "process", "power")


@attrs.frozen
class Config:
    """The whole file."""

    #: The address or name that the WebSocket listener is bound to.
    host: str = _setting("127.0.0.1", "a host name or an address", bool)
    #: Its TCP port; 0: any free one.
    port: int = _whole(9187, 0, 65_535, "a TCP port")
    #: Folders whose files clients may ask for; none: the one the host was started in.
    path: tuple[str, ...] = ()
    #: What comes of a client's request for files outside those: "ask", whoever runs the host is
    #: asked (`ahpd grant`); "allow", it is given; "deny", it is not.
    grants: str = _setting(
        "ask", 'one of "ask", "allow", "deny"', lambda v: v in ("ask", "allow", "deny")
    )
    #: Names besides those of loopback by which browsers may call this machine (``Host``).
    allowed_hosts: tuple[str, ...] = ()
    #: Pages besides the editor's that may connect (``Origin``), as ``https://example.org``.
    allowed_origins: tuple[str, ...] = ()
    #: Agents by name, in the order in which they are offered; none: ``demo``, the built-in script.
    agents: Mapping[str, AgentConfig] = attrs.field(factory=dict)
    #: MCP servers by name, which agents of the kind "acp" are given; they may hold secrets.
    mcp_servers: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict, repr=False)
    #: Whether known agents that are installed are offered besides.
    find_agents: bool = _setting(True, "true or false", lambda value: isinstance(value, bool))
    limits: LimitsConfig = attrs.field(factory=LimitsConfig)
    journal: JournalConfig = attrs.field(factory=JournalConfig)
    log: LogConfig = attrs.field(factory=LogConfig)
    wire: WireConfig = attrs.field(factory=WireConfig)
    telemetry: TelemetryConfig = attrs.field(factory=TelemetryConfig)


def is_agent_name(name: str) -> bool:
    """Whether an agent may be called that: sessions of it are named by it."""
    return _AGENT_NAME.fullmatch(name) is not None and is_provider_name(name)
