"""Breaking actors on purpose, from a plan that can be repeated and made short.

A `Plan` is data: faults at the n-th message of a path pattern, or a rate with a seed. One
`Injection` is one run of it; give it to `run_tree` as `faults`. `check` runs a scenario and, when
it fails, finds the shortest plan that still makes it fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from fnmatch import fnmatchcase
from random import Random

import trio
from msgspec import Struct, structs

from supervisors._cell import Life
from supervisors._contain import TaskLost
from supervisors._events import Note
from supervisors._exits import ExitKind, said


class FaultKind(Enum):
    """What happens to the actor."""

    KILL = "kill"  #: cancelled before it handles the message (or right after)
    RAISE = "raise"  #: `InjectedFault` as if from its handler
    DELAY = "delay"  #: it waits `seconds` first, with everything behind it
    CANCEL = "cancel"  #: cut at the first checkpoint inside its handler
    LOSE = "lose"  #: its task vanishes: no hook runs


class InjectedFault(Exception):
    """What a planned ``raise`` raises."""


class Fault(Struct, frozen=True):
    """One fault: at the `nth` message (from 1) taken by the actors whose path matches `path`.

    `path` is a shell pattern whose ``*`` also matches ``/``. With `after` it strikes when the
    handler is done, so that effects are out and a reply may be.
    """

    kind: FaultKind
    path: str
    nth: int
    seconds: float = 0.0
    after: bool = False

    def __str__(self) -> str:
        where = "after" if self.after else "at"
        extra = f" {self.seconds:g} s" if self.kind is FaultKind.DELAY else ""
        return f"{self.kind.value}{extra} {where} message {self.nth} of {self.path}"


ALL_KINDS = tuple(FaultKind)


class Plan(Struct, frozen=True):
    """Faults at fixed points, and with `rate` (a chance for each message) random ones from `seed`.

    A random fault depends on seed, path and message number alone, not on what else happens.
    """

    faults: tuple[Fault, ...] = ()
    seed: int = 0
    rate: float = 0.0
    paths: tuple[str, ...] = ("*",)
    kinds: tuple[FaultKind, ...] = ALL_KINDS
    longest_delay: float = 1.0

    @classmethod
    def from_seed(
        cls,
        seed: int,
        paths: Sequence[str],
        *,
        count: int,
        within: int,
        kinds: Sequence[FaultKind] = ALL_KINDS,
        longest_delay: float = 1.0,
    ) -> Plan:
        """`count` faults among the first `within` messages of each of these patterns."""
        dice = Random(seed)
        faults = [
            _throw(dice, dice.choice(list(paths)), dice.randint(1, within), kinds, longest_delay)
            for _ in range(count)
        ]
        return cls(tuple(faults), seed=seed)

    def __str__(self) -> str:
        lines = [f"  {fault}" for fault in self.faults]
        if self.rate:
            lines.append(f"  rate {self.rate:g} on {', '.join(self.paths)}")
        return f"seed {self.seed}:\n" + ("\n".join(lines) or "  no fault")


class PlanFailed(AssertionError):
    """A scenario failed under a plan; `shortest` is the shortest plan found that still fails it."""

    def __init__(self, plan: Plan, shortest: Plan, error: BaseException) -> None:
        super().__init__(f"{said(error, repr)}\nfails with {plan}\nand still with {shortest}")
        self.plan = plan
        self.shortest = shortest


class Injection:
    """One run of a plan. Not to be used twice: it counts messages."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        #: What struck, each with its exact path and message number: a plan of its own.
        self.fired: list[Fault] = []
        self._counts = [0] * len(plan.faults)
        self._strikes: dict[str, _Strike] = {}
        self._report: Callable[[Note, str, str], None] = lambda _note, _path, _text: None

    def installed(self, report: Callable[[Note, str, str], None]) -> None:
        """Where to report what was injected; called by the tree."""
        self._report = report

    def strike_for(self, path: str) -> _Strike | None:
        """What may hit the actor at `path`; called by the tree."""
        plan = self.plan
        aimed = [i for i, fault in enumerate(plan.faults) if fnmatchcase(path, fault.path)]
        random = plan.rate > 0 and any(fnmatchcase(path, pattern) for pattern in plan.paths)
        if not aimed and not random:
            return None
        strike = self._strikes.get(path)
        if strike is None:
            # A string seed is hashed the same way in every process.
            dice = Random(f"{plan.seed} {path}") if random else None
            strike = self._strikes[path] = _Strike(self, path, aimed, dice)
        return strike

    def next_fault(
        self, aimed: list[int], path: str, number: int, dice: Random | None
    ) -> Fault | None:
        """The fault for a message just taken, exact; one at most."""
        plan, found = self.plan, None
        for i in aimed:
            self._counts[i] += 1
            if self._counts[i] == plan.faults[i].nth and found is None:
                found = structs.replace(plan.faults[i], path=path, nth=number)
        if dice is not None and dice.random() < plan.rate:
            random = _throw(dice, path, number, plan.kinds, plan.longest_delay)
            found = found or random
        if found is not None:
            self.fired.append(found)
            self._report(Note.FAULT, path, str(found))
        return found


