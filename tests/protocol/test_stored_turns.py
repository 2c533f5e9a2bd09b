"""Turns that are still text: looked for in it, decoded only when they are asked for."""

from __future__ import annotations

from typing import Any

import pytest

from ahpd.protocol import chat
from ahpd.protocol.chat import MarkdownResponsePart, ResponseParts, Turn, Turns
from ahpd.protocol.jsontext import dumps
from ahpd.protocol.messages import Message, MessageOrigin

WORD = b"needle"


def turn(number: int, text: str) -> Turn:
    return Turn(
        id=f"t{number}",
        message=Message(text="go", origin=MessageOrigin(kind="user")),
        response_parts=ResponseParts([MarkdownResponsePart(id="p", content=text)]),
        state="complete",
    )


def row(turns: list[Turn]) -> tuple[int, bytes, bytes]:
    ids = dumps([each.id for each in turns])
    return len(turns), ids, b"\n".join(dumps(each.wire()) for each in turns)


def stored(*blocks: str) -> Turns:
    """A block of turns for each text: ``.`` is a turn without the word, ``x`` one with it."""
    rows, number = [], 0
    for block in blocks:
        made = []
        for kind in block:
            made.append(turn(number, "a needle" if kind == "x" else "hay"))
            number += 1
        rows.append(row(made))
    return Turns.stored(rows)


def ids(turns: Any) -> list[str]:
    return [each.id for each in turns]


@pytest.mark.parametrize(
    ("blocks", "first", "found"),
    [
        ((), 0, []),
        (("...", "..x", "."), 0, ["t5"]),
        (("x..", "...", "x.x"), 0, ["t0", "t6", "t8"]),
        (("x..", "...", "x.x"), 1, ["t6", "t8"]),
        (("x..", "...", "x.x"), 7, ["t8"]),
        (("...", "..."), 2, []),
    ],
)
def test_turns_that_mention_something_are_found(
    blocks: tuple[str, ...], first: int, found: list[str]
) -> None:
    assert ids(stored(*blocks).mentioning(WORD, first)) == found


def test_turns_that_were_decoded_or_came_since_are_all_looked_at() -> None:
    turns = stored("...", "x.")
    assert turns[1].id == "t1"
    turns = turns.append(turn(5, "hay"))
    assert ids(turns.mentioning(WORD)) == ["t3", "t5"], "a block is passed over as it was stored"
    cut = Turns.stored([row([turn(0, "hay"), turn(1, "hay"), turn(2, "hay")])])[:1]
    again = Turns([*cut, turn(7, "hay"), turn(8, "hay")])
    assert ids(again.mentioning(WORD)) == ["t0", "t7", "t8"]


def test_others_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[object] = []
    decode = vars(chat)["decode"]

    def counted(cls: Any, value: Any) -> Any:
        decoded.append(value)
        return decode(cls, value)

    monkeypatch.setattr(chat, "decode", counted)
    assert ids(stored("." * 500, "." * 30 + "x").mentioning(WORD)) == ["t530"]
    assert len(decoded) == 1
