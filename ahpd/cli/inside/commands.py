"""What can be typed at the console: a table of commands, each with what it asks the daemon for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from ahpd.cli.inside import answers


class Wrong(Exception):
    """What was typed makes no sense; the message says what would."""


@attrs.frozen
class Command:
    """One command: `asks` makes the request's params of what follows its name."""

    name: str
    usage: str
    says: str
    asks: Callable[[str], Mapping[str, Any]]
    shows: Callable[[Any], list[str]]
    #: What the daemon calls it.
    method: str


def find(typed: str) -> Command | None:
    """The command of that name, or the one whose beginning it is. Raises `Wrong` for several."""
    if typed in COMMANDS:
        return COMMANDS[typed]
    found = [name for name in COMMANDS if name.startswith(typed)]
    if len(found) > 1:
        raise Wrong(f"{typed} may be any of: {', '.join(found)}")
    return COMMANDS[found[0]] if found else None


# ---- what follows a name ------------------------------------------------------------------------


def _nothing(rest: str) -> Mapping[str, Any]:
    if rest:
        raise Wrong(f"nothing goes after it, but there is: {rest}")
    return {}


def _state(rest: str) -> Mapping[str, Any]:
    """``[@NUMBER] [JSONPATH]``."""
    if not rest.startswith("@") or rest.startswith("@."):
        return {"path": rest} if rest else {}
    number, _, path = rest[1:].partition(" ")
    if not number.isdigit():
        raise Wrong(f"state @NUMBER: a number of the host's, not {number or 'nothing'}")
    return {"at": int(number), **({"path": path.strip()} if path.strip() else {})}


def _some(what: str, key: str = "count") -> Callable[[str], Mapping[str, Any]]:
    def asks(rest: str) -> Mapping[str, Any]:
        if rest and not rest.isdigit():
            raise Wrong(f"{what}, not {rest}")
        return {key: int(rest)} if rest else {}

    return asks


def _switch(rest: str) -> Mapping[str, Any]:
    if rest not in ("on", "off"):
        raise Wrong("trace on, or trace off")
    return {"on": rest == "on"}


_BREAK = re.compile(r"(?:on\s+)?(?P<on>\S+)(?:\s+if\s+(?P<if>.+))?", re.DOTALL)


def _break(rest: str) -> Mapping[str, Any]:
    if not rest:
        return {}
    match = _BREAK.fullmatch(rest)
    if match is None or match["on"] in ("on", "if"):
        raise Wrong("break on ACTION_TYPE [if EXPRESSION]")
    return {key: value for key, value in match.groupdict().items() if value is not None}


def _needed(what: str, key: str) -> Callable[[str], Mapping[str, Any]]:
    def asks(rest: str) -> Mapping[str, Any]:
        if not rest:
            raise Wrong(what)
        return {key: rest}

    return asks


def _perhaps(key: str) -> Callable[[str], Mapping[str, Any]]:
    return lambda rest: {key: rest} if rest else {}


_ALL = (
    Command("status", "status", "what it does, who is attached, what holds it",
            _nothing, answers.status, "status"),
    Command("state", "state [@NUMBER] [JSONPATH]",
            "its state, or what is at a JSONPath of it; as it was at a number, from the journal",
            _state, answers.state, "state"),
    Command("mailbox", "mailbox", "what waits to be handled", _nothing, answers.mailbox, "mailbox"),
    Command("log", "log [N]", "the last messages since somebody is attached, with times",
            _some("log N: how many"), answers.log, "log"),
    Command("where", "where", "where its tasks wait, with source lines",
            _nothing, answers.where, "where"),
    Command("trace", "trace on|off", "say everything that it does",
            _switch, answers.trace, "trace"),
    Command("pause", "pause", "have it take no further message", _nothing, answers.pause, "pause"),
    Command("step", "step [N]", "have it handle one message, or N",
            _some("step N: how many"), answers.step, "step"),
    Command("continue", "continue", "have it go on, whoever holds it",
            _nothing, answers.resumed, "continue"),
    Command("break", "break on ACTION_TYPE [if EXPRESSION]",
            "pause it where an action of that type is said; alone: which there are."
            " EXPRESSION is Python, with action, message, state and actor",
            _break, answers.breaks, "break"),
    Command("unbreak", "unbreak [N]", "take out a breakpoint, or all",
            _some("unbreak N: its number", "number"), answers.unbroken, "unbreak"),
    Command("watch", "watch JSONPATH", "say what is there whenever that changes",
            _needed("watch JSONPATH", "path"), answers.watched, "watch"),
    Command("unwatch", "unwatch [N]", "end a watch, or all",
            _some("unwatch N: its number", "number"), answers.unwatched, "unwatch"),
    Command("inject", "inject MESSAGE",
            "put a message into its mailbox: an action in JSON, or a Python expression",
            _needed("inject MESSAGE", "message"), answers.injected, "inject"),
    Command("kill", "kill [REASON]", "end it at once; its supervisor does what it does then",
            _perhaps("reason"), answers.killed, "kill"),
    Command("restart", "restart", "have its supervisor start it again",
            _nothing, answers.restarted, "restart"),
    Command("py", "py [CODE]", "Python between two of its messages, with actor, state, host, …",
            _perhaps("code"), answers.ran, "py"),
    Command("pdb", "pdb", "the Python debugger in the handler of its next message",
            _nothing, answers.debugged, "pdb"),
    Command("help", "help [COMMAND]", "this", _perhaps("command"), lambda _: [], ""),
    Command("quit", "quit", "leave: what you paused goes on", _nothing, lambda _: [], ""),
)  # fmt: skip

#: By name. A beginning of one that no other has will do.
COMMANDS: Mapping[str, Command] = {each.name: each for each in _ALL}


def helped(name: str | None) -> list[str]:
    """What there is, or how one is used. Raises `Wrong`."""
    if name is None:
        room = max(len(each.usage) for each in _ALL)
        short = 34
        lines = []
        for each in _ALL:
            if len(each.usage) > short:
                lines += [f"  {each.usage}", f"  {'':{short}}  {each.says}"]
            else:
                lines.append(f"  {each.usage:{min(room, short)}}  {each.says}")
        return lines
    command = find(name)
    if command is None:
        raise Wrong(f"there is no command {name}; help shows all")
    return [command.usage, f"  {command.says}"]
