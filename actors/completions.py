"""Completions: what fits where somebody types (RULES 22). Pure.

``/`` at the start of a message offers the session's commands, ``#chat:`` its other chats, ``@`` and
``#file:`` files. Offsets count UTF-16 units, as clients do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from actors import customizing
from actors.summaries import is_worker
from ahpd.protocol.chat import ChatState, ChatSummary
from ahpd.protocol.customizations import PromptCustomization, SkillCustomization
from ahpd.protocol.messages import (
    CompletionItem,
    MessageChatAttachment,
    MessageResourceAttachment,
    SimpleMessageAttachment,
)
from ahpd.protocol.session import SessionState
from ahpd.protocol.uris import URI
from ahpd.resources.port import Found

#: What a client may ask at as soon as it is typed; it may ask anywhere (R-22.6).
TRIGGERS = ("/", "#", "@")
#: Most chats offered at a time.
MOST_CHATS = 20
#: Most files offered at a time.
MOST_FILES = 50

_CHAT = "#chat:"
_FILE = "#file:"
_FILE_WORD = re.compile(r"(?:\A|(?<=\s))[@#]\S*\Z")
_COMMAND = re.compile(r"\s*(/\S*)\Z")
_WORD = re.compile(r"(?:\A|(?<=\s))#\S*\Z")


def head(text: str, offset: float) -> str | None:
    """The text before the offset; None when there is no such place in it (R-22.2)."""
    units = text.encode("utf-16-le", "surrogatepass")
    if offset != int(offset) or not 0 <= offset <= len(units) // 2:
        return None
    return units[: 2 * int(offset)].decode("utf-16-le", "ignore")


def complete(
    session: SessionState, chats: dict[URI, ChatState], here: URI, before: str
) -> tuple[CompletionItem, ...]:
    """What fits behind the text `before`, which is typed in the chat `here`."""
    command = _COMMAND.match(before)
    if command is not None:
        return tuple(_commands(session, command.group(1), _units(before)))
    word = _WORD.search(before)
    if word is not None:
        return tuple(_chats(session, chats, here, word.group(), _units(before)))
    return ()


def file_typed(before: str) -> str | None:
    """What a file is looked for by, behind the text `before`; None: none is."""
    match = _FILE_WORD.search(before)
    if match is None or match.group().startswith(_CHAT):
        return None
    word = match.group()
    if word.startswith(_FILE):
        return word[len(_FILE) :]
    return "" if word[0] == "#" and _FILE.startswith(word) else word[1:]


def file_items(before: str, found: Sequence[Found]) -> tuple[CompletionItem, ...]:
    """What is offered for files that fit, the best first."""
    match = _FILE_WORD.search(before)
    assert match is not None
    lead = "@" if match.group()[0] == "@" else _FILE
    return tuple(
        _item(
            f"{lead}{each.label} ",
            match.group(),
            _units(before),
            MessageResourceAttachment(label=each.label, uri=each.uri),
        )
        for each in found
    )


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _commands(session: SessionState, typed: str, end: int) -> Iterator[CompletionItem]:
    wanted = typed[1:].casefold()
    for entry in customizing.offered(session.customizations or ()):
        if entry.name.casefold().startswith(wanted):
            yield _item(f"/{entry.name} ", typed, end, _command(entry))


def _command(entry: PromptCustomization | SkillCustomization) -> SimpleMessageAttachment:
    """A command is told by its `_meta`: without, clients drop it (R-18.16)."""
    hint = (entry.meta or {}).get("ahpd.argumentHint")
    told = {
        "command": entry.name,
        "description": entry.description,
        "argumentHint": hint if isinstance(hint, str) else None,
        "isSkill": True if isinstance(entry, SkillCustomization) else None,
    }
    meta = {key: value for key, value in told.items() if value is not None}
    return SimpleMessageAttachment(label=f"/{entry.name}", meta=meta)


def _chats(
    session: SessionState, chats: dict[URI, ChatState], here: URI, typed: str, end: int
) -> Iterator[CompletionItem]:
    """A word that may yet become ``#chat:`` offers them all."""
    if typed.startswith(_CHAT):
        wanted = typed[len(_CHAT) :].casefold()
    elif _CHAT.startswith(typed):
        wanted = ""
    else:
        return
    rows = [row for row in session.chats if _is_other(row, here) and row.resource in chats]
    rows = [row for row in rows if wanted in row.title.casefold()]
    for row in sorted(rows, key=lambda row: row.modified_at, reverse=True)[:MOST_CHATS]:
        turns = chats[row.resource].turns
        attachment = MessageChatAttachment(
            label=row.title or "Untitled chat",
            resource=row.resource,
            end_turn=turns[-1].id if turns else None,
        )
        yield _item(f"{_CHAT}{row.title or 'Untitled chat'} ", typed, end, attachment)


def _is_other(row: ChatSummary, here: URI) -> bool:
    return row.resource != here and not is_worker(row) and row.interactivity != "hidden"


def _item(
    text: str,
    typed: str,
    end: int,
    attachment: SimpleMessageAttachment | MessageChatAttachment | MessageResourceAttachment,
) -> CompletionItem:
    """The typed word is what the item takes the place of (R-22.4)."""
    return CompletionItem(
        insert_text=text, range_start=end - _units(typed), range_end=end, attachment=attachment
    )
