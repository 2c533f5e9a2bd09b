"""Marks of shells are taken out of the text at every point at which it may be cut."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence

import pytest

from ahpd.terminals.marks import LONGEST, Marks
from ahpd.terminals.port import CommandBegan, CommandEnded, Detected, Moved, Output, Piece, Prompted


def joined(pieces: Iterable[Piece]) -> list[Piece]:
    """The pieces with neighbouring texts as one: where they were cut means nothing."""
    out: list[Piece] = []
    for is_text, run in itertools.groupby(pieces, lambda piece: isinstance(piece, Output)):
        found = list(run)
        out += [Output(text(found))] if is_text else found
    return out


def read(portions: Sequence[str], nonce: str | None = None) -> list[Piece]:
    marks = Marks(nonce, lambda host: host in ("", "here"))
    pieces = [piece for portion in portions for piece in marks.feed(portion)]
    return joined([*pieces, *marks.finish()])


def text(pieces: Iterable[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Output))


S633 = (
    "\x1b]633;A\x07$ \x1b]633;B\x07ls\x1b]633;E;ls;n1\x1b\\\x1b]633;C\x07out\r\n\x1b]633;D;2\x1b\\"
)
S133 = "\x1b]133;A\x07$ \x1b]133;B\x07ls\x1b]133;C;\x07out\r\n\x1b]133;D;2\x1b\\"
SAID = [
    Detected(), Prompted(), Output("$ ls"), CommandBegan("ls"), Output("out\r\n"), CommandEnded(2),
]  # fmt: skip


@pytest.mark.parametrize(("stream", "line"), [(S633, "ls"), (S133, "")])
def test_the_same_for_every_split_in_two_in_three_and_byte_by_byte(stream: str, line: str) -> None:
    wanted = [CommandBegan(line) if isinstance(it, CommandBegan) else it for it in SAID]
    assert read([stream]) == wanted
    assert read(list(stream)) == wanted
    for one in range(len(stream) + 1):
        assert read([stream[:one], stream[one:]]) == wanted
        for two in range(one, len(stream) + 1):
            assert read([stream[:one], stream[one:two], stream[two:]]) == wanted


#: Sequences that are nobody's marks: they stay as they came.
OTHERS = [
    "\x1b]0;t\x07", "\x1b]8;;http://h\x1b\\x\x1b]8;;\x1b\\", "\x1b]52;c;Zm9v\x07",
    "\x1bPq#0;2;0;0;0\x1b\\", "\x1b]7;file://here/p\x1b\\", "\x1b]7;file://elsewhere/p\x07",
    "\x9d0;t\x9c", "]633;C\x07 in plain text", "\x1b[31mred\x1b[0m", "\x1b", "\x1b]", "\x1b]63",
    "\x1b]6333;C\x07", "\x1b]63;C\x07", "\x1b]1337;File=x\x07", "\x1b]77;x\x07", "\x1b]7;unended",
    "\x1b]7;broken\x1b[31m", "\x1b\x1b]0;t\x07", "\x1b(B", "\x1b]13\x1b\\",
]  # fmt: skip


@pytest.mark.parametrize("sequence", OTHERS)
def test_other_sequences_stay_as_they_are_however_they_are_cut(sequence: str) -> None:
    stream = f"a{sequence}z"
    for cut in range(len(stream) + 1):
        assert text(read([stream[:cut], stream[cut:]])) == stream
    assert text(read(list(stream))) == stream


def test_no_mark_is_left_in_random_text_cut_at_random_and_nothing_else_goes() -> None:
    dice = random.Random(7)
    marks = ["\x1b]633;A\x07", "\x1b]133;D;1\x1b\\", "\x1b]633;P;Cwd=/a\x9c", "\x1b]633;E;a;b\x07"]
    for _ in range(200):
        kept, stream = [], []
        for _ in range(dice.randrange(20)):
            piece = dice.choice([*OTHERS[:9], "plain", "ä", "\r\n"])
            kept.append(piece)
            stream += [piece, dice.choice(["", *marks])]
        whole = "".join(stream)
        cuts = sorted(dice.randrange(len(whole) + 1) for _ in range(dice.randrange(8)))
        portions = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
        assert text(read(portions)) == "".join(kept)
        assert read(portions) == read([whole])


def test_a_mark_that_never_ends_swallows_no_more_than_its_bound() -> None:
    head, body = "\x1b]633;E;", "x" * (4 << 20)
    portions = [head, *(body[at : at + 64] for at in range(0, len(body), 64)), "after\n"]
    pieces = read(portions)
    assert text(pieces).endswith("xafter\n")
    assert read([head + body + "after\n"]) == pieces
    assert len(text(pieces)) >= len(body) - LONGEST


def test_a_folder_that_never_ends_is_text() -> None:
    stream = "\x1b]7;" + "x" * (2 * LONGEST) + "after\n"
    assert text(read([stream])) == stream
    assert text(read(list(stream))) == stream


def test_a_mark_broken_off_ends_where_the_next_sequence_begins() -> None:
    assert text(read(["\x1b]633;C;half\x1b[31mred"])) == "\x1b[31mred"
    assert text(read(["\x1b]633;C;half\x18red"])) == "\x18red"
    assert read(["\x1b]633;E;ls\x1b]633;C\x07"]) == [Detected(), CommandBegan("")]


def test_what_may_begin_a_mark_can_be_let_go() -> None:
    marks = Marks()
    assert marks.feed("a\x1b") == [Output("a")]
    assert marks.is_unsure
    assert marks.release() == [Output("\x1b")]
    assert not marks.is_unsure
    marks.feed("\x1b]633;C\x1b")
    assert not marks.is_unsure, "it is a mark, and ends or not"
    assert marks.feed("\\out") == [Detected(), CommandBegan(""), Output("out")]


def test_marks_without_the_nonce_go_and_say_nothing() -> None:
    forged = "\x1b]633;E;rm;other\x07\x1b]633;C\x07\x1b]633;D;0\x07\x1b]133;A\x07out"
    assert read([forged], "n1") == [Output("out")]
    own = "\x1b]633;E;ls;n1\x07\x1b]633;C;n1\x07out\x1b]633;D;0\x07more\x1b]133;D;3;aid=n1\x07"
    assert read([own], "n1") == [
        Detected(), CommandBegan("ls"), Output("outmore"), CommandEnded(3),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("spelled", "line"),
    [("a\\x3bb", "a;b"), ("a\\\\x3bb", "a\\x3bb"), ("a\\x0ab", "a\nb"), ("\\q\\", "\\q\\")],
)
def test_a_command_line_is_told_as_it_was_typed(spelled: str, line: str) -> None:
    assert read([f"\x1b]633;E;{spelled};n\x07\x1b]633;C\x07"]) == [Detected(), CommandBegan(line)]


@pytest.mark.parametrize(("told", "code"), [("", None), (";0", 0), (";127", 127), (";-1", None)])
def test_how_a_command_ended(told: str, code: int | None) -> None:
    pieces = read([f"\x1b]133;C\x07\x1b]133;D{told}\x07"])
    assert pieces == [Detected(), CommandBegan(""), CommandEnded(code)]


def test_a_command_ends_once_and_before_the_next_begins() -> None:
    d, c = "\x1b]133;D;1\x07", "\x1b]133;C\x07"
    assert read([d + c + c + d + d]) == [
        Detected(), CommandBegan(""), CommandEnded(None), CommandBegan(""), CommandEnded(1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("told", "cwd"),
    [
        ("file:///a%20b", "file:///a%20b"),
        ("file://here/a b/%C3%A4", "file:///a%20b/%C3%A4"),
        ("file:///%FF", "file:///%FF"),
        ("file://elsewhere/a", None),
        ("http://here/a", None),
        ("file://here", None),
        ("file:///a%00", None),
    ],
)
def test_where_the_shell_is(told: str, cwd: str | None) -> None:
    stream = f"\x1b]7;{told}\x07"
    wanted = [Output(stream)] if cwd is None else [Output(stream), Moved(cwd)]
    assert read([stream]) == wanted
