"""Both screens of the demo side by side, drawn from what their clients hold.

Each screen shows its optimistic states, as an editor would: the connection, the session, the end
of the chat, what waits for somebody, and a short log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from ahpd.cli import words
from ahpd.cli.demo.screen import Screen
from ahpd.cli.demo.story import Stage
from ahpd.cli.following import plain
from ahpd.cli.shown import cut, line, safe, width
from ahpd.protocol.chat import (
    ActiveTurn,
    ErrorResponsePart,
    MarkdownResponsePart,
    ReasoningResponsePart,
    ToolCallResponsePart,
    Turn,
)
from ahpd.protocol.tools import ToolCallPendingConfirmationState

#: The smallest terminal that can show it, in cells.
LEAST_WIDTH, LEAST_HEIGHT = 64, 20
#: Lines of the log that a screen shows.
_LOG = 3
#: Characters at the end of a text that can matter to what fits on a screen.
_TAIL = 4000

_STATUS_STYLES = {"connected": "green", "offline": "bold red"}
_CALL_STYLES = {"done": "green", "running": "cyan", "waits for approval": "bold yellow"}
_BAD = frozenset({"failed", "denied", "skipped"})

_USER, _THOUGHT, _TOOL, _ASKS, _BROKEN, _DOT = "»", "∴", "▸", "?", "✗", "●"


class View:
    """The whole picture; drawn for the size of the terminal at that moment."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it."""
        height = options.height or console.height
        table = Table.grid(expand=True, padding=0)
        for _ in self._stage.screens:
            table.add_column(ratio=1)
        each = (options.max_width // 2, height - 2)
        table.add_row(*(_panel(console, screen, *each) for screen in self._stage.screens))
        yield Text("ahpd demo: one host, two screens, one session", "bold", no_wrap=True)
        yield table
        yield Text(f" {self._stage.caption}", "bold", overflow="ellipsis", no_wrap=True)


def _panel(console: Console, screen: Screen, outer: int, height: int) -> RenderableType:
    inner = outer - 4
    rows: list[RenderableType] = [*_head(screen, inner), Rule(style="dim")]
    log = [Text(cut(line(each), inner), "dim") for each in list(screen.log)[-_LOG:]]
    log += [Text()] * (_LOG - len(log))
    space = height - 2 - len(rows) - 1 - _LOG
    rows += [*_chat(console, screen, inner, space), Rule(style="dim"), *log]
    status = screen.status
    style = _STATUS_STYLES.get(status, "yellow")
    number = None if screen.client is None else screen.client.last_seen
    return Panel(
        Group(*rows),
        title=Text.assemble((screen.title, "bold"), " ", (f"{_DOT} {status}", style)),
        title_align="left",
        subtitle=Text(f"serverSeq {number if number is not None else '-'}", "dim"),
        subtitle_align="right",
        border_style="red" if status == "offline" else "blue",
        width=outer,
        height=height,
    )


def _head(screen: Screen, inner: int) -> list[Text]:
    """Two lines: the session and how it is; who is there."""
    session = screen.session_state
    if session is None:
        return [Text("no session", "dim"), Text()]
    chat = screen.chat_state
    state = words.activity(session.status if chat is None else chat.status)
    here = ", ".join(line(each.display_name or each.client_id) for each in session.active_clients)
    doing = f"{line(session.activity)}; " if session.activity else ""
    title = line(session.title) or "a new session"
    return [
        _spread(Text(title, "bold"), Text(state, _state_style(state)), inner),
        Text(cut(f"{doing}here: {here or 'nobody'}", inner), "dim"),
    ]


def _state_style(state: str) -> str:
    return {"working": "cyan", "waits for you": "bold yellow", "failed": "red"}.get(state, "green")


def _spread(left: Text, right: Text, cells: int) -> Text:
    """One line with something at each end."""
    room = cells - right.cell_len - 1
    left.truncate(room, overflow="ellipsis", pad=True)
    return Text.assemble(left, " ", right)


def _chat(console: Console, screen: Screen, inner: int, space: int) -> list[Text]:
    """The end of the chat, as many lines as there is space for."""
    chat = screen.chat_state
    turns: list[Any] = [] if chat is None else [*chat.turns[-3:], chat.active_turn]
    lines: list[Text] = []
    for turn in turns:
        if turn is not None:
            lines += _turn(console, turn, inner)
    lines = lines[-space:]
    return lines + [Text()] * (space - len(lines))


def _turn(console: Console, turn: ActiveTurn | Turn, inner: int) -> Iterator[Text]:
    yield from _wrapped(console, _USER, turn.message.text, inner, "bold cyan")
    for part in turn.response_parts:
        match part:
            case MarkdownResponsePart():
                yield from _wrapped(console, " ", str(part.content)[-_TAIL:], inner, "")
            case ReasoningResponsePart():
                text = str(part.content)[-_TAIL:]
                yield from _wrapped(console, _THOUGHT, text, inner, "dim italic")
            case ToolCallResponsePart():
                yield from _call(part.tool_call, inner)
            case ErrorResponsePart():
                yield from _wrapped(console, _BROKEN, part.error.message, inner, "red")
            case _:
                pass
    if isinstance(turn, Turn):
        took = "" if turn.duration is None else f" in {turn.duration / 1000:.1f} s"
        yield Text(cut(f"  ({words.ENDINGS.get(turn.state, turn.state)}{took})", inner), "dim")


def _call(call: Any, inner: int) -> Iterator[Text]:
    state = words.call(call)
    style = "red" if state in _BAD else _CALL_STYLES.get(state, "cyan")
    asks = isinstance(call, ToolCallPendingConfirmationState)
    name = f"{_ASKS if asks else _TOOL} {line(getattr(call, 'display_name', ''))}"
    yield _spread(Text(name, "bold"), Text(state, style), inner)
    if isinstance(call, ToolCallPendingConfirmationState):
        title = line(plain(call.confirmation_title)) or "Allow it?"
        yield Text(cut(f"  {title}", inner), "yellow")
        for number, option in enumerate(call.options or (), 1):
            yield Text(cut(f"  {number} {line(option.label)}", inner), "yellow")


def _wrapped(console: Console, mark: str, text: str, inner: int, style: str) -> Iterator[Text]:
    """The paragraphs of a text, the first line marked, all of them indented."""
    first = True
    for paragraph in safe(text).expandtabs(4).strip("\n").split("\n"):
        if not paragraph.strip():
            continue
        for piece in Text(paragraph, style).wrap(console, inner - 2):
            piece.rstrip()
            head = mark + " " * (2 - width(mark)) if first else "  "
            yield Text.assemble((head, style), piece)
            first = False
