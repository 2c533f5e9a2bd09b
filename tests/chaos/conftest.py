"""Options of the seeded walks."""

from __future__ import annotations

import pytest

#: Walks when nobody says how many: about 40 s on one core.
WALKS = 40


def pytest_addoption(parser: pytest.Parser) -> None:
    """`pytest tests/chaos --walks 500`, or `--seed N` for one of them again."""
    group = parser.getgroup("chaos", "seeded walks")
    group.addoption("--walks", type=int, default=WALKS, help="how many walks, from seed 0 on")
    group.addoption("--first", type=int, default=0, help="the seed of the first walk")
    group.addoption("--seed", type=int, default=None, help="walk this seed only")
    group.addoption("--kills", type=int, default=100, help="kills of each kind of actor")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each walk, so that a failure names its seed."""
    if "walk_seed" in metafunc.fixturenames:
        # Without these options when the whole suite runs: they are this folder's.
        option = metafunc.config.getoption
        one, first = option("--seed", None), option("--first", 0)
        walks = option("--walks", WALKS)
        seeds = [one] if one is not None else range(first, first + walks)
        metafunc.parametrize("walk_seed", seeds)


@pytest.fixture(scope="session")
def kills(request: pytest.FixtureRequest) -> int:
    """How many kills of each kind of actor."""
    wanted: int = request.config.getoption("--kills", 100)
    return wanted
