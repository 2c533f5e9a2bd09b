"""What tool calls change in files: shown while they ask, counted in rows and summaries."""

from __future__ import annotations

from collections.abc import Sequence

from ahpd.agents.events import Done, ToolAsks, ToolFinished, ToolReady, ToolStarted
from ahpd.protocol.common import ContentRef, FileEdit, FileEditDiffStats, FileEditSide
from ahpd.protocol.tools import ToolResultFileEditContent
from supervisors import sys
from tests.actors.support import C, S, actions, at_work, settled, started
from tests.actors.talk import Stage, stage, truncated


def side(name: str) -> FileEditSide:
    uri = f"file:///srv/{name}"
    return FileEditSide(uri=uri, content=ContentRef(uri=uri))


def edit(name: str, added: int, removed: int, *, was: str | None = None) -> FileEdit:
    return FileEdit(
        before=side(was or name),
        after=side(name),
        diff=FileEditDiffStats(added=added, removed=removed),
    )


def edited(call_id: str, edits: Sequence[FileEdit], *, success: bool = True) -> ToolFinished:
    content = [
        ToolResultFileEditContent(before=each.before, after=each.after, diff=each.diff)
        for each in edits
    ]
    return ToolFinished(call_id, success=success, message="edited", content=content)


async def another(it: Stage, turn_id: str, *edits: FileEdit) -> None:
    """A turn that changes these, and ends."""
    await it.ann.dispatch(C, started(turn_id))
    puppet = await at_work(it.agent, turn_id)
    puppet.say(
        ToolStarted(turn_id, "edit", "Edit"),
        ToolReady(turn_id, message="Edit"),
        edited(turn_id, edits),
    )
    await settled()
    puppet.end(Done())
    await settled()


async def works(it: Stage, call_id: str, *edits: FileEdit) -> None:
    await it.says(
        ToolStarted(call_id, "edit", "Edit"),
        ToolReady(call_id, message="Edit"),
        edited(call_id, edits),
    )


def row(it: Stage) -> object:
    return it.state(S)["chats"][0].get("changes")


def counts(additions: int, deletions: int, files: int) -> dict[str, int]:
    return {"additions": additions, "deletions": deletions, "files": files}


async def test_a_call_that_asks_shows_what_it_would_change() -> None:
    async with stage() as it:
        await it.says(
            ToolStarted("x", "edit", "Edit"),
            ToolAsks("x", message="Edit", edits=[edit("a", 3, 1)]),
        )
        (shown,) = it.call()["edits"]["items"]
        assert shown["after"]["uri"] == "file:///srv/a"
        assert shown["diff"] == {"added": 3, "removed": 1}


async def test_finished_turns_are_counted_in_the_row_and_in_the_summary() -> None:
    async with stage() as it:
        await works(it, "x", edit("a", 3, 1), edit("b", 1, 0))
        assert row(it) is None, "while the turn runs"
        it.puppet.end(Done())
        await settled()
        assert row(it) == counts(4, 1, 2)
        await another(it, "t2", edit("c", 0, 2, was="a"))
        assert row(it) == counts(4, 3, 3)
        listed = (await it.ann.request("listSessions"))["items"]
        assert listed[0]["changes"] == counts(4, 3, 3)


async def test_turns_that_are_taken_away_take_their_counts_along() -> None:
    async with stage() as it:
        it.puppet.end(Done())
        await settled()
        for turn_id, name in (("t2", "a"), ("t3", "b")):
            await another(it, turn_id, edit(name, 1, 1))
        assert row(it) == counts(2, 2, 2)
        assert await it.why(truncated("t2")) is None
        assert row(it) == counts(1, 1, 1)
        assert await it.why(truncated()) is None
        assert row(it) == counts(0, 0, 0), "a partial cannot say that there is none any more"
        told = [each for each in actions(it.ann, S) if each["type"] == "session/chatUpdated"]
        assert [each["changes"].get("changes") for each in told][-1] == counts(0, 0, 0)


async def test_a_session_that_starts_again_counts_the_same() -> None:
    async with stage() as it:
        await works(it, "x", edit("a", 3, 1))
        it.puppet.end(Done())
        await settled()
        channel = it.host.ledger.find(S)
        assert channel is not None
        assert sys.kill(it.host.system.ref(channel.path))
        await settled()
        assert row(it) == counts(3, 1, 1)


async def test_a_chat_whose_tools_changed_no_file_has_no_counts() -> None:
    async with stage() as it:
        await works(it, "x")
        it.puppet.end(Done())
        await settled()
        assert row(it) is None
        assert C in it.host.ledger.channels
