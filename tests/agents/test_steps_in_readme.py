"""The table of steps in README.md: every step there is, each spelled as a script takes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ahpd.agents.plays import STEPS
from ahpd.agents.script import parse_script
from ahpd.protocol.jsontext import loads

README = Path(__file__).parents[2] / "README.md"

_, _, _REST = README.read_text("utf-8").partition("\n### Scripts\n")
SECTION = _REST.partition("\n## ")[0]
EXAMPLES = [
    line.removeprefix("| `").partition("` |")[0]
    for line in SECTION.splitlines()
    if line.startswith("| `{")
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_step_is_spelled_as_a_script_takes_it(example: str) -> None:
    (entry,) = parse_script({"turns": [{"steps": [loads(example.encode())]}]}).turns
    assert len(entry.steps) == 1


def test_every_step_is_there() -> None:
    shown = {next(iter(loads(example.encode()))) for example in EXAMPLES}
    assert shown == set(STEPS)
