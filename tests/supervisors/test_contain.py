"""Containment: what stops at the child, what goes through, and what the exit says."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import trio

from supervisors import (
    Actor,
    Bug,
    ChildSpec,
    Down,
    Exit,
    ExitKind,
    Failure,
    GaveUp,
    Intensity,
    Note,
    Report,
    Restart,
    Shutdown,
    StartFailed,
    SupervisorSpec,
    run_tree,
    running,
    sys,
)
from supervisors.testing import Deed, leak_check
from tests.supervisors._tree import AT_ONCE, TEMPORARY, Log, fake, tree


async def last_exit(*deeds: Deed, **options: object) -> tuple[Exit, list[Report]]:
    """How a temporary child ends that is sent these deeds and then stopped by its supervisor."""
    reports: list[Report] = []
    downs: list[Exit] = []
    spec = fake("a", Log(), restart=TEMPORARY, shutdown=Shutdown(grace=2.0), **options)  # type: ignore[arg-type]
    async with leak_check(), running(tree(spec), report=reports.append) as system:
        a = await system.wait_for("a")
        system.monitor("a", lambda down: downs.append(down.exit))
        for deed in deeds:
            a.cast(deed)
        await trio.sleep(1)
    assert len(downs) == 1
    return downs[0], reports


async def test_a_crash_alone() -> None:
    exit, reports = await last_exit(Deed.CRASH)
    assert str(exit) == "crashed: ValueError: a crashed as told"
    assert [report.note for report in reports] == [Note.STARTED, Note.EXITED]
    assert reports[1].next == "forget"


async def test_a_crash_in_a_helper() -> None:
    exit, _ = await last_exit(Deed.HELPER_CRASH)
    assert str(exit) == "crashed: ValueError: a helper of a crashed as told"


async def test_a_normal_end() -> None:
    exit, reports = await last_exit(Deed.QUIT)
    assert exit == Exit(ExitKind.NORMAL, "as told")
    assert [report.note for report in reports] == [Note.STARTED]


async def test_a_crash_in_cleanup_during_a_stop_is_a_crash() -> None:
    exit, reports = await last_exit(on_stop=Deed.CRASH)
    assert exit.kind is ExitKind.CRASHED
    assert "while stopping" in reports[-1].text


async def test_a_crash_while_cancelled_by_the_grace_keeps_its_error() -> None:
    exit, _ = await last_exit(Deed.CRASH_WHEN_CANCELLED)
    assert str(exit) == "crashed: ValueError: a crashed while cancelled"


async def test_a_crash_in_cleanup_during_an_outer_cancel_stays_contained() -> None:
    downs: list[Exit] = []
    async with leak_check():
        with trio.move_on_after(1) as scope:
            async with running(tree(fake("a", Log())), stop_within=1.0) as system:
                a = await system.wait_for("a")
                system.monitor("a", lambda down: downs.append(down.exit))
                a.cast(Deed.CRASH_WHEN_CANCELLED)
                await trio.sleep_forever()
        assert scope.cancelled_caught
    assert [str(exit) for exit in downs] == ["crashed: ValueError: a crashed while cancelled"]
    assert trio.current_time() == 2


async def test_a_swallowed_cancel_is_reported() -> None:
    exit, reports = await last_exit(Deed.SWALLOW)
    assert exit.swallowed_cancel
    assert exit.kind is ExitKind.STOPPED
    assert Note.SWALLOWED_CANCEL in [report.note for report in reports]


async def test_a_shield_longer_than_the_grace_is_reported_as_stuck_and_waited_for() -> None:
    reports: list[Report] = []
    spec = fake("a", Log(), shielded=20.0, shutdown=Shutdown(grace=2.0, stuck_after=3.0))
    async with running(tree(spec), report=reports.append) as system:
        a = await system.wait_for("a")
        a.cast(Deed.SHIELD)
        await trio.sleep(1)
    stuck = [report for report in reports if report.note is Note.STUCK]
    assert [report.at for report in stuck] == [6]
    assert "do (_fake.py:" in stuck[0].text
    assert trio.current_time() == 20


class Raises(Actor[object]):
    """Raises what it is sent; in a helper when that stands in a tuple."""

    async def handle(self, message: object) -> object:
        if isinstance(message, BaseException):
            raise message
        if isinstance(message, tuple):
            self.spawn(self.handle, *message)
        return message


async def test_what_is_not_the_childs_to_decide_goes_through() -> None:
    with pytest.RaisesGroup(KeyboardInterrupt, flatten_subgroups=True):
        async with running(SupervisorSpec([ChildSpec("a", Raises)])) as system:
            (await system.wait_for("a")).cast(KeyboardInterrupt())
            await trio.sleep_forever()


class Own(BaseException):
    """A class of somebody's beside `Exception`."""


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (GeneratorExit(), "GeneratorExit: "),
        (Own("mine"), "Own: mine"),
        (BaseExceptionGroup("both", [SystemExit(1), ValueError("x")]), "SystemExit: 1; ValueError"),
    ],
)
@pytest.mark.parametrize("in_helper", [False, True])
async def test_what_is_the_childs_own_is_its_crash_and_nobody_elses(
    error: BaseException, text: str, in_helper: bool
) -> None:
    log = Log()
    spec = tree(ChildSpec("a", Raises), fake("b", log))
    async with leak_check(), running(spec) as system:
        a, b = await system.wait_for("a"), await system.wait_for("b")
        a.cast((error,) if in_helper else error)
        await trio.sleep(1)
        last = system.supervisor().which_children()[0].last_exit
        assert str(last).startswith(f"crashed: {text}")
        assert await a.call("again", within=1) == "again"
        assert await b.call("hello", within=1) == "hello"
    assert log == ["start b", "stop b"]


