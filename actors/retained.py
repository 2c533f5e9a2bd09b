"""Terminals that are gone and that an old tool result names: they can still be read (R-4.33).

One that is disposed of, or makes room, while a tool result names it is in no list any more and has
no process; its channel stays, ended, with the end of its output, as long as the session of that
tool result. There are as many as there may be terminals; beyond that, and for one that this host
never had, it is made of what the tool result itself holds when somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterator

from actors.host import Host
from actors.ledger import Channel
from ahpd.protocol.chat import ChatState, ToolCallResponsePart
from ahpd.protocol.terminal import (
    TerminalContent,
    TerminalExitedLifecycleState,
    TerminalSessionClaim,
    TerminalState,
    TerminalUnclassifiedPart,
)
from ahpd.protocol.tools import ToolResultTerminalContent
from ahpd.protocol.uris import URI

#: Characters of its output that are kept of one that is gone.
KEPT = 64 << 10


def retained(host: Host) -> list[Channel]:
    """Those that are kept, the oldest first."""
    every = host.ledger.channels.values()
    return [each for each in every if each.kind == "terminal" and each.notes.retained]


def claim_of(chat: Channel) -> TerminalSessionClaim | None:
    """Whose a terminal is that a tool result of this chat names."""
    if chat.owner is None:
        return None
    return TerminalSessionClaim(session=chat.owner, chat=chat.uri)


def namer(host: Host, uri: URI) -> tuple[Channel, ToolResultTerminalContent] | None:
    """The loaded chat of which a tool result names this terminal, and what that says last."""
    for channel in host.ledger.channels.values():
        if isinstance(channel.state, ChatState):
            found = None
            for content in _contents(channel.state):
                if content.resource == uri:
                    found = content
            if found is not None:
                return channel, found
    return None


def _contents(chat: ChatState) -> Iterator[ToolResultTerminalContent]:
    """What tool calls of a chat say of terminals, in their order."""
    turns = [turn.response_parts for turn in chat.turns]
    if chat.active_turn is not None:
        turns.append(chat.active_turn.response_parts)
    for parts in turns:
        for part in parts:
            if isinstance(part, ToolCallResponsePart):
                for content in getattr(part.tool_call, "content", None) or ():
                    if isinstance(content, ToolResultTerminalContent):
                        yield content


def rebuilt(host: Host, uri: URI) -> TerminalState | None:
    """A terminal as a tool result has it; None when none names it."""
    found = namer(host, uri)
    claim = None if found is None else claim_of(found[0])
    if found is None or claim is None:
        return None
    content = found[1]
    shown = content.result.preview if content.result is not None else None
    return TerminalState(
        title=content.title,
        content=TerminalContent([TerminalUnclassifiedPart(value=_lines(shown))] if shown else []),
        lifecycle=TerminalExitedLifecycleState(
            exit_code=content.result.exit_code if content.result is not None else None
        ),
        claim=claim,
        is_pty=content.is_pty,
    )


def _lines(text: str) -> str:
    """Lines that end as a terminal's do."""
    return text.replace("\r\n", "\n").replace("\n", "\r\n")
