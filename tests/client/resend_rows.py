"""Operations without an answer, what the user saw, what there is now, and what becomes of them."""

from __future__ import annotations

import attrs

from ahpd.client.resend import Drop, Evidence, Replace, Resend, Took
from ahpd.protocol.model import JSON
from tests.client.support import CHAT_STATE, ROOT_STATE, SESSION_STATE, TERMINAL_STATE


def said(text: str) -> JSON:
    return {"text": text, "origin": {"kind": "user"}}


def running(turn_id: str, *parts: JSON) -> JSON:
    return {"id": turn_id, "startedAt": "x", "message": said("x"), "responseParts": list(parts)}


def ended(turn_id: str, state: str = "complete") -> JSON:
    return {"id": turn_id, "message": said("x"), "responseParts": [], "state": state}


def queue(*messages: tuple[str, str]) -> JSON:
    return [{"id": id, "message": said(text)} for id, text in messages]


def chat(**changes: JSON) -> JSON:
    return CHAT_STATE | changes


def session(**changes: JSON) -> JSON:
    return SESSION_STATE | changes


def terminal(**changes: JSON) -> JSON:
    return TERMINAL_STATE | changes


def tool_call(status: str = "running", client: str = "phone") -> JSON:
    call: JSON = {
        "toolCallId": "c1",
        "toolName": "look",
        "displayName": "Look",
        "invocationMessage": "Looks",
        "confirmed": "not-needed",
        "contributor": {"kind": "client", "clientId": client},
        "status": status,
    }
    if status == "completed":
        call |= {"success": False, "pastTenseMessage": "Gave up"}
    return {"kind": "toolCall", "toolCall": call}


def asked(answers: JSON = None, response: str | None = None) -> JSON:
    question = {"id": "q", "kind": "text", "message": "Why?"}
    request = {"id": "r", "questions": [question], **({"answers": answers} if answers else {})}
    return {
        "kind": "inputRequest",
        "request": request,
        **({"response": response} if response else {}),
    }


def answered(text: str) -> JSON:
    return {"state": "draft", "value": {"kind": "text", "value": text}}


START: JSON = {
    "type": "chat/turnStarted",
    "turnId": "mine",
    "startedAt": "x",
    "message": said("hello"),
}
CANCEL: JSON = {"type": "chat/turnCancelled", "turnId": "t1", "duration": 1}
RESUME: JSON = {"type": "chat/turnResume", "turnId": "t1"}
QUEUE: JSON = {
    "type": "chat/pendingMessageSet",
    "kind": "queued",
    "id": "m1",
    "message": said("later"),
}
STEER: JSON = QUEUE | {"kind": "steering"}
RESULT: JSON = {
    "type": "chat/toolCallComplete",
    "turnId": "t1",
    "toolCallId": "c1",
    "result": {"success": True, "pastTenseMessage": "Looked"},
}
OUTPUT: JSON = {
    "type": "chat/toolCallContentChanged",
    "turnId": "t1",
    "toolCallId": "c1",
    "content": [],
}
ANSWER: JSON = {
    "type": "chat/inputAnswerChanged",
    "requestId": "r",
    "questionId": "q",
    "answer": answered("because"),
}
ORDER: JSON = {"type": "chat/queuedMessagesReordered", "order": ["b", "a"]}
TITLE: JSON = {"type": "session/titleChanged", "title": "Mine"}
READ: JSON = {"type": "session/isReadChanged", "isRead": True}
CONFIG: JSON = {"type": "session/configChanged", "config": {"mode": "fast"}}
REPLACE: JSON = CONFIG | {"replace": True}
ARCHIVE: JSON = {"type": "chat/isArchivedChanged", "isArchived": True}
DRAFT: JSON = {"type": "chat/draftChanged", "draft": said("mine")}
JOIN: JSON = {
    "type": "session/activeClientSet",
    "activeClient": {"clientId": "phone", "tools": []},
}
TOGGLE: JSON = {
    "type": "session/customizationToggled",
    "id": "p",
    "enablement": [{"kind": "session", "enabled": False}],
}
SWAP: JSON = {
    "type": "session/workingDirectoryReplaced",
    "directory": "file:///a",
    "replacement": "file:///b",
}
RESIZE: JSON = {"type": "terminal/resized", "cols": 100, "rows": 40}
REVIEW: JSON = {"type": "changeset/filesReviewChanged", "files": ["f"], "reviewed": True}
NOTE: JSON = {
    "id": "n",
    "origin": {"session": "ahp-session:/s"},
    "resource": "file:///x",
    "resolved": False,
    "entries": [{"id": "e", "text": "hm"}],
}
SET_NOTE: JSON = {"type": "annotations/set", "annotation": NOTE}
RESOLVE: JSON = {"type": "annotations/updated", "annotationId": "n", "resolved": True}
SET_ENTRY: JSON = {
    "type": "annotations/entrySet",
    "annotationId": "n",
    "entry": {"id": "e", "text": "mine"},
}
DROP_NOTE: JSON = {"type": "annotations/removed", "annotationId": "n"}


