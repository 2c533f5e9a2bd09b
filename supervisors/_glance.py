"""`Glance`: the figures of one actor, taken in passing.

For a look at a whole tree while it works: no state, no frames and no words are made, so thousands
of actors can be looked at for what a few messages cost.
"""

from __future__ import annotations

from msgspec import Struct

from supervisors._cell import Cell
from supervisors._exits import Exit
from supervisors._mailbox import MailboxStats
from supervisors._spec import MailboxSpec


class Glance(Struct, frozen=True):
    """An actor or a supervisor at one moment. Times in trio's seconds.

    `phase` as in `Inspection`. `in_hand` is the message that its handler waits in the middle of,
    `in_hand_age` how long ago that was sent. `waits_for` is whom it waits for, by its label.
    `mailbox` is None for a supervisor, `children` for an actor.
    """

    path: str
    kind: str
    supervisor: str
    phase: str
    incarnation: int
    restarts: int
    since: float | None
    handled: int
    mailbox: MailboxStats | None
    bound: MailboxSpec
    in_hand: object
    in_hand_age: float
    waits_for: str | None
    suspended: bool
    owed_replies: int
    children: int | None
    last_exit: Exit | None


def glance_at(cell: Cell) -> Glance:
    """The figures of this moment. Sync; never fails."""
    life = cell.life
    driver = life.supervisor if life is not None else None
    in_hand = life.in_hand if life is not None else None
    is_supervisor = cell.is_supervisor
    blocker = cell.runner.blocker()
    return Glance(
        path=cell.path,
        kind="supervisor" if is_supervisor else cell.runner.kind,
        supervisor=cell.parent,
        phase=phase_of(cell),
        incarnation=cell.incarnation,
        restarts=cell.restarts,
        since=life.since if life is not None else None,
        handled=life.handled if life is not None else 0,
        mailbox=None if is_supervisor else cell.mailbox.statistics(),
        bound=cell.mailbox.spec,
        in_hand=in_hand[0] if in_hand is not None else None,
        in_hand_age=cell.system.now() - in_hand[2] if in_hand is not None else 0.0,
        waits_for=blocker.label if blocker is not None else None,
        suspended=cell.probe is not None and cell.probe.suspended,
        owed_replies=len(life.deferred or ()) if life is not None else 0,
        children=len(driver.cells) if driver is not None else 0 if is_supervisor else None,
        last_exit=cell.last_exit,
    )


def phase_of(cell: Cell) -> str:
    """How it came to rest last, or ``running``, ``starting``, ``suspended``."""
    if cell.life is None:
        return cell.settled.value if cell.settled is not None else "not started"
    if cell.probe is not None and cell.probe.suspended:
        return "suspended"
    return "running" if cell.life.is_ready else "starting"
