"""Actions of a session's annotations."""

from __future__ import annotations

from typing import Any

from ahpd.protocol.uris import annotations_of
from tests.actors.served.show import Outcome, S, Scene, Scenes, Show

A = annotations_of(S)
ENTRY = {"id": "e1", "text": "Why?"}
SET = {
    "type": "annotations/set",
    "annotation": {
        "id": "a1",
        "origin": {"session": S},
        "resource": "file:///w/a.py",
        "resolved": False,
        "entries": [ENTRY],
    },
}
MORE = {"type": "annotations/entrySet", "annotationId": "a1", "entry": {"id": "e2", "text": "So"}}


def annotated(left: Any, *steps: Any) -> Scene:
    """All the steps are taken; then there are these entries, or no annotation at all."""

    async def scene(it: Show) -> Outcome:
        for step in steps:
            reason = await it.why(step, A)
            if reason is not None:
                return reason
        held = it.state(A)["annotations"]
        assert [[each["id"] for each in one["entries"]] for one in held] == left
        return None

    return scene


async def resolved(it: Show) -> Outcome:
    reason = await annotated([["e1"]], SET)(it)
    if reason is None:
        action = {"type": "annotations/updated", "annotationId": "a1", "resolved": True}
        reason = await it.why(action, A)
        assert reason is not None or it.state(A)["annotations"][0]["resolved"] is True
    return reason


SCENES: Scenes = {
    "annotations/set": annotated([["e1"]], SET),
    "annotations/entrySet": annotated([["e1", "e2"]], SET, MORE),
    "annotations/entryRemoved": annotated(
        [["e2"]],
        SET,
        MORE,
        {"type": "annotations/entryRemoved", "annotationId": "a1", "entryId": "e1"},
    ),
    "annotations/removed": annotated(
        [], SET, {"type": "annotations/removed", "annotationId": "a1"}
    ),
    "annotations/updated": resolved,
}