def configured(**values: str) -> JSON:
    return session(config={"schema": {"type": "object", "properties": {}}, "values": values})


def plugins(*enablement: JSON, title: str = "P") -> JSON:
    entry: JSON = {"type": "plugin", "id": "p", "uri": "file:///p", "name": title}
    if enablement:
        entry["enablement"] = list(enablement)
    return session(customizations=[entry])


def nested() -> JSON:
    """A plugin with a prompt that has children of its own kind of entry inside."""
    prompt = {"type": "prompt", "id": "p", "uri": "file:///p/q", "name": "Q"}
    outer = {"type": "plugin", "id": "o", "uri": "file:///o", "name": "O"}
    return session(customizations=[outer, outer | {"id": "o2", "children": [prompt]}])


def files(*, reviewed: bool) -> JSON:
    return {
        "status": "ready",
        "files": [{"id": "f", "edit": {}, "reviewed": reviewed}],
    }


@attrs.frozen
class Row:
    """The state the user saw, the state now, what was done, and what becomes of it."""

    what: str
    basis: JSON
    now: JSON
    action: JSON
    evidence: Evidence
    verdict: type
    reason: str = ""


ROWS = [
    Row("a turn", chat(), chat(), START, "absent", Resend),
    Row("a turn", chat(), chat(), START, "unknown", Resend),
    Row("a turn that runs", chat(), chat(activeTurn=running("mine")), START, "unknown", Took),
    Row("a turn that ended", chat(), chat(turns=[ended("mine")]), START, "unknown", Took),
    Row("behind another", chat(), chat(activeTurn=running("t1")), START, "unsent", Replace),
    Row("behind another", chat(), chat(activeTurn=running("t1")), START, "absent", Drop, "queued"),
    Row(
        "a window that reaches back far enough",
        chat(turns=[ended("t0")]),
        chat(turns=[ended("t0"), ended("t1")], turnsNextCursor="older"),
        START,
        "unknown",
        Resend,
    ),
    Row(
        "a window that does not",
        chat(turns=[ended("t0")]),
        chat(turns=[ended("t1")], turnsNextCursor="older"),
        START,
        "unknown",
        Drop,
        "loaded",
    ),
    Row("its turn runs", chat(), chat(activeTurn=running("t1")), CANCEL, "unknown", Resend),
    Row("another runs", chat(), chat(activeTurn=running("t2")), CANCEL, "absent", Drop, "not run"),
    Row("none runs", chat(), chat(turns=[ended("t1")]), CANCEL, "absent", Drop, "not run"),
    Row("still in error", chat(), chat(turns=[ended("t1", "error")]), RESUME, "unknown", Drop),
    Row("gone on", chat(), chat(turns=[ended("t1"), ended("t2")]), RESUME, "absent", Drop),
    Row("not queued", chat(), chat(), QUEUE, "absent", Resend),
    Row("not queued", chat(), chat(), QUEUE, "unsent", Resend),
    Row("not queued", chat(), chat(), QUEUE, "unknown", Drop, "have run"),
    Row("queued", chat(), chat(queuedMessages=queue(("m1", "later"))), QUEUE, "unknown", Took),
    Row(
        "an edit that did not arrive",
        chat(queuedMessages=queue(("m1", "soon"))),
        chat(queuedMessages=queue(("m1", "soon"))),
        QUEUE,
        "unknown",
        Resend,
    ),
    Row(
        "an edit of what is gone",
        chat(queuedMessages=queue(("m1", "soon"))),
        chat(),
        QUEUE,
        "unsent",
        Drop,
        "left the queue",
    ),
    Row("none steers", chat(), chat(), STEER, "absent", Resend),
    Row("none steers", chat(), chat(), STEER, "unknown", Drop, "steered"),
    Row(
        "it steers", chat(), chat(steeringMessage=queue(("m1", "later"))[0]), STEER, "absent", Took
    ),
    Row("edited", chat(), chat(steeringMessage=queue(("m1", "x"))[0]), STEER, "absent", Resend),
    Row("another", chat(), chat(steeringMessage=queue(("m2", "x"))[0]), STEER, "unsent", Drop),
    Row(
        "queue unchanged",
        chat(queuedMessages=queue(("a", "1"), ("b", "2"))),
        chat(queuedMessages=queue(("a", "1"), ("b", "2"))),
        ORDER,
        "absent",
        Resend,
    ),
    Row(
        "queue changed",
        chat(queuedMessages=queue(("a", "1"), ("b", "2"))),
        chat(queuedMessages=queue(("a", "1"), ("b", "2"), ("c", "3"))),
        ORDER,
        "absent",
        Drop,
        "somebody else",
    ),
    Row(
        "runs here", chat(), chat(activeTurn=running("t1", tool_call())), RESULT, "unknown", Resend
    ),
    Row(
        "given up by the host",
        chat(),
        chat(activeTurn=running("t1", tool_call("completed"))),
        RESULT,
        "absent",
        Drop,
        "not waiting",
    ),
    Row(
        "another client's",
        chat(),
        chat(activeTurn=running("t1", tool_call(client="desktop"))),
        RESULT,
        "absent",
        Drop,
        "not waiting",
    ),
    Row("no turn", chat(), chat(), RESULT, "absent", Drop, "not waiting"),
    Row("runs here", chat(), chat(activeTurn=running("t1", tool_call())), OUTPUT, "absent", Resend),
    Row(
        "open, same draft",
        chat(activeTurn=running("t1", asked())),
        chat(activeTurn=running("t1", asked())),
        ANSWER,
        "unknown",
        Resend,
    ),
    Row(
        "open, another draft",
        chat(activeTurn=running("t1", asked())),
        chat(activeTurn=running("t1", asked({"q": answered("why not")}))),
        ANSWER,
        "absent",
        Drop,
        "somebody else",
    ),
    Row(
        "answered",
        chat(activeTurn=running("t1", asked())),
        chat(activeTurn=running("t1", asked(response="accept"))),
        ANSWER,
        "absent",
        Drop,
        "no longer change",
    ),
    Row("same title", session(), session(), TITLE, "unknown", Resend),
    Row("another title", session(), session(title="Theirs"), TITLE, "absent", Drop, "somebody"),
    Row("that title", session(), session(title="Mine"), TITLE, "unknown", Drop, "no longer"),
    Row("unread, busy now", session(), session(status=8), READ, "unknown", Resend),
    Row("read by now", session(), session(status=33), READ, "absent", Drop, "no longer"),
    Row(
        "same mode",
        configured(mode="slow"),
        configured(mode="slow", x="y"),
        CONFIG,
        "absent",
        Resend,
    ),
    Row("another mode", configured(mode="slow"), configured(mode="best"), CONFIG, "absent", Drop),
    Row("all values", configured(a="1"), configured(a="1"), REPLACE, "absent", Resend),
    Row("all values", configured(a="1"), configured(a="1", b="2"), REPLACE, "absent", Drop),
    Row("an entry inside", nested(), nested(), TOGGLE, "absent", Resend),
    Row("no such entry", nested(), session(), TOGGLE, "absent", Drop, "no longer"),
    Row("not archived", chat(), chat(status=40), ARCHIVE, "absent", Resend),
    Row("same draft", chat(draft=said("a")), chat(draft=said("a")), DRAFT, "absent", Resend),
    Row("other draft", chat(draft=said("a")), chat(draft=said("b")), DRAFT, "absent", Drop),
    Row("no config", session(), session(), CONFIG, "absent", Drop, "no longer"),
    Row("not in it any more", session(), session(), JOIN, "unknown", Resend),
    Row(
        "removed after grace",
        session(activeClients=[{"clientId": "phone", "tools": [], "displayName": "x"}]),
        session(),
        JOIN,
        "unknown",
        Resend,
    ),
    Row(
        "still in it",
        session(),
        session(activeClients=[JOIN["activeClient"]]),
        JOIN,
        "absent",
        Drop,
    ),
    Row("renamed only", plugins(), plugins(title="Q"), TOGGLE, "absent", Resend),
    Row(
        "decided by another",
        plugins(),
        plugins({"kind": "global", "enabled": False}),
        TOGGLE,
        "absent",
        Drop,
        "somebody",
    ),
    Row(
        "same directories",
        session(workingDirectories=["file:///a"]),
        session(workingDirectories=["file:///a"]),
        SWAP,
        "absent",
        Resend,
    ),
    Row(
        "other directories",
        session(workingDirectories=["file:///a"]),
        session(workingDirectories=["file:///c", "file:///a"]),
        SWAP,
        "absent",
        Drop,
        "somebody",
    ),
    Row(
        "same size",
        terminal(cols=80, rows=24),
        terminal(cols=80, rows=24),
        RESIZE,
        "absent",
        Resend,
    ),
    Row("other size", terminal(cols=80, rows=24), terminal(cols=9, rows=9), RESIZE, "absent", Drop),
    Row("not reviewed", files(reviewed=False), files(reviewed=False), REVIEW, "unknown", Resend),
    Row("reviewed", files(reviewed=False), files(reviewed=True), REVIEW, "unknown", Drop),
    Row("a new note", {"annotations": []}, {"annotations": []}, SET_NOTE, "unknown", Resend),
    Row("resolve", {"annotations": [NOTE]}, {"annotations": [NOTE]}, RESOLVE, "unknown", Resend),
    Row(
        "resolve what another changed",
        {"annotations": [NOTE]},
        {"annotations": [NOTE | {"resource": "file:///y"}]},
        RESOLVE,
        "absent",
        Drop,
        "somebody",
    ),
    Row(
        "resolve a gone one", {"annotations": [NOTE]}, {"annotations": []}, RESOLVE, "absent", Drop
    ),
    Row("an entry", {"annotations": [NOTE]}, {"annotations": [NOTE]}, SET_ENTRY, "absent", Resend),
    Row("remove", {"annotations": [NOTE]}, {"annotations": [NOTE]}, DROP_NOTE, "absent", Resend),
    Row("removed", {"annotations": [NOTE]}, {"annotations": []}, DROP_NOTE, "absent", Drop),
    Row(
        "keys",
        terminal(),
        terminal(),
        {"type": "terminal/input", "data": "y"},
        "unsent",
        Drop,
        "keys",
    ),
    Row(
        "a decision",
        chat(),
        chat(),
        {
            "type": "chat/toolCallConfirmed",
            "turnId": "t1",
            "toolCallId": "c1",
            "approved": True,
            "confirmed": "user-action",
        },
        "unsent",
        Drop,
        "decide again",
    ),
    Row("host config", ROOT_STATE, ROOT_STATE, {"type": "x/unknown"}, "unsent", Drop, "not known"),
]
