"""Cases in the protocol's format: a state, actions, and the state that must come out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs

from ahpd.protocol.model import JSON
from ahpd.protocol.uris import ChannelKind

ROOT = Path(__file__).parents[2]
#: The project's own cases. ``newer`` in a file's name: it holds what only a newer peer may send.
OWN = ROOT / "fixtures" / "reducers"
#: The protocol's cases, where somebody has put them beside the project.
PROTOCOL = ROOT.parent / "shared" / "protocol" / "cases" / "reducers"


@attrs.frozen
class Case:
    """One file of cases."""

    description: str
    reducer: ChannelKind
    initial: JSON
    actions: list[JSON]
    expected: JSON

    @classmethod
    def read(cls, file: Path) -> Case:
        """The case in a file; keys that are not the format's are a mistake in it."""
        return cls(**json.loads(file.read_text("utf-8")))


def without_null(value: Any) -> Any:
    """`value` with keys that hold null left out: in comparing states the two are equal (R-24.34).

    Only for typed values: open objects lose their nulls too, which makes the comparison weaker
    there, not wrong.
    """
    if isinstance(value, dict):
        return {key: without_null(each) for key, each in value.items() if each is not None}
    return [without_null(each) for each in value] if isinstance(value, list) else value
