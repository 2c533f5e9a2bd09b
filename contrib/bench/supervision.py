"""What actors cost, against bare trio in the same run: ``python contrib/bench/supervision.py``.

Runs of the two sides alternate, so that a busy machine slows both; ratios are of medians. Prints
each figure with its aim, and ends with 1 when an aim is missed.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from statistics import median

import trio

from supervisors import (
    Actor,
    ChildSpec,
    MailboxSpec,
    Ref,
    SupervisorSpec,
    System,
    _actor,
    running,
)
from supervisors._cell import Life

BOUND = 1024


class Echo(Actor[object]):
    """Does nothing, and answers with what it got."""

    async def handle(self, message: object) -> object:
        return message


ONE = SupervisorSpec([ChildSpec("echo", Echo, mailbox=MailboxSpec(items=BOUND))])
MANY = SupervisorSpec([ChildSpec("many", SupervisorSpec(dynamic=True))])


# ---- messages -----------------------------------------------------------------------------------


async def channel_messages(n: int) -> float:
    """Messages a second through a bare memory channel."""
    send, receive = trio.open_memory_channel[int](BOUND)

    async def produce() -> None:
        with send:
            for i in range(n):
                await send.send(i)

    async with trio.open_nursery() as nursery:
        start = time.perf_counter()
        nursery.start_soon(produce)
        async for message in receive:
            await _handled(message)
        return n / (time.perf_counter() - start)


async def _handled(message: object) -> object:
    return message


async def actor_messages(n: int) -> float:
    """Messages a second through an actor, sent in the way that waits for room."""
    async with running(ONE) as system:
        echo: Ref[object] = await system.wait_for("echo")
        start = time.perf_counter()
        for i in range(n):
            await echo.send(i)
        await echo.call(None, within=60)
        return n / (time.perf_counter() - start)


async def actor_casts(n: int) -> float:
    """Messages a second through an actor, cast in batches that fit its mailbox."""
    async with running(ONE) as system:
        echo: Ref[object] = await system.wait_for("echo")
        start = time.perf_counter()
        for _ in range(n // BOUND):
            for i in range(BOUND):
                echo.cast(i)
            await echo.call(None, within=60, urgent=True)
            while echo.statistics().depth:  # type: ignore[union-attr]
                await trio.lowlevel.checkpoint()
        return n / (time.perf_counter() - start)


# ---- calls --------------------------------------------------------------------------------------


async def channel_calls(n: int) -> float:
    """Round trips a second over two bare channels."""
    to_server, requests = trio.open_memory_channel[int](0)
    to_client, replies = trio.open_memory_channel[int](0)

    async def serve() -> None:
        async for request in requests:
            await _handled(request)
            await to_client.send(request)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        start = time.perf_counter()
        for i in range(n):
            await to_server.send(i)
            await replies.receive()
        rate = n / (time.perf_counter() - start)
        nursery.cancel_scope.cancel()
        return rate


async def actor_calls(n: int) -> float:
    """Calls a second, each with its deadline."""
    async with running(ONE) as system:
        echo: Ref[object] = await system.wait_for("echo")
        start = time.perf_counter()
        for i in range(n):
            await echo.call(i, within=60)
        return n / (time.perf_counter() - start)


# ---- many actors --------------------------------------------------------------------------------


async def start_all(system: System, n: int) -> None:
    """Start `n` actors, each waited for until it is ready."""
    await system.wait_for("many")
    supervisor = system.supervisor("many")
    for i in range(n):
        await supervisor.start_child(ChildSpec(str(i), Echo))


async def start_and_stop(n: int) -> tuple[float, float]:
    """Seconds (of the clock, of the processor) to start and stop `n` actors."""
    gc.collect()
    start, cpu = time.perf_counter(), time.process_time()
    async with running(MANY) as system:
        await start_all(system, n)
    return time.perf_counter() - start, time.process_time() - cpu


async def bare_start_and_stop(n: int) -> tuple[float, float]:
    """The same for bare tasks of an actor's shape: a scope, a nursery, ready when started."""

    async def task(task_status: trio.TaskStatus[None]) -> None:
        with trio.CancelScope():
            async with trio.open_nursery():
                task_status.started()
                await trio.sleep_forever()

    gc.collect()
    start, cpu = time.perf_counter(), time.process_time()
    async with trio.open_nursery() as nursery:
        for _ in range(n):
            await nursery.start(task)
        nursery.cancel_scope.cancel()
    return time.perf_counter() - start, time.process_time() - cpu


async def memory(n: int) -> float:
    """Bytes for one idle actor, of what Python allocates, by tracemalloc."""
    async with running(MANY) as system:
        await system.wait_for("many")
        gc.collect()
        tracemalloc.start()
        await start_all(system, n)
        gc.collect()
        used, _peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return used / n


