"""The plainest programs that do what a host does, each with trio-websocket's own means alone.

`broadcast` sends one message to every connection with `send_message`, one after another. `ticks`
does that for many chats at a time, each on its own clock. `echo` sends back what comes, `answer`
sends a long message for each that comes, `hold` only takes connections. `tasks` has bare trio
tasks that wait.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import trio
import trio_websocket

from ahpd.bench.processes import Program, say

_Connections: TypeAlias = list[trio_websocket.WebSocketConnection]


class Naive(Program):
    """One of the programs, from outside; `port` is where it takes connections."""

    def __init__(self, role: str, **job: Any) -> None:
        super().__init__("ahpd.bench.naive", role=role, **job)
        self.port: int = self.hear()


# ---- inside the program --------------------------------------------------------------------------


async def _told_to_go() -> None:
    await trio.to_thread.run_sync(sys.stdin.readline)


async def _broadcast(connections: _Connections, job: Any) -> None:
    text = job["text"]
    while True:
        await _told_to_go()
        for _ in range(job["times"]):
            for connection in connections:
                await connection.send_message(text)


async def _ticks(connections: _Connections, job: Any) -> None:
    """Each chat has as many connections as the others; `head` and `tail` are around its times."""
    head, tail = job["head"], job["tail"]
    each = len(connections) // job["chats"]

    async def chat(mine: _Connections, start: float) -> None:
        for tick in range(job["times"]):
            await trio.sleep_until(start + tick * job["seconds"])
            text = f"{head}{time.time_ns() // 1000} {tail}"
            for connection in mine:
                await connection.send_message(text)

    await _told_to_go()
    async with trio.open_nursery() as nursery:
        for number in range(job["chats"]):
            mine = connections[number * each : (number + 1) * each]
            # They begin one after another, as people do.
            nursery.start_soon(chat, mine, trio.current_time() + number * job["apart"])


async def _echo(connection: trio_websocket.WebSocketConnection, _: Any) -> None:
    while True:
        await connection.send_message(await connection.get_message())


async def _answer(connection: trio_websocket.WebSocketConnection, job: Any) -> None:
    text = "x" * job["size"]
    while True:
        await connection.get_message()
        await connection.send_message(text)


async def _hold(_: trio_websocket.WebSocketConnection, __: Any) -> None:
    await trio.sleep_forever()


#: What is done with all connections together, once there are so many as `connections` says.
_TOGETHER: dict[str, Callable[[_Connections, Any], Awaitable[None]]] = {
    "broadcast": _broadcast,
    "ticks": _ticks,
}
#: What is done with each.
_APART: dict[str, Callable[[trio_websocket.WebSocketConnection, Any], Awaitable[None]]] = {
    "echo": _echo,
    "answer": _answer,
    "hold": _hold,
}


async def _serve(job: Any) -> None:
    role = job["role"]
    connections: _Connections = []
    complete = trio.Event()

    async def handler(asked: trio_websocket.WebSocketRequest) -> None:
        connection = await asked.accept()
        if role in _APART:
            try:
                await _APART[role](connection, job)
            except trio_websocket.ConnectionClosed:
                return
        connections.append(connection)
        if len(connections) == job["connections"]:
            complete.set()
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio_websocket.WebSocketServer(handler, listeners).run)
        say(listeners[0].socket.getsockname()[1])
        if role in _TOGETHER:
            await complete.wait()
            await _TOGETHER[role](connections, job)
        await trio.sleep_forever()


async def _tasks(job: Any) -> None:
    """So many tasks, each with a nursery of its own, as an actor has."""

    async def wait() -> None:
        async with trio.open_nursery():
            await trio.sleep_forever()

    say(0)
    await _told_to_go()
    async with trio.open_nursery() as nursery:
        for _ in range(job["count"]):
            nursery.start_soon(wait)


def main(job: Any) -> None:
    """Do what the argument says."""
    trio.run(_tasks if job["role"] == "tasks" else _serve, job)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
