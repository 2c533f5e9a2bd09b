"""How what was kept comes back: the tables at the start, and each session when it is asked for.

A channel's state is its snapshot with the actions that came after it, reduced as every client did.
So it is, to the letter, what they hold (invariant 8); what has to be said about the time in which
nobody worked here (a turn that was lost) is said by the actors when they start.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, structs

from actors.clients import ClientRecord, Clients
from actors.keeping import baselines_of, notes_of
from actors.ledger import Channel, Entry, Ledger
from actors.recording import Recorder
from actors.replay import ReplayWindow
from ahpd import reducers
from ahpd.journal.port import ClientFacts, Kept, KeptChannel
from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat import ChatState
from ahpd.protocol.codec import DecodeError, decode, decoder
from ahpd.protocol.jsontext import ParseError, dumps, loads
from ahpd.protocol.session import SessionState, SessionSummary

_log = logging.getLogger("ahpd.journal")


class CannotRestore(Exception):
    """A channel that was kept cannot be used any more; why, in words."""


def restore_tables(kept: Kept, ledger: Ledger, clients: Clients, window: ReplayWindow) -> None:
    """The envelopes that can be replayed, and the clients that may ask for them."""
    channels: dict[int, Channel] = {}
    for each in kept.window:
        channel = channels.get(each.key)
        if channel is None:
            uri = kept.uris[each.key]
            # A stand-in: for a replay an envelope needs its channel's name alone.
            channel = Channel(uri, "root", None, "", None, 0, dumps(uri), key=each.key)
            channels[each.key] = channel
        entry = Entry(each.seq, channel, None, each.params, each.audience)
        entry.windowed, entry.page = each.windowed, each.page
        window.add(entry)
    for facts in kept.clients:
        record = _client(facts, kept.seq)
        clients.admit(record)
        if facts.left_at is None:  # or it would seem to have left anew at each start
            clients.touch(record)
    clients.forget_unreachable(window)


def _client(facts: ClientFacts, seq: int) -> ClientRecord:
    """A client, which is away, since when the host ended if it was here then."""
    try:
        baselines = baselines_of(facts.baselines)
    except (TypeError, ValueError, AttributeError):
        baselines = {}
    return ClientRecord(
        facts.client_id,
        facts.version,
        baselines,
        left_at=seq if facts.left_at is None else facts.left_at,
        absences=1,
        has_lost_place=facts.has_lost_place,
    )


def summary_of(text: bytes) -> SessionSummary | None:
    """How lists show a session; None when that cannot be read."""
    try:
        return decode(SessionSummary, loads(text))
    except (ParseError, DecodeError):
        return None


def restore_channel(
    kept: KeptChannel, path: str, recorder: Recorder, summary: SessionSummary | None = None
) -> Channel:
    """A channel as it was; not in the ledger yet. Raises `CannotRestore`."""
    if kept.damage is not None:
        raise CannotRestore(kept.damage)
    try:
        state, seq, size = state_of(kept)
        notes = notes_of(kept.notes, kept.heritage, dict(kept.attached))
    except (DecodeError, ParseError, TypeError, ValueError, KeyError, AttributeError) as error:
        raise CannotRestore(f"it is not what this host writes: {error}") from error
    channel = Channel(
        kept.uri, kept.kind, state, path, kept.owner, seq, dumps(kept.uri), key=kept.key
    )
    channel.was_stored = True
    channel.used = dict.fromkeys(kept.used)
    channel.notes = structs.replace(notes, summary=summary)
    recorder.knows(channel, size)
    return channel


def restore_terminals(kept: Kept, recorder: Recorder) -> list[Channel]:
    """The terminals, as they were left: not in the ledger yet. What cannot be read is gone."""
    found = []
    for each in kept.terminals:
        try:
            found.append(restore_channel(each, each.path, recorder))
        except CannotRestore as error:
            _log.error("%s: the terminal is gone: %s", each.uri, error)
    return found


def state_of(kept: KeptChannel, up_to: float = math.inf) -> tuple[Any, int, int]:
    """The state, the number of its last change, and the bytes of actions after the snapshot.

    Actions after the number `up_to` are left out. Raises `DecodeError`, `ParseError` and the like
    for what no host wrote.
    """
    state: Any = decode(reducers.STATES[kept.kind], kept.state)
    if isinstance(state, ChatState):
        state = state.evolve(turns=kept.turns)
    read, seq, size = decoder(StateAction), kept.seq, 0
    for number, params in kept.actions:
        if number > up_to:
            break
        size += len(params)
        before, envelope = state, loads(params)
        if not isinstance(envelope, dict):
            raise TypeError(f"the envelope {number} is no object")
        state = reducers.apply(kept.kind, state, read(envelope["action"]))
        if state is not before:
            seq = number
    return state, seq, size


class Found(Struct, frozen=True):
    """A session as it comes back: its channels, itself first, and those that could not be read."""

    channels: Sequence[Channel]
    damaged: Sequence[tuple[KeptChannel, str]]

    @property
    def session(self) -> Channel | None:
        """The session's own channel; None when that is damaged."""
        first = self.channels[0] if self.channels else None
        return first if first is not None and isinstance(first.state, SessionState) else None

    @property
    def chats(self) -> list[Channel]:
        """Its chats, those of workers too."""
        return [each for each in self.channels if each.kind == "chat"]


def restore_session(
    kept: Sequence[KeptChannel], base: str, recorder: Recorder, summary: SessionSummary | None
) -> Found:
    """A session and what belongs to it, with actors' paths under `base` from now on.

    `summary` is how lists show it. Nothing is in the ledger yet. A channel that cannot be read
    leaves the others as they are.
    """
    channels: list[Channel] = []
    damaged: list[tuple[KeptChannel, str]] = []
    for each in kept:
        try:
            shown = summary if each.kind == "session" else None
            path = _under(base, each.path)
            channels.append(restore_channel(each, path, recorder, shown))
        except CannotRestore as error:
            damaged.append((each, str(error)))
    channels.sort(key=lambda channel: channel.kind != "session")
    return Found(channels, damaged)


def _under(base: str, path: str) -> str:
    """The path under another supervisor: ``session/<name>/…`` with another name."""
    _, _, rest = path.split("/", 2)
    return f"{base}/{rest}"
