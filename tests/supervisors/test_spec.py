"""Specs refuse what cannot mean anything, before anything starts."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from supervisors import (
    Actor,
    AutoShutdown,
    Backoff,
    ChildSpec,
    Intensity,
    MailboxSpec,
    Restart,
    Shutdown,
    SpecError,
    Strategy,
    SupervisorSpec,
)

Idle = Actor[object]


def child(id: str, grace: float | None) -> ChildSpec:
    return ChildSpec(id, Idle, shutdown=Shutdown(grace=grace))


REFUSED: dict[str, Callable[[], object]] = {
    "an empty id": lambda: ChildSpec("", Idle),
    "duplicate ids": lambda: SupervisorSpec([child("a", 1), child("b", 1), child("a", 1)]),
    "significant and permanent": lambda: ChildSpec("a", Idle, significant=True),
    "significant without auto_shutdown": lambda: SupervisorSpec(
        [ChildSpec("a", Idle, restart=Restart.TRANSIENT, significant=True)]
    ),
    "a permanent supervisor that ends itself": lambda: ChildSpec(
        "a", SupervisorSpec(auto_shutdown=AutoShutdown.ANY)
    ),
    "a grace shorter than the children's": lambda: ChildSpec(
        "a", SupervisorSpec([child("b", 2), child("c", 2)]), shutdown=Shutdown(grace=3)
    ),
    "a grace under a child without one": lambda: ChildSpec(
        "a", SupervisorSpec([child("b", None)]), shutdown=Shutdown(grace=3)
    ),
    "arguments for a supervisor": lambda: ChildSpec("a", SupervisorSpec(), (1,)),
    "a dynamic supervisor of a group": lambda: SupervisorSpec(
        dynamic=True, strategy=Strategy.ONE_FOR_ALL
    ),
    "an intensity the backoff never reaches": lambda: SupervisorSpec(
        [child("a", 1)], intensity=Intensity(5, 30.0), backoff=Backoff(1.0, 2.0, 30.0)
    ),
    "no time to start": lambda: ChildSpec("a", Idle, start_within=0),
    "negative restarts": lambda: Intensity(-1),
    "an endless period": lambda: Intensity(1, math.inf),
    "a negative grace": lambda: Shutdown(grace=-1),
    "a shrinking backoff": lambda: Backoff(factor=0.5),
    "a cap under the first delay": lambda: Backoff(first=2, cap=1),
    "a jitter that could be all": lambda: Backoff(jitter=1.0),
    "a delay that is no number": lambda: Backoff(first=math.nan),
    "a mailbox for nothing": lambda: MailboxSpec(items=0),
}


@pytest.mark.parametrize("why", REFUSED)
def test_refused(why: str) -> None:
    with pytest.raises(SpecError):
        REFUSED[why]()


def test_the_same_intensity_is_fine_with_a_longer_period() -> None:
    backoff = Backoff(1.0, 2.0, 30.0)
    assert not Intensity(5, 30.0).reachable_with(backoff)
    assert Intensity(5, 300.0).reachable_with(backoff)
    assert Intensity(0, 0.0).reachable_with(backoff)


def test_the_backoff_grows_to_its_cap_and_jitters_around_it() -> None:
    backoff = Backoff(first=1.0, factor=2.0, cap=5.0, jitter=0.5)
    assert [backoff.delay(n, 0.5) for n in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert backoff.delay(0, 0.0) == 0.5
    assert backoff.delay(0, 1.0) == 1.5
    assert backoff.delay(10_000, 0.5) == 5.0


@pytest.mark.parametrize("factor", [1, 1.0, 2, 65_536, 1e6, 1e300])
def test_no_factor_and_no_number_of_failures_is_too_much(factor: float) -> None:
    backoff = Backoff(first=0.5, factor=factor, cap=7.0, jitter=0.0)
    delays = [backoff.delay(n, 0.5) for n in (0, 1, 63, 64, 1000, 10**9)]
    assert delays == sorted(delays)
    assert delays[0] == 0.5
    assert delays[-1] == (0.5 if factor == 1 else 7.0)
    assert Backoff(first=0.0, factor=factor, jitter=0.0).delay(10**9, 0.5) == 0.0


def test_a_slow_growth_goes_on_to_the_cap() -> None:
    backoff = Backoff(first=1.0, factor=1.01, cap=30.0, jitter=0.0)
    assert backoff.delay(100, 0.5) == pytest.approx(1.01**100)
    assert backoff.delay(400, 0.5) == 30.0


@pytest.mark.parametrize("restarts", [51, 10_000, 10**12])
def test_a_large_intensity_is_refused_or_taken_but_never_an_overflow(restarts: int) -> None:
    wild = Backoff(factor=1e9)
    with pytest.raises(SpecError, match="never passes"):
        SupervisorSpec([child("a", 1)], intensity=Intensity(restarts, 60.0), backoff=wild)
    at_once = Backoff(first=0.0, jitter=0.0)
    SupervisorSpec([child("a", 1)], intensity=Intensity(restarts, 60.0), backoff=at_once)
    assert Intensity(restarts, restarts * 40.0).reachable_with(wild)


def test_stopping_in_turn_takes_the_sum_and_together_the_longest() -> None:
    children = [child("a", 2), child("b", 3)]
    assert SupervisorSpec(children).stop_time == 5
    assert SupervisorSpec(children, dynamic=True).stop_time == 3
    nested = ChildSpec("s", SupervisorSpec(children))
    assert nested.shutdown.grace is None
    assert nested.stop_time == 5
    assert SupervisorSpec([child("a", None)]).stop_time == math.inf
