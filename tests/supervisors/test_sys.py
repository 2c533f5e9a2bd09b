"""Looking at one actor and steering it while all others run on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from supervisors import Actor, ActorGone, ChildSpec, Note, Ref, Report, running, sys
from supervisors.testing import Deed
from tests.supervisors._tree import Log, fake, tree


class Summing(Actor[int | str]):
    def __init__(self) -> None:
        self.total = 0

    async def handle(self, message: int | str) -> int:
        if isinstance(message, int):
            self.total += message
        elif message == "wait":
            self.spawn(trio.sleep_forever, name="waiter")
            await trio.sleep(10)
        return self.total


class Shy(Actor[object]):
    def inspect(self) -> object:
        raise LookupError("not telling")


SUMMING = ChildSpec("s", Summing)
Handle = Callable[[Any], Awaitable[Any]]


async def test_an_inspection_shows_an_actor_in_the_middle_of_a_message() -> None:
    async with running(tree(SUMMING), keep=2) as system:
        s = await system.wait_for("s")
        for message in (1, 2, "wait", 4):
            s.cast(message)
        await trio.sleep(3)
        seen = sys.inspect(s)
        assert (seen.path, seen.kind, seen.supervisor) == ("s", "actor", "")
        assert (seen.phase, seen.incarnation, seen.restarts) == ("running", 1, 0)
        assert seen.spec is not None
        assert seen.state == {"total": 3}
        assert seen.handled == 2
        assert (seen.in_hand, seen.waiting) == ("wait", (4,))
        assert seen.recent == ((0, 2), (0, "wait"))
        assert seen.mailbox.oldest_age == 3
        assert any(frame.startswith("handle (test_sys.py:") for frame in seen.waits_at)
        assert [helper.name for helper in seen.helpers] == ["s#waiter"]
        assert "sleep_forever" in seen.helpers[0].waits_at[1]


async def test_an_inspection_shows_the_last_crash_with_its_traceback() -> None:
    async with running(tree(fake("a", Log()))) as system:
        a = await system.wait_for("a")
        a.cast(Deed.CRASH)
        await trio.sleep(1)
        seen = sys.inspect(a)
        assert (seen.incarnation, seen.restarts) == (2, 1)
        assert seen.last_exit is not None
        assert seen.last_exit.crash is not None
        assert "a crashed as told" in seen.last_exit.crash.traceback


async def test_an_inspection_shows_whom_it_waits_for_and_what_it_owes() -> None:
    class Asks(Actor[str]):
        async def handle(self, message: str) -> None:
            self.defer()
            await self.find("s").attempt("wait", within=60)

    async with running(tree(SUMMING, ChildSpec("a", Asks))) as system:
        a = await system.wait_for("a")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_attempt, a)
            await trio.sleep(1)
            seen = sys.inspect(a)
            assert (seen.waits_for, seen.owed_replies) == ("s", 1)
            nursery.cancel_scope.cancel()


async def _attempt(ref: Ref[str]) -> None:
    await ref.attempt("go", within=60)


async def test_a_whole_tree_is_listed_with_its_supervisors() -> None:
    inner = tree(ChildSpec("shy", Shy))
    async with running(tree(SUMMING, ChildSpec("inner", inner))) as system:
        await system.wait_for("inner/shy")
        await system.supervisor().stop_child("s")
        seen = sys.inspect_all(system)
        assert [(each.path, each.kind, each.phase) for each in seen] == [
            ("inner", "supervisor", "running"),
            ("inner/shy", "actor", "running"),
            ("s", "actor", "down"),
        ]
        assert repr(seen[1].state) == "LookupError('not telling')"


async def test_nobody_cannot_be_looked_at() -> None:
    async with running(tree()) as system:
        with pytest.raises(ActorGone):
            sys.inspect(system.ref("nobody"))


async def test_a_suspended_actor_takes_nothing_until_it_is_resumed() -> None:
    async with running(tree(SUMMING, fake("other", Log()))) as system:
        await system.wait_for("other")
        s = system.ref("s")
        sys.suspend(s)
        sys.suspend(s)
        await sys.held(s)
        s.cast(1)
        s.cast(2, urgent=True)
        await trio.sleep(5)
        seen = sys.inspect(s)
        assert (seen.phase, seen.handled, len(seen.waiting)) == ("suspended", 0, 2)
        assert await system.ref("other").call("hello", within=1) == "hello"
        sys.resume(s)
        sys.resume(s)
        assert await s.call(0, within=1) == 3
        assert s.cell is not None
        assert s.cell.probe is None


async def test_a_suspended_actor_finishes_what_it_has_in_hand() -> None:
    async with running(tree(SUMMING)) as system:
        s = await system.wait_for("s")
        s.cast("wait")
        await trio.sleep(1)
        sys.suspend(s)
        await sys.held(s)
        assert trio.current_time() == 10
        assert sys.inspect(s).handled == 1


async def test_steps_handle_exactly_as_many_messages() -> None:
    async with running(tree(SUMMING)) as system:
        s = await system.wait_for("s")
        with pytest.raises(ValueError, match="not suspended"):
            await sys.step(s)
        sys.suspend(s)
        for n in (1, 2, 3, 4):
            s.cast(n)
        assert await sys.step(s) == 1
        assert sys.inspect(s).state == {"total": 1}
        assert await sys.step(s, 2) == 2
        assert sys.inspect(s).state == {"total": 6}
        assert await sys.step(s, 5) == 1
        assert sys.inspect(s).state == {"total": 10}
        assert sys.inspect(s).phase == "suspended"


async def test_a_step_into_a_crash_ends_and_the_next_incarnation_is_suspended_too() -> None:
    async with running(tree(fake("a", Log()))) as system:
        a = await system.wait_for("a")
        sys.suspend(a)
        a.cast(Deed.CRASH)
        a.cast("next")
        assert await sys.step(a, 2) == 0
        await trio.sleep(1)
        seen = sys.inspect(a)
        assert (seen.incarnation, seen.phase, seen.waiting) == (2, "suspended", ("next",))


async def test_a_step_that_is_cancelled_steps_no_further() -> None:
    async with running(tree(SUMMING)) as system:
        s = await system.wait_for("s")
        sys.suspend(s)
        s.cast("wait")
        s.cast(1)
        with trio.move_on_after(1):
            await sys.step(s, 2)
        await trio.sleep(20)
        assert sys.inspect(s).waiting == (1,)


async def test_a_suspended_actor_can_be_stopped_and_killed() -> None:
    async with running(tree(fake("a", Log()))) as system:
        a = await system.wait_for("a")
        sys.suspend(a)
        assert sys.kill(a)
        await trio.sleep(1)
        assert sys.inspect(a).incarnation == 2
        await system.supervisor().stop_child("a")
        assert trio.current_time() == 1
        assert not sys.kill(a)


async def test_a_breakpoint_holds_before_the_message_it_names() -> None:
    async with running(tree(SUMMING)) as system:
        s = await system.wait_for("s")
        undo = sys.break_when(s, lambda message: message == 3)
        for n in (1, 2, 3, 4, 3, 5):
            s.cast(n)
        await sys.held(s)
        assert sys.inspect(s).state == {"total": 3}
        assert sys.inspect(s).waiting[0] == 3
        sys.resume(s)
        await sys.held(s)
        assert sys.inspect(s).state == {"total": 10}
        undo()
        sys.resume(s)
        assert await s.call(0, within=1) == 18


async def test_a_breakpoint_that_raises_is_removed_and_reported() -> None:
    reports: list[Report] = []

    def bad(message: object) -> bool:
        raise LookupError(message)

    async with running(tree(SUMMING), report=reports.append) as system:
        s = await system.wait_for("s")
        sys.break_when(s, bad)
        assert await s.call(1, within=1) == 1
        assert [r.text for r in reports if r.note is Note.HOOK_FAILED] == [
            "breakpoint 1 removed: LookupError(1)"
        ]


async def test_a_trace_shows_what_was_done_and_how_long_it_took() -> None:
    events: list[sys.TraceEvent] = []
    async with running(tree(SUMMING)) as system:
        s = await system.wait_for("s")
        undo = sys.trace(s, events.append)
        s.cast("wait")
        await s.call(2, within=20)
        sys.suspend(s)
        sys.resume(s)
        undo()
        await s.call(3, within=1)
    assert [(e.kind.value, e.message, e.call, e.at, e.took) for e in events] == [
        ("message", "wait", False, 0, 0),
        ("handled", "wait", False, 10, 10),
        ("message", 2, True, 10, 0),
        ("handled", 2, True, 10, 0),
        ("held", "by hand", False, 10, 0),
        ("resumed", None, False, 10, 0),
    ]


async def test_a_trace_goes_on_over_a_restart() -> None:
    events: list[sys.TraceEvent] = []
    async with running(tree(fake("a", Log()))) as system:
        a = await system.wait_for("a")
        sys.trace(a, events.append)
        a.cast(Deed.CRASH)
        await trio.sleep(1)
    assert [(event.kind.value, event.incarnation) for event in events] == [
        ("message", 1),
        ("ended", 1),
        ("started", 2),
        ("ended", 2),
    ]
    assert str(events[1].message) == "crashed: ValueError: a crashed as told"


async def test_a_trace_sink_that_raises_is_removed_and_reported() -> None:
    reports: list[Report] = []

    def bad(event: sys.TraceEvent) -> None:
        raise LookupError(event.path)

    async with running(tree(SUMMING), report=reports.append) as system:
        s = await system.wait_for("s")
        sys.trace(s, bad)
        assert await s.call(1, within=1) == 1
        assert [r.text for r in reports if r.note is Note.HOOK_FAILED] == [
            "trace sink 1 removed: LookupError('s')"
        ]


async def test_a_trace_stream_that_is_not_read_holds_nobody_up() -> None:
    async with running(tree(SUMMING)) as system:
        s = await system.wait_for("s")
        with sys.stream(s, buffer=3) as events:
            for n in range(10):
                await s.call(n, within=1)
            got = [events.receive_nowait() for _ in range(3)]
            with pytest.raises(trio.WouldBlock):
                events.receive_nowait()
        assert [event.message for event in got] == [0, 0, 1]
        assert s.cell is not None
        assert s.cell.probe is None


async def test_recent_messages_are_kept_on_request_only() -> None:
    async with running(tree(SUMMING)) as system:
        s = await system.wait_for("s")
        await s.call(1, within=1)
        assert sys.inspect(s).recent == ()
        sys.keep(s, 2)
        for n in (2, 3, 4):
            await s.call(n, within=1)
        assert [message for _at, message in sys.inspect(s).recent] == [3, 4]
        sys.keep(s, 0)
        assert s.cell is not None
        assert s.cell.probe is None


async def test_an_errand_runs_in_the_actors_task_between_two_messages() -> None:
    async with running(tree(SUMMING)) as system:
        s = await system.wait_for("s")
        seen: list[object] = []

        async def errand(actor: Summing) -> None:
            seen.append((actor.total, trio.lowlevel.current_task().name))
            await trio.sleep(5)
            actor.total += 10
            seen.append(sys.inspect(s).in_hand)

        s.cast("wait")
        s.cast(1)
        await trio.sleep(1)
        assert await sys.between(s, errand)  # before the message that waits
        assert seen == [(0, "s"), None]
        assert trio.current_time() == 15
        sys.suspend(s)
        s.cast(2)
        assert await sys.between(s, errand)
        assert seen[2] == (11, "s")
        sys.resume(s)
        assert await s.call(0, within=1) == 23
        assert s.cell is not None
        assert s.cell.probe is None


async def test_an_errand_that_raises_or_is_not_wanted_any_more_hurts_nobody() -> None:
    reports: list[Report] = []
    async with running(tree(SUMMING), report=reports.append) as system:
        s = await system.wait_for("s")

        async def bad(_: Summing) -> None:
            raise LookupError("nothing here")

        assert not await sys.between(s, bad)
        [told] = [each for each in reports if each.note is Note.HOOK_FAILED]
        assert "LookupError('nothing here')" in told.text

        async def never(_: Summing) -> None:
            raise AssertionError("nobody wants it")

        s.cast("wait")
        await trio.sleep(1)
        with trio.move_on_after(2):
            await sys.between(s, never)
        assert await s.call(0, within=20) == 0

        async def endless(_: Summing) -> None:
            await trio.sleep_forever()

        ran: list[bool] = []

        async def ask() -> None:
            ran.append(await sys.between(s, endless))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            nursery.start_soon(ask)
            await trio.sleep(1)
            sys.kill(s)
        assert ran == [False, False]


async def test_the_next_message_is_handled_by_what_is_put_around_it() -> None:
    async with running(tree(SUMMING)) as system:
        s = await system.wait_for("s")

        def doubling(handle: Handle) -> Handle:
            async def handled(message: int) -> object:
                return await handle(2 * message)

            return handled

        undo = sys.around_next(s, doubling)
        with pytest.raises(ValueError, match="somebody else waits for its next message"):
            sys.around_next(s, doubling)
        assert await s.call(3, within=1) == 6
        assert await s.call(3, within=1) == 9
        undo()
        sys.around_next(s, doubling)()
        assert await s.call(1, within=1) == 10
        assert s.cell is not None
        assert s.cell.probe is None


async def test_stacks_have_the_source_lines_where_tasks_wait() -> None:
    async with running(tree(SUMMING)) as system:
        s = await system.wait_for("s")
        s.cast("wait")
        await trio.sleep(1)
        own, helper = sys.stacks(s)
        assert (own.name, helper.name) == ("s", "s#waiter")
        [place] = [each for each in own.places if each.function == "Summing.handle"]
        assert place.text == "await trio.sleep(10)"
        assert place.file == __file__
        assert any(each.function == "sleep_forever" for each in helper.places)


async def test_a_glance_has_the_figures_of_one_in_passing() -> None:
    async with running(tree(SUMMING)) as system:
        s = await system.wait_for("s")
        for message in (1, "wait", 4):
            s.cast(message)
        await trio.sleep(3)
        seen = sys.glance(system, "s")
        assert seen is not None
        assert (seen.kind, seen.phase, seen.handled, seen.restarts) == ("actor", "running", 1, 0)
        assert (seen.in_hand, seen.in_hand_age, seen.children) == ("wait", 3, None)
        assert seen.mailbox is not None
        assert (seen.mailbox.depth, seen.mailbox.oldest_age) == (1, 3)
        assert any(at.startswith("handle (test_sys.py:") for at in sys.waits_at(system, "s"))
        assert isinstance(sys.actor_at(system, "s"), Summing)
        assert sys.paths(system) == ["s"]
        assert sys.glance(system, "x") is None
        assert sys.actor_at(system, "x") is None
        assert sys.waits_at(system, "x") == ()
