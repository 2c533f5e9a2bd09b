"""Whether the journal's file says what it should: states reduced again, and what a host has.

Blocks; changes nothing, and works beside a daemon.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from actors.restoring import state_of
from ahpd.journal import inspecting
from ahpd.journal.inspecting import Stats, check, compact, export, looking, stats
from ahpd.journal.port import JournalDamaged, JournalFailed, KeptChannel
from ahpd.protocol.chat import ChatState, Turns
from ahpd.protocol.codec import DecodeError, decode
from ahpd.protocol.jsontext import ParseError, loads
from ahpd.protocol.model import JSON
from ahpd.protocol.uris import URI
from ahpd.reducers import STATES

_MALFORMED = (DecodeError, ParseError, TypeError, ValueError, KeyError, AttributeError)


@attrs.frozen
class Finding:
    """Two values about a channel that have to be the same. `problem`: why there is none."""

    channel: URI
    what: str
    expected: JSON = None
    got: JSON = None
    problem: str | None = None


def findings(path: Path) -> Iterator[Finding]:
    """What is to be compared of each channel. Raises as `ahpd.journal.inspecting.looking`."""
    with inspecting.looking(path) as connection:
        for kept in inspecting.channels(connection):
            if kept.damage is not None:
                yield Finding(kept.uri, "the channel", problem=kept.damage)
                continue
            try:
                yield from _of(kept)
            except _MALFORMED as error:
                yield Finding(kept.uri, "the channel", problem=f"no host wrote this: {error}")


def _of(kept: KeptChannel) -> Iterator[Finding]:
    """A snapshot is as it would be written again; so is what follows; envelopes are in place."""
    state: Any = decode(STATES[kept.kind], kept.state)
    yield Finding(kept.uri, "the snapshot", state.wire(), kept.state)
    for number, params in kept.actions:
        envelope = loads(params)
        place = (
            {key: envelope.get(key) for key in ("channel", "serverSeq")}
            if isinstance(envelope, dict)
            else envelope
        )
        wanted: JSON = {"channel": kept.uri, "serverSeq": number}
        yield Finding(kept.uri, f"the envelope {number}", wanted, place)
    last, _, _ = state_of(kept)
    yield Finding(kept.uri, "the state", last.wire(), decode(STATES[kept.kind], last.wire()).wire())


@attrs.frozen
class Reduced:
    """A channel's state at a number. `state` is None where the file is past it already."""

    state: JSON


def reduced(path: Path, uri: URI, up_to: int) -> Reduced | None:
    """The state of a channel, from its snapshot and the actions up to a number.

    None when there is no such channel. Raises as `looking`, and `ValueError` for what no host
    wrote.
    """
    with inspecting.looking(path) as connection:
        kept = inspecting.channel(connection, uri)
        if kept is None:
            return None
        if kept.damage is not None:
            raise ValueError(kept.damage)
        if kept.seq > up_to:
            return Reduced(None)
        try:
            state, _, _ = state_of(kept, up_to)
            if isinstance(state, ChatState):
                state = state.evolve(turns=Turns(state.turns))
            return Reduced(state.wire())
        except _MALFORMED as error:
            raise ValueError(f"no host wrote this: {error}") from error


__all__ = [
    "Finding", "JournalDamaged", "JournalFailed", "Reduced", "Stats", "check", "compact", "export",
    "findings", "looking", "reduced", "stats",
]  # fmt: skip
