"""What a walk is made of, all of it from one number."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import attrs

from supervisors.faults import FaultKind, Plan

#: Kinds of actors that are killed, and how often at most in one walk for each path. A chat or a
#: session is parked at its sixth restart within a minute; the host's own actors share ten.
CHAT, SESSION, CONNECTION = "session/*/chat/*", "session/*/session", "connections/*"
OWN = ("catalogue", "root", "grace", "sequencer")

_KINDS = (FaultKind.KILL, FaultKind.RAISE, FaultKind.CANCEL, FaultKind.DELAY)


@attrs.frozen
class Kill:
    """At this step, kill one of the actors whose path fits the pattern: `choice` says which."""

    step: int
    pattern: str
    choice: int

    def __str__(self) -> str:
        return f"step {self.step}: kill {self.pattern} ({self.choice})"


@attrs.frozen
class Restart:
    """At this step, kill the whole host, and start it again `after` seconds.

    With `lost` what it had sent and nobody had read is lost with it.
    """

    step: int
    after: float
    lost: bool

    def __str__(self) -> str:
        lost = ", and what it sent is lost" if self.lost else ""
        return f"step {self.step}: kill the host for {self.after:g} s{lost}"


@attrs.frozen
class Scenario:
    """One walk. `faults` strike at messages, `kills` and `restarts` between two steps.

    With `old` one of the screens speaks the oldest version only.

    With `may_park` an actor may fail so often that it is set aside.
    """

    seed: int
    steps: int
    replay: int
    sessions: int
    journal: float
    opens_in: float
    takes_steering: bool
    may_park: bool
    old: bool
    faults: Plan
    kills: tuple[Kill, ...]
    restarts: tuple[Restart, ...] = ()

    def __str__(self) -> str:
        kills = "\n".join(f"  {kill}" for kill in (*self.kills, *self.restarts))
        return (
            f"walk {self.seed}: {self.steps} steps, {self.sessions} sessions, replay of "
            f"{self.replay}, journal within {self.journal:g} s; faults of {self.faults}\n"
            f"{kills or '  no kills'}"
        )


def scenario(seed: int, steps: int = 400) -> Scenario:
    """The walk of this seed."""
    dice = Random(f"scenario {seed}")
    may_park = dice.random() < 0.1
    return Scenario(
        seed=seed,
        steps=steps,
        replay=(3, 8, 1000)[seed % 3],
        sessions=dice.choice([1, 1, 2]),
        journal=dice.choice([0.0, 0.0, 0.02, 0.2]),
        opens_in=dice.choice([0.0, 0.0, 0.1, 2.0]),
        takes_steering=dice.random() < 0.6,
        may_park=may_park,
        old=dice.random() < 0.25,
        faults=_faults(seed, dice, may_park=may_park),
        kills=_kills(dice, steps),
    )


def with_restarts(seed: int, steps: int = 400) -> Scenario:
    """The walk of this seed, with restarts of the host in it, and a journal that is often slow."""
    dice = Random(f"restarts {seed}")
    restarts = [
        Restart(dice.randrange(steps), dice.choice([0.0, 0.0, 1.0, 40.0]), dice.random() < 0.5)
        for _ in range(dice.randint(1, 4))
    ]
    plan = scenario(seed, steps)
    kills = [Kill(dice.randrange(steps), "sequencer", 0) for _ in range(dice.randint(0, 2))]
    # And soon after a start, while sessions are being loaded.
    kills += [
        Kill(each.step + dice.randint(1, 4), dice.choice(OWN), 0)
        for each in restarts
        if dice.random() < 0.5
    ]
    return attrs.evolve(
        plan,
        kills=tuple(sorted((*plan.kills, *kills), key=lambda kill: kill.step)),
        journal=dice.choice([0.0, 0.002, 0.02, 0.2]),
        restarts=tuple(sorted(restarts, key=lambda each: each.step)),
    )


def _faults(seed: int, dice: Random, *, may_park: bool) -> Plan:
    """Few enough for each path that nothing is parked, unless it may be."""
    parts = [
        Plan.from_seed(seed, [CHAT], count=dice.randint(0, 3), within=200, kinds=_KINDS),
        Plan.from_seed(seed + 1, [SESSION], count=dice.randint(0, 3), within=100, kinds=_KINDS),
        Plan.from_seed(seed + 2, [CONNECTION], count=dice.randint(0, 4), within=200, kinds=_KINDS),
        Plan.from_seed(seed + 3, OWN, count=dice.randint(0, 4), within=60, kinds=_KINDS),
    ]
    if may_park:
        parts.append(Plan.from_seed(seed + 4, [CHAT], count=12, within=60, kinds=_KINDS))
    return Plan(tuple(fault for part in parts for fault in part.faults), seed=seed)


def _kills(dice: Random, steps: int) -> tuple[Kill, ...]:
    def some(patterns: Sequence[str], most: int) -> list[Kill]:
        return [
            Kill(dice.randrange(steps), dice.choice(patterns), dice.randrange(100))
            for _ in range(dice.randint(0, most))
        ]

    kills = some([CHAT], 2) + some([SESSION], 2) + some([CONNECTION], 3) + some(OWN, 3)
    return tuple(sorted(kills, key=lambda kill: kill.step))
