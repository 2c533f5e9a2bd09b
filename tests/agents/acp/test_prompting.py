"""A message as an agent is given it."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from ahpd.agents.acp.prompting import blocks
from ahpd.agents.port import Prompt, Remarks, Transcript
from ahpd.protocol.annotations import Annotation
from ahpd.protocol.chat import Turn
from ahpd.protocol.codec import decoder
from ahpd.protocol.messages import Message, MessageOrigin
from ahpd.protocol.uris import URI

ALL = {"image": True, "audio": True, "embeddedContext": True}


def given(*attachments: Any, takes: dict[str, Any] | None = None) -> list[Any]:
    """The blocks after the text."""
    wire = {"text": "Look", "origin": {"kind": "user"}, "attachments": list(attachments)}
    prompt = Prompt("t1", decoder(Message)(wire))
    first, *rest = blocks(prompt, ALL if takes is None else takes)
    assert first == {"type": "text", "text": "Look"}
    return rest


def embedded(text: bytes, media: str) -> dict[str, Any]:
    data = base64.b64encode(text).decode()
    return {"type": "embeddedResource", "label": "a b", "data": data, "contentType": media}


def test_a_message_without_anything() -> None:
    prompt = Prompt("t1", Message(text="Hi", origin=MessageOrigin(kind="user")))
    assert blocks(prompt, {}) == [{"type": "text", "text": "Hi"}]


@pytest.mark.parametrize(
    ("attachment", "takes", "block"),
    [
        (
            {"type": "resource", "label": "a.py", "uri": "file:///a.py", "sizeHint": 3},
            {},
            {"type": "resource_link", "uri": "file:///a.py", "name": "a.py", "size": 3},
        ),
        (
            embedded(b"\x89PNG", "image/png"),
            ALL,
            {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
        ),
        (
            embedded(b"\x89PNG", "image/png"),
            {"embeddedContext": True},
            {
                "type": "resource",
                "resource": {
                    "uri": "attachment:a%20b",
                    "mimeType": "image/png",
                    "blob": "iVBORw==",
                },
            },
        ),
        (
            embedded(b"\x89PNG", "image/png"),
            {},
            {
                "type": "text",
                "text": "(attached, but this agent cannot be given it: a b, image/png)",
            },
        ),
        (
            embedded(b"hi", "text/plain; charset=utf-8"),
            ALL,
            {
                "type": "resource",
                "resource": {"uri": "attachment:a%20b", "mimeType": "text/plain", "text": "hi"},
            },
        ),
        (embedded(b"hi", "text/plain"), {}, {"type": "text", "text": "a b:\nhi"}),
        (
            {"type": "simple", "label": "Branch", "modelRepresentation": "main"},
            {},
            {"type": "text", "text": "Branch:\nmain"},
        ),
    ],
)
def test_an_attachment_is_given_as_the_agent_takes_it(
    attachment: Any, takes: dict[str, Any], block: Any
) -> None:
    assert given(attachment, takes=takes) == [block]


def test_what_is_for_people_alone_is_not_given() -> None:
    assert given({"type": "simple", "label": "Branch"}, {"type": "hologram", "label": "x"}) == []


def test_chats_and_annotations_are_given_as_text() -> None:
    turn = {
        "id": "t0",
        "message": {"text": "Why?", "origin": {"kind": "user"}},
        "startedAt": "2031-01-01T00:00:00.000Z",
        "responseParts": [{"kind": "markdown", "id": "p", "content": "Because."}],
        "state": "complete",
        "duration": 1,
    }
    remark = {
        "id": "a",
        "origin": {"session": "a:/s", "chat": "ahp-chat:/c", "turnId": "t0"},
        "resource": "file:///a.py",
        "resolved": False,
        "range": {"start": {"line": 4, "character": 0}, "end": {"line": 4, "character": 1}},
        "entries": [{"id": "e", "text": "Wrong"}, {"id": "f", "text": {"markdown": "*Yes*"}}],
    }
    attached = (
        Transcript(URI("ahp-chat:/c"), (decoder(Turn)(turn),)),
        Remarks(URI("ahp-annotations:/c"), (decoder(Annotation)(remark),)),
    )
    message = Message(text="Hi", origin=MessageOrigin(kind="user"))
    _, chat, remarks = blocks(Prompt("t1", message, attached=attached), {})
    assert chat["text"] == "The conversation ahp-chat:/c:\nUser: Why?\nAgent: Because."
    assert remarks["text"] == (
        "Annotations in ahp-annotations:/c:\n- file:///a.py, line 5: Wrong / *Yes*"
    )
