"""A random walk over the policy alone, checked against its invariants at every step.

The invariants are checked by a model that sees only events and commands. A few known-bad policies
must not get past it, so that it cannot quietly stop checking.
"""

from __future__ import annotations

from random import Random

import pytest

from supervisors import (
    Actor,
    Backoff,
    Beyond,
    ChildSpec,
    Exit,
    ExitKind,
    Intensity,
    Restart,
    Shutdown,
    Strategy,
    SupervisorSpec,
)
from supervisors._events import (
    AddChild,
    AskStop,
    Boot,
    Cancel,
    ChildExit,
    ChildReady,
    Command,
    Done,
    Event,
    GiveUp,
    Note,
    RestartChild,
    Settle,
    Settled,
    Start,
    StopAll,
    StopChild,
    Tell,
    Tick,
)
from supervisors._policy import ALIVE, Child, Phase, Policy, Window

STEPS = 60
SEEDS = range(250)
KINDS = [ExitKind.NORMAL, ExitKind.CRASHED, ExitKind.KILLED, ExitKind.LOST, ExitKind.GAVE_UP]


class Model:
    """What an outsider can know, and what must hold of it."""

    def __init__(self, spec: SupervisorSpec) -> None:
        self.spec = spec
        self.order: list[str] = [child.id for child in spec.children]
        self.specs = {child.id: child for child in spec.children}
        self.alive: dict[str, int] = {}
        self.asked: set[str] = set()
        self.by_hand: set[str] = set()
        self.ended: set[str] = set()
        self.restarts: dict[str, list[float]] = {}
        self.closing = False
        self.over = False

    def event(self, event: Event) -> None:
        match event:
            case AddChild(spec=spec):
                self.order.append(spec.id)
                self.specs[spec.id] = spec
                self.ended.discard(spec.id)
            case ChildExit(id=id, exit=exit):
                del self.alive[id]
                self.asked.discard(id)
                if not exit.abnormal:
                    self.ended.add(id)
            case StopChild(id=id):
                self.by_hand.add(id)
                self.ended.add(id)
            case RestartChild(id=id):
                self.by_hand.add(id)
                self.ended.discard(id)
            case StopAll():
                self.closing = True

    def command(self, command: Command, now: float, policy: Policy) -> None:
        assert not self.over, f"{command} after the end"
        match command:
            case Start(id=id, incarnation=incarnation):
                assert id not in self.alive, "I1: a second incarnation"
                assert not policy.closing, "I2: a start while closing"
                assert not self.closing, "I2: a start while closing"
                self.alive[id] = incarnation
                self.by_hand.discard(id)
            case AskStop(id=id):
                self._asked(id, policy)
            case Cancel(id=id):
                assert id in self.alive, "a cancel of nobody"
                if id not in self.asked and policy.children[id].phase is Phase.STOPPING:
                    self._asked(id, policy)
            case Tell(note=Note.RESTARTING, id=id):
                # Parking counts each child for itself, and a restart by hand forgets.
                key = id if self.spec.beyond is Beyond.PARK else ""
                limit = self.spec.intensity
                times = self.restarts.setdefault(key, [])
                times.append(now)
                counted = [at for at in times if now - at <= limit.period]
                assert len(counted) <= limit.restarts, "I4: more restarts than its intensity"
            case Settle(id=id, where=Settled.FORGOTTEN):
                self.order.remove(id)
                self.by_hand.discard(id)
            case Done() | GiveUp():
                assert not self.alive, "I5: the end with a child alive"
                self.over = True

    def _asked(self, id: str, policy: Policy) -> None:
        assert id in self.alive, "a stop of nobody"
        assert id not in self.asked, "asked twice"
        if not self.spec.dynamic and id not in self.by_hand:
            others = self.asked - self.by_hand
            assert not others, f"I3: stops overlap: {id} and {others}"
            if policy.closing:
                later = self.order[self.order.index(id) + 1 :]
                assert not set(later) & set(self.alive), "I3: stopped before a later sibling"
        self.asked.add(id)

    def rest(self, policy: Policy) -> None:
        """What must hold between two events."""
        assert sorted(self.alive) == sorted(
            id for id, child in policy.children.items() if child.phase in ALIVE
        )
        for id, child in policy.children.items():
            if child.spec.restart is not Restart.PERMANENT or policy.closing:
                continue
            planned = child.phase in (Phase.WAITING, Phase.PARKED) or child.rising
            assert id in self.alive or planned or id in self.ended, "I6: down and forgotten"


