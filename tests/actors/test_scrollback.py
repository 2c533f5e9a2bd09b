"""Old output is cut between characters, never inside an escape sequence, and at little cost."""

from __future__ import annotations

import random

import pytest

from actors import scrollback
from actors.scrollback import PART, is_over, place_of_cut, size, trimmed
from ahpd.protocol.codec import decode
from ahpd.protocol.terminal import TerminalState

SEQUENCES = [
    "\x1b[31m", "\x1b[?2004h", "\x1b]0;a title\x07", "\x1b]8;;http://h/x\x1b\\", "\x1b(B", "\x1b=",
    "\x1bPq#0;2;0\x1b\\", "\x1b[38;2;1;2;3m", "\x1b_payload\x1b\\", "\x1b]52;c;Zm9v\x9c",
]  # fmt: skip


def state(*parts: object) -> TerminalState:
    return decode(
        TerminalState,
        {
            "title": "t", "claim": {"kind": "client", "clientId": "a"},
            "lifecycle": {"status": "running"}, "content": list(parts),
        },
    )  # fmt: skip


def plain(value: str) -> dict[str, object]:
    return {"type": "unclassified", "value": value}


def command(output: str, id: str = "c") -> dict[str, object]:
    return {
        "type": "command", "commandId": id, "commandLine": "ls", "output": output,
        "timestamp": 1, "isComplete": True,
    }  # fmt: skip


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_no_cut_is_inside_a_sequence(sequence: str) -> None:
    text = f"abc{sequence}def"
    allowed = {*range(4), *range(3 + len(sequence), len(text) + 1)}
    for least in range(len(text) + 1):
        place = place_of_cut(text, least)
        assert place >= least
        assert place in allowed, (least, place)


def test_a_cut_is_at_a_lines_beginning_if_one_is_near() -> None:
    assert place_of_cut("one\ntwo\nthree", 2) == 4
    assert place_of_cut("one" + "x" * 9999 + "\ntwo", 2) == 2


def test_a_sequence_that_is_not_over_is_not_begun_in_its_middle() -> None:
    assert place_of_cut("abc\x1b]0;never", 6) == len("abc\x1b]0;never")
    assert place_of_cut("abc\x1b[3", 5) == len("abc\x1b[3")


def test_random_text_is_cut_between_its_pieces() -> None:
    dice = random.Random(3)
    for _ in range(300):
        pieces = [dice.choice([*SEQUENCES, "x", "ä", "\r"]) for _ in range(dice.randrange(1, 30))]
        text, ends, at = "".join(pieces), {0}, 0
        for piece in pieces:
            at += len(piece)
            ends.add(at)
        assert place_of_cut(text, dice.randrange(len(text) + 1)) in ends


def test_whole_parts_go_first_and_the_rest_keeps_its_names() -> None:
    before = state(
        plain("a" * 10), command("b" * 10, "c1"), command("d" * 10, "c2"), plain("e" * 5)
    )
    costs = 4 * PART + 2 * len("ls")
    assert size(before) == 35 + costs
    after = trimmed(before, 17 + costs - PART)
    assert after.wire()["content"] == [
        command("b" * 2, "c1"), command("d" * 10, "c2"), plain("e" * 5),
    ]  # fmt: skip
    assert trimmed(before, 35 + costs) is before
    assert trimmed(before, 3 + PART).wire()["content"] == [plain("eee")]


def test_one_that_is_longer_than_all_is_dropped_whole() -> None:
    after = trimmed(state(plain("\x1b]0;" + "x" * 100 + "\x07yz")), 10 + PART)
    assert after.wire()["content"] == [plain("yz")]


def test_it_is_cut_only_when_there_is_a_good_deal_more() -> None:
    assert not is_over(1250, 1000)
    assert is_over(1251, 1000)


def test_many_sequences_that_never_end_cost_no_more_than_others() -> None:
    text = "\x1b]0;" * 200_000
    assert place_of_cut(text, len(text) - 10) <= len(text)


def test_commands_that_say_nothing_do_not_pile_up() -> None:
    before = state(*(command("", f"c{number}") for number in range(1000)))
    assert len(trimmed(before, 100 * PART).content) < 101


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[1mone\x1b[0m\r\ntwo\r\n", "one\ntwo\n"),
        ("10%\r20%\r100%\r\ndone\r", "100%\ndone"),
        ("longer\rab", "abnger"),
        ("\x1b[30m\rfirst\r\n", "first\n"),
        ("x" * 100_000 + "\ry" * 100_000, "y"),
    ],
)
def test_text_without_sequences_is_what_one_sees(text: str, shown: str) -> None:
    assert scrollback.plain(text) == shown