async def test_a_group_that_cannot_be_divided_is_contained_all_the_same() -> None:
    class Whole(BaseExceptionGroup[BaseException]):
        def derive(self, _: Any) -> Any:
            raise TypeError("one piece")

    class Stuck(Actor[object]):
        async def handle(self, message: object) -> None:
            try:
                await trio.sleep_forever()
            except trio.Cancelled as cancelled:
                raise Whole("whole", [cancelled, ValueError("x")]) from None

    async with leak_check(), running(tree(ChildSpec("a", Stuck))) as system:
        a = await system.wait_for("a")
        a.cast("go")
        await trio.sleep(1)
        sys.kill(a)
        await trio.sleep(1)
        assert a.alive
        exit = system.supervisor().which_children()[0].last_exit
        assert exit is not None
        assert exit.kind is ExitKind.CRASHED


class Mute(Exception):
    """One whose methods for people fail, which a nursery of trio's cannot stand either."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


@pytest.mark.parametrize("in_helper", [False, True])
async def test_an_exception_that_cannot_be_put_into_words_ends_its_actor_alone(
    in_helper: bool,
) -> None:
    reports: list[Report] = []
    async with leak_check(), running(tree(ChildSpec("a", Raises)), report=reports.append) as system:
        a = await system.wait_for("a")
        failure = await a.attempt((Mute(),) if in_helper else Mute(), within=1)
        await trio.sleep(1)
        assert in_helper or isinstance(failure, Failure)
        assert await a.call("again", within=1) == "again"
    (exited,) = [report for report in reports if report.note is Note.RESTARTING]
    assert "Mute" in exited.text
    assert exited.exit is not None
    assert exited.exit.crash is not None
    assert "Mute" in exited.exit.crash.traceback


async def test_hooks_that_run_in_the_middle_of_an_end_hurt_nobody() -> None:
    reports: list[Report] = []
    downs: list[Down] = []

    def hurt(_: object) -> None:
        raise SystemExit("from a hook")

    async with leak_check(), running(tree(ChildSpec("a", Raises)), report=reports.append) as system:
        a = await system.wait_for("a")
        system.monitor("a", hurt)
        system.monitor("a", downs.append)
        sys.trace(a, hurt)
        sys.break_when(a, hurt)  # type: ignore[arg-type]
        await a.send(ValueError("x"), on_lost=hurt)
        await trio.sleep(1)
        assert await a.call("again", within=1) == "again"
        system.monitor("nobody", hurt)
    assert len(downs) == 1
    texts = [report.text for report in reports if report.note is Note.HOOK_FAILED]
    assert [text.split(":")[0] for text in texts] == [
        "breakpoint 4 removed",
        "trace sink 3 removed",
        "on_lost failed",
        "a monitor failed",
        "a monitor failed",
    ]


async def test_a_reporter_that_raises_anything_is_taken_out() -> None:
    def hurt(_: object) -> None:
        raise SystemExit

    async with leak_check(), running(tree(ChildSpec("a", Raises)), report=hurt) as system:
        a = await system.wait_for("a")
        assert await a.call("hello", within=1) == "hello"


async def test_nothing_of_a_child_is_kept_alive_once_it_is_forgotten() -> None:
    class Big:
        pass

    class Holder(Raises):
        def __init__(self) -> None:
            self.big = Big()
            held.append(weakref.ref(self.big))

    held: list[weakref.ref[Big]] = []
    async with running(tree(dynamic=True)) as system:
        supervisor = system.supervisor()
        await supervisor.start_child(ChildSpec("a", Holder, restart=TEMPORARY))
        system.ref("a").cast(ValueError("x"))
        await trio.sleep(1)
        gc.collect()
        assert held[0]() is None


async def test_the_exits_of_a_supervisor_that_gave_up_are_words() -> None:
    with pytest.raises(GaveUp) as caught:
        await run_tree(tree(fake("a", Log(), on_start=Deed.CRASH)))
    assert [exit.crash for exit in caught.value.exits] == [None]
    assert "ValueError: a crashed as told" in caught.value.exits[0].reason


async def test_a_fatal_error_in_a_group_with_an_ordinary_one_goes_through_alone() -> None:
    class Mixed(Actor[object]):
        async def handle(self, message: object) -> None:
            raise ExceptionGroup("mixed", [ValueError("ordinary"), Bug("ours")])

    with pytest.RaisesGroup(Bug, flatten_subgroups=True):
        async with running(SupervisorSpec([ChildSpec("a", Mixed)])) as system:
            (await system.wait_for("a")).cast("go")
            await trio.sleep_forever()


async def test_a_child_that_returns_before_it_is_ready_failed_to_start() -> None:
    class Quitter(Actor[object]):
        async def on_start(self) -> None:
            self.stop("changed its mind")
            raise ValueError("cannot")

    async with running(tree(dynamic=True)) as system:
        with pytest.raises(StartFailed, match="ValueError: cannot") as caught:
            await system.supervisor().start_child(ChildSpec("a", Quitter))
        assert caught.value.exit.kind is ExitKind.START_FAILED
        assert system.registry.get("a") is None


async def test_a_factory_that_raises_is_a_failed_start() -> None:
    def factory() -> Actor[object]:
        raise LookupError("no such thing")

    async with running(tree(dynamic=True)) as system:
        with pytest.raises(StartFailed, match="LookupError: no such thing"):
            await system.supervisor().start_child(ChildSpec("a", factory))


async def test_a_child_that_is_ready_after_its_stop_was_asked_still_stops() -> None:
    class SlowStart(Actor[object]):
        async def on_start(self) -> None:
            await trio.sleep(3)

    spec = ChildSpec("a", SlowStart)
    async with running(SupervisorSpec([spec])) as system:
        await trio.sleep(1)
        system.stop()
        await trio.sleep(5)
    assert trio.current_time() == 6


async def test_a_start_that_takes_too_long_is_cancelled() -> None:
    async with running(tree(dynamic=True)) as system:
        spec = fake("a", Log(), on_start=Deed.HANG, start_within=4.0)
        with pytest.raises(StartFailed, match=r"not ready within 4.0 s"):
            await system.supervisor().start_child(spec)
        assert trio.current_time() == 4


async def test_a_nested_supervisor_that_gives_up_is_restarted_by_a_transient_entry() -> None:
    log = Log()
    inner = SupervisorSpec([fake("a", log)], intensity=Intensity(0, 1.0), backoff=AT_ONCE)
    outer = tree(ChildSpec("s", inner, restart=Restart.TRANSIENT))
    async with running(outer) as system:
        a = await system.wait_for("s/a")
        a.cast(Deed.CRASH)
        await trio.sleep(1)
        info = system.supervisor().which_children()[0]
        assert (info.phase, info.incarnation) == ("up", 2)
        assert info.last_exit is not None
        assert info.last_exit.kind is ExitKind.GAVE_UP
        assert log == ["start s/a", "crash s/a", "start s/a"]
        assert await a.call("hello", within=1) == "hello"


async def test_giving_up_at_the_root_is_an_exception_with_the_last_exits() -> None:
    spec = tree(fake("a", Log(), on_start=Deed.CRASH))
    with pytest.raises(GaveUp, match="a failed to start") as caught:
        await run_tree(spec)
    assert [exit.kind for exit in caught.value.exits] == [ExitKind.START_FAILED]
    assert caught.value.path == ""


async def test_the_crash_hook_is_bounded_and_its_own_failure_only_reported() -> None:
    class BadHook(Actor[str]):
        async def handle(self, message: str) -> None:
            raise ValueError(message)

        async def on_crash(self, error: BaseException | None) -> None:
            assert isinstance(error, ExceptionGroup)
            if "slow" in str(error.exceptions[0]):
                await trio.sleep_forever()
            raise LookupError("in the hook")

    reports: list[Report] = []
    spec = ChildSpec("a", BadHook, shutdown=Shutdown(cleanup=2.0), backoff=AT_ONCE)
    async with running(SupervisorSpec([spec]), report=reports.append) as system:
        a = await system.wait_for("a")
        for message in ("fast", "slow"):
            a.cast(message)
            await trio.sleep(5)
    texts = [report.text for report in reports if report.note is Note.HOOK_FAILED]
    assert texts == [
        "on_crash failed: LookupError: in the hook",
        "on_crash was not done within 2.0 s",
    ]


async def test_a_kill_ends_it_at_once_and_counts_as_a_failure() -> None:
    log = Log()
    async with running(tree(fake("a", log))) as system:
        a = await system.wait_for("a")
        a.cast(Deed.HANG)
        await trio.sleep(1)
        assert sys.kill(a, "just so")
        await trio.sleep(1)
        assert log == ["start a", "crash a", "start a"]
        assert system.supervisor().which_children()[0].last_exit == Exit(ExitKind.KILLED, "just so")
