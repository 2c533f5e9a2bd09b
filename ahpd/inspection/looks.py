"""What one look at an actor shows, as JSON: what waits, where it waits, all of it."""

from __future__ import annotations

from itertools import islice
from typing import Any

from ahpd.inspection.post import Happening
from ahpd.inspection.shown import plain
from ahpd.inspection.subjects import Subject
from ahpd.inspection.views import Path
from ahpd.inspection.words import brief, how_it_ended
from ahpd.protocol.actions import action_type
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.jsontext import Fragment
from ahpd.protocol.model import JSON, Object
from supervisors import Exit, sys

#: Messages of a mailbox that are shown.
SHOWN = 50


def happening(seen: Happening) -> dict[str, JSON]:
    """Something that an actor did; of its end, how it ended."""
    shown: dict[str, JSON] = {"at": seen.at, "kind": seen.kind}
    if isinstance(seen.message, Exit):
        return {**shown, "message": how_it_ended(seen.message)}
    if isinstance(seen.message, str) or seen.message is None:
        return shown if seen.message is None else {**shown, "message": seen.message}
    return {
        **shown,
        "message": brief(seen.message),
        "value": plain(seen.message),
        "call": seen.call,
        "tookSeconds": None if seen.took is None else round(seen.took, 6),
        "said": [action_type(action) for action in seen.said],
    }


def mailbox_of(subject: Subject) -> Object:
    """What waits for an actor, in the order in which it will be taken. Sync."""
    subject.check()
    cell = subject.ref.cell
    assert cell is not None, "checked above"
    box, spec, now = cell.mailbox.statistics(), cell.mailbox.spec, subject.system.now()
    count = box.depth + box.urgent
    return {
        "count": count,
        "urgent": box.urgent,
        "bytes": box.size,
        "limit": spec.items,
        "limitBytes": spec.size,
        "oldestSeconds": round(box.oldest_age, 3),
        "sendersWaiting": box.senders_waiting,
        "messages": [
            {
                "message": brief(message),
                "value": plain(message),
                "bytes": cost,
                "ageSeconds": round(now - at, 3),
                "call": reply is not None,
            }
            for message, cost, at, reply in islice(cell.mailbox, SHOWN)
        ],
        "more": max(0, count - SHOWN),
    }


def where_of(subject: Subject) -> Object:
    """Where each of an actor's tasks waits, outermost frame first. Sync."""
    subject.check()
    seen = sys.glance(subject.system, subject.path)
    tasks = sys.stacks(subject.ref)
    return {
        "waitsFor": seen.waits_for if seen is not None else None,
        "inHand": None if seen is None or seen.in_hand is None else brief(seen.in_hand),
        "tasks": [
            {
                "task": task.name,
                "frames": [
                    {
                        "function": place.function,
                        "file": place.file,
                        "line": place.line,
                        "text": place.text,
                    }
                    for place in task.places
                ],
            }
            for task in tasks
        ],
    }


async def all_of(subject: Subject) -> Object:
    """Everything there is to see of an actor. A checkpoint or many."""
    subject.check()
    cell = subject.ref.cell
    seen = sys.glance(subject.system, subject.path)
    if cell is None or seen is None:
        raise ProtocolError(ErrorCode.NOT_FOUND, f"{subject.path} is gone")
    channel, last = subject.channel, seen.last_exit
    found: dict[str, Any] = {
        "path": subject.path,
        "kind": seen.kind,
        "supervisor": seen.supervisor,
        "phase": seen.phase,
        "incarnation": seen.incarnation,
        "restarts": seen.restarts,
        "upSeconds": None if seen.since is None else round(subject.system.now() - seen.since, 3),
        "handled": seen.handled,
        "restart": cell.spec.restart.value,
        "mailbox": mailbox_of(subject),
        **where_of(subject),
        "channel": channel.uri if channel is not None else None,
        "seq": channel.seq if channel is not None else None,
        "lastExit": None,
    }
    if last is not None:
        found["lastExit"] = {
            "kind": last.kind.value,
            "text": how_it_ended(last),
            "traceback": last.crash.traceback if last.crash is not None else None,
        }
    try:
        [(_, text)] = await Path("$").found_in(subject.state())
        found["state"] = Fragment(text)
    except ProtocolError as error:
        found["state"], found["stateMissing"] = None, error.message
    return found
