"""The table of README.md that says what is served: its rows, and the rows it has to have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import attrs

from ahpd.protocol import ACTIONS, CLIENT_METHODS, HOST_NOTIFICATIONS, HOST_REQUESTS

README = Path(__file__).parents[3] / "README.md"
HEADING = "## What is served"

#: What a row is about: clients' methods, the host's requests and notifications, actions.
Kind: TypeAlias = Literal["method", "request", "notification", "action"]

SERVED, WHEN_IT_CAN, REFUSED = WORDS = ("served", "served when the backend can", "refused")

_SECTIONS: dict[str, Kind] = {
    "What clients send": "method",
    "What the host asks of clients": "request",
    "What the host tells": "notification",
}
_ACTIONS = "Actions: "


@attrs.frozen
class Row:
    """One line of the table."""

    kind: Kind
    #: The kind of channel of an action, as the table groups them; empty for what is none.
    group: str
    name: str
    word: str
    note: str

    @property
    def key(self) -> tuple[Kind, str, str]:
        """What the row is about."""
        return self.kind, self.group, self.name


def rows_of(text: str) -> Iterator[Row]:
    """The rows that stand under the heading, in their order."""
    kind: Kind = "method"
    group = ""
    for line in _section(text).splitlines():
        if line.startswith("### "):
            title = line[4:].strip()
            kind = _SECTIONS.get(title, "action")
            group = title.removeprefix(_ACTIONS) if kind == "action" else ""
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 3:
            yield Row(kind, group, cells[0].strip("`"), cells[1], cells[2])


def _section(text: str) -> str:
    _, found, rest = text.partition(f"\n{HEADING}\n")
    return rest.partition("\n## ")[0] if found else ""


def declared() -> set[tuple[Kind, str, str]]:
    """What the protocol has: one row for each of these, and no other."""
    methods: set[tuple[Kind, str, str]] = {("method", "", name) for name in CLIENT_METHODS}
    methods |= {("request", "", name) for name in HOST_REQUESTS}
    methods |= {("notification", "", name) for name in HOST_NOTIFICATIONS}
    return methods | {("action", info.channel, name) for name, info in ACTIONS.items()}
