"""README.md says of every method and action whether it is served; each row is tried on a host.

A row says one of three words, and each has to be what happens (`tests.actors.served`): what is
*served* is done for an agent that can do next to nothing; what is *served when the backend can* is
done for one that can, and for that one it is not; what is *refused* is done for none.
"""

from __future__ import annotations

import pytest

from tests.actors.served import (
    chats,
    files,
    methods,
    notices,
    remarks,
    sessions,
    terminals,
    turns,
    unserved,
)
from tests.actors.served.show import IGNORED, NOT_SAID, Outcome, Scene, Scenes, show
from tests.actors.served.table import (
    README,
    REFUSED,
    SERVED,
    WHEN_IT_CAN,
    WORDS,
    Kind,
    Row,
    declared,
    rows_of,
)
from tests.actors.support import readable
from tests.harness import Refused

ROWS = list(rows_of(README.read_text("utf-8")))

ALL: dict[Kind, Scenes] = {
    "method": {**methods.SCENES, **files.METHODS, **terminals.METHODS},
    "request": files.REQUESTS,
    "notification": notices.NOTIFICATIONS,
    "action": {
        **notices.SCENES,
        **sessions.SCENES,
        **chats.SCENES,
        **turns.SCENES,
        **remarks.SCENES,
        **files.SCENES,
        **terminals.SCENES,
    },
}
#: How what has no scene is shown not to be served.
OTHERWISE = {"method": unserved.called, "notification": unserved.not_told, "action": unserved.tried}

#: What may be said though the host refuses it: nothing.
NEVER = {(row.kind, row.name) for row in ROWS if row.word == REFUSED}


def scene_of(row: Row) -> Scene:
    return ALL[row.kind].get(row.name) or OTHERWISE[row.kind](row.name)


async def played(row: Row, *, is_able: bool) -> Outcome:
    """What came of the row's scene with this agent."""
    async with show(is_able=is_able) as it:
        try:
            outcome = await scene_of(row)(it)
        except Refused as refused:
            outcome = f"{refused.code}: {refused.message}"
        said = it.heard()
        if row.kind == "request" and outcome is None:
            assert ("request", row.name) in said
        assert not said & NEVER, "the table says that these are never sent"
    return outcome


async def judge(row: Row) -> str | None:
    """What is wrong with the row's word; None when nothing is."""
    able, bare = await played(row, is_able=True), await played(row, is_able=False)
    happened = SERVED if bare is None else WHEN_IT_CAN if able is None else REFUSED
    if bare is None and able is not None:
        return f"{row.name}: not done for an agent that can: {able}"
    if happened != row.word:
        return f"{row.name}: it says {row.word!r}, but it is {happened!r} ({able}; {bare})"
    for reason in (able, bare):
        if reason is not None and reason not in (IGNORED, NOT_SAID):
            assert readable(reason), reason
    if row.word == REFUSED and row.kind == "method" and not str(able).startswith("-32601: "):
        return f"{row.name}: refused with {able}"
    return None


def name_of(row: Row) -> str:
    return f"{row.kind}-{row.name}"


def test_there_is_one_row_for_each_and_no_other() -> None:
    keys = [row.key for row in ROWS]
    assert sorted(keys) == sorted(declared())
    assert {kind: sum(key[0] == kind for key in keys) for kind in ALL} == {
        "method": 33, "request": 10, "notification": 9, "action": 106,
    }  # fmt: skip


def test_every_word_is_one_of_three_and_what_is_not_served_says_why() -> None:
    assert [row for row in ROWS if row.word not in WORDS] == []
    assert [row for row in ROWS if row.word != SERVED and len(row.note.split()) < 3] == []


def test_every_scene_is_of_a_row() -> None:
    known = {(row.kind, row.name) for row in ROWS}
    assert [
        (k, name) for k, scenes in ALL.items() for name in scenes if (k, name) not in known
    ] == []


#: Scenes with real files take real time.
TIMED = [
    pytest.param(row, marks=pytest.mark.real_time)
    if row.name in {*files.METHODS, *files.SCENES}
    else row
    for row in ROWS
]


@pytest.mark.parametrize("row", TIMED, ids=name_of)
async def test_a_row_says_what_happens(row: Row) -> None:
    assert await judge(row) is None


#: Rows with another word than theirs.
FLIPPED = [
    ("method", "createTerminal", REFUSED),
    ("method", "ping", REFUSED),
    ("method", "createChat", SERVED),
    ("notification", "otlp/exportLogs", REFUSED),
    ("notification", "root/progress", REFUSED),
    ("action", "chat/truncated", SERVED),
    ("action", "chat/delta", WHEN_IT_CAN),
    ("action", "terminal/input", REFUSED),
    ("action", "chat/canvasesChanged", WHEN_IT_CAN),
]


@pytest.mark.parametrize(("kind", "name", "word"), FLIPPED)
async def test_a_row_that_says_something_else_is_found_out(kind: str, name: str, word: str) -> None:
    text = README.read_text("utf-8")
    (row,) = [each for each in ROWS if (each.kind, each.name) == (kind, name)]
    line = f"| `{name}` | {row.word} |"
    flipped = text.replace(line, f"| `{name}` | {word} |", 1)
    (changed,) = [each for each in rows_of(flipped) if each not in ROWS]
    assert (changed.name, changed.word) == (name, word)
    wrong = await judge(changed)
    assert wrong is not None
    assert name in wrong
