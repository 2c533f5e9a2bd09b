"""A message to an agent as ACP's content blocks: text, what is attached, what was run. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias
from urllib.parse import quote

from msgspec import Struct

from ahpd.agents.port import Attached, Prompt, Ran, Remarks, Transcript
from ahpd.protocol.chat import MarkdownResponsePart, Turn
from ahpd.protocol.common import StringOrMarkdown
from ahpd.protocol.messages import (
    MessageEmbeddedResourceAttachment,
    MessageResourceAttachment,
    SimpleMessageAttachment,
)

Block: TypeAlias = dict[str, Any]


class Before(Struct, frozen=True):
    """What an agent is to know with the first message of a conversation that it begins anew.

    `history` was said in it before; `context` in another one, of which `selection` is the part that
    this one is about.
    """

    history: Sequence[Turn] = ()
    context: Sequence[Turn] = ()
    selection: str | None = None

    def texts(self) -> Iterator[str]:
        """For the agent to read."""
        if self.context:
            yield f"For your information, another conversation:\n{_transcript(self.context)}"
        if self.selection is not None:
            yield f"This conversation is about this part of it:\n{self.selection}"
        if self.history:
            yield f"What was said in this conversation before:\n{_transcript(self.history)}"


_NOTHING = Before()


def blocks(prompt: Prompt, takes: dict[str, Any], before: Before = _NOTHING) -> list[Block]:
    """The prompt's blocks; `takes` are the agent's `promptCapabilities`.

    `before` comes with the first. What the agent does not take is given as text where that can be,
    and is named where not.
    """
    found = [_text(prompt.message.text)]
    for each in prompt.message.attachments or ():
        match each:
            case SimpleMessageAttachment() if each.model_representation:
                found.append(_text(f"{each.label}:\n{each.model_representation}"))
            case MessageEmbeddedResourceAttachment():
                found.append(_embedded(each, takes))
            case MessageResourceAttachment():
                found.append(_link(each))
            case _:
                pass
    found += map(_text, before.texts())
    found += [_text(_attached(each)) for each in prompt.attached]
    found += [_text(_ran(each)) for each in prompt.ran]
    return found


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _link(each: MessageResourceAttachment) -> Block:
    block: Block = {"type": "resource_link", "uri": each.uri, "name": each.label or each.uri}
    if each.content_type is not None:
        block["mimeType"] = each.content_type
    if each.size_hint is not None:
        block["size"] = int(each.size_hint)
    if each.selection is not None:
        chosen = each.selection.range
        first, last = int(chosen.start.line) + 1, int(chosen.end.line) + 1
        block["description"] = f"lines {first} to {last}"
    return block


def _embedded(each: MessageEmbeddedResourceAttachment, takes: dict[str, Any]) -> Block:
    media = each.content_type.split(";")[0].strip().lower()
    for kind in ("image", "audio"):
        if media.startswith(f"{kind}/") and takes.get(kind) is True:
            return {"type": kind, "data": each.data, "mimeType": media}
    text = _decoded(each.data) if _is_text(media) else None
    embeds = takes.get("embeddedContext") is True
    if text is None and not embeds:
        return _text(f"(attached, but this agent cannot be given it: {each.label}, {media})")
    if text is None:
        inner = {"uri": _uri(each.label), "mimeType": media, "blob": each.data}
        return {"type": "resource", "resource": inner}
    if not embeds:
        return _text(f"{each.label}:\n{text}")
    return {
        "type": "resource",
        "resource": {"uri": _uri(each.label), "mimeType": media, "text": text},
    }


def _is_text(media: str) -> bool:
    kinds = ("text/", "application/json", "application/xml", "application/toml", "application/yaml")
    return media.startswith(kinds) or media.endswith(("+json", "+xml"))


def _decoded(data: str) -> str | None:
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None


def _uri(label: str) -> str:
    return "attachment:" + quote(label or "attached")


def _ran(ran: Ran) -> str:
    said = f"\nIt printed:\n{ran.output}" if ran.output else ""
    return f"Meanwhile the user ran this in a terminal: {ran.command}\n{ran.outcome}{said}"


def _attached(attached: Attached) -> str:
    match attached:
        case Transcript():
            return f"The conversation {attached.chat}:\n{_transcript(attached.turns)}"
        case Remarks():
            return "\n".join(_remarks(attached))


def _transcript(turns: Sequence[Turn]) -> str:
    lines = []
    for turn in turns:
        lines.append(f"User: {turn.message.text}")
        said = [
            part.content for part in turn.response_parts if isinstance(part, MarkdownResponsePart)
        ]
        lines.append("Agent: " + "".join(str(each) for each in said))
    return "\n".join(lines)


def _remarks(remarks: Remarks) -> Iterator[str]:
    """What people wrote beside files."""
    yield f"Annotations in {remarks.channel}:"
    for each in remarks.annotations:
        line = "" if each.range is None else f", line {int(each.range.start.line) + 1}"
        said = " / ".join(_plain(entry.text) for entry in each.entries)
        yield f"- {each.resource}{line}: {said}"


def _plain(text: StringOrMarkdown) -> str:
    return text if isinstance(text, str) else text.markdown
