"""The one order of the host: numbers, channel states, and the queue of what goes out.

Everything that a client may see passes through one first-in first-out queue: envelopes, answers
that depend on state, notifications, and the signals that start side effects. `Ledger.append` gives
an envelope its number and changes the channel's state in the same step, without an await between,
so state and numbers cannot be taken apart by a crash or a cancel. The sequencer actor then makes
the head of the queue durable and lets it out, in order.

The ledger outlives the actors. One that crashes and starts again finds its channel's state here,
which is what its clients hold or are about to be told (invariant 8). Nothing here is async, and
nothing reads a clock.

Invariants kept here (numbers as in the design):

1. `Ledger.seq` only grows, by one for each envelope.
2. A snapshot is a state and the `seq` of the same moment, put into the queue at that moment: all
   of the channel's earlier envelopes are before it, all later ones behind it.
4. Items leave the queue only when the journal has every envelope up to them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct, field, structs

from actors.room import Room
from ahpd.agents.port import Attached
from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat import Turn
from ahpd.protocol.frame import Frame
from ahpd.protocol.jsontext import dumps
from ahpd.protocol.model import JSON, Object
from ahpd.protocol.session import SessionSummary
from ahpd.protocol.uris import URI, ChannelKind

_HEAD = b'{"jsonrpc":"2.0","method":"action","params":'


class Heritage(Struct, frozen=True):
    """What a chat's agent is to know of the chat that it was made from; it never changes.

    A fork's `history` is shown in it, as its first turns. A side chat's `context` is not, nor is
    the `selection` it is about (R-9.7, R-9.8). `attached`: what was attached to those turns.
    """

    history: Sequence[Turn] = ()
    context: Sequence[Turn] = ()
    selection: str | None = None
    attached: Mapping[str, tuple[Attached, ...]] = field(default_factory=dict)


class Notes(Struct, frozen=True):
    """What the host alone knows of a channel, beside its state. `Channel.note` replaces it.

    Here, and not with the channel's actor, because no state holds it and the actor may fail.
    """

    #: Of a chat: the turn that started last, and when by this host's clock (ms).
    began: tuple[str, float] = ("", 0.0)
    #: Of a chat: the client that the agent works for, and whose each waiting message is.
    starter: str | None = None
    senders: Mapping[str, str] = field(default_factory=dict)
    #: Of a session: the settings that each chat has for itself. Of a chat: its values of those.
    chat_scoped: frozenset[str] = frozenset()
    settings: Object = field(default_factory=dict)
    #: Of a session: what each source has to say in its `_meta`.
    metas: Mapping[str, Object] = field(default_factory=dict)
    #: Of a chat: its agent has still to forget every turn after this one (None in it: all of them).
    cut: tuple[str | None] | None = None
    #: Of a chat: what its agent itself knows the conversation by.
    conversation: str | None = None
    #: Of a chat: what it was made from.
    heritage: Heritage = Heritage()
    #: Of a chat: what was attached to messages of it, by the id of the turn or the waiting message.
    attached: Mapping[str, tuple[Attached, ...]] = field(default_factory=dict)
    #: Of a session: how many chats it has ever had, so that no two have the same path.
    chats_made: int = 0
    #: Of a terminal: it was disposed of, and is kept because a tool result names it.
    retained: bool = False
    #: Of a session: how lists show it.
    summary: SessionSummary | None = None


class Channel(Struct, eq=False):
    """A channel that carries state, as long as it exists.

    `state` is replaced, never changed. `used` holds the ids that clients chose and that were
    consumed, in their order: of turns, pending messages, requests. They are remembered beyond the
    state they were used in, so that a resend is not a second wish (invariant 6).

    What is no state is changed through `note`, `consume` and `move` alone, which tell the ledger
    that there is something to keep.
    """

    uri: URI
    kind: ChannelKind
    state: Any
    #: Path of the actor that answers for it.
    path: str
    #: The session that a chat, or annotations, belong to; None for other kinds.
    owner: URI | None
    #: The number of the last envelope that changed `state`; at first the number it was opened at.
    seq: int
    #: JSON text of `uri`, which every envelope repeats.
    uri_text: bytes
    used: dict[str, None] = field(default_factory=dict)
    notes: Notes = Notes()
    #: Whoever summarises this channel has been asked to look at it and has not yet. It keeps a busy
    #: channel from filling that one's mailbox, however long it is busy or held.
    stirred: bool = False
    #: Actions that are out and that its actor has still to act on; it knows of the first.
    echoes: list[StateAction] = field(default_factory=list)
    closed: bool = False
    #: It comes from the journal, and its actor has not started since.
    was_stored: bool = False
    #: Names it for ever, as its URI does not: another channel may have that one later.
    key: int = 0
    on_note: Callable[[Channel], None] = lambda _: None

    def note(self, **changes: Any) -> None:
        """The host knows something new of it; names and values as in `Notes`."""
        self.notes = structs.replace(self.notes, **changes)
        self.on_note(self)

    def consume(self, *ids: str) -> None:
        """These ids were used, and are not to be used again."""
        self.used.update(dict.fromkeys(ids))
        self.on_note(self)

    def move(self, owner: URI, path: str) -> None:
        """It belongs to another session now, and another actor answers for it."""
        self.owner, self.path = owner, path
        self.on_note(self)


class Origin(Struct, frozen=True):
    """Whose dispatch an envelope answers: R-5.5, copied from the connection."""

    client_id: str
    client_seq: float


_UNMADE = Frame(b"")


class Entry(Struct, eq=False):
    """One envelope. `params` is its JSON text, made once.

    `audience`: a private answer, for that client's connection alone; None: for all subscribers.
    `asker`: the connection that a private answer goes to while it lives.
    `windowed`: the text for subscribers that hold only the newest turns, where it differs.
    `page`: the places in the chat, from and before, of older turns that it brings.
    """

    seq: int
    channel: Channel
    action: StateAction | None
    params: bytes
    audience: str | None = None
    asker: object | None = None
    windowed: bytes | None = None
    page: tuple[int, int] | None = None
    #: Made from `params`; never given.
    frame: Frame = _UNMADE

    def __post_init__(self) -> None:
        self.frame = Frame(b"".join((_HEAD, self.params, b"}")))

    def windowed_frame(self) -> Frame:
        """The frame for a subscriber that holds only the newest turns."""
        return self.frame if self.windowed is None else Frame(_HEAD + self.windowed + b"}")

    def __len__(self) -> int:
        """Bytes that keeping it for replay costs."""
        return len(self.params)


#: Something that happens at its place in the order: an answer goes out, an effect starts.
Release: TypeAlias = Callable[[], None]


class Ledger:
    """See the module's docstring. `on_work` is called when the queue stops being empty."""

    def __init__(self, seq: int = 0, next_key: int = 1) -> None:
        self.seq = seq
        self.channels: dict[URI, Channel] = {}
        self.queue: deque[Entry | Release] = deque()
        #: What the journal has yet to be told besides the queue, by key: channels of which
        #: something new is known, and those that are gone.
        self.noted: dict[int, Channel] = {}
        self.gone: dict[int, Channel] = {}
        self.on_work: Callable[[], None] = _nothing
        #: Why nothing can be kept at the moment, in words; None: all is well.
        self.failing: str | None = None
        #: Nothing ever will be: the host comes to its end.
        self.is_ruined = False
        self.room = Room()
        self._next_key = next_key

    # ---- channels ---------------------------------------------------------------------------

    def open(
        self, uri: URI, kind: ChannelKind, state: Any, path: str, owner: URI | None = None
    ) -> Channel:
        """A new channel, at the current number."""
        assert uri not in self.channels, f"{uri} is already open"
        channel = Channel(uri, kind, state, path, owner, self.seq, dumps(uri), key=self._next_key)
        self._next_key += 1
        self.admit(channel)
        self._noted(channel)
        return channel

    def admit(self, channel: Channel) -> None:
        """Take in a channel that was stored."""
        assert channel.uri not in self.channels, f"{channel.uri} is already open"
        self.channels[channel.uri] = channel
        channel.on_note = self._noted

    def _noted(self, channel: Channel) -> None:
        self.noted[channel.key] = channel
        self.stir()

    def stir(self) -> None:
        """There is something to keep that is not in the queue."""
        if not self.queue:
            self.on_work()

    def find(self, uri: URI) -> Channel | None:
        """The open channel of that exact URI."""
        return self.channels.get(uri)

    def state_of(self, uri: URI, kind: ChannelKind) -> Any:
        """The state of the open channel of that exact URI; None when it is not of that kind."""
        channel = self.channels.get(uri)
        return channel.state if channel is not None and channel.kind == kind else None

    def channels_of(self, owner: URI) -> list[Channel]:
        """The open channels that belong to a session."""
        return [each for each in self.channels.values() if each.owner == owner]

    def close(self, channel: Channel) -> None:
        """The channel is gone: nothing can be appended to it any more (hazard B41)."""
        channel.closed = True
        if self.channels.get(channel.uri) is channel:
            del self.channels[channel.uri]
            self.gone[channel.key] = channel
            self.noted.pop(channel.key, None)
            self.stir()

    # ---- the order --------------------------------------------------------------------------

    def append(
        self,
        channel: Channel,
        action: StateAction,
        state: Any,
        *,
        origin: Origin | None = None,
        raw: JSON = None,
        windowed: StateAction | None = None,
        page: tuple[int, int] | None = None,
    ) -> bool:
        """Number `action`, make `state` the channel's, and queue the envelope for all subscribers.

        `raw` is a client's action as it came, echoed unchanged (R-5.29). `windowed` is what
        subscribers are told instead that hold only the newest turns, when it brings a `page` of
        older ones that these can take. False when the channel is closed: what an agent still says
        to it then is lost on purpose.
        """
        if channel.closed:
            return False
        other = None if windowed is None else dumps(windowed.wire())
        entry = self._entry(channel, action, raw, origin, None)
        entry.page = page
        if other is not None:
            entry.windowed = _params(channel, other, entry.seq, origin, None)
        channel.state = state
        channel.seq = entry.seq
        self._put(entry)
        return True

    def append_run(self, channel: Channel, actions: Sequence[StateAction], state: Any) -> bool:
        """Number each of `actions`, which together lead to `state`, in one step.

        Nothing can see a state between. False when the channel is closed. Raises `ParseError` for
        what no JSON text can hold; then nothing was appended.
        """
        if channel.closed:
            return False
        texts = [dumps(action.wire()) for action in actions]
        for action, text in zip(actions, texts, strict=True):
            self.seq += 1
            self._put(
                Entry(self.seq, channel, action, _params(channel, text, self.seq, None, None))
            )
        channel.state = state
        channel.seq = self.seq
        return True

    def answer(
        self,
        channel: Channel,
        raw: JSON,
        *,
        origin: Origin,
        asker: object,
        reason: str | None,
    ) -> None:
        """Answer a dispatch that changed nothing: `reason` says why it was refused, None: no-op.

        It gets a number of its own and goes to its sender alone (invariant 5).
        """
        if channel.closed:
            return
        entry = self._entry(channel, None, raw, origin, reason)
        entry.audience = origin.client_id
        entry.asker = asker
        self._put(entry)

    def post(self, release: Release) -> None:
        """Have `release` called when everything queued so far is durable and out."""
        self._put(release)

    def _entry(
        self,
        channel: Channel,
        action: StateAction | None,
        raw: JSON,
        origin: Origin | None,
        reason: str | None,
    ) -> Entry:
        # The text first: what cannot be written as JSON must not leave a hole in the numbers.
        text = dumps(raw if action is None or raw is not None else action.wire())
        params = _params(channel, text, self.seq + 1, origin, reason)
        self.seq += 1
        return Entry(self.seq, channel, action, params)

    def _put(self, item: Entry | Release) -> None:
        queue = self.queue
        queue.append(item)
        if isinstance(item, Entry):
            self.room.take(len(item))
        if len(queue) == 1:
            self.on_work()


def _params(
    channel: Channel, action: bytes, seq: int, origin: Origin | None, reason: str | None
) -> bytes:
    """The JSON text of an envelope (R-5.4); what has no value is left out (R-1.37)."""
    parts = [b'{"channel":', channel.uri_text, b',"action":', action, b',"serverSeq":%d' % seq]
    if origin is not None:
        sender = {"clientId": origin.client_id, "clientSeq": origin.client_seq}
        parts += [b',"origin":', dumps(sender)]
    if reason is not None:
        parts += [b',"rejectionReason":', dumps(reason)]
    parts.append(b"}")
    return b"".join(parts)


def _nothing() -> None:
    """Nobody to wake yet: the sequencer looks at the queue when it starts."""
