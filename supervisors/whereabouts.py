"""Who is at work: which actor the code that runs belongs to, for those who write that down.

Asked when there is something to write, so that work about which nothing is written pays nothing.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from supervisors._actor import Actor
from supervisors._calls import current_runner
from supervisors._system import System


class Whereabouts(Struct, frozen=True):
    """The actor at `path`, or its helper of that name.

    `actor` is the incarnation, None when it is gone already. `message` is what it has in hand, of
    the actor's own loop alone: a helper has nothing to do with it.
    """

    path: str
    helper: str = ""
    actor: Actor[Any] | None = None
    message: object = None


def whereabouts(system: System | None) -> Whereabouts | None:
    """Whose code runs now; None for what is no actor's. Sync; in any thread an actor's task uses.

    Without the `system` there is nothing but names.
    """
    runner = current_runner.get()
    if runner is None:
        return None
    path, _, helper = runner.label.partition("#")
    cell = system.registry.get(path) if system is not None else None
    life = cell.life if cell is not None else None
    if life is None:
        return Whereabouts(path, helper)
    in_hand = life.in_hand[0] if life.in_hand is not None and not helper else None
    return Whereabouts(path, helper, life.actor, in_hand)
