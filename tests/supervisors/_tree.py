"""Small things the tests of trees share."""

from __future__ import annotations

from typing import Any

from supervisors import Backoff, ChildSpec, Intensity, Restart, SupervisorSpec
from supervisors.testing import Deed, FakeChild

#: Restarts at once, so that a test says what it waits for.
AT_ONCE = Backoff(first=0.0, cap=0.0, jitter=0.0)


class Log(list[str]):
    """What happened, in order."""

    def take(self) -> list[str]:
        taken = list(self)
        self.clear()
        return taken


def fake(
    id: str,
    log: Log,
    *,
    on_start: Deed = Deed.NOTHING,
    on_stop: Deed = Deed.NOTHING,
    shielded: float = 10.0,
    **options: Any,
) -> ChildSpec:
    return ChildSpec(id, FakeChild, (on_start, on_stop, log.append, shielded), **options)


def tree(*children: ChildSpec, **options: Any) -> SupervisorSpec:
    return SupervisorSpec(
        children, **{"intensity": Intensity(3, 10.0), "backoff": AT_ONCE, **options}
    )


TEMPORARY = Restart.TEMPORARY