class _Strike:
    """The faults for one path, over all its incarnations."""

    def __init__(
        self, injection: Injection, path: str, aimed: list[int], dice: Random | None
    ) -> None:
        self._injection = injection
        self._path = path
        self._aimed = aimed
        self._dice = dice
        self._number = 0
        self._later: Fault | None = None

    async def before(self, life: Life) -> None:
        self._number += 1
        self._later = None
        fault = self._injection.next_fault(self._aimed, self._path, self._number, self._dice)
        if fault is None:
            return
        if fault.after:
            self._later = fault
        else:
            await _strike(fault, life)

    async def after(self, life: Life) -> None:
        fault, self._later = self._later, None
        if fault is not None:
            await _strike(fault, life)


async def _strike(fault: Fault, life: Life) -> None:
    match fault.kind:
        case FaultKind.KILL:
            life.kill(ExitKind.KILLED, str(fault))
            await trio.lowlevel.checkpoint()
        case FaultKind.CANCEL:
            life.kill(ExitKind.KILLED, str(fault))
        case FaultKind.RAISE:
            raise InjectedFault(str(fault))
        case FaultKind.DELAY:
            await trio.sleep(fault.seconds)
        case FaultKind.LOSE:
            raise TaskLost(str(fault))


def _throw(
    dice: Random, path: str, nth: int, kinds: Sequence[FaultKind], longest_delay: float
) -> Fault:
    kind = dice.choice(list(kinds))
    seconds = round(dice.uniform(0, longest_delay), 3) if kind is FaultKind.DELAY else 0.0
    after = kind is not FaultKind.DELAY and dice.random() < 0.5
    return Fault(kind, path, nth, seconds, after)


# ---- finding the shortest plan ------------------------------------------------------------------


def shrink(plan: Plan, fails: Callable[[Plan], bool], *, tries: int = 100) -> Plan:
    """The shortest plan found, in at most `tries` runs, for which `fails` is true.

    Only fixed faults can be left out; for a plan with a rate give the faults that `fired`.
    """
    faults = list(plan.faults)
    size = max(1, len(faults) // 2)
    while faults and tries > 0:
        start = 0
        while start < len(faults) and tries > 0:
            tries -= 1
            shorter = faults[:start] + faults[start + size :]
            if fails(structs.replace(plan, faults=tuple(shorter))):
                faults = shorter
            else:
                start += size
        if size == 1:
            break
        size //= 2
    return structs.replace(plan, faults=tuple(faults))


def check(scenario: Callable[[Injection], object], plan: Plan, *, tries: int = 100) -> Injection:
    """Run a scenario (a function that does its own ``trio.run``) under a plan.

    When it raises an ordinary exception or a group of them, raises `PlanFailed` with the seed and
    the shortest plan that still fails, found in at most `tries` more runs.
    """
    injection = Injection(plan)
    error = _error_of(scenario, injection)
    if error is None:
        return injection
    exact = Plan(tuple(injection.fired), seed=plan.seed)
    if _error_of(scenario, Injection(exact)) is None:
        exact = plan  # not repeatable from what fired alone
    shortest = shrink(exact, lambda p: _error_of(scenario, Injection(p)) is not None, tries=tries)
    raise PlanFailed(plan, shortest, error) from error


def _error_of(scenario: Callable[[Injection], object], injection: Injection) -> Exception | None:
    try:
        scenario(injection)
    except Exception as error:  # noqa: BLE001 whatever the scenario fails with is what we are after
        return error
    return None
