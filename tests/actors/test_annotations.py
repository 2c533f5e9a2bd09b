"""Annotations: there from their session's start, counted in its summary, gone with it."""

from __future__ import annotations

from typing import Any

import pytest

from ahpd.agents.events import Done
from ahpd.agents.port import Remarks
from ahpd.protocol.actions import ACTIONS
from ahpd.protocol.annotations import AnnotationsState
from ahpd.protocol.codec import decoder
from ahpd.protocol.model import JSON
from ahpd.protocol.uris import ROOT, annotations_of
from supervisors import sys
from tests.actors.support import (
    C,
    S,
    at_work,
    least,
    readable,
    refused,
    room,
    settled,
    started,
    turn,
)
from tests.harness import PuppetAgent, RawPeer, differences, running_host
from tests.harness.replicas import state_of

A = annotations_of(S)


def entry(id: str = "e1", text: str = "Why?") -> dict[str, Any]:
    return {"id": id, "text": text}


def annotation(id: str = "a1", *entries: JSON, **more: JSON) -> dict[str, Any]:
    return {
        "id": id,
        "origin": {"session": S},
        "resource": "file:///w/a.py",
        "resolved": False,
        "entries": list(entries) or [entry()],
        **more,
    }


def put(id: str = "a1", *entries: JSON, **more: JSON) -> dict[str, Any]:
    return {"type": "annotations/set", "annotation": annotation(id, *entries, **more)}


def updated(id: str = "a1", **more: JSON) -> dict[str, Any]:
    return {"type": "annotations/updated", "annotationId": id, **more}


def removed(id: str = "a1") -> dict[str, Any]:
    return {"type": "annotations/removed", "annotationId": id}


def entry_set(id: str = "a1", of: str = "e2", text: str = "Because.") -> dict[str, Any]:
    return {"type": "annotations/entrySet", "annotationId": id, "entry": entry(of, text)}


def entry_removed(id: str = "a1", of: str = "e1") -> dict[str, Any]:
    return {"type": "annotations/entryRemoved", "annotationId": id, "entryId": of}


async def say(peer: RawPeer, action: JSON) -> str | None:
    """Dispatch; why it was refused, or None."""
    answer = await peer.answered(await peer.dispatch(A, action))
    assert answer["params"]["action"] == action
    reason: str | None = answer["params"].get("rejectionReason")
    return reason


async def test_the_channel_is_there_and_empty_from_the_moment_the_session_is() -> None:
    async with running_host() as host:
        ann = await host.peer("ann")
        await ann.hello()
        await ann.call("createSession", channel=S)
        snapshot = await ann.subscribe(A)
        assert snapshot["resource"] == A
        assert snapshot["state"] == {"annotations": []}
        assert "annotations" not in state_of(host, S)
        listed = await ann.request("listSessions")
        assert "annotations" not in listed["items"][0]