# ---- hooks --------------------------------------------------------------------------------------


async def serve_without_hooks(life: Life, handle: _actor.Handle) -> None:
    """The actor's loop with the one test for looking, steering and faults taken out."""
    mailbox = life.cell.mailbox
    take = mailbox.take
    left = _actor.BURST
    while True:
        envelope = take()
        if envelope is None:
            if life.stop_reason is not None:
                return
            await mailbox.wait()
            left = _actor.BURST
            continue
        life.in_hand = envelope
        if envelope[3] is None:
            await handle(envelope[0])
        else:
            await _actor._answer(life, handle, envelope[0], envelope[3])
        life.in_hand = None
        life.handled += 1
        left -= 1
        if not left:
            await trio.lowlevel.checkpoint()
            left = _actor.BURST


async def drain(n: int) -> float:
    """Seconds of the processor to handle `n` messages that wait in a mailbox."""
    spec = ChildSpec("echo", Echo, mailbox=MailboxSpec(items=n + 1, size=1 << 40))
    async with running(SupervisorSpec([spec])) as system:
        echo: Ref[object] = await system.wait_for("echo")
        for i in range(n):
            echo.cast(i)
        start = time.process_time()
        await echo.call(None, within=60)
        return time.process_time() - start


def hooks_cost(n: int, runs: int) -> float:
    """What the hooks cost while off, as a fraction: the median of runs in pairs, in turn first."""
    plain = _actor.serve

    def timed(loop: Callable[[Life, _actor.Handle], Awaitable[None]]) -> float:
        _actor.serve = loop  # type: ignore[assignment]
        try:
            gc.collect()
            return trio.run(drain, n)
        finally:
            _actor.serve = plain

    ratios = []
    for run in range(runs):
        if run % 2:
            with_hooks, without = timed(plain), timed(serve_without_hooks)
        else:
            without, with_hooks = timed(serve_without_hooks), timed(plain)
        ratios.append(with_hooks / without)
    return median(ratios) - 1


# ---- the report ---------------------------------------------------------------------------------


def compare(
    bare: Callable[[int], Awaitable[float]],
    ours: Callable[[int], Awaitable[float]],
    n: int,
    runs: int,
) -> tuple[float, float]:
    """Medians of both, from runs that alternate."""
    pairs = [(trio.run(bare, n), trio.run(ours, n)) for _ in range(runs)]
    return median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)


def main() -> int:
    """Measure, print, and say whether all aims were met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    scale = 10 if parser.parse_args().quick else 1
    runs = 7
    missed = 0

    def line(what: str, value: str, aim: str, met: bool) -> None:
        nonlocal missed
        missed += not met
        print(f"{what:<44} {value:<38} aim {aim:<10} {'met' if met else 'MISSED'}", flush=True)

    bare, ours = compare(channel_messages, actor_messages, 50_000 // scale, runs)
    line(
        "messages/s, sent: actor / channel",
        f"{ours:,.0f} / {bare:,.0f} = {ours / bare:.2f}",
        ">= 0.7",
        ours / bare >= 0.7,
    )
    bare, ours = compare(channel_messages, actor_casts, 50_000 // scale, runs)
    line(
        "messages/s, cast: actor / channel",
        f"{ours:,.0f} / {bare:,.0f} = {ours / bare:.2f}",
        ">= 0.7",
        ours / bare >= 0.7,
    )
    bare, ours = compare(channel_calls, actor_calls, 20_000 // scale, runs)
    line(
        "round trips/s: call / two channels",
        f"{ours:,.0f} / {bare:,.0f} = {ours / bare:.2f}",
        ">= 0.6",
        ours / bare >= 0.6,
    )
    used = trio.run(memory, 5_000 // scale)
    line("an idle actor (tracemalloc)", f"{used / 1024:.2f} KiB", "<= 8 KiB", used <= 8 * 1024)
    pairs = [
        (trio.run(bare_start_and_stop, 10_000 // scale), trio.run(start_and_stop, 10_000 // scale))
        for _ in range(3)
    ]
    wall = median(ours[0] for _bare, ours in pairs) * scale
    cpu = median(ours[1] for _bare, ours in pairs) * scale
    ratio = median(ours[1] / bare[1] for bare, ours in pairs)
    line(
        "start and stop 10,000 actors",
        f"{wall:.2f} s ({cpu:.2f} s cpu), {ratio:.2f} x bare",
        "<= 3 s",
        wall <= 3,
    )
    cost = hooks_cost(40_000 // scale, 41)
    line("hooks while off", f"{cost * 100:.1f} %", "< 3 %", cost < 0.03)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
