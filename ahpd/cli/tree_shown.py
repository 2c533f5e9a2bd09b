"""How ``ahpd ps`` shows a tree: what is out of the ordinary first, then a line for each actor.

Where one supervisor has many children that do nothing, these are one line.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import click

from ahpd.cli import exits
from ahpd.cli.shown import line, padded, width

#: Children of one supervisor, but the root, of which each has a line whether or not it does much.
SHOWN = 12
#: Troubles that have a line.
TROUBLES = 12

_HEAD = ("ACTOR", "DOES", "WAITING", "HANDLED", "RESTARTS", "MEMORY", "LAST CRASH")
_RESTARTS, _CRASH = 4, 6
#: Characters of a name that is not cut, and of what is left of one that is.
NAME, CUT = 20, 13


@attrs.frozen
class Line:
    """A line of text, and how it is to look (as click styles)."""

    text: str
    style: Mapping[str, Any] = attrs.field(factory=dict)


def printed(found: Any, *, show_all: bool) -> None:
    """Print a tree, as wide as the terminal, or as it is where there is none."""
    for each in lines(found, _columns(), show_all=show_all):
        click.echo(click.style(each.text, **each.style) if each.style else each.text)


def _columns() -> int | None:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def watched(look: Callable[[], Any], every: float, *, show_all: bool) -> int:
    """Draw it again and again, until Ctrl-C."""
    from rich.console import Console  # noqa: PLC0415 - not for a tree that is printed once
    from rich.live import Live  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(no_color=click.get_current_context().color is False)
    rates = Rates()
    with Live(console=console, screen=console.is_terminal, auto_refresh=False) as live:
        while True:
            found = look()
            rates.note(found)
            drawn = lines(found, console.width, show_all=show_all, rates=rates)
            if len(drawn) > console.height > 2:
                rest = len(drawn) - console.height + 1
                drawn = [*drawn[: console.height - 1], Line(f"… {rest} more lines")]
            shown = [Text(each.text, style=_rich(each.style), no_wrap=True) for each in drawn]
            live.update(Text("\n").join(shown), refresh=True)
            time.sleep(every)
    return exits.OK


def _rich(style: Mapping[str, Any]) -> str:
    words = [name for name in ("bold", "dim") if style.get(name)]
    return " ".join([*words, style.get("fg", "")]).strip()


class Rates:
    """Messages a second that each actor handled between two looks."""

    def __init__(self) -> None:
        self._at = time.monotonic()
        self._handled: dict[str, int] = {}
        self._rates: dict[str, float] = {}

    def note(self, found: Any) -> None:
        """This is how things are now."""
        now = time.monotonic()
        took, self._at = now - self._at, now
        before, self._handled = (
            self._handled,
            {each["path"]: each["handled"] for each in found["actors"]},
        )
        self._rates = {
            path: (handled - before[path]) / took
            for path, handled in self._handled.items()
            if handled >= before.get(path, handled + 1) and took > 0
        }

    def of(self, path: str) -> float | None:
        """Of this one; None while nobody knows."""
        return self._rates.get(path)


# ---- the lines ----------------------------------------------------------------------------------


def lines(
    found: Any, columns: int | None, *, show_all: bool, rates: Rates | None = None
) -> list[Line]:
    """The whole of it; each line at most `columns` cells wide (None: as wide as it is).

    Where there is not room for all, long names are cut, and columns with nothing in them left out.
    """
    made = [Line(_summary(found), {"bold": True})]
    made += _troubles(found)
    fits = columns is not None
    rows = list(_Tree(found["actors"], show_all=show_all, cuts=fits).rows(rates))
    kept = [place for place in range(len(_HEAD)) if not fits or _is_needed(place, rows)]
    table = [[row[place] for place in kept] for row in (_HEAD, *rows)]
    widths = [max(map(width, column)) for column in zip(*table, strict=True)]
    if columns is not None:
        widths = _fitted(widths, columns, has_crashes=kept[-1] == _CRASH)
    styles = [{"bold": True}, *map(_style, rows)]
    return made + [
        Line(_joined(row, widths, columns), style) for row, style in zip(table, styles, strict=True)
    ]


def _is_needed(place: int, rows: Sequence[Sequence[str]]) -> bool:
    return place not in (_RESTARTS, _CRASH) or any(row[place] for row in rows)


def _fitted(widths: list[int], columns: int, *, has_crashes: bool) -> list[int]:
    """What is done and what crashed share what the others leave."""
    texts = [1, len(widths) - 1] if has_crashes else [1]
    room = columns - 2 * (len(widths) - 1)
    room -= sum(each for place, each in enumerate(widths) if place not in texts)
    for place in reversed(texts):
        share = max(len("LAST CRASH"), room // 3 if place != 1 else room)
        widths[place] = min(widths[place], share)
        room -= widths[place]
    return widths


def _joined(row: Sequence[str], widths: Sequence[int], columns: int | None) -> str:
    cells = [padded(cell, room) for cell, room in zip(row, widths, strict=True)]
    text = "  ".join(cells).rstrip()
    return text if columns is None else padded(text, columns).rstrip()


def _style(row: Sequence[str]) -> Mapping[str, Any]:
    if row[0].rstrip().endswith("!"):
        return {"fg": "yellow"}
    return {"dim": True} if row[1] == "idle" or row[0].lstrip().startswith("…") else {}


def _summary(found: Any) -> str:
    actors = [each for each in found["actors"] if each["mailbox"] is not None]
    waiting = sum(each["mailbox"]["count"] + each["mailbox"]["urgent"] for each in actors)
    memory = found["memoryBytes"]
    parts = [f"{len(actors)} actors", f"{waiting} messages wait"]
    if memory is not None:
        parts.append(f"{bytes_shown(memory)} in memory")
    parts.append(f"a round of all tasks takes {found['loop']['longestRoundSeconds'] * 1000:.0f} ms")
    parts.append(f"at number {found['serverSeq']}")
    return ", ".join(parts)


def _troubles(found: Any) -> Iterator[Line]:
    troubles = found["troubles"]
    for each in troubles[:TROUBLES]:
        where = line(each["path"]) or "the host"
        yield Line(f"! {where}: {line(each['why'])}", {"fg": "yellow"})
    if len(troubles) > TROUBLES:
        yield Line(f"! and {len(troubles) - TROUBLES} more", {"fg": "yellow"})


class _Tree:
    """The rows as a tree of their supervisors."""

    def __init__(self, actors: Sequence[Any], *, show_all: bool, cuts: bool) -> None:
        self._show_all = show_all
        self._cuts = cuts
        self._children: dict[str, list[Any]] = {}
        paths = {each["path"] for each in actors}
        for each in actors:
            # One whose supervisor is not among them is at the top.
            above = each["supervisor"] if each["supervisor"] in paths else ""
            self._children.setdefault(above, []).append(each)
        self._quiet: dict[str, bool] = {}

    def rows(self, rates: Rates | None) -> Iterator[tuple[str, ...]]:
        """A row of cells for each line."""
        yield from self._below("", 0, rates)

    def _below(self, path: str, depth: int, rates: Rates | None) -> Iterator[tuple[str, ...]]:
        children = self._children.get(path, ())
        folds = bool(path) and not self._show_all and len(children) > SHOWN
        hidden = 0
        for each in children:
            if folds and self._is_quiet(each):
                hidden += 1
                continue
            yield _row(each, self._name(each["path"], path, depth), rates)
            yield from self._below(each["path"], depth + 1, rates)
        if hidden:
            yield ("  " * depth + f"… {hidden} more", "idle", "", "", "", "", "")

    def _name(self, path: str, above: str, depth: int) -> str:
        """The path as far as it is not the one above."""
        name = path[len(above) + 1 :] if above and path.startswith(above + "/") else path
        parts = line(name).split("/")
        if self._cuts:
            parts = [each if len(each) <= NAME else each[:CUT] + "…" for each in parts]
        return "  " * depth + "/".join(parts)

    def _is_quiet(self, row: Any) -> bool:
        """Nothing is to be seen there, nor below."""
        path = row["path"]
        if path not in self._quiet:
            own = not row["troubles"] and (row["kind"] == "supervisor" or row["doing"] == "idle")
            self._quiet[path] = own and all(
                self._is_quiet(each) for each in self._children.get(path, ())
            )
        return self._quiet[path]


def _row(each: Any, name: str, rates: Rates | None) -> tuple[str, ...]:
    rate = rates.of(each["path"]) if rates is not None else None
    handled = "" if each["mailbox"] is None else str(each["handled"])
    if rate:
        handled += f" {rate:.0f}/s"
    crash = each["lastCrash"]
    return (
        name + (" !" if each["troubles"] else ""),
        line(each["doing"]),
        _waiting(each["mailbox"]),
        handled,
        str(each["restarts"] or ""),
        _memory(each["memoryBytes"]),
        "" if crash is None else f"{_ago(crash['agoSeconds'])} ago: {line(crash['text'])}",
    )


def _waiting(box: Any) -> str:
    if box is None or not box["count"] + box["urgent"]:
        return ""
    count = str(box["count"]) + (f"+{box['urgent']}" if box["urgent"] else "")
    return f"{count}, {bytes_shown(box['bytes'])}, {_ago(box['oldestSeconds'])}"


def _memory(known: Any) -> str:
    return bytes_shown(sum(known.values())) if known and sum(known.values()) else ""


def _ago(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def bytes_shown(value: float) -> str:
    """Bytes in words."""
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
