"""A random walk over whole trees: any mix of starts, stops, kills, casts, calls, faults, holds.

Then: no task is left, every call was answered, every `Down` came once, children stopped in order,
counters are true, and the same seed gives the same walk.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from supervisors import (
    Actor,
    Backoff,
    Beyond,
    ChildSpec,
    Down,
    GaveUp,
    Intensity,
    MailboxSpec,
    Note,
    Ref,
    Report,
    Restart,
    Shutdown,
    Strategy,
    SupervisorsError,
    SupervisorSpec,
    System,
    WhileDown,
    running,
    sys,
)
from supervisors.faults import Injection, Plan
from supervisors.testing import Deed, FakeChild, check_tree, leak_check, run_seeded

SEEDS = range(60)
STEPS = 80
CLIENTS = 4

DEEDS = [
    Deed.CRASH,
    Deed.HANG,
    Deed.CRASH_WHEN_CANCELLED,
    Deed.EXIT,
    Deed.HELPER_CRASH,
    Deed.QUIT,
    Deed.REJECT,
    Deed.SHIELD,
    Deed.SWALLOW,
]


@attrs.define
class Record:
    """What happened in one walk."""

    lines: list[str] = attrs.field(factory=list)
    reports: list[Report] = attrs.field(factory=list)
    calls: int = 0
    #: Calls with a deadline far beyond the walk that are still under way.
    patient: int = 0
    monitors: int = 0
    downs: Counter[int] = attrs.field(factory=Counter)
    starts: Counter[str] = attrs.field(factory=Counter)
    nested: int = 0

    def log(self, line: str) -> None:
        self.lines.append(line)
        if line.startswith("start "):
            self.starts[line.removeprefix("start ")] += 1


class Sink(Actor[object]):
    """Monitors what it is told to, and counts the downs."""

    def __init__(self, record: Record) -> None:
        self.record = record

    async def handle(self, message: object) -> object:
        match message:
            case Down(monitor=number):
                self.record.downs[number] += 1
            case ("link", str(path)):
                self.link(path)
            case ("relay", str(path)):
                return await self.find(path).attempt("hello", within=2)
        return None


def make_leaf(dice: Random, id: str, record: Record) -> ChildSpec:
    return ChildSpec(
        id,
        FakeChild,
        (
            Deed.CRASH if dice.random() < 0.05 else Deed.NOTHING,
            dice.choice([Deed.NOTHING] * 6 + [Deed.HANG, Deed.CRASH]),
            record.log,
            dice.choice([0.5, 4.0]),
        ),
        restart=dice.choice(list(Restart)),
        shutdown=Shutdown(grace=dice.choice([0.0, 0.5, 2.0]), stuck_after=1.0),
        start_within=5.0,
        mailbox=MailboxSpec(
            items=dice.choice([2, 100]),
            while_down=dice.choice(list(WhileDown)),
            drain=dice.random() < 0.3,
        ),
    )


def make_supervisor(dice: Random, record: Record, depth: int, name: str) -> SupervisorSpec:
    dynamic = dice.random() < 0.25
    children = []
    for n in range(dice.randint(1, 3)):
        id = f"{name}{n}"
        if depth and dice.random() < 0.4:
            record.nested += 1
            inner = make_supervisor(dice, record, depth - 1, id)
            children.append(
                ChildSpec(id, inner, restart=dice.choice([Restart.PERMANENT, Restart.TRANSIENT]))
            )
        else:
            children.append(make_leaf(dice, id, record))
    return SupervisorSpec(
        children,
        strategy=Strategy.ONE_FOR_ONE if dynamic else dice.choice(list(Strategy)),
        dynamic=dynamic,
        beyond=Beyond.PARK if dice.random() < 0.7 else Beyond.ESCALATE,
        intensity=Intensity(dice.randint(1, 5), 20.0),
        backoff=Backoff(first=0.1, cap=1.0, jitter=0.3, reset_after=10.0),
    )


async def client(
    system: System, patient: trio.Nursery, dice: Random, record: Record, number: int
) -> None:
    """One user of the tree, doing this and that."""
    for step in range(STEPS // CLIENTS):
        await trio.sleep(dice.choice([0.0, 0.0, 0.05, 0.7]))
        check_tree(system)
        paths = system.registry.under("")
        if not paths:
            continue
        path = dice.choice(paths)
        cell = system.registry.get(path)
        if cell is None:
            continue
        try:
            await act(system, patient, dice, record, path=path, name=f"{number}-{step}")
        except (SupervisorsError, ValueError) as error:  # ValueError: stepped by two
            record.lines.append(f"{path}: {type(error).__name__}")


async def act(
    system: System, patient: trio.Nursery, dice: Random, record: Record, *, path: str, name: str
) -> None:
    ref = system.ref(path)
    cell = system.registry.get(path)
    assert cell is not None
    parent, id = system.supervisor(cell.parent), cell.spec.id
    choice = dice.randrange(100)
    with trio.move_on_after(dice.choice([0.5, 5.0])):
        if choice < 25:
            ref.cast(dice.choice([*DEEDS, "hello", "hello"]), urgent=dice.random() < 0.1)
        elif choice < 50:
            message = dice.choice([*DEEDS, "hello", "hello", "hello"])
            if dice.random() < 0.5:
                patient.start_soon(call_patiently, ref, message, record)
            else:
                record.calls += 1
                await ref.attempt(message, within=dice.choice([0.1, 3.0]))
        elif choice < 60:
            record.monitors += 1
            monitor = system.monitor(path, lambda down: record.downs.update([down.monitor]))
            if dice.random() < 0.2:
                monitor.cancel()
                record.downs[monitor.number] += 1 - record.downs[monitor.number]
        elif choice < 70:
            sys.kill(ref)
        elif choice < 74:
            sys.suspend(ref)
            ref.cast("step over this")
            await sys.step(ref, 1)
            sys.resume(ref)
        elif choice < 80 and cell.driver is not None:
            await system.supervisor(path).start_child(make_leaf(dice, f"new{name}", record))
        elif choice < 86:
            await parent.stop_child(id)
        elif choice < 93:
            await parent.restart_child(id)
        elif choice < 96:
            sys.inspect(ref)
        else:
            await ref.send("hello", cost=dice.choice([1, 1000]))


async def call_patiently(ref: Ref[Any], message: object, record: Record) -> None:
    """A call that only the callee's side can end in time."""
    record.calls += 1
    record.patient += 1
    await ref.attempt(message, within=1e6)
    record.patient -= 1


