"""The example on the page about supervision runs, and prints what the page says it prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import trio
import trio.testing

PAGE = Path(__file__).parents[2] / "docs" / "supervision.md"


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    block = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    example = block.group(1)
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(example, PAGE.name, "exec"), names)
    trio.run(names["main"], clock=trio.testing.MockClock(autojump_threshold=0))  # type: ignore[arg-type]
    assert capsys.readouterr().out.splitlines() == [
        "Six by nine? 42, answer 1",
        "Still there? 42, answer 1",
    ]
    assert sum(bool(line) for line in example.splitlines()) <= 30
