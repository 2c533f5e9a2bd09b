"""Seeded walks: many clients, agents, bad networks and killed actors; in the end all is equal."""

from __future__ import annotations

import attrs
import pytest

from supervisors.faults import Plan, shrink
from tests.chaos.scenario import Scenario, scenario
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


def _told(plan: Scenario, error: BaseException) -> str:
    return (
        f"{_text(error)}\n\n{plan}\n\nand with less of it:\n{_shorter(plan)}\n\n"
        f"again: pytest tests/chaos --seed {plan.seed}"
    )


def _shorter(plan: Scenario) -> Scenario:
    """The shortest plan found that fails too: first without kills, then with fewer faults."""
    for kills in ((), *((kill,) for kill in plan.kills)):
        if _fails(attrs.evolve(plan, kills=kills)):
            plan = attrs.evolve(plan, kills=kills)
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


@pytest.mark.parametrize("seed", [1, 5, 9])
def test_the_same_seed_is_the_same_walk(seed: int) -> None:
    assert walk(scenario(seed)).trace == walk(scenario(seed)).trace


def test_two_seeds_are_two_walks() -> None:
    assert walk(scenario(1, 50)).trace != walk(scenario(4, 50)).trace
