"""What must hold when a walk has come to its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs

from actors.edits import Edits
from actors.ledger import Channel, Entry
from actors.summaries import chat_row, input_needed, session_summary
from ahpd.protocol.actions import action_type
from ahpd.protocol.jsontext import loads
from ahpd.protocol.uris import annotations_of
from tests.chaos.kept import contents, journal_differences
from tests.chaos.screen import Screen
from tests.harness import FileMedium, differences

if TYPE_CHECKING:
    from tests.chaos.walk import Walk


@attrs.define
class Verdict:
    """Figures of a walk in which nothing was wrong."""

    operations: int
    outcomes: Counter[str]
    #: How often each type of action was dispatched, and how often it was taken.
    played: Counter[str]
    taken: Counter[str]
    envelopes: int
    turns: int
    exits: int
    frames: int
    lives: int
    trace: str = ""


_TAKEN = ("accepted", "unchanged")


def judge(walk: Walk) -> Verdict:
    """Look at everything; raises AssertionError with all that is wrong."""
    wrong = [
        *walk.unanswered,
        *(text for screen in walk.screens for text in _screen(walk, screen)),
        *(text for screen in walk.screens for text in _replays(walk, screen)),
        *_turns(walk),
        *_tables(walk),
        *_puppets(walk),
        *contents(walk.host),
    ]
    if isinstance(walk.host.journal, FileMedium):
        wrong += journal_differences(walk.host, walk.host.journal.path)
    if wrong:
        raise AssertionError("\n".join(wrong))
    operations = [each for screen in walk.screens for each in screen.dispatched]
    taken = [each for each in operations if each.outcome and each.outcome.kind in _TAKEN]
    stream = walk.host.stream
    return Verdict(
        operations=len(operations),
        outcomes=Counter(each.outcome.kind for each in operations if each.outcome),
        played=Counter(action_type(each.action) for each in operations),
        taken=Counter(action_type(each.action) for each in taken),
        envelopes=len(stream.entries),
        turns=len(stream.turns()[0]),
        exits=len(walk.host.exits()),
        frames=sum(len(tap.frames) for tap in walk.host.taps.all),
        lives=walk.host.lives,
    )


# ---- clients ------------------------------------------------------------------------------------


def unanswered(walk: Walk, screen: Screen) -> Iterator[str]:
    """Operations that wait although their connection is up and their channel is there.

    To be asked when everything has been delivered and nothing moves any more. One that came when
    its channel was not there, or for one of that name that has ended since, was ignored (R-5.15);
    and who hears such a one only is told nothing on the one there is now (R-3.4).
    """
    if screen.client is None or not screen.is_up:
        return
    for operation in screen.client.open_operations:
        channel = walk.host.ledger.find(operation.channel)
        if channel is not None and screen.reached.get(operation.client_seq, channel) is channel:
            yield f"{screen.name}: no answer to {operation}"


def _screen(walk: Walk, screen: Screen) -> Iterator[str]:
    if screen.client is None or not screen.is_up:
        yield f"{screen.name}: is not connected"
        return
    yield from differences(screen.client, walk.host)
    if screen.open_requests:
        yield f"{screen.name}: {screen.open_requests} requests never ended"
    answers = _answers(walk, screen)
    sent = _sent(walk, screen)
    for operation in screen.dispatched:
        number = operation.client_seq
        outcome = operation.outcome
        if outcome is None or screen.settled[number] != 1:
            yield f"{screen.name}: {operation} ended {screen.settled[number]} times"
            continue
        given = answers.get(number, [])
        if len(given) > sent[number]:
            yield f"{screen.name}: {operation}: {len(given)} answers to {sent[number]} dispatches"
        if outcome.server_seq is not None:
            kinds = {kind for seq, kind in given if seq == outcome.server_seq}
            # Behind a snapshot that holds its effect a client cannot tell what a no-op was.
            allowed = {outcome.kind, "unchanged"} if outcome.kind == "accepted" else {outcome.kind}
            if len(kinds) != 1 or not kinds <= allowed:
                yield f"{screen.name}: {operation}: {outcome}, the host said {given}"
        name = getattr(operation.action, "type", "")
        # Of what ended and was made again under the same name the host remembers nothing.
        entries = walk.host.stream.entries
        done = Counter(entries[seq - 1].channel for seq, kind in given if kind == "accepted")
        if name in _ONCE and any(times > 1 for times in done.values()):
            yield f"{screen.name}: {operation} was done twice: {given}"


#: What must not be done twice, however often it is sent.
_ONCE = frozenset({"chat/turnStarted", "chat/toolCallConfirmed", "chat/turnCancelled"})


def _answers(walk: Walk, screen: Screen) -> dict[int, list[tuple[int, str]]]:
    """What the host said to each dispatch of a client: its number, and how."""
    found: dict[int, list[tuple[int, str]]] = {}
    for entry in walk.host.stream.entries:
        if entry.audience not in (None, screen.name):
            continue
        origin = _origin(entry)
        if origin is not None and origin["clientId"] == screen.name:
            found.setdefault(int(origin["clientSeq"]), []).append((entry.seq, _kind(entry)))
    return found


def _origin(entry: Entry) -> Any:
    return loads(entry.params).get("origin") if b'"origin"' in entry.params else None


def _kind(entry: Entry) -> str:
    if entry.audience is None:
        return "accepted"
    return "refused" if "rejectionReason" in loads(entry.params) else "unchanged"


def _replays(walk: Walk, screen: Screen) -> Iterator[str]:
    """Every replay held all that its client had missed on its channels, its own refusals too."""
    entries = walk.host.stream.entries
    for tap in walk.host.taps.all:
        if not tap.name.startswith(f"{screen.name}#"):
            continue
        asked: dict[Any, Any] = {}
        for way, frame in tap.frames:
            if frame.get("method") == "reconnect" and way == "c2h":
                asked[frame["id"]] = frame["params"]
            result = frame.get("result") if way == "h2c" else None
            if not isinstance(result, dict) or result.get("type") != "replay":
                continue
            params = asked[frame["id"]]
            given = [int(each["serverSeq"]) for each in result["actions"]]
            channels = set(params["subscriptions"]) - set(result["missing"])
            seen = int(params["lastSeenServerSeq"])
            missed = [
                entry
                for entry in entries
                if seen < entry.seq <= (given[-1] if given else seen)
                and entry.audience in (None, screen.name)
                and entry.channel.uri in channels
            ]
            # A page of older turns is not for those in whose part of the chat it left a hole.
            needed = {entry.seq for entry in missed if entry.page is None}
            if not needed <= set(given) <= {entry.seq for entry in missed}:
                yield f"{tap.name}: replayed {given}, missed {[entry.seq for entry in missed]}"


def _sent(walk: Walk, screen: Screen) -> Counter[int]:
    """How often each dispatch of a client was sent."""
    found: Counter[int] = Counter()
    for tap in walk.host.taps.all:
        if not tap.name.startswith(f"{screen.name}#"):
            continue
        for way, frame in tap.frames:
            if way == "c2h" and frame.get("method") == "dispatchAction":
                found[frame["params"]["clientSeq"]] += 1
    return found


# ---- the host -----------------------------------------------------------------------------------


def _turns(walk: Walk) -> Iterator[str]:
    """Each turn ended exactly as often as it was started or resumed."""
    started, ended = walk.host.stream.turns()
    yield from _once(walk)
    for turn in started | ended:
        if started[turn] != ended[turn]:
            yield f"{turn}: started {started[turn]} times, ended {ended[turn]} times"


def _once(walk: Walk) -> Iterator[str]:
    """No turn was started twice, and no message that waited was taken up twice."""
    met: Counter[tuple[Channel, str, str]] = Counter()
    for entry in walk.host.stream.said():
        action: Any = entry.action
        if getattr(action, "type", "") == "chat/turnStarted":
            met[entry.channel, "turn", action.turn_id] += 1
            if action.queued_message_id is not None:
                met[entry.channel, "message", action.queued_message_id] += 1
    for (channel, kind, name), count in met.items():
        if count > 1:
            yield f"{channel.uri}: the {kind} {name} was started {count} times"


def _tables(walk: Walk) -> Iterator[str]:
    """What one channel says about another is what the other says itself."""
    ledger, catalogue = walk.host.ledger, walk.host.tables.catalogue
    assert catalogue is not None
    sessions = {uri: each for uri, each in ledger.channels.items() if each.kind == "session"}
    dormant = {uri for uri in catalogue if uri in walk.host.tables.dormant}
    if catalogue.keys() != sessions.keys() | dormant:
        yield f"catalogue: {sorted(catalogue)}, sessions: {sorted(sessions)}, {sorted(dormant)}"
    root = ledger.channels["ahp-root://"].state
    if root.active_sessions != len(catalogue):
        yield f"root: {root.active_sessions} sessions of {len(catalogue)}"
    for uri, channel in sessions.items():
        said = catalogue.get(uri)
        marks = ledger.state_of(annotations_of(uri), "annotations")
        if said is not None and said != session_summary(uri, channel.state, said.created_at, marks):
            yield f"{uri}: its summary is not what its state says"
        yield from _session(walk, uri, channel.state)


def _session(walk: Walk, uri: str, state: Any) -> Iterator[str]:
    if state.lifecycle == "creating":
        yield f"{uri}: is still being created"
    owned = {c.uri for c in walk.host.ledger.channels_of(uri) if c.kind == "chat"}
    rows = {row.resource for row in state.chats}
    if owned != rows:
        yield f"{uri}: lists {sorted(rows)}, has {sorted(owned)}"
    wanted: set[str] = set()
    for row in state.chats:
        channel = walk.host.ledger.find(row.resource)
        if channel is not None:
            wanted |= input_needed(channel.state).keys()
            edits = Edits().summary(channel.state.turns)
            now = chat_row(channel.state, row.title, edits)
            none = row.changes is not None and not row.changes.files
            changes = None if none else row.changes
            if row.evolve(activity=row.activity or None, changes=changes) != now:
                yield f"{uri}: says {row} of {now}"
    listed = {entry.id for entry in state.input_needed or ()}
    if listed != wanted:
        yield f"{uri}: inputNeeded {sorted(listed)}, waiting {sorted(wanted)}"


def _puppets(walk: Walk) -> Iterator[str]:
    """No agent is left over: every one that is not closed serves a chat that is there."""
    agent = walk.puppeteer.agent
    for puppet in agent.made:
        chat = puppet.request.chat
        if not puppet.closed and (
            walk.host.ledger.find(chat) is None or agent.of[chat] is not puppet
        ):
            yield f"an agent of {chat} was left behind"
        if not puppet.closed and (asked := walk.puppeteer.unanswered(puppet)):
            yield f"an agent of {chat} waits for answers about {sorted(asked)}"
