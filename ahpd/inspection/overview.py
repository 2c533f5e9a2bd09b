"""The whole tree at a glance, for ``ahpd ps``: each actor, what it does, and why anything is slow.

The walk yields to everybody else every millisecond, so it is no picture of one moment: an actor may
come or go meanwhile. Each row is of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from actors.connection import Connection
from actors.host import Host
from actors.ledger import Channel
from ahpd.inspection.memory import resident
from ahpd.inspection.slices import Slices
from ahpd.inspection.words import brief, cut, how_it_ended, seconds, size
from ahpd.protocol.jsontext import Fragment, dumps
from ahpd.protocol.model import JSON, Object
from supervisors import System, sys
from supervisors.sys import Glance

#: Seconds after which something that waits is told as a trouble.
SLOW = 1.0
#: The part of a mailbox, or of what may wait for a client, from which it is told.
FULL, UNSENT = 0.5, 0.25
#: Seconds for which a restart is told.
FRESH = 60.0
#: Seconds of one round of all tasks from which the loop is told to be busy.
BUSY = 0.05


async def overview(system: System, host: Host, under: str = "") -> Object:
    """Every actor and supervisor at or below a path, sorted by it. A checkpoint or many.

    ``actors`` are the rows, ``troubles`` what is out of the ordinary, ``loop`` how busy the host
    is: the longest that one round of all tasks took meanwhile. Times are seconds, sizes bytes.
    """
    slices = Slices()
    await slices.rest()
    channels = await _by_path(host, slices)
    looking = _Looking(system, host, channels)
    rows: list[bytes] = []
    own = [under] if under else []
    for path in own + sys.paths(system, under):
        if slices.due:
            await slices.rest()
        seen = sys.glance(system, path)
        if seen is not None:
            rows.append(dumps(looking.row(seen)))
    troubles = [*_of_the_host(host, slices.longest), *looking.troubles]
    return {
        "actors": [Fragment(row) for row in rows],
        "troubles": [{"path": path, "why": why} for path, why in troubles],
        "loop": {"longestRoundSeconds": round(slices.longest, 4)},
        "memoryBytes": resident(None),
        "queue": {"items": len(host.ledger.queue), "bytes": host.ledger.room.taken},
        "serverSeq": host.ledger.seq,
    }


async def _by_path(host: Host, slices: Slices) -> Mapping[str, Sequence[Channel]]:
    """The channels that each actor answers for, its own first."""
    found: dict[str, list[Channel]] = {}
    for channel in list(host.ledger.channels.values()):
        if slices.due:
            await slices.rest()
        found.setdefault(channel.path, []).append(channel)
    return found


def _of_the_host(host: Host, longest: float) -> Iterator[tuple[str, str]]:
    ledger = host.ledger
    if ledger.failing is not None:
        waiting = size(ledger.room.taken)
        yield "sequencer", f"nothing can be kept, so nothing is said: {ledger.failing}; {waiting}"
    if longest >= BUSY:
        yield "", f"the loop is busy: a round of all tasks took {seconds(longest)}"


class _Looking:
    """Makes the rows, and collects what is out of the ordinary."""

    def __init__(
        self, system: System, host: Host, channels: Mapping[str, Sequence[Channel]]
    ) -> None:
        self.troubles: list[tuple[str, str]] = []
        self._system = system
        self._host = host
        self._channels = channels
        self._now = system.now()

    def row(self, seen: Glance) -> dict[str, JSON]:
        """One actor or supervisor."""
        actor = sys.actor_at(self._system, seen.path)
        channels = self._channels.get(seen.path, ())
        troubles = [*self._troubles(seen), *self._unsent(actor)]
        self.troubles += [(seen.path, why) for why in troubles]
        last = seen.last_exit
        row: dict[str, JSON] = {
            "path": seen.path,
            "kind": seen.kind,
            "supervisor": seen.supervisor,
            "phase": seen.phase,
            "doing": self._doing(seen, channels, actor),
            "handled": seen.handled,
            "restarts": seen.restarts,
            "upSeconds": None if seen.since is None else round(self._now - seen.since, 3),
            "mailbox": _mailbox(seen),
            "memoryBytes": self._memory(channels, actor),
            "lastCrash": None,
            "troubles": troubles,
        }
        if channels:
            row["channel"] = channels[0].uri
        if last is not None and last.abnormal:
            row["lastCrash"] = {
                "text": how_it_ended(last),
                "agoSeconds": round(self._now - last.at, 3),
                "report": self._host.crash_report(seen.path),
            }
        return row

    # ---- what it does --------------------------------------------------------------------------

    def _doing(self, seen: Glance, channels: Sequence[Channel], actor: object) -> str:
        if seen.children is not None:
            return f"{seen.phase}, {seen.children} child{'' if seen.children == 1 else 'ren'}"
        if seen.phase != "running":
            last = seen.last_exit
            return seen.phase if last is None else f"{seen.phase}; {how_it_ended(last)}"
        if seen.in_hand is not None:
            return self._at_work(seen)
        if seen.mailbox is not None and seen.mailbox.depth + seen.mailbox.urgent:
            return "about to take a message"
        return self._at_rest(channels, actor)

    def _at_work(self, seen: Glance) -> str:
        parts = [f"{brief(seen.in_hand)}, sent {seconds(seen.in_hand_age)} ago"]
        if seen.waits_for is not None:
            parts.append(f"waits for {seen.waits_for}")
        at = sys.waits_at(self._system, seen.path)
        if at:
            parts.append(f"at {at[-1]}")
        return ", ".join(parts)

    def _at_rest(self, channels: Sequence[Channel], actor: object) -> str:
        if isinstance(actor, Connection):
            heard = sum(1 for _ in self._host.subscriptions.heard_by(actor))
            return f"client {cut(actor.client_id or '(none yet)')}, hears {heard} channels"
        turn = getattr(channels[0].state, "active_turn", None) if channels else None
        if turn is None:
            return "idle"
        began_in, began = channels[0].notes.began
        since = (self._host.clock.ms() - began) / 1000 if began_in == turn.id else 0.0
        activity = channels[0].state.activity
        return f"in a turn for {seconds(since)}" + (f": {cut(activity)}" if activity else "")

    # ---- what is out of the ordinary -----------------------------------------------------------

    def _troubles(self, seen: Glance) -> Iterator[str]:
        last, box = seen.last_exit, seen.mailbox
        if seen.phase == "parked":
            yield f"set aside after failing too often; ahpd restart {seen.path}"
        elif seen.phase == "suspended":
            yield "paused by somebody who looks inside"
        if seen.in_hand is not None and seen.in_hand_age >= SLOW:
            what = f"still at {brief(seen.in_hand)}, sent {seconds(seen.in_hand_age)} ago"
            yield what if seen.waits_for is None else f"{what}: waits for {seen.waits_for}"
        if box is not None:
            if box.oldest_age >= SLOW:
                waiting = box.depth + box.urgent
                yield f"{waiting} messages wait, the oldest for {seconds(box.oldest_age)}"
            if box.depth >= FULL * seen.bound.items or box.size >= FULL * seen.bound.size:
                yield f"its mailbox is filling: {box.depth} messages, {size(box.size)}"
            if box.senders_waiting:
                yield f"{box.senders_waiting} senders wait for room in its mailbox"
        if last is not None and last.abnormal and self._now - last.at < FRESH:
            ago = seconds(self._now - last.at)
            report = self._host.crash_report(seen.path)
            more = "" if report is None else f"; {report}"
            yield f"failed {ago} ago: {how_it_ended(last)}{more}"

    def _unsent(self, actor: object) -> Iterator[str]:
        if isinstance(actor, Connection):
            limit = self._host.settings.client_queue_bytes
            if actor.backlog >= UNSENT * limit:
                yield f"its client reads slowly: {size(actor.backlog)} of {size(limit)} unsent"

    # ---- memory --------------------------------------------------------------------------------

    def _memory(self, channels: Sequence[Channel], actor: object) -> dict[str, JSON]:
        """What is known: of states, as they are written; of processes, what they have in memory."""
        found: dict[str, JSON] = {}
        sizes = [self._host.recorder.size_of(channel) for channel in channels]
        known = [each for each in sizes if each is not None]
        if known:
            found["state"] = sum(known)
        if isinstance(actor, Connection):
            found["unsent"] = actor.backlog
        pid = _pid(actor)
        process = resident(pid) if pid is not None else None
        if process is not None:
            found["process"] = process
        return found


def _mailbox(seen: Glance) -> JSON:
    box = seen.mailbox
    if box is None:
        return None
    return {
        "count": box.depth,
        "urgent": box.urgent,
        "bytes": box.size,
        "oldestSeconds": round(box.oldest_age, 3),
        "sendersWaiting": box.senders_waiting,
        "dropped": box.dropped,
        "limit": seen.bound.items,
        "limitBytes": seen.bound.size,
    }


def _pid(actor: object) -> int | None:
    """The process that an actor has, if it has one; a protocol would take longer to ask than all
    the rest of a row."""
    pid = getattr(actor, "pid", None)
    return pid if isinstance(pid, int) else None
