"""A mailbox at each of its bounds, and what each kind of sender meets there."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from supervisors import (
    Actor,
    ActorGone,
    AtBound,
    ChildSpec,
    Failure,
    FailureKind,
    MailboxFull,
    MailboxOverrun,
    MailboxSpec,
    MessageTooLarge,
    Ref,
    SupervisorSpec,
    System,
    WaitCycle,
    running,
    sys,
)
from supervisors._mailbox import Mailbox, Shut
from supervisors.testing import Cutter, check_tree, cut_at_every_step
from tests.supervisors._tree import Log, fake, tree

GONE = Shut(ActorGone, FailureKind.GONE, "gone")


def mailbox(**options: Any) -> Mailbox:
    return Mailbox("m", MailboxSpec(**options), trio.current_time)


def taken(box: Mailbox) -> list[object]:
    messages = []
    while (envelope := box.take()) is not None:
        messages.append(envelope[0])
    return messages


# ---- the mailbox alone --------------------------------------------------------------------------


async def test_the_count_bounds_the_data_lane() -> None:
    box = mailbox(items=2)
    assert [box.offer(n, 1, None) for n in range(3)] == [True, True, False]
    assert taken(box) == [0, 1]
    assert box.offer(3, 1, None)


async def test_the_bytes_bound_the_data_lane() -> None:
    box = mailbox(size=10)
    assert [box.offer(n, 5, None) for n in range(3)] == [True, True, False]
    box.take()
    assert not box.offer("large", 6, None)
    assert box.offer("fits", 5, None)
    assert box.statistics().size == 10


async def test_the_urgent_lane_has_its_own_bound_and_is_read_first() -> None:
    box = mailbox(items=1, urgent=2)
    assert box.offer("data", 1, None)
    assert [box.offer_urgent(n, None) for n in range(3)] == [True, True, False]
    box.push_urgent("runtime")
    assert len(box) == 4
    assert [envelope[0] for envelope in box] == [0, 1, "runtime", "data"]
    head = box.peek()
    assert head is not None
    assert head[0] == 0
    assert taken(box) == [0, 1, "runtime", "data"]
    assert box.peek() is None


async def test_the_figures_are_those_of_the_moment() -> None:
    box = mailbox()
    assert box.statistics().oldest_age == 0
    box.offer("a", 7, None)
    await trio.sleep(2)
    box.offer("b", 5, None)
    box.push_urgent("c")
    await trio.sleep(1)
    figures = box.statistics()
    assert (figures.depth, figures.size, figures.urgent) == (2, 12, 1)
    assert figures.oldest_age == 3
    assert figures.senders_waiting == figures.dropped == 0


async def test_senders_wait_in_turn_and_a_small_message_overtakes_no_large_one() -> None:
    box = mailbox(size=10)
    box.offer("first", 9, None)
    got: list[object] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(box.wait_for_room, "large", 9, None)
        await trio.testing.wait_all_tasks_blocked()
        assert not box.offer("small", 1, None)
        nursery.start_soon(box.wait_for_room, "small", 1, None)
        await trio.testing.wait_all_tasks_blocked()
        assert box.statistics().senders_waiting == 2
        while len(got) < 3:
            got += taken(box)
            await trio.lowlevel.checkpoint()
    assert got == ["first", "large", "small"]


async def test_a_sender_that_gives_up_lets_the_next_one_in() -> None:
    box = mailbox(size=10)
    box.offer("first", 5, None)
    async with trio.open_nursery() as nursery:
        scope = trio.CancelScope()

        async def large() -> None:
            with scope:
                await box.wait_for_room("large", 9, None)

        nursery.start_soon(large)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(box.wait_for_room, "small", 5, None)
        await trio.testing.wait_all_tasks_blocked()
        scope.cancel()
    assert taken(box) == ["first", "small"]


async def test_what_can_never_fit_does_not_wait() -> None:
    with pytest.raises(MessageTooLarge, match="11 bytes can never fit into 10"):
        await mailbox(size=10).wait_for_room("huge", 11, None)


async def test_closing_gives_back_what_waited_and_refuses_who_waits() -> None:
    box = mailbox(items=1)
    box.offer("data", 5, None)
    box.push_urgent("urgent")
    refused: list[ActorGone] = []

    async def wait() -> None:
        with pytest.raises(ActorGone) as caught:
            await box.wait_for_room("waiting", 1, None)
        refused.append(caught.value)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        assert [envelope[0] for envelope in box.close(GONE)] == ["urgent", "data"]
    assert [error.why for error in refused] == ["gone"]
    assert not box.offer("late", 1, None)
    assert not box.offer_urgent("late", None)
    assert (len(box), box.size, box.dropped) == (0, 0, 2)
    box.reopen()
    assert box.offer("again", 1, None)


def test_a_sender_cut_at_any_step_has_sent_exactly_what_it_reported() -> None:
    def run(cutter: Cutter) -> None:
        async def main() -> None:
            box = mailbox(items=1)
            sent: list[int] = []
            got: list[object] = []
            scope = trio.CancelScope()
            cutter.cut = scope.cancel

            async def sender() -> None:
                with scope:
                    for n in range(4):
                        if not box.offer(n, 1, None):
                            await box.wait_for_room(n, 1, None)
                        sent.append(n)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(sender, name="sender")
                for _ in range(20):
                    await trio.sleep(1)
                    got += taken(box)
            assert got == sent
            assert box.size == 0
            assert box.statistics().senders_waiting == 0

        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0), instruments=[cutter])

    assert cut_at_every_step(run, "sender") >= 3


# ---- senders ------------------------------------------------------------------------------------


class Sender(Actor[str]):
    """Sends what it is told to ``full``, in the way it is told; answers with what it met."""

    kind = "sender"

    async def handle(self, message: str) -> object:
        ref = self.find("full")
        if message == "helper":
            self.spawn(self.try_send, ref, self.defer(), kind="reader")
            return None
        try:
            if message == "cast":
                ref.cast("x")
            elif message == "send":
                await ref.send("x")
            else:
                return await ref.attempt("x", within=5)
        except MailboxFull as error:
            return error
        return "sent"

    async def try_send(self, ref: Ref[Any], reply: Any) -> None:
        await ref.send("x")
        reply.answer("sent")


async def full_tree(choices: dict[str, AtBound], otherwise: AtBound = AtBound.FAULT) -> Any:
    spec = MailboxSpec(items=1, at_bound=choices, otherwise=otherwise)
    return tree(fake("full", Log(), mailbox=spec), ChildSpec("s", Sender))


async def fill(system: System) -> Ref[Any]:
    await system.wait_for("s")
    full = system.ref("full")
    sys.suspend(full)
    full.cast("fills it")
    return full


@pytest.mark.parametrize("way", ["cast", "send", "call"])
async def test_a_kind_that_is_refused(way: str) -> None:
    async with running(await full_tree({"sender": AtBound.REFUSE})) as system:
        await fill(system)
        met = await system.ref("s").call(way, within=5)
        if way == "call":
            assert isinstance(met, Failure)
            assert met.kind is FailureKind.FULL
        else:
            assert isinstance(met, MailboxFull)
            assert met.path == "full"
        assert trio.current_time() == 0


@pytest.mark.parametrize("way", ["cast", "send", "call"])
async def test_a_kind_that_faults_crashes_with_both_ends_named(way: str) -> None:
    async with running(await full_tree({})) as system:
        await fill(system)
        failure = await system.ref("s").attempt(way, within=5)
        assert isinstance(failure, Failure)
        assert failure.kind is FailureKind.CRASHED
        assert failure.reason == (
            "MailboxOverrun: s (sender) ran over the mailbox of full: 1 messages, 64 bytes waiting"
        )


@pytest.mark.parametrize("way", ["cast", "send", "call"])
async def test_a_kind_that_waits_waits_if_it_can(way: str) -> None:
    async with running(await full_tree({"sender": AtBound.WAIT})) as system:
        full = await fill(system)
        results: list[object] = []

        async def ask() -> None:
            results.append(await system.ref("s").call(way, within=50))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.sleep(1)
            check_tree(system)
            sys.resume(full)
        if way == "cast":
            assert isinstance(results[0], MailboxFull)
        else:
            assert results == ["x" if way == "call" else "sent"]


async def test_a_call_that_waits_for_room_keeps_to_its_deadline() -> None:
    async with running(await full_tree({"outside": AtBound.WAIT})) as system:
        full = await fill(system)
        failure = await full.attempt("x", within=3)
        assert isinstance(failure, Failure)
        assert failure.kind is FailureKind.TIMEOUT
        assert trio.current_time() == 3
        figures = full.statistics()
        assert figures is not None
        assert (figures.depth, figures.senders_waiting) == (1, 0)


async def test_a_helper_can_be_a_kind_of_its_own() -> None:
    async with running(await full_tree({"reader": AtBound.WAIT})) as system:
        full = await fill(system)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_after, 2, lambda: sys.resume(full))
            assert await system.ref("s").call("helper", within=5) == "sent"
        assert trio.current_time() == 2


async def _after(seconds: float, do: Any) -> None:
    await trio.sleep(seconds)
    do()


async def test_code_that_is_no_actor_waits_by_default() -> None:
    async with running(
        tree(fake("full", Log(), mailbox=MailboxSpec(items=1)), fake("s", Log()))
    ) as (system):
        full = await fill(system)
        with pytest.raises(MailboxFull, match="1 messages and 64 bytes wait"):
            full.cast("x")
        with trio.move_on_after(2) as scope:
            await full.send("x")
        assert scope.cancelled_caught
        sys.resume(full)
        await full.send("y")
        assert await full.call("z", within=1) == "z"


async def test_the_urgent_lane_never_waits() -> None:
    async with running(
        tree(fake("full", Log(), mailbox=MailboxSpec(urgent=1)), fake("s", Log()))
    ) as (system):
        full = await fill(system)
        full.cast("urgent", urgent=True)
        with pytest.raises(MailboxFull):
            full.cast("urgent", urgent=True)
        with pytest.raises(MailboxFull):
            await full.send("urgent", urgent=True)
        failure = await full.attempt("urgent", within=5, urgent=True)
        assert isinstance(failure, Failure)
        assert failure.kind is FailureKind.FULL


async def test_a_message_over_the_byte_bound_is_refused_whoever_sends_it() -> None:
    async with running(tree(fake("full", Log(), mailbox=MailboxSpec(size=100)))) as system:
        full = await system.wait_for("full")
        with pytest.raises(MessageTooLarge):
            full.cast("x", cost=101)
        with pytest.raises(MessageTooLarge):
            await full.send("x", cost=101)
        failure = await full.attempt("x", within=1, cost=101)
        assert isinstance(failure, Failure)
        assert failure.kind is FailureKind.FULL


@pytest.mark.parametrize("cost", [-1, -(10**9), float("nan")])
async def test_a_cost_that_is_no_size_is_refused_and_does_not_spoil_the_sum(cost: int) -> None:
    async with running(tree(fake("a", Log(), mailbox=MailboxSpec(size=100)))) as system:
        a = await system.wait_for("a")
        with pytest.raises(ValueError, match="cost"):
            a.cast("x", cost=cost)
        with pytest.raises(ValueError, match="cost"):
            await a.send("x", cost=cost)
        with pytest.raises(ValueError, match="cost"):
            await a.call("x", within=1, cost=cost)
        a.cast("free", cost=0)
        figures = a.statistics()
        assert figures is not None
        assert figures.size == 0
        assert await a.call("x", within=1, cost=100) == "x"


class Pusher(Actor[str]):
    """Waits inside its handler for room at a peer that does the same."""

    kind = "pusher"

    def __init__(self, peer: str) -> None:
        self.peer = peer

    async def handle(self, message: str) -> None:
        if message == "go":
            await trio.sleep(1)
            await self.find(self.peer).send("push")


async def test_two_actors_that_wait_for_room_at_each_other_are_a_fault_not_a_deadlock() -> None:
    spec = MailboxSpec(items=1, at_bound={"pusher": AtBound.WAIT, "outside": AtBound.WAIT})
    children = [
        ChildSpec("a", Pusher, ("b",), mailbox=spec),
        ChildSpec("b", Pusher, ("a",), mailbox=spec),
    ]
    async with running(SupervisorSpec(children)) as system:
        await system.wait_for("b")
        for path in "ab":
            system.ref(path).cast("go")
        await trio.sleep(0.5)
        for path in "ab":
            system.ref(path).cast("fill")
        await trio.sleep(5)
        exits = [info.last_exit for info in system.supervisor().which_children()]
        crashed = [exit for exit in exits if exit is not None and exit.crash is not None]
        assert [exit.crash.type_name for exit in crashed if exit.crash] == [WaitCycle.__name__]


async def test_an_overrun_names_code_that_is_no_actor_by_its_task() -> None:
    spec = MailboxSpec(items=1, at_bound={}, otherwise=AtBound.FAULT)
    async with running(tree(fake("full", Log(), mailbox=spec), fake("s", Log()))) as system:
        full = await fill(system)
        with pytest.raises(MailboxOverrun) as caught:
            full.cast("x")
        assert (caught.value.kind, caught.value.receiver) == ("outside", "full")
        assert caught.value.sender
