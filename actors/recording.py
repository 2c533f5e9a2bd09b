"""`Recorder`: what the journal has yet to be told, put together in one step.

A batch is everything that has happened since the last one: all envelopes of the queue, what is
known of the channels besides, and now and then a channel's state. Taken in one step, its parts fit
each other: a state in it is that after the last of its envelopes, and an id is among those that
were used if and only if the envelope that used it is in this batch or an earlier one.

A channel's state is written when it is opened, when a turn or its process has ended, and when the
actions since the last time are as long as the state was (a terminal's: many times as long): so that
what has to be reduced again at a start stays bounded, and states cost no more than actions do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, structs

from actors.clients import ClientRecord, Clients
from actors.keeping import attached_json, baselines_json, heritage_json, notes_json
from actors.ledger import Channel, Entry, Ledger, Notes
from actors.replay import ReplayWindow
from actors.sentences import is_sentence
from ahpd.journal.port import Batch, ChannelFacts, ClientFacts, Envelope, StateAt
from ahpd.protocol.chat import ChatState
from ahpd.protocol.jsontext import dumps
from ahpd.protocol.session import SessionState
from ahpd.protocol.terminal import TerminalState

#: Actions shorter than this (bytes) are no reason to write a state.
LEAST = 64 << 10
#: How many times as long as the state was the actions have to be, by the channel's kind: those of a
#: terminal are output that is mostly forgotten by then.
_TIMES = {"terminal": 16}
#: Envelopes that leave the replay window before the journal is told, and bytes of them: to delete
#: much at once holds up whoever waits for the next write.
SWEEP, SWEEP_BYTES = 256, 4 << 20

#: Kinds of channels that end with their client's connection and are not kept.
_FLEETING = frozenset({"resourceWatch"})


class _Known(Struct, eq=False):
    """What the journal knows of a channel."""

    notes: Notes | None = None
    place: tuple[object, ...] = ()
    used: int = 0
    #: Turns of a chat that have ended; of a terminal, whether its process has.
    ended: int = 0
    #: Bytes of the last state written, and of the actions since.
    size: int = 0
    since: int = 0


class Taken(Struct, eq=False):
    """A batch on its way, with what will be known when it is written."""

    batch: Batch
    known: dict[int, _Known]
    noted: dict[int, Channel]
    gone: dict[int, Channel]
    clients: list[ClientRecord]
    forgotten: list[str]
    #: Of the replay window.
    evicted_size: int


class Recorder:
    """See the module. It outlives the sequencer, like the ledger."""

    def __init__(self, ledger: Ledger, clients: Clients, window: ReplayWindow) -> None:
        self._ledger = ledger
        self._clients = clients
        self._window = window
        self._known: dict[int, _Known] = {}
        #: Channels about which something was put into a batch of which nobody knows whether it was
        #: written, because the sequencer failed meanwhile; and the ids of attachments in it.
        self._unsure: dict[int, set[str]] = {}
        self._swept, self._swept_size = window.evicted_up_to, window.evicted_size

    @property
    def has_news(self) -> bool:
        """Whether there is something to keep besides what is in the queue."""
        ledger, clients = self._ledger, self._clients
        return bool(ledger.noted or ledger.gone or clients.changed or clients.forgotten)

    def knows(self, channel: Channel, since: int) -> None:
        """This channel was stored as it is now, with `since` bytes of actions after its state."""
        self._known[channel.key] = _Known(
            channel.notes,
            _place(channel),
            len(channel.used),
            _ended(channel),
            size=LEAST,
            since=since,
        )

    def size_of(self, channel: Channel) -> int | None:
        """Bytes of its state as it was last written, and of its actions since; None: never was."""
        known = self._known.get(channel.key)
        return None if known is None else known.size + known.since

    # ---- before the write ----------------------------------------------------------------------

    def take(self, items: Iterable[object]) -> Taken:
        """Everything up to now, `items` being the whole queue.

        Until `kept` is called with it nobody knows whether it was written: what the next one says
        of these channels is whole, so that it is right either way.
        """
        ledger = self._ledger
        entries = [each for each in items if isinstance(each, Entry)]
        moved: dict[int, Channel] = {
            each.key: each for each in ledger.noted.values() if is_kept(each)
        }
        since: dict[int, int] = {}
        envelopes = []
        for entry in entries:
            channel = entry.channel
            if not is_kept(channel):
                continue
            envelopes.append(_envelope(entry))
            if entry.audience is None:
                moved.setdefault(channel.key, channel)
                since[channel.key] = since.get(channel.key, 0) + len(entry.params)
        known: dict[int, _Known] = {}
        channels: list[ChannelFacts] = []
        states: list[StateAt] = []
        for key, channel in moved.items():
            before = self._known.get(key) or _Known()
            after = known[key] = structs.replace(before, since=before.since + since.get(key, 0))
            facts = _facts(channel, after, self._unsure.get(key))
            if facts is not None:
                channels.append(facts)
                self._unsure.setdefault(key, set()).update(facts.attached)
            if _wants_state(channel, before, after):
                after.ended = _ended(channel)
                after.since = 0
                states.append(StateAt(key, channel.kind, ledger.seq, channel.state))
        evicted = self._window.evicted_up_to
        clients = list(self._clients.changed.values())
        forgotten = list(self._clients.forgotten)
        batch = Batch(
            ledger.seq,
            envelopes,
            channels,
            states,
            # Those too that the journal is not known to have: a batch may have been kept whose
            # end nobody saw.
            list(ledger.gone),
            [_client(each) for each in clients],
            forgotten,
            evicted if self._is_much(evicted) else None,
        )
        size = self._window.evicted_size
        return Taken(batch, known, dict(ledger.noted), dict(ledger.gone), clients, forgotten, size)

    def _is_much(self, evicted: int) -> bool:
        size = self._window.evicted_size - self._swept_size
        return evicted - self._swept >= SWEEP or size >= SWEEP_BYTES

    # ---- after it ------------------------------------------------------------------------------

    def kept(self, taken: Taken, sizes: Mapping[int, int]) -> None:
        """The journal has it, but for what has happened since. Sync; never fails."""
        ledger, clients = self._ledger, self._clients
        for key, size in sizes.items():
            taken.known[key].size = size
        self._known.update(taken.known)
        for told in taken.batch.channels:
            self._unsure.pop(told.key, None)
        for key, channel in taken.noted.items():
            # What was noted meanwhile is another value, and still to be told.
            known = self._known.get(key)
            if known is None or _is_told(channel, known):
                ledger.noted.pop(key, None)
        for key in taken.gone:
            ledger.gone.pop(key, None)
            self._known.pop(key, None)
            self._unsure.pop(key, None)
        for record, facts in zip(taken.clients, taken.batch.clients, strict=True):
            if _client(record) == facts:
                clients.changed.pop(record.client_id, None)
        for client_id in taken.forgotten:
            clients.forgotten.discard(client_id)
        if taken.batch.evicted is not None:
            self._swept = taken.batch.evicted
            self._swept_size = taken.evicted_size


def is_kept(channel: Channel) -> bool:
    """Whether the journal is told of it."""
    return not channel.closed and channel.kind not in _FLEETING


def _is_told(channel: Channel, known: _Known) -> bool:
    return not is_kept(channel) or (
        known.notes is channel.notes
        and known.used == len(channel.used)
        and known.place == _place(channel)
    )


def _envelope(entry: Entry) -> Envelope:
    return Envelope(
        entry.seq, entry.channel.key, entry.params, entry.audience, entry.windowed, entry.page
    )


def _place(channel: Channel) -> tuple[object, ...]:
    return (channel.owner, channel.path, is_busy(channel))


def is_busy(channel: Channel) -> bool:
    """Whether something is under way, or waits, that a host has to see to when it starts."""
    state = channel.state
    match state:
        case ChatState():
            waits = state.active_turn, state.queued_messages, state.steering_message
            return any(waits) or channel.notes.cut is not None or is_sentence(state.activity)
        case SessionState():
            begins = state.lifecycle == "creating"
            return bool(state.active_clients) or begins or is_sentence(state.activity)
        case _:
            return False


def _ended(channel: Channel) -> int:
    """How much of it has ended: turns of a chat, the process of a terminal."""
    match channel.state:
        case ChatState() as chat:
            return len(chat.turns)
        case TerminalState() as terminal:
            return int(terminal.lifecycle.status == "exited")  # type: ignore[union-attr]
        case _:
            return 0


def _wants_state(channel: Channel, before: _Known, after: _Known) -> bool:
    if before.notes is None:
        return True  # it is new
    times = _TIMES.get(channel.kind, 1)
    return _ended(channel) != before.ended or after.since >= times * max(LEAST, before.size)


def _facts(channel: Channel, known: _Known, unsure: set[str] | None) -> ChannelFacts | None:
    """What is new of it; None: nothing. `known` becomes what the journal will know.

    `unsure`: more may have been written than is known, attachments with these ids among it.
    """
    notes, before, place = channel.notes, known.notes, _place(channel)
    is_new = before is None or unsure is not None
    if not is_new and before is notes and known.used == len(channel.used) and known.place == place:
        return None
    base = before or Notes()
    own = notes_json(notes)
    gone = (base.attached.keys() | (unsure or set())) - notes.attached.keys()
    facts = ChannelFacts(
        key=channel.key,
        uri=channel.uri,
        kind=channel.kind,
        owner=channel.owner,
        path=channel.path,
        is_busy=is_busy(channel),
        notes=dumps(own) if is_new or own != notes_json(base) else None,
        heritage=dumps(heritage_json(notes.heritage))
        if unsure is not None or notes.heritage is not base.heritage
        else None,
        summary=(
            dumps(notes.summary.wire())
            if notes.summary is not None and (is_new or notes.summary is not base.summary)
            else None
        ),
        used=_last(channel.used, len(channel.used) - known.used),
        used_from=known.used,
        attached={
            **{
                key: dumps(attached_json(each))
                for key, each in notes.attached.items()
                if is_new or base.attached.get(key) is not each
            },
            **dict.fromkeys(sorted(gone)),
        },
    )
    known.notes, known.used, known.place = notes, len(channel.used), place
    return facts


def _last(ids: dict[str, None], count: int) -> list[str]:
    """The `count` newest, in order, without a look at the others."""
    found: list[str] = []
    for id in reversed(ids):
        if len(found) == count:
            break
        found.append(id)
    found.reverse()
    return found


def _client(record: ClientRecord) -> ClientFacts:
    return ClientFacts(
        record.client_id,
        record.version,
        None if record.connections else record.left_at,
        record.has_lost_place,
        baselines_json(record.baselines),
    )


__all__ = ["Recorder", "Taken", "is_busy", "is_kept"]
