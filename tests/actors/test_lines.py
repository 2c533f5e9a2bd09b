"""When a shell is free, and what is typed into it then."""

from __future__ import annotations

import pytest

from actors.lines import PASTE_WITHIN, Line, Lines, can_be_typed

ON, OFF = "\x1b[?2004h", "\x1b[?2004l"


def line(text: str = "ls") -> Line:
    return Line(text, lambda: None)


def at_prompt(*shown: str) -> Lines:
    lines = Lines()
    lines.prompted(0.0)
    for text in shown:
        lines.shown(text)
    return lines


@pytest.mark.parametrize("text", [f"{OFF}$ {ON}", f"a{ON}$ ", ON])
def test_pasting_is_heard_of_however_it_is_cut(text: str) -> None:
    for cut in range(len(text) + 1):
        for again in range(cut, len(text) + 1):
            lines = at_prompt(text[:cut], text[cut:again], text[again:])
            assert lines.take(line(), 0.0) == b"\x15\x1b[200~ls\x1b[201~\r", (cut, again)
    lines = at_prompt(*text)
    assert lines.take(line(), 0.0) == b"\x15\x1b[200~ls\x1b[201~\r"


def test_without_pasting_it_waits_a_little_and_takes_single_lines() -> None:
    lines = at_prompt(ON, OFF)
    assert lines.take(line(), PASTE_WITHIN / 2) is None
    assert lines.will_be_free(PASTE_WITHIN / 2)
    assert lines.take(line("a\nb"), PASTE_WITHIN) is None
    assert lines.take(line(), PASTE_WITHIN) == b"\x15ls\r"


def test_it_is_free_at_its_prompt_alone_and_till_somebody_types() -> None:
    assert Lines().take(line(), 9.0) is None
    lines = at_prompt(ON)
    lines.typed()
    assert lines.take(line(), 9.0) is None
    lines.prompted(9.0)
    assert lines.take(line(), 9.0) is not None
    assert lines.take(line(), 9.0) is None, "it has one"


def test_a_line_is_over_at_the_next_prompt_and_knows_what_ran() -> None:
    lines, it = at_prompt(ON), line("a\nb")
    assert lines.take(it, 0.0)
    for name, code in (("c1", 0), ("c2", 3)):
        lines.began(name)
        lines.ended(code)
    assert not it.is_over
    lines.prompted(1.0)
    assert it.is_over
    assert (it.commands, it.exit_code) == (["c1", "c2"], 3)
    lines.began("c3")
    assert it.commands == ["c1", "c2"]
    other = line()
    lines.prompted(2.0)
    assert lines.take(other, 2.0)
    lines.gone()
    assert other.is_over


@pytest.mark.parametrize(
    ("text", "can"),
    [("ls -l 'ä b'", True), ("a\nb", True), ("", False), ("a\x1b[201~b", False), ("a\x03", False),
     ("a\tb", False), ("a\r", False)],
)  # fmt: skip
def test_what_can_be_typed_as_a_line(text: str, can: bool) -> None:
    assert can_be_typed(text) is can
