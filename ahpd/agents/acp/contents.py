"""ACP's content blocks and diffs as the results of tool calls. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias
from urllib.parse import quote

from ahpd.agents.acp.tolerant import dict_of, number_of, text_of
from ahpd.protocol.common import ContentRef, FileEdit, FileEditDiffStats, FileEditSide
from ahpd.protocol.tools import (
    ToolResultContent,
    ToolResultEmbeddedResourceContent,
    ToolResultFileEditContent,
    ToolResultResourceContent,
    ToolResultTextContent,
)
from ahpd.protocol.uris import URI

#: Characters of a file's text that an edit carries itself; a longer one is named by its file.
INLINE = 64 * 1024
#: Where agents put what a command said, when they do not show it, the best first.
_OUTPUTS = ("output", "formatted_output", "aggregated_output", "text", "stdout")
#: Lines on both sides together that are compared to count changes: it costs their product.
COMPARED = 4000


#: A terminal of the agent's as content; None: there is none of that id.
ShowTerminal: TypeAlias = Callable[[str], ToolResultContent | None]


def results(
    content: Sequence[Any], cwd: str, show: ShowTerminal = lambda _: None
) -> Iterator[ToolResultContent]:
    """What a call's `content` shows; kinds that nobody knows are left out.

    Paths are taken from `cwd`, and terminals from `show`.
    """
    for each in content:
        match text_of(each, "type"):
            case "content":
                yield from _block(dict_of(each, "content"))
            case "diff":
                edit = _edit(each, cwd)
                if edit is not None:
                    yield ToolResultFileEditContent(
                        before=edit.before, after=edit.after, diff=edit.diff
                    )
            case "terminal":
                shown = show(text_of(each, "terminalId") or "")
                if shown is not None:
                    yield shown
            case _:
                pass


def edits(content: Sequence[Any], cwd: str) -> Sequence[FileEdit]:
    """The diffs in a call's `content`, as what it would do to files."""
    diffs = [each for each in content if text_of(each, "type") == "diff"]
    found = [_edit(each, cwd) for each in diffs]
    return tuple(each for each in found if each is not None)


def texts(blocks: Sequence[Any]) -> str:
    """The text in content blocks."""
    return "".join(block_text(each) or "" for each in blocks)


def block_text(block: Any) -> str | None:
    """A content block of a message as text, with links as Markdown; None when it has none."""
    if isinstance(block, dict) and block.get("type") == "text":  # nearly all there is
        text = block.get("text")
        return text if isinstance(text, str) else None
    match text_of(block, "type"):
        case "resource_link":
            uri = text_of(block, "uri")
            name = text_of(block, "title") or text_of(block, "name") or uri
            return None if uri is None else f"[{name}](<{uri}>)"
        case "resource":
            return text_of(block, "resource", "text")
        case "image" | "audio" as kind:
            return f"[{kind}]"
        case _:
            return None


def _block(block: dict[str, Any]) -> Iterator[ToolResultContent]:
    data, media = text_of(block, "data"), text_of(block, "mimeType")
    match text_of(block, "type"):
        case "image" | "audio" if data is not None:
            yield ToolResultEmbeddedResourceContent(
                data=data, content_type=media or "application/octet-stream"
            )
        case "resource_link" if uri := text_of(block, "uri"):
            yield ToolResultResourceContent(
                uri=uri, content_type=media, size_hint=number_of(block, "size")
            )
        case "resource" if (blob := text_of(block, "resource", "blob")) is not None:
            media = text_of(block, "resource", "mimeType")
            yield ToolResultEmbeddedResourceContent(
                data=blob, content_type=media or "application/octet-stream"
            )
        case _:
            text = block_text(block)
            if text is not None:
                yield ToolResultTextContent(text=text)


def _edit(diff: dict[str, Any], cwd: str) -> FileEdit | None:
    path, new = text_of(diff, "path"), text_of(diff, "newText")
    if not path or new is None:
        return None
    old = text_of(diff, "oldText")
    uri = file_uri(path, cwd)
    return FileEdit(
        before=None if old is None else _side(uri, old),
        after=_side(uri, new),
        diff=_stats(old or "", new),
    )


def _side(uri: URI, text: str) -> FileEditSide:
    """A file with this text in it. The text is in the reference, since no file may hold it yet."""
    content: URI = uri
    if len(text) <= INLINE:
        content = "data:text/plain;charset=utf-8," + quote(text)
    return FileEditSide(
        uri=uri, content=ContentRef(uri=content, size_hint=len(text.encode(errors="replace")))
    )


def _stats(old: str, new: str) -> FileEditDiffStats | None:
    before, after = old.splitlines(), new.splitlines()
    if not before or not after:
        return FileEditDiffStats(added=len(after), removed=len(before))
    if len(before) + len(after) > COMPARED:
        return None
    added = removed = 0
    matcher = difflib.SequenceMatcher(None, before, after)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            removed += i2 - i1
            added += j2 - j1
    return FileEditDiffStats(added=added, removed=removed)


def file_uri(path: str, cwd: str) -> URI:
    """The ``file:`` URI of a path, taken from `cwd` when it is relative."""
    whole = path if path.startswith("/") else f"{cwd.rstrip('/')}/{path}"
    return "file://" + quote(whole)


def fallback_output(call: dict[str, Any]) -> Iterator[ToolResultContent]:
    """What a call that has no `content` gave, read off its raw output, when that is text."""
    raw = call.get("rawOutput")
    for text in (raw, *(dict_of(call, "rawOutput").get(key) for key in _OUTPUTS)):
        if isinstance(text, str) and text:
            yield ToolResultTextContent(text=text)
            return


def first_text(content: Sequence[Any]) -> str | None:
    """The first text that a call's `content` shows, as the reason for its failure."""
    blocks = (dict_of(each, "content") for each in content if text_of(each, "type") == "content")
    return next((text for each in blocks if (text := block_text(each))), None)
