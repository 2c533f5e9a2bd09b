"""Text frames a second to one client over loopback: joined writes beside one `send_message` each.

Run it as ``python contrib/bench/transports.py``. The client is a process of its own that reads raw
bytes and nothing else, so that it is not what is measured; every frame has the same size, so the
number of bytes tells whether all of them came. Both ways send the same frames over the same kind
of connection, in turns. Prints the medians and their ratio.
"""

from __future__ import annotations

import argparse
import base64
import os
import socket
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

import trio
import trio_websocket

from ahpd.protocol.frame import Frame
from ahpd.transports.framing import text_header
from ahpd.transports.port import Transport
from ahpd.transports.upgrade import Admission
from ahpd.transports.websocket import serve_websocket

#: Sends `count` frames of `size` bytes to the peer.
Sender = Callable[[int, int], Awaitable[None]]


def read_frames(port: int, count: int, size: int) -> float:
    """Connect, read `count` frames of `size` bytes of text; how many a second that were."""
    key = base64.b64encode(os.urandom(16)).decode()
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(
            f"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        head = bytearray()
        while b"\r\n\r\n" not in head:
            head += sock.recv(1)
        wanted = count * (size + len(text_header(size)))
        buffer = bytearray(1 << 20)
        got = sock.recv_into(buffer)
        start = time.perf_counter()
        while got < wanted:
            piece = sock.recv_into(buffer)
            if not piece:
                raise EOFError(f"{got} bytes of {wanted}")
            got += piece
        if got != wanted:
            raise ValueError(f"{got} bytes, not {wanted}")
        return count / (time.perf_counter() - start)


async def joined(transport: Transport, count: int, size: int, batch: int) -> None:
    text = b'"' + b"x" * (size - 2) + b'"'
    for _ in range(count // batch):
        # New frames each time: framing them is part of what is measured.
        await transport.send([Frame(text) for _ in range(batch)])


async def one_by_one(connection: object, count: int, size: int) -> None:
    assert isinstance(connection, trio_websocket.WebSocketConnection)
    text = '"' + "x" * (size - 2) + '"'
    for _ in range(count):
        await connection.send_message(text)


async def measure(
    serve: Callable[[trio.TaskStatus[int]], Awaitable[None]], count: int, size: int
) -> float:
    """Frames a second that a client of `serve` sees."""
    async with trio.open_nursery() as nursery:
        port: int = await nursery.start(serve)
        reader = [sys.executable, __file__, "--read", str(port), str(count), str(size)]
        done = await trio.run_process(reader, capture_stdout=True)
        nursery.cancel_scope.cancel()
    return float(done.stdout)


async def ours(count: int, size: int, batch: int) -> float:
    async def handler(transport: Transport) -> None:
        await joined(transport, count, size, batch)
        await trio.sleep_forever()

    async def serve(task_status: trio.TaskStatus[int]) -> None:
        async with trio.open_nursery() as nursery:

            async def listen(task_status: trio.TaskStatus[tuple[tuple[str, int], ...]]) -> None:
                await serve_websocket(
                    handler,
                    host="127.0.0.1",
                    port=0,
                    admission=Admission(None),
                    task_status=task_status,
                )

            [(_, port)] = await nursery.start(listen)
            task_status.started(port)

    return await measure(serve, count // batch * batch, size)


async def theirs(count: int, size: int) -> float:
    async def handler(request: trio_websocket.WebSocketRequest) -> None:
        await one_by_one(await request.accept(), count, size)
        await trio.sleep_forever()

    async def serve(task_status: trio.TaskStatus[int]) -> None:
        async with trio.open_nursery() as nursery:
            listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
            server = trio_websocket.WebSocketServer(handler, listeners)
            nursery.start_soon(server.run)
            task_status.started(listeners[0].socket.getsockname()[1])

    return await measure(serve, count, size)


async def main(runs: int, size: int, batch: int) -> None:
    joined_rates, single_rates = [], []
    for _ in range(runs):
        joined_rates.append(await ours(800_000, size, batch))
        single_rates.append(await theirs(20_000, size))
    print(f"{size} bytes a frame, {runs} runs, frames a second to one client:")
    for name, rates in ((f"{batch} joined", joined_rates), ("one by one", single_rates)):
        middle, low, high = statistics.median(rates), min(rates), max(rates)
        print(f"  {name:12} {middle:12,.0f}   {low:,.0f} to {high:,.0f}")
    ratio = statistics.median(joined_rates) / statistics.median(single_rates)
    print(f"  ratio        {ratio:12.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--size", type=int, default=250, help="bytes of text in a frame")
    parser.add_argument("--batch", type=int, default=64, help="frames handed over at a time")
    parser.add_argument("--read", type=int, nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read is not None:
        print(read_frames(*options.read))
        sys.exit()
    trio.run(main, options.runs, options.size, options.batch)