def make_spec(dice: Random) -> SupervisorSpec:
    dynamic = dice.random() < 0.2
    strategy = Strategy.ONE_FOR_ONE if dynamic else dice.choice(list(Strategy))
    return SupervisorSpec(
        [make_child(dice, f"c{n}") for n in range(dice.randint(0, 4))],
        strategy=strategy,
        dynamic=dynamic,
        beyond=dice.choice(list(Beyond)),
        intensity=Intensity(dice.randint(0, 4), dice.choice([5.0, 50.0])),
        backoff=Backoff(first=dice.choice([0.0, 0.25]), cap=1.0, jitter=0.2, reset_after=10.0),
    )


def make_child(dice: Random, id: str) -> ChildSpec:
    shutdown = Shutdown(grace=dice.choice([None, 0.0, 2.0]), stuck_after=dice.choice([0.0, 1.0]))
    return ChildSpec(
        id,
        Actor[object],
        restart=dice.choice(list(Restart)),
        shutdown=shutdown,
        start_within=3.0,
    )


def walk(make: type[Policy], seed: int) -> None:
    dice = Random(seed)
    spec = make_spec(dice)
    policy, model = make(spec, Random(seed)), Model(spec)
    now = 0.0

    def feed(event: Event) -> None:
        model.event(event)
        for command in policy.handle(event, now):
            model.command(command, now, policy)
        if not model.over:
            assert policy.wake_at > now, "a wake-up in the past"
            model.rest(policy)

    feed(Boot())
    for step in range(STEPS):
        if model.over:
            return
        ids = list(policy.children)
        chance = dice.random()
        starting = [id for id in ids if policy.children[id].phase is Phase.STARTING]
        if chance < 0.35 and starting:
            feed(ChildReady(dice.choice(starting)))
        elif chance < 0.6 and model.alive:
            id = dice.choice(list(model.alive))
            asked = id in model.asked and dice.random() < 0.8
            feed(ChildExit(id, Exit(ExitKind.STOPPED if asked else dice.choice(KINDS))))
        elif chance < 0.75:
            if policy.wake_at - now < 100:
                now = policy.wake_at
            else:
                now += dice.random()
            feed(Tick())
        elif policy.closing:
            continue
        elif chance < 0.83:
            feed(AddChild(make_child(dice, f"n{step}")))
        elif chance < 0.9 and ids:
            feed(StopChild(dice.choice(ids), "by hand"))
        elif chance < 0.97 and ids:
            id = dice.choice(ids)
            model.restarts.pop(id, None)
            feed(RestartChild(id))
        elif chance > 0.98:
            feed(StopAll("enough"))
    if not model.over:
        feed(StopAll("the walk is over"))
    for _ in range(10 * STEPS):
        if model.over:
            return
        # Whoever was told to go goes; this must be all it takes to end.
        ready_to_go = [id for id in model.alive if policy.children[id].phase is Phase.STOPPING]
        assert ready_to_go, "nobody is asked to stop, and it does not end"
        feed(ChildExit(ready_to_go[0], Exit(ExitKind.STOPPED)))
    raise AssertionError("it does not end")


def first_failure(make: type[Policy]) -> tuple[int, AssertionError] | None:
    for seed in SEEDS:
        try:
            walk(make, seed)
        except AssertionError as error:
            return seed, error
    return None


def test_every_walk_keeps_the_invariants() -> None:
    failure = first_failure(Policy)
    if failure is not None:
        seed, error = failure
        raise AssertionError(f"repeat with walk(Policy, {seed})") from error


# ---- known-bad policies -------------------------------------------------------------------------


class StopsOverlap(Policy):
    """Asks all that fall at once."""

    def _bring_down(self, children: list[Child]) -> None:
        super()._bring_down(children)
        for child in children:
            if child.phase in (Phase.STARTING, Phase.UP):
                self._ask_stop(child, "at once")


class StopsForwards(Policy):
    """Stops the first child first."""

    def _bring_down(self, children: list[Child]) -> None:
        super()._bring_down(children)
        self._falling.reverse()


class OneTooMany(Policy):
    """Counts restarts, but forgets the newest."""

    def __init__(self, spec: SupervisorSpec, random: Random) -> None:
        super().__init__(spec, random)
        lax = Intensity(spec.intensity.restarts + 1, spec.intensity.period)
        self._window = Window(lax)


class EndsEarly(Policy):
    """Does not wait for its children."""

    def _finish(self, reason: str) -> None:
        self._alive = 0
        super()._finish(reason)


class ForgetsToStart(Policy):
    """Loses a child that was waiting for its group."""

    def _raise_up(self, children: list[Child]) -> None:
        super()._raise_up(children[:-1] if len(children) > 1 else children)


@pytest.mark.parametrize(
    "bad", [StopsOverlap, StopsForwards, OneTooMany, EndsEarly, ForgetsToStart]
)
def test_the_walk_finds_known_bad_policies(bad: type[Policy]) -> None:
    assert first_failure(bad) is not None
