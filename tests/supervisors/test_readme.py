"""The example in the README runs, and prints what the README says it prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import trio
import trio.testing

README = Path(__file__).parents[2] / "README.md"
HEADING = "## Supervision in one page\n"

EXAMPLE = """\
import attrs
import trio
from supervisors import Actor, ChildSpec, Reply, Request, SupervisorSpec, running


@attrs.frozen
class Ask(Request[str]):  # a message that is called; the reply is a str
    question: str


class Oracle(Actor[Ask | str]):
    answered = 0  # its state: every incarnation is a fresh object

    async def handle(self, message: Ask | str) -> None:
        if isinstance(message, Ask):  # the answer takes its time: the mailbox does not wait for it
            self.spawn(self.think, message.question, self.defer())
        elif message == "smoke":
            raise RuntimeError("the temple burns")

    async def think(self, question: str, reply: Reply[str]) -> None:
        await trio.sleep(3)  # a helper: it dies with its actor, and its crash is the actor's
        self.answered += 1
        reply.answer(f"{question} 42, answer {self.answered}")


async def main() -> None:
    async with running(SupervisorSpec([ChildSpec("delphi/oracle", Oracle)])) as system:
        oracle = await system.wait_for("delphi/oracle")
        print(await oracle.call(Ask("Six by nine?"), within=5))
        oracle.cast("smoke")  # it crashes and is restarted; the ref keeps working
        print(await oracle.call(Ask("Still there?"), within=5))


if __name__ == "__main__":
    trio.run(main)
"""


def in_readme() -> str:
    """The example as the README has it; this file's own where the section has none."""
    _before, _heading, after = README.read_text(encoding="utf-8").partition(HEADING)
    section = after.partition("\n## ")[0]
    block = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    return block.group(1) if block is not None else EXAMPLE


def test_the_example_in_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(in_readme(), "README.md", "exec"), names)
    trio.run(names["main"], clock=trio.testing.MockClock(autojump_threshold=0))  # type: ignore[arg-type]
    assert capsys.readouterr().out.splitlines() == [
        "Six by nine? 42, answer 1",
        "Still there? 42, answer 1",
    ]
    assert sum(bool(line) for line in in_readme().splitlines()) <= 30
