"""A sender that does not wait for an answer can still learn that its message was lost."""

from __future__ import annotations

import trio

from supervisors import Failure, FailureKind, Intensity, running, sys
from supervisors.faults import Fault, FaultKind, Injection, Plan
from supervisors.testing import Deed
from tests.supervisors._tree import TEMPORARY, Log, fake, tree


async def settle() -> None:
    await trio.sleep(1)


async def test_nothing_is_said_of_a_message_that_was_handled() -> None:
    lost: list[Failure] = []
    async with running(tree(fake("a", Log()))) as system:
        ref = await system.wait_for("a")
        await ref.send("hello", on_lost=lost.append)
        await ref.send(Deed.REJECT, on_lost=lost.append)
        await settle()
        sys.kill(ref)
        await settle()
    assert [each.kind for each in lost] == [FailureKind.REJECTED]


async def test_the_message_in_hand_is_lost_with_its_actor_and_those_behind_it_are_kept() -> None:
    lost: list[Failure] = []
    async with running(tree(fake("a", Log()))) as system:
        ref = await system.wait_for("a")
        await ref.send(Deed.HANG, on_lost=lost.append)
        await ref.send("behind it", on_lost=lost.append)
        await settle()
        sys.kill(ref)
        await settle()
        assert [each.kind for each in lost] == [FailureKind.CRASHED]
        assert await ref.call("still there", within=1) == "still there"
    assert len(lost) == 1


async def test_a_fault_before_the_handler_loses_it_and_one_after_it_does_not() -> None:
    for after in (False, True):
        lost: list[Failure] = []
        plan = Plan((Fault(FaultKind.KILL, "a", 1, after=after),))
        async with running(tree(fake("a", Log())), faults=Injection(plan)) as system:
            ref = await system.wait_for("a")
            await ref.send("hello", on_lost=lost.append)
            await settle()
        assert len(lost) == (0 if after else 1)


async def test_what_waits_is_lost_when_its_actor_is_not_started_again() -> None:
    lost: list[Failure] = []
    spec = fake("a", Log(), restart=TEMPORARY)
    async with running(tree(spec, intensity=Intensity(0, 1.0))) as system:
        ref = await system.wait_for("a")
        sys.suspend(ref)
        await ref.send("one", on_lost=lost.append)
        await ref.send("two", on_lost=lost.append)
        sys.kill(ref)
        await settle()
        assert [each.kind for each in lost] == [FailureKind.GONE] * 2


async def test_a_rejected_send_tells_and_a_rejected_cast_is_a_crash() -> None:
    lost: list[Failure] = []
    async with running(tree(fake("a", Log()))) as system:
        ref = await system.wait_for("a")
        await ref.send(Deed.REJECT, on_lost=lost.append)
        await settle()
        assert sys.inspect(ref).restarts == 0
        await ref.send(Deed.REJECT)
        await settle()
        assert sys.inspect(ref).restarts == 1
    assert [each.kind for each in lost] == [FailureKind.REJECTED]


async def test_a_trace_does_not_take_it_for_a_call() -> None:
    async with running(tree(fake("a", Log()))) as system:
        ref = await system.wait_for("a")
        calls: list[bool] = []
        sys.trace(ref, lambda event: calls.append(event.call))
        await ref.send("hello", on_lost=lambda _: None)
        await ref.call("hello", within=1)
        assert calls == [False, False, True, True]
