from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from ahpd.daemon import control
from ahpd.daemon.control import PrivateTransport
from ahpd.protocol.frame import Frame, frame
from ahpd.protocol.jsonrpc import success
from ahpd.protocol.jsontext import loads
from ahpd.transports.memory import MemoryTransport, memory_pair
from ahpd.transports.port import TransportClosed
from supervisors import Actor, Beyond, ChildSpec, Intensity, SupervisorSpec, System, running


class Sick(Actor[None]):
    """Starts only while the test says so."""

    well = True

    async def on_start(self) -> None:
        if not Sick.well:
            raise OSError("sick")

    async def handle(self, message: None) -> None:
        raise OSError("hurt")


def tree() -> SupervisorSpec:
    parking = SupervisorSpec(
        (ChildSpec("actor", Sick),), beyond=Beyond.PARK, intensity=Intensity(0, 1.0)
    )
    return SupervisorSpec(
        (ChildSpec("group", parking), ChildSpec("connections", SupervisorSpec(dynamic=True)))
    )


async def asked(system: System, text: str) -> dict[str, object]:
    """The answer to a private request."""
    far, near = memory_pair()
    private = PrivateTransport(near, system)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(private.receive)
        await far.send([Frame(text.encode())])
        answer = loads(await far.receive())
        nursery.cancel_scope.cancel()
    assert isinstance(answer, dict)
    return answer


def call(method: str, params: str = "{}") -> str:
    return f'{{"jsonrpc":"2.0","id":1,"method":"x-ahpd/{method}","params":{params}}}'


async def test_a_parked_actor_is_listed_and_restarted_by_hand() -> None:
    Sick.well = True
    async with running(tree()) as system:
        await system.wait_for("connections")
        assert (await asked(system, call("status")))["result"] == {"connections": 0, "parked": []}
        system.ref("group/actor").cast(None)
        await trio.sleep(1)
        answer = await asked(system, call("status"))
        assert answer["result"] == {"connections": 0, "parked": ["group/actor"]}

        Sick.well = False
        restart = call("restartActor", '{"path": "/group/actor/"}')
        error = (await asked(system, restart))["error"]
        assert isinstance(error, dict)
        assert error["code"] == -32603
        assert "group/actor did not come up" in error["message"]

        Sick.well = True
        assert (await asked(system, restart))["result"] is None
        answer = await asked(system, call("status"))
        assert answer["result"] == {"connections": 0, "parked": []}


class Slow(Actor[None]):
    """Takes a second to come up, and another to go."""

    async def on_start(self) -> None:
        await trio.sleep(1)

    async def handle(self, message: None) -> None:
        pass

    async def on_stop(self, reason: str) -> None:
        await trio.sleep(1)


async def test_status_is_told_at_any_moment_of_start_and_stop() -> None:
    slow = SupervisorSpec(
        (
            ChildSpec("first", Slow),
            ChildSpec("connections", SupervisorSpec(dynamic=True)),
            ChildSpec("last", Slow),
        )
    )
    nothing = {"connections": 0, "parked": []}
    for steps in range(12):
        async with running(slow) as system:
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            assert (await asked(system, call("status")))["result"] == nothing
            for _ in range(6):
                await trio.sleep(0.5)
                assert (await asked(system, call("status")))["result"] == nothing
            system.stop("enough")
            for _ in range(6):
                await trio.sleep(0.5)
                assert (await asked(system, call("status")))["result"] == nothing


async def test_status_is_told_while_connections_are_parked() -> None:
    class Conn(Actor[None]):
        async def handle(self, message: None) -> None:
            raise OSError("hurt")

    connections = SupervisorSpec(
        (ChildSpec("1", Conn),), beyond=Beyond.ESCALATE, intensity=Intensity(0, 1.0)
    )
    spec = SupervisorSpec(
        (ChildSpec("connections", connections),), beyond=Beyond.PARK, intensity=Intensity(0, 1.0)
    )
    async with running(spec) as system:
        (await system.wait_for("connections/1")).cast(None)
        await trio.sleep(1)
        answer = await asked(system, call("status"))
        assert answer["result"] == {"connections": 0, "parked": ["connections"]}


Check = Callable[[MemoryTransport, PrivateTransport], Awaitable[None]]


async def between(check: Check) -> None:
    far, near = memory_pair()
    async with running(tree()) as system:
        await check(far, PrivateTransport(near, system))


async def test_everything_else_passes_as_it_is() -> None:
    texts = [
        b"{oops x-ahpd/",
        b'{"jsonrpc":"2.0","method":"x-ahpd/status","params":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"other","params":{"x":"x-ahpd/status"}}',
        b"{}",
    ]

    async def check(far: MemoryTransport, near: PrivateTransport) -> None:
        await far.send([Frame(text) for text in texts])
        assert [await near.receive() for _ in texts] == texts
        await near.send([Frame(text) for text in texts])
        assert [await far.receive() for _ in texts] == texts

    await between(check)


async def test_the_end_is_told_once_all_before_it_was_answered() -> None:
    async def check(far: MemoryTransport, near: PrivateTransport) -> None:
        # The peer's stream ends while its requests are still being worked on.
        far.outbound._finish("the peer ended its stream", 1000, True)
        question = loads(await near.receive())
        assert isinstance(question, dict)
        async with trio.open_nursery() as nursery:
            ended = trio.Event()

            async def end() -> None:
                with pytest.raises(TransportClosed) as closed:
                    await near.receive()
                assert closed.value.clean
                ended.set()

            nursery.start_soon(end)
            await trio.testing.wait_all_tasks_blocked()
            await near.send([Frame(b"{}")])
            assert not ended.is_set()
            await near.send([Frame(b"[]"), frame(success(question["id"], None))])
        assert [await far.receive(), await far.receive()] == [b"{}", b"[]"]

    await between(check)


async def test_the_end_is_told_at_last_when_no_answer_comes() -> None:
    async def check(far: MemoryTransport, near: PrivateTransport) -> None:
        far.close_nowait()
        await near.receive()
        start = trio.current_time()
        with pytest.raises(TransportClosed):
            await near.receive()
        assert trio.current_time() - start == control.SETTLE_WITHIN

    await between(check)


async def test_a_break_is_told_at_once() -> None:
    async def check(far: MemoryTransport, near: PrivateTransport) -> None:
        far.cut()
        for _ in range(2):
            with pytest.raises(TransportClosed) as closed:
                await near.receive()
            assert closed.value.code == 1006

    await between(check)
