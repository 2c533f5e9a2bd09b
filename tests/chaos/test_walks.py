"""Seeded walks: many clients, agents, bad networks and killed actors; in the end all is equal."""

from __future__ import annotations

from collections import Counter

import attrs
import pytest

from ahpd.protocol import ACTIONS
from supervisors.faults import Plan, shrink
from tests.chaos.scenario import Scenario, scenario, with_restarts
from tests.chaos.walk import walk

#: Runs that looking for a shorter plan may take: it must not take as long as a test that hangs.
_TRIES = 20


def test_a_walk(walk_seed: int) -> None:
    plan = scenario(walk_seed)
    try:
        verdict = walk(plan)
    except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 told with its plan
        raise AssertionError(_told(plan, error)) from None
    assert verdict.operations > 0
    assert verdict.operations == sum(verdict.outcomes.values())


def test_a_walk_with_restarts(restart_seed: int) -> None:
    plan = with_restarts(restart_seed)
    try:
        verdict = walk(plan)
    except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 told with its plan
        raise AssertionError(_told(plan, error)) from None
    assert verdict.lives == 1 + len(plan.restarts)
    assert verdict.operations == sum(verdict.outcomes.values())


def _told(plan: Scenario, error: BaseException) -> str:
    return (
        f"{_text(error)}\n\n{plan}\n\nand with less of it:\n{_shorter(plan)}\n\n"
        f"again: pytest tests/chaos --seed {plan.seed}"
    )


def _shorter(plan: Scenario) -> Scenario:
    """The shortest plan found that fails too: first without kills and restarts."""
    for kills in ((), *((kill,) for kill in plan.kills)):
        if _fails(attrs.evolve(plan, kills=kills)):
            plan = attrs.evolve(plan, kills=kills)
            break

    for restarts in ((), *((restart,) for restart in plan.restarts)):
        if _fails(attrs.evolve(plan, restarts=restarts)):
            plan = attrs.evolve(plan, restarts=restarts)
            break

    def fails(faults: Plan) -> bool:
        return _fails(attrs.evolve(plan, faults=faults))

    return attrs.evolve(plan, faults=shrink(plan.faults, fails, tries=_TRIES))


def _fails(plan: Scenario) -> bool:
    try:
        walk(plan)
    except Exception:  # noqa: BLE001 whatever it fails with
        return True
    return False


def _text(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "\n".join(_text(inner) for inner in error.exceptions)
    return f"{type(error).__name__}: {error}"


#: Kinds of channels that are served: what clients may say there has to be taken now and then.
_SERVED = {"root", "session", "chat", "annotations"}
#: Walks in which the rarest action has to come up.
_ENOUGH = 30


def test_walks_have_every_action_that_clients_may_dispatch() -> None:
    """The table of the protocol says which there are; none is forgotten, and none only refused."""
    played: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    theirs = {name: info for name, info in ACTIONS.items() if info.client_may_dispatch}
    wanted = {name for name, info in theirs.items() if info.channel in _SERVED}
    for seed in range(_ENOUGH):
        # Undisturbed, as most of what is dispatched in trouble is refused.
        verdict = walk(attrs.evolve(scenario(seed), kills=(), faults=Plan((), seed=seed)))
        played.update(verdict.played)
        taken.update(verdict.taken)
        if theirs.keys() <= played.keys() and wanted <= taken.keys():
            break
    assert not theirs.keys() - played.keys()
    assert not wanted - taken.keys()
    # What is the host's to say, or is said where nothing is served, is never taken.
    assert not taken.keys() - wanted


@pytest.mark.parametrize("seed", [1, 5, 9])
def test_the_same_seed_is_the_same_walk(seed: int) -> None:
    assert walk(scenario(seed)).trace == walk(scenario(seed)).trace


@pytest.mark.parametrize("seed", [2, 4])
def test_the_same_seed_is_the_same_walk_with_its_restarts(seed: int) -> None:
    assert walk(with_restarts(seed)).trace == walk(with_restarts(seed)).trace


def test_two_seeds_are_two_walks() -> None:
    assert walk(scenario(1, 50)).trace != walk(scenario(4, 50)).trace
