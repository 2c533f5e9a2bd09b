"""What the host needs of a journal: the values that go in and come out, and `Journal` itself.

The journal knows channels by their *keys*, numbers that the host gives out once: a channel that is
opened again under the URI of one that ended is another one, and has another key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, field

from ahpd.protocol.chat import Turns
from ahpd.protocol.model import JSON
from ahpd.protocol.uris import URI, ChannelKind


class JournalFailed(Exception):
    """The medium does not take what it is given, or does not give what it holds; a sentence.

    Nothing of what was asked for was done. It may work later: when there is space again, or when
    whoever locks the file lets go.
    """


class JournalDamaged(JournalFailed):
    """What the file holds is not what was written. Trying again does not help."""


class Envelope(Struct, frozen=True):
    """An envelope as it is kept; the fields are those of `actors.ledger.Entry`."""

    seq: int
    key: int
    params: bytes
    audience: str | None = None
    windowed: bytes | None = None
    page: tuple[int, int] | None = None


class ChannelFacts(Struct, frozen=True):
    """What is new about a channel, its state apart. What is None is as it was kept before.

    `used` holds the ids that were consumed from the place `used_from` on; `attached`, what was
    attached to messages by their ids, None for what is to be forgotten.
    """

    key: int
    uri: URI
    kind: ChannelKind
    owner: URI | None
    path: str
    #: The channel has something under way, so it must be loaded when the host starts.
    is_busy: bool
    notes: bytes | None = None
    heritage: bytes | None = None
    summary: bytes | None = None
    used: Sequence[str] = ()
    used_from: int = 0
    attached: Mapping[str, bytes | None] = field(default_factory=dict)


class StateAt(Struct, frozen=True):
    """A channel's typed state, with the effects of all its envelopes up to `seq` and no others."""

    key: int
    kind: ChannelKind
    seq: int
    state: Any


class ClientFacts(Struct, frozen=True):
    """A client. `left_at` is None while it is connected; `baselines` is for the host to read."""

    client_id: str
    version: str
    left_at: int | None
    has_lost_place: bool
    baselines: JSON


class Batch(Struct, frozen=True):
    """What is kept in one go, or not at all. `seq` is the host's number after it.

    Envelopes up to `evicted` are not wanted for replay any more; None: nothing new about that.
    """

    seq: int
    envelopes: Sequence[Envelope] = ()
    channels: Sequence[ChannelFacts] = ()
    states: Sequence[StateAt] = ()
    closed: Sequence[int] = ()
    clients: Sequence[ClientFacts] = ()
    forgotten: Sequence[str] = ()
    evicted: int | None = None


class KeptChannel(Struct, frozen=True):
    """A channel as it comes back: a state in plain JSON and the actions that came after it.

    `state` lacks a chat's turns, which are `turns`. `actions` are pairs of a number and the text of
    an envelope's params.
    """

    key: int
    uri: URI
    kind: ChannelKind
    owner: URI | None
    path: str
    seq: int
    state: JSON
    turns: Turns
    actions: Sequence[tuple[int, bytes]]
    notes: JSON
    heritage: JSON
    used: Sequence[str]
    attached: Mapping[str, JSON]
    #: Why it cannot be read, in words; the other fields may then hold nothing.
    damage: str | None = None


class KeptSession(Struct, frozen=True):
    """A session in the catalogue: what lists show, and the URIs of all its channels."""

    uri: URI
    summary: bytes
    channels: Sequence[URI]
    is_busy: bool


class Kept(Struct, frozen=True):
    """What a host starts from. `window` holds the envelopes that can be replayed, in order."""

    seq: int = 0
    next_key: int = 1
    evicted: int = 0
    window: Sequence[Envelope] = ()
    #: The URI of each channel that envelopes of the window are about.
    uris: Mapping[int, URI] = field(default_factory=dict)
    clients: Sequence[ClientFacts] = ()
    sessions: Sequence[KeptSession] = ()
    root: KeptChannel | None = None
    terminals: Sequence[KeptChannel] = ()


class Journal(Protocol):
    """Durable envelopes and all that belongs to them. One writer."""

    async def write(self, batch: Batch) -> Mapping[int, int]:
        """Keep `batch`; when it returns no `kill -9` can take it back.

        Gives the sizes (bytes) of the states in it, by key. What it has already it skips, so that a
        batch may be written again when nobody knows whether it was. Cancelled means: perhaps
        written. Raises `JournalFailed`; then nothing of it was.
        """
        ...

    async def sync(self) -> None:
        """Have the medium hold everything that was written, against a loss of power too.

        Raises `JournalFailed`. Cancelled: perhaps done.
        """
        ...

    async def load(self, session: URI) -> Sequence[KeptChannel]:
        """A session and all that belongs to it. Empty: there is none. Raises `JournalFailed`."""
        ...

    async def set_aside(self, key: int, why: str) -> None:
        """Take a channel that cannot be used out of service, and keep its bytes.

        Raises `JournalFailed`.
        """
        ...