async def test_all_five_actions_reach_all_who_listen() -> None:
    async with running_host() as host:
        ann = await room(host, subscribe=(S, A))
        async with host.client("laptop", subscriptions=(ROOT, S, A)) as laptop:
            for action in (
                put(),
                put("a2", entry(), entry("e9")),
                updated(
                    range={"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 0}}
                ),
                updated(resolved=True),
                entry_set(),
                entry_set(text="No."),
                entry_removed(),
                put("a1", entry("e5"), resolved=True),
                removed("a2"),
            ):
                assert await say(ann, action) is None
            await settled()
            assert differences(laptop, host) == []
        held = state_of(host, A)["annotations"]
        assert [(each["id"], each["resolved"]) for each in held] == [("a1", True)]
        assert held[0]["entries"] == [entry("e5")]


async def test_what_would_leave_somebody_with_a_mark_nobody_has_is_refused() -> None:
    async with running_host() as host:
        ann, bob = await room(host, subscribe=(A,)), await room(host, "bob", subscribe=(A,))
        await say(ann, put())
        await settled()
        bob.inbox.clear()
        before = state_of(host, A)
        for action, word in (
            (updated("a9", resolved=True), "no annotation a9"),
            (removed("a9"), "no annotation a9"),
            (entry_set("a9"), "no annotation a9"),
            (entry_removed("a9"), "no annotation a9"),
            (entry_removed("a1", "e9"), "no entry e9"),
            (entry_removed(), "last entry"),
            (
                {"type": "annotations/set", "annotation": annotation() | {"entries": []}},
                "at least one",
            ),
            (put("a2", resolved=True), "not resolved"),
        ):
            reason = await say(ann, action)
            assert reason is not None
            assert word in reason
            assert readable(reason)
        assert state_of(host, A) == before
        await settled()
        assert not bob.inbox


async def test_the_same_again_is_answered_to_its_sender_alone() -> None:
    async with running_host() as host:
        ann, bob = await room(host, subscribe=(A,)), await room(host, "bob", subscribe=(A,))
        for action in (put(), updated(resolved=True), entry_set()):
            assert await say(ann, action) is None
        await settled()
        bob.inbox.clear()
        for action in (updated(resolved=True), entry_set()):
            assert await say(ann, action) is None
        await settled()
        assert not bob.inbox


async def test_the_counts_are_in_the_summary_and_change_with_every_action() -> None:
    async with running_host() as host:
        ann = await room(host, subscribe=(ROOT, A))
        old = await host.peer("old")
        await old.hello(versions=("0.9.0",))
        steps: list[tuple[JSON, int, int]] = [
            (put(), 1, 1),
            (put("a2", entry("x"), entry("y")), 2, 3),
            (entry_set(), 2, 4),
            (entry_removed(), 2, 3),
            (removed("a2"), 1, 1),
            (removed(), 0, 0),
        ]
        for action, annotations, entries in steps:
            assert await say(ann, action) is None
            counts = {"resource": A, "annotationCount": annotations, "entryCount": entries}
            for peer in (ann, old):
                told = await peer.expect("root/sessionSummaryChanged", session=S)
                assert told["changes"] == {"annotations": counts}
            (row,) = (await ann.request("listSessions"))["items"]
            assert row.get("annotations") == (counts if annotations else None)
        await say(ann, put())
        await say(ann, updated(resolved=True))  # which no count depends on
        await settled()
        frames = [it for it in ann.inbox if it.get("method") == "root/sessionSummaryChanged"]
        assert len(frames) == 1


async def test_a_failed_actor_loses_no_annotation_and_no_count() -> None:
    async with running_host() as host:
        ann = await room(host, subscribe=(ROOT, A))
        await say(ann, put())
        channel = host.ledger.find(A)
        assert channel is not None
        sys.kill(host.system.ref(channel.path))
        sys.kill(host.system.ref("catalogue"))
        assert await say(ann, entry_set()) is None
        await settled()
        (row,) = (await ann.request("listSessions"))["items"]
        assert row["annotations"]["entryCount"] == 2


async def test_they_end_with_their_session_and_a_new_one_starts_without() -> None:
    async with running_host() as host:
        ann = await room(host, subscribe=(ROOT, A))
        await say(ann, put())
        await ann.request("disposeSession", channel=S)
        with refused(-32001):
            await ann.subscribe(A)
        await ann.request("createSession", channel=S)
        assert (await ann.subscribe(A))["state"] == {"annotations": []}


async def test_a_session_cannot_be_named_like_the_annotations_of_another() -> None:
    async with running_host() as host:
        ann = await room(host)
        with refused(-32003, A):
            await ann.request("createSession", channel=A)
        with refused(-32602, "puppet:/x/annotations"):
            await ann.request("createSession", channel="puppet:/x/annotations")
        await ann.request("createSession", channel="puppet:/x")


async def test_every_other_action_is_refused_there() -> None:
    async with running_host(provoked=["c2h"]) as host:
        ann = await room(host, subscribe=(A,))
        for info in ACTIONS.values():
            for cls in info.classes:
                reason = await say(ann, least(cls))
                if info.channel != "annotations":
                    assert reason is not None
                    assert "belongs on a" in reason
        assert state_of(host, A) == {"annotations": []}


# ---- messages that refer to them ----------------------------------------------------------------


def attachment(**more: JSON) -> dict[str, Any]:
    return {"type": "annotations", "label": "remarks", "resource": A, **more}


@pytest.mark.parametrize(
    ("more", "wanted"), [({}, ["a1", "a2"]), ({"annotationIds": ["a2"]}, ["a2"])]
)
async def test_a_message_gives_the_agent_annotations_as_they_were(
    more: dict[str, Any], wanted: list[str]
) -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host, subscribe=(A, C))
        await say(ann, put("a1"))
        await say(ann, put("a2"))
        before = decoder(AnnotationsState)(state_of(host, A))
        action = started("t1")
        action["message"]["attachments"] = [attachment(**more)]
        await ann.dispatch(C, started("t0"))
        first = await at_work(agent, "t0")
        queued = {"type": "chat/pendingMessageSet", "kind": "queued", "id": "m1"}
        await ann.dispatch(C, {**queued, "message": action["message"]})
        await settled()
        await say(ann, updated("a2", resolved=True))
        await say(ann, removed("a1"))
        first.end(Done())
        await settled()
        assert first.prompted is not None
        held = tuple(each for each in before.annotations if each.id in wanted)
        assert first.prompted.attached == (Remarks(A, held),)
        first.end(Done())
        await settled()
        await turn(ann, agent, "t9", Done())


async def test_annotations_that_do_not_exist_cannot_be_attached() -> None:
    async with running_host() as host:
        ann = await room(host, subscribe=(A, C))
        await say(ann, put("a1"))
        for bad, word in (
            (attachment(resource=S), "no annotations"),
            (attachment(annotationIds=["a1", "a9"]), "no annotation a9"),
        ):
            action = started("t1")
            action["message"]["attachments"] = [bad]
            answer = await ann.answered(await ann.dispatch(C, action))
            assert word in answer["params"]["rejectionReason"]
