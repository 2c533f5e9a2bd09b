"""Actions of a chat beside its turns: drafts, waiting messages, flags, background work, pages."""

from __future__ import annotations

from ahpd.agents import events as ev
from ahpd.protocol.chat import BackgroundShellWork
from tests.actors.served.sessions import status
from tests.actors.served.show import C, Outcome, S, Scenes, Show, dispatched, settled, told
from tests.actors.support import C2, at_work, ending, message, pending, started, withdrawn
from tests.actors.test_paging import put_turns

SHELL = BackgroundShellWork(
    id="shell:1", label="Build", started_at="2026-09-21T14:13:20.000Z", command="make"
)


async def queued(it: Show) -> Outcome:
    if (reason := await steered(it)) is not None:
        return reason
    turn = it.state()["activeTurn"]["id"]
    puppet = await at_work(it.agent, turn)
    assert await it.why(pending("p1")) is None
    assert [each["id"] for each in it.state()["queuedMessages"]] == ["p1"]
    puppet.end(ev.Done())
    await ending(it.ann, turn)
    await settled()
    assert it.state()["activeTurn"]["message"]["text"] == "message p1"
    return None


async def steered(it: Show) -> Outcome:
    """A message for the running turn, which it takes, or which ends it to start the next."""
    await it.work()
    reason = await it.why(pending("s1", "steering"))
    if reason is None and it.is_able:
        assert [each.text for each in it.puppet.steered] == ["message s1"]
    elif reason is None:
        assert it.state()["turns"][-1]["state"] == "cancelled"
        assert it.state()["activeTurn"]["message"]["text"] == "message s1"
    return reason


async def taken_back(it: Show) -> Outcome:
    await it.work()
    assert await it.why(pending("p1")) is None
    reason = await it.why(withdrawn("p1"))
    assert reason is not None or "queuedMessages" not in it.state()
    return reason


async def put_in_order(it: Show) -> Outcome:
    await it.work()
    for each in ("p1", "p2"):
        assert await it.why(pending(each)) is None
    reason = await it.why({"type": "chat/queuedMessagesReordered", "order": ["p2", "p1"]})
    if reason is None:
        assert [each["id"] for each in it.state()["queuedMessages"]] == ["p2", "p1"]
    return reason


async def archived(it: Show) -> Outcome:
    """A chat of several; the default one is archived with its session, which is said instead."""
    action = {"type": "chat/isArchivedChanged", "isArchived": True}
    reason = await it.why(action)
    assert reason is not None
    assert status(it, 64)
    if it.is_able:
        await it.ann.request("createChat", channel=S, chat=C2)
        for peer in (it.ann, it.bob):
            await peer.subscribe(C2)
        reason = await it.why(action, C2)
        assert status(it, 64, C2)
    return reason


async def works_beside(it: Show) -> None:
    await it.work()
    await it.can(ev.BackgroundSet(SHELL))
    if it.is_able:
        assert it.state()["backgroundWork"] == [SHELL.wire()]
    await it.can_beside(ev.BackgroundGone("shell:1"))
    assert "backgroundWork" not in it.state()


async def reads_back(it: Show) -> None:
    put_turns(it.host, 60)
    await it.ann.subscribe(C, view={"turns": 5})
    await it.ann.request("fetchTurns", channel=C)


async def becomes_movable(it: Show) -> None:
    await it.ann.request("createChat", channel=S, chat=C2)
    await it.ann.subscribe(C2)
    await it.ann.dispatch(C2, started("u1"))
    (await at_work(it.agent, "u1", C2)).end(ev.Done())


SCENES: Scenes = {
    "chat/draftChanged": dispatched(
        {"type": "chat/draftChanged", "draft": message("Half a")},
        effect=lambda it: it.state()["draft"]["text"] == "Half a",
    ),
    "chat/isReadChanged": dispatched(
        {"type": "chat/isReadChanged", "isRead": True}, effect=lambda it: status(it, 32, C)
    ),
    "chat/isArchivedChanged": archived,
    "chat/pendingMessageSet": queued,
    "chat/pendingMessageRemoved": taken_back,
    "chat/queuedMessagesReordered": put_in_order,
    **told(works_beside, "chat/backgroundWorkSet", "chat/backgroundWorkRemoved"),
    **told(reads_back, "chat/turnsLoaded"),
    **told(becomes_movable, "chat/movableChanged"),
}