def walk(seed: int) -> Record:
    dice = Random(seed)
    record = Record()
    spec = make_supervisor(dice, record, 2, "n")
    plan = Plan(seed=seed, rate=0.05 if seed % 2 else 0.0)

    async def in_tree(patient: trio.Nursery) -> None:
        async with running(
            spec,
            seed=seed,
            report=record.reports.append,
            faults=Injection(plan),
            stop_within=60.0,
        ) as system:
            async with trio.open_nursery() as nursery:
                for number in range(CLIENTS):
                    own = Random(seed * 100 + number)
                    nursery.start_soon(client, system, patient, own, record, number)
            await trio.sleep(dice.choice([0.0, 30.0]))
            check_tree(system)
            record.lines.append("--- stop")

    async def main() -> None:
        async with leak_check(), trio.open_nursery() as patient:
            try:
                await in_tree(patient)
            except* GaveUp:
                record.lines.append("gave up")
            await trio.testing.wait_all_tasks_blocked()
            assert record.patient == 0, "calls that nobody answered"

    run_seeded(main, seed=seed)
    return record


@pytest.mark.parametrize("seed", SEEDS)
def test_a_walk_leaves_nothing_and_nobody_behind(seed: int) -> None:
    record = walk(seed)
    assert len(record.downs) == record.monitors
    assert set(record.downs.values()) <= {1}
    told = Counter(report.path for report in record.reports if report.note is Note.STARTED)
    for path, starts in record.starts.items():
        # A start may be cut before its first line, so there can be more of them.
        assert starts <= told[path], path


def test_the_same_seed_gives_the_same_walk() -> None:
    for seed in (1, 2, 3):
        first, second = walk(seed), walk(seed)
        assert first.lines == second.lines
        assert [str(report) for report in first.reports] == [
            str(report) for report in second.reports
        ]


def test_the_walks_meet_what_they_are_for() -> None:
    notes: Counter[Note] = Counter()
    nested = calls = monitors = 0
    for seed in range(30):
        record = walk(seed)
        notes.update(report.note for report in record.reports)
        nested, calls, monitors = (
            nested + record.nested,
            calls + record.calls,
            monitors + record.monitors,
        )
    wanted = {Note.RESTARTING, Note.PARKED, Note.EXITED, Note.FAULT, Note.STUCK}
    assert wanted <= set(notes)
    assert min(nested, calls, monitors) > 10


def test_children_of_a_static_supervisor_stop_in_reverse_order() -> None:
    for seed in range(30):
        dice = Random(seed)
        record = Record()
        ids = [f"c{n}" for n in range(dice.randint(2, 5))]
        spec = SupervisorSpec(
            [ChildSpec(id, FakeChild, (Deed.NOTHING, Deed.NOTHING, record.log)) for id in ids],
            strategy=dice.choice(list(Strategy)),
            backoff=Backoff(first=0.2, cap=0.2),
            intensity=Intensity(50, 20.0),
        )

        async def main(spec: SupervisorSpec, ids: list[str], dice: Random, record: Record) -> None:
            async with running(spec) as system:
                await system.wait_for(ids[-1])
                for _ in range(dice.randint(0, 6)):
                    sys.kill(system.ref(dice.choice(ids)))
                    await trio.sleep(dice.random())
                up = [
                    info.id for info in system.supervisor().which_children() if info.phase == "up"
                ]
                record.lines.append("---")
                record.lines += [f"stop {id}" for id in reversed(up)]
                record.lines.append("---")

        run_seeded(main, spec, ids, dice, record, seed=seed)
        first = record.lines.index("---")
        second = record.lines.index("---", first + 1)
        expected, seen = record.lines[first + 1 : second], record.lines[second + 1 :]
        assert seen == expected, f"seed {seed}"
