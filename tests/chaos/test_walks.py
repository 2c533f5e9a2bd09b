"""Seeded walks: many clients, agents, bad networks and killed actors; in the end all is equal."""

from __future__ import annotations

import attrs
import pytest

from supervisors.faults import Injection, Plan, shrink
from tests.chaos.scenario import Scenario, scenario
from tests.chaos.walk import walk

#: Runs that looking for a shorter plan may take.
_TRIES = 30


def test_a_walk(walk_seed: int) -> None:
    plan = scenario(walk_seed)
    try:
        verdict = walk(plan)
    except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 told with its plan
        pytest.fail(_told(plan, error))
    assert verdict.operations > 0
    assert verdict.operations == sum(verdict.outcomes.values())


def _told(plan: Scenario, error: BaseException) -> str:
    shorter = attrs.evolve(plan, faults=shrink(plan.faults, _fails(plan), tries=_TRIES))
    return (
        f"{_text(error)}\n\n{plan}\nand with fewer faults:\n{shorter}\n"
        f"again: pytest tests/chaos --seed {plan.seed}"
    )


def _fails(plan: Scenario):  # type: ignore[no-untyped-def]
    def fails(faults: Plan) -> bool:
        try:
            walk(attrs.evolve(plan, faults=faults), Injection(faults))
        except Exception:  # noqa: BLE001 whatever it fails with
            return True
        return False

    return fails


def _text(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "\n".join(_text(inner) for inner in error.exceptions)
    return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("seed", [1, 5, 9])
def test_the_same_seed_is_the_same_walk(seed: int) -> None:
    assert walk(scenario(seed)).trace == walk(scenario(seed)).trace


def test_two_seeds_are_two_walks() -> None:
    assert walk(scenario(1, 50)).trace != walk(scenario(4, 50)).trace
