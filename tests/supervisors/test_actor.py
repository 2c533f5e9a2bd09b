"""What an actor's author relies on: messages, replies, helpers, hooks."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio
import trio.testing
from msgspec import structs

from supervisors import (
    Actor,
    ActorGone,
    CallFailed,
    ChildSpec,
    Exit,
    ExitKind,
    Failure,
    FailureKind,
    Ref,
    Reply,
    Request,
    SupervisorSpec,
    WhileDown,
    running,
)
from supervisors import MailboxSpec as Mailbox
from supervisors.testing import (
    Cutter,
    Deed,
    FakeChild,
    check_tree,
    cut_at_every_step,
    leak_check,
    run_seeded,
)
from tests.supervisors._tree import AT_ONCE, TEMPORARY, Log, fake, tree


@attrs.frozen
class Add:
    n: int


@attrs.frozen
class Total(Request[int]):
    pass


@attrs.frozen
class Slow(Request[str]):
    seconds: float


@attrs.frozen
class Came:
    reply: Reply[str]
    text: str


class Counter(Actor[Add | Total | Slow | Came]):
    """Adds, and asks the outside without keeping its mailbox waiting."""

    def __init__(self, total: int = 0) -> None:
        self.total = total

    async def handle(self, message: Add | Total | Slow | Came) -> int | None:
        match message:
            case Add(n=n):
                self.total += n
            case Total():
                return self.total
            case Slow(seconds=seconds):
                self.spawn(self.ask_outside, self.defer(), seconds, name="outside")
            case Came(reply=reply, text=text):
                reply.answer(f"{text}, {self.total}")
        return None

    async def ask_outside(self, reply: Reply[str], seconds: float) -> None:
        await trio.sleep(seconds)
        self.ref.cast(Came(reply, "done"))


async def test_casts_are_handled_in_order_and_calls_are_answered() -> None:
    async with leak_check(), running(SupervisorSpec([ChildSpec("c", Counter, (5,))])) as system:
        counter: Ref[Add | Total] = await system.wait_for("c")
        counter.cast(Add(1))
        await counter.send(Add(2))
        assert await counter.call(Total(), within=1) == 8


async def test_a_handler_that_waits_on_the_outside_does_not_block_its_mailbox() -> None:
    async with running(SupervisorSpec([ChildSpec("c", Counter)])) as system:
        counter = await system.wait_for("c")
        replies: list[object] = []

        async def ask() -> None:
            replies.append(await counter.call(Slow(5), within=10))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.sleep(1)
            counter.cast(Add(3))
            assert await counter.call(Total(), within=0.1) == 3
            assert replies == []
        assert replies == ["done, 3"]
        assert trio.current_time() == 5


async def test_a_callee_that_crashes_answers_with_its_exception_as_a_value() -> None:
    log = Log()
    async with running(tree(fake("a", log))) as system:
        a = await system.wait_for("a")
        failure = await a.attempt(Deed.CRASH, within=5)
        assert isinstance(failure, Failure)
        assert failure.kind is FailureKind.CRASHED
        assert failure.path == "a"
        assert failure.reason == "ValueError: a crashed as told"
        assert failure.crash is not None
        assert failure.crash.type_name == "ValueError"
        assert "do(message)" in failure.crash.traceback
        with pytest.raises(CallFailed, match="crashed as told") as caught:
            await a.call(Deed.CRASH, within=5)
        assert caught.value.failure.kind is FailureKind.CRASHED
        assert trio.current_time() == 0


async def test_a_rejected_call_leaves_the_actor_alive() -> None:
    async with running(tree(fake("a", Log()))) as system:
        a = await system.wait_for("a")
        failure = await a.attempt(Deed.REJECT, within=1)
        assert failure == Failure(FailureKind.REJECTED, "a", "as told", detail="a")
        assert await a.call("hello", within=1) == "hello"
        assert system.supervisor().statistics().restarts == 0


async def test_a_rejected_cast_has_nobody_to_go_to_and_crashes() -> None:
    async with running(tree(fake("a", Log()))) as system:
        a = await system.wait_for("a")
        a.cast(Deed.REJECT)
        assert await a.call("hello", within=1) == "hello"
        assert system.supervisor().statistics().restarts == 1


async def test_a_call_to_nobody_or_to_the_dead_fails_at_once() -> None:
    log = Log()
    async with running(tree(fake("a", log, restart=TEMPORARY))) as system:
        a = await system.wait_for("a")
        nobody = await system.ref("b").attempt("hello", within=99)
        assert nobody == Failure(FailureKind.GONE, "b", "no actor at this path")
        a.cast(Deed.QUIT)
        gone = await a.attempt("hello", within=99)
        assert isinstance(gone, Failure)
        assert gone.kind is FailureKind.GONE
        with pytest.raises(ActorGone):
            a.cast("hello")
        with pytest.raises(ActorGone):
            await a.send("hello")
        assert trio.current_time() == 0


async def test_a_call_that_is_not_answered_in_time_fails_and_its_late_reply_is_dropped() -> None:
    async with running(SupervisorSpec([ChildSpec("c", Counter)])) as system:
        counter = await system.wait_for("c")
        failure = await counter.attempt(Slow(5), within=2)
        assert failure == Failure(FailureKind.TIMEOUT, "c", "no reply within 2 s")
        assert trio.current_time() == 2
        await trio.sleep(5)
        assert await counter.call(Total(), within=1) == 0


async def test_a_call_whose_caller_gave_up_while_it_was_queued_is_not_handled() -> None:
    log = Log()
    async with running(tree(fake("a", log))) as system:
        a = await system.wait_for("a")
        with trio.move_on_after(2):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_attempt, a, Deed.HANG, 100)
                await trio.sleep(1)
                nursery.start_soon(_attempt, a, "too late", 100)
        inspected = a.statistics()
        assert inspected is not None
        assert inspected.depth == 1
        assert await system.supervisor().restart_child("a") == a
        assert await a.call("now", within=1) == "now"
        assert _seen(a) == ["now"]


async def _attempt(ref: Ref[object], message: object, within: float) -> None:
    await ref.attempt(message, within=within)


class Relay(Actor[object]):
    """Passes each call on to another path, with as long a deadline as it is told."""

    def __init__(self, target: str, within: float = 100.0) -> None:
        self.target = target
        self.within = within

    async def handle(self, message: object) -> object:
        return await self.find(self.target).attempt(message, within=self.within)


async def test_a_circle_of_calls_is_refused_with_its_chain() -> None:
    children = [
        ChildSpec("a", Relay, ("b",)),
        ChildSpec("b", Relay, ("c",)),
        ChildSpec("c", Relay, ("a",)),
    ]
    async with running(SupervisorSpec(children)) as system:
        await system.wait_for("c")
        failure = await system.ref("a").call("hello", within=50)
        assert isinstance(failure, Failure)
        assert failure.kind is FailureKind.CYCLE
        assert failure.chain == ("c", "a", "b", "c")
        assert trio.current_time() == 0


class Caller(Actor[object]):
    """Runs what it is sent, with itself."""

    async def handle(self, message: Any) -> object:
        return await message(self)


async def _after(seconds: float, answer: object = "done") -> object:
    await trio.sleep(seconds)
    return answer


@pytest.mark.parametrize(("short", "long"), [("b", "c"), ("c", "b")])
@pytest.mark.parametrize("asked", [1.0, 0.0])
async def test_a_handler_that_waits_for_many_at_once_is_part_of_the_circle_of_each(
    short: str, long: str, asked: float
) -> None:
    answers: dict[str, object] = {}

    async def back(me: Caller) -> object:
        await trio.sleep(asked)
        return await me.find("a").attempt(_after, within=8)

    async def both(me: Caller) -> None:
        async def one(path: str, message: object) -> None:
            answers[path] = await me.find(path).attempt(message, within=9)

        async with trio.open_nursery() as nursery:
            for path in ("b", "c", "d"):  # the order in which they come first differs by `short`
                message = back if path == long else (lambda _: _after(0.5))
                nursery.start_soon(one, path, message)

    specs = [ChildSpec(path, Caller) for path in "abcd"]
    async with running(SupervisorSpec(specs)) as system:
        await system.wait_for("d")
        await system.ref("a").call(both, within=10)
        assert trio.current_time() == max(asked, 0.5)
        refused = answers[long]
        assert isinstance(refused, Failure)
        assert refused.kind is FailureKind.CYCLE
        assert refused.chain == (long, "a", long)
        assert answers[short] == answers["d"] == "done"
        cell = system.ref("a").cell
        assert cell is not None
        assert (cell.runner.waits_for, cell.runner.also) == (None, None)


async def test_a_longer_circle_through_a_handler_that_waits_for_many_is_told_whole() -> None:
    async def back(me: Caller) -> object:
        await trio.sleep(1)
        return await me.find("a").attempt(_after, within=7)

    async def on(me: Caller) -> object:
        return await me.find("d").attempt(back, within=8)

    async def both(me: Caller) -> object:
        answers: list[object] = []

        async def one(path: str, message: object) -> None:
            answers.append(await me.find(path).attempt(message, within=9))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one, "b", lambda _: _after(3))
            nursery.start_soon(one, "c", on)
        return answers

    specs = [ChildSpec(path, Caller) for path in "abcd"]
    async with running(SupervisorSpec(specs)) as system:
        await system.wait_for("d")
        answers = await system.ref("a").call(both, within=10)
        (refused,) = [answer for answer in answers if isinstance(answer, Failure)]
        assert refused.chain in (("d", "a", "c", "d"), ("d", "a", "c", "d")[::-1])
        assert await system.ref("a").attempt(lambda _: _after(0), within=1) == "done"


async def test_a_call_within_no_number_of_seconds_is_refused() -> None:
    async with running(tree(fake("a", Log()))) as system:
        a = await system.wait_for("a")
        for ask in (a.call, a.attempt):
            with pytest.raises(ValueError, match="within nan"):
                await ask("x", within=float("nan"))


async def test_a_call_to_oneself_is_a_circle_of_one() -> None:
    async with running(SupervisorSpec([ChildSpec("a", Relay, ("a",))])) as system:
        failure = await (await system.wait_for("a")).call("hello", within=50)
        assert isinstance(failure, Failure)
        assert failure.chain == ("a", "a")


class Crosser(Actor[str]):
    """Waits a little, then calls; two of these cross their calls."""

    def __init__(self, target: str) -> None:
        self.target = target

    async def handle(self, message: str) -> object:
        if message == "go":
            await trio.sleep(1)
            return await self.find(self.target).attempt("hello", within=60)
        return message


async def test_two_actors_that_call_each_other_unasked_are_a_circle_too() -> None:
    children = [ChildSpec("a", Crosser, ("b",)), ChildSpec("b", Crosser, ("a",))]
    results: dict[str, object] = {}

    async with running(SupervisorSpec(children)) as system:
        await system.wait_for("b")

        async def go(path: str) -> None:
            results[path] = await system.ref(path).call("go", within=60)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(go, "a")
            nursery.start_soon(go, "b")
    refused = [r for r in results.values() if isinstance(r, Failure)]
    assert [failure.kind for failure in refused] == [FailureKind.CYCLE]
    assert "hello" in results.values()
    assert trio.current_time() == 1


class Helpful(Actor[str]):
    """Its helper may call whoever called it, unless it owes that one a reply."""

    def __init__(self, asker: str) -> None:
        self.asker = asker
        self.got: object = None

    async def handle(self, message: str) -> object:
        if message == "owing":
            self.spawn(self.ask, self.defer(), name="ask")
        elif message == "free":
            self.spawn(self.ask, None, name="ask")
        elif message == "hello":
            return "hi"
        return self.got

    async def ask(self, reply: Reply[object] | None) -> None:
        self.got = await self.find(self.asker).attempt("hello", within=60)
        if reply is not None:
            reply.answer(self.got)


async def test_a_helper_that_owes_the_reply_is_part_of_the_circle_and_a_free_one_is_not() -> None:
    children = [ChildSpec("asker", Relay, ("helpful",)), ChildSpec("helpful", Helpful, ("asker",))]
    async with running(SupervisorSpec(children)) as system:
        await system.wait_for("helpful")
        failure = await system.ref("asker").call("owing", within=60)
        assert isinstance(failure, Failure)
        assert failure.chain == ("helpful#ask", "asker", "helpful#ask")
        assert await system.ref("asker").call("free", within=60) is failure
        await trio.sleep(1)
        assert await system.ref("helpful").call("what", within=60) == "hi"


async def test_a_nested_call_ends_before_the_call_it_serves() -> None:
    children = [ChildSpec("a", Relay, ("b", 100.0)), fake("b", Log())]
    async with running(tree(*children)) as system:
        await system.wait_for("b")
        failure = await system.ref("a").attempt(Deed.HANG, within=5)
        assert isinstance(failure, Failure)
        assert failure.path == "b"
        assert failure.kind is FailureKind.TIMEOUT
        assert 4.9 < trio.current_time() < 5


async def test_a_helper_that_crashes_is_its_actors_crash() -> None:
    log = Log()
    async with running(tree(fake("a", log))) as system:
        a = await system.wait_for("a")
        a.cast(Deed.HELPER_CRASH)
        await trio.sleep(1)
        assert log.take() == ["start a", "crash a", "start a"]
        last = system.supervisor().which_children()[0].last_exit
        assert last == Exit(ExitKind.CRASHED)
        assert str(last) == "crashed: ValueError: a helper of a crashed as told"


class Keeper(Actor[str]):
    def __init__(self, log: Log) -> None:
        self.log = log

    async def on_start(self) -> None:
        self.helper = self.spawn(self.keep, name="keep")

    async def keep(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            self.log.append("helper gone")

    async def on_stop(self, reason: str) -> None:
        self.log.append(f"stop: {reason}")

    async def handle(self, message: str) -> object:
        if message == "cancel":
            self.helper.cancel("no longer needed")
        if message == "owe":
            self.defer()
        return None


async def test_helpers_run_until_on_stop_is_done_and_die_with_their_actor() -> None:
    log = Log()
    async with running(SupervisorSpec([ChildSpec("k", Keeper, (log,))])) as system:
        await system.wait_for("k")
        assert await system.supervisor().stop_child("k", "enough") == Exit(
            ExitKind.STOPPED, "enough"
        )
    assert log == ["stop: enough", "helper gone"]


async def test_a_cancelled_helper_is_not_a_crash() -> None:
    log = Log()
    async with running(SupervisorSpec([ChildSpec("k", Keeper, (log,))])) as system:
        keeper = await system.wait_for("k")
        await keeper.call("cancel", within=1)
        await trio.sleep(1)
        assert log == ["helper gone"]
        assert system.supervisor().statistics().restarts == 0


async def test_replies_still_owed_fail_when_the_actor_ends() -> None:
    async with running(SupervisorSpec([ChildSpec("k", Keeper, (Log(),))])) as system:
        keeper = await system.wait_for("k")
        results: list[object] = []

        async def ask() -> None:
            results.append(await keeper.attempt("owe", within=99))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.sleep(1)
            await system.supervisor().stop_child("k")
        assert results == [Failure(FailureKind.GONE, "k", "stopped by hand")]


async def test_a_deferred_reply_to_a_cast_goes_nowhere() -> None:
    async with running(SupervisorSpec([ChildSpec("c", Counter)])) as system:
        counter = await system.wait_for("c")
        counter.cast(Slow(1))
        await trio.sleep(2)
        assert await counter.call(Total(), within=1) == 0


@pytest.mark.parametrize("choice", WhileDown)
async def test_messages_wait_out_a_restart_or_are_refused_by_choice(choice: WhileDown) -> None:
    log = Log()
    spec = fake("a", log, mailbox=Mailbox(while_down=choice), backoff=_slowly())
    async with running(tree(spec)) as system:
        a = await system.wait_for("a")
        results: list[object] = []

        async def ask(message: object) -> None:
            results.append(await a.attempt(message, within=99))

        async with trio.open_nursery() as nursery:
            a.cast(Deed.CRASH)
            nursery.start_soon(ask, "queued")
            await trio.sleep(0.5)
            assert not a.alive
            if choice is WhileDown.KEEP:
                a.cast("while down")
            else:
                with pytest.raises(ActorGone, match="down: crashed"):
                    a.cast("while down")
        if choice is WhileDown.KEEP:
            assert results == ["queued"]
            assert trio.current_time() == 1
            assert await a.call("after", within=1) == "after"
        else:
            assert [failure.kind for failure in results if isinstance(failure, Failure)] == [
                FailureKind.CRASHED
            ]
            assert trio.current_time() == 0.5
            await trio.sleep(1)
            assert await a.call("after", within=1) == "after"
        # The message in hand at the crash is never given again: it would crash it again.
        assert system.supervisor().statistics().restarts == 1


def _slowly() -> object:
    return structs.replace(AT_ONCE, first=1.0, cap=1.0)


async def test_a_ref_finds_whoever_lives_at_its_path_now() -> None:
    async with running(tree(dynamic=True)) as system:
        ref = system.ref("a")
        sup = system.supervisor()
        for _ in range(2):
            assert not ref.alive
            assert await sup.start_child(fake("a", Log())) == ref
            assert await ref.call("hello", within=1) == "hello"
            await sup.stop_child("a")
        assert ref.statistics() is not None
        assert system.ref("b").statistics() is None
        assert {ref, system.ref("a")} == {ref}
        assert repr(ref) == "Ref('a')"
        assert ref != "a"


async def test_urgent_messages_overtake_what_waits() -> None:
    async with running(tree(fake("a", Log()))) as system:
        a = await system.wait_for("a")
        for n in range(3):
            a.cast(n)
        a.cast("first", urgent=True)
        assert await a.call("second", within=1, urgent=True) == "second"
        assert await a.call("last", within=1) == "last"
        assert _seen(a) == ["first", "second", 0, 1, 2, "last"]


def _seen(ref: Ref[Any]) -> list[object]:
    cell = ref.cell
    assert cell is not None
    assert cell.life is not None
    assert isinstance(cell.life.actor, FakeChild)
    return cell.life.actor.seen


def test_a_caller_cut_at_any_step_leaves_no_trace_of_its_call() -> None:
    def run(cutter: Cutter) -> None:
        async def main() -> None:
            scope = trio.CancelScope()
            cutter.cut = scope.cancel
            async with running(tree(fake("a", Log()))) as system:
                a = await system.wait_for("a")

                async def caller() -> None:
                    with scope:
                        for n in range(2):
                            assert await a.call(n, within=5) == n

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(caller, name="caller")
                assert await a.call("after", within=5) == "after"
                assert _seen(a) in ([0, 1, "after"], [0, "after"], ["after"])
                check_tree(system)

        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0), instruments=[cutter])

    assert cut_at_every_step(run, "caller") == 3


def test_the_same_seed_gives_the_same_run() -> None:
    async def scenario() -> list[str]:
        log = Log()
        async with running(tree(*(fake(id, log) for id in "abc"))) as system:
            await system.wait_for("c")
            async with trio.open_nursery() as nursery:
                for id in "abc":
                    for n in range(5):
                        nursery.start_soon(_note, system.ref(id), f"{id}{n}", log)
        return log

    assert run_seeded(scenario, seed=1) == run_seeded(scenario, seed=1)
    assert len({tuple(run_seeded(scenario, seed=seed)) for seed in range(8)}) > 1


async def _note(ref: Ref[object], text: str, log: Log) -> None:
    await ref.call(text, within=5)
    log.append(text)
