"""Options of the seeded walks."""

from __future__ import annotations

from pathlib import Path

import pytest

#: Walks, and kills of each kind of actor, when nobody says how many: about half a minute each on
#: one core.
WALKS, KILLS = 40, 30
#: Walks with restarts of the host, and rounds with hosts in processes of their own.
RESTARTS, ROUNDS = 9, 5
#: Kills in one test: not all of it overhead, and none takes long.
PIECE = 50


def pytest_addoption(parser: pytest.Parser) -> None:
    """`pytest tests/chaos --walks 500`, or `--seed N` for one of them again."""
    group = parser.getgroup("chaos", "seeded walks")
    group.addoption("--walks", type=int, default=WALKS, help="how many walks, from seed 0 on")
    group.addoption("--restarts", type=int, default=RESTARTS, help="how many with restarts")
    group.addoption("--rounds", type=int, default=ROUNDS, help="kill -9 on real hosts")
    group.addoption("--first", type=int, default=0, help="the seed of the first walk")
    group.addoption("--seed", type=int, default=None, help="walk this seed only")
    group.addoption("--kills", type=int, default=KILLS, help="kills of each kind of actor")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each walk, so that a failure names its seed, and one for each piece of kills."""
    # Without these options when the whole suite runs: they are this folder's.
    option = metafunc.config.getoption
    if "kill_seeds" in metafunc.fixturenames:
        kills = option("--kills", KILLS)
        pieces = [range(first, min(first + PIECE, kills)) for first in range(0, kills, PIECE)]
        metafunc.parametrize("kill_seeds", pieces, ids=[f"from {piece[0]}" for piece in pieces])
    if "round_seed" in metafunc.fixturenames:
        one, first = option("--seed", None), option("--first", 0)
        rounds = [one] if one is not None else range(first, first + option("--rounds", ROUNDS))
        metafunc.parametrize("round_seed", rounds)
    for name, count, file in (
        ("walk_seed", option("--walks", WALKS), "seeds.txt"),
        ("restart_seed", option("--restarts", RESTARTS), "restart_seeds.txt"),
    ):
        if name in metafunc.fixturenames:
            one, first = option("--seed", None), option("--first", 0)
            seeds = [one] if one is not None else [*_found(file), *range(first, first + count)]
            metafunc.parametrize(name, list(dict.fromkeys(seeds)))


def _found(file: str) -> list[int]:
    """The seeds of walks that failed once."""
    lines = Path(__file__).with_name(file).read_text().splitlines()
    return [int(line.split()[0]) for line in lines if line and not line.startswith("#")]
