"""``ahpd terminal``: use one of the daemon's terminals from this one, beside whoever else does.

All that it shows is written here as it comes, and every key goes there, but for the one that
leaves. What comes is the output of programs, and steers this terminal as if they ran here. When the
connection is lost it is made anew, and the screen drawn anew; keys that come meanwhile go nowhere.
"""

from __future__ import annotations

import math
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import attrs
import click

from ahpd.cli import exits
from ahpd.cli.group import Unusable
from ahpd.cli.reach import Refused, Target, Unreachable, connector, reaching
from ahpd.cli.replayed import without_questions
from ahpd.cli.running import Running, run
from ahpd.cli.shown import line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ahpd.client.rpc import Peer
    from ahpd.transports.port import Transport

#: Seconds that the daemon may take for one answer.
ANSWER_WITHIN = 30.0
#: Characters that may wait to be shown, above which nothing more is read from the daemon.
BEHIND = 256 << 10


def _key(_: click.Context, __: click.Parameter, name: str) -> bytes:
    letter = name.removeprefix("ctrl-").upper()
    if not name.startswith("ctrl-") or len(letter) != 1 or not "@" <= letter <= "_":
        raise click.BadParameter("it has to be ctrl- and a letter, or one of @ [ \\ ] ^ _")
    return bytes([ord(letter) - 64])


@click.command("terminal", short_help="Use a terminal, until it ends or ctrl-] is pressed.")
@click.argument("uri", required=False)
@reaching
@click.option("--new", is_flag=True, help="Make a terminal in the current folder, and use that.")
@click.option(
    "--detach-key",
    metavar="KEY",
    default="ctrl-]",
    show_default=True,
    callback=_key,
    help="The key that leaves.",
)
@click.option(
    "--reconnect",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="How long to try to come back when the connection is lost.",
)
@click.option("--keep-size", is_flag=True, help="Do not give it this terminal's size.")
def command(
    uri: str | None,
    target: Target,
    *,
    new: bool,
    detach_key: bytes,
    reconnect: float,
    keep_size: bool,
) -> int:
    """Use the terminal with the URI URI, until it ends or ctrl-] is pressed.

    Others may use it at the same time. It goes on when this command ends. Exits 0 then, 3 when the
    connection is lost and does not come back, 4 when there is no such terminal.
    """
    from ahpd.cli import tty  # noqa: PLC0415 - not for --help

    if (uri is None) is not new:
        raise Unusable("say which terminal, by its URI (see: ahpd terminals), or --new")
    if not tty.is_there():
        raise Unusable("a terminal is used from a terminal: input and output have to be one")
    use = _Use(uri or f"ahp-terminal:/{uuid4()}", new, detach_key, reconnect, keep_size)
    return run(lambda running: _Attached(use, target, running).main())


@attrs.frozen
class _Use:
    """What was asked for."""

    uri: str
    is_new: bool
    key: bytes
    reconnect: float
    keep_size: bool


class _Unhurried:
    """A transport of which no more is taken than there is room for; the daemon keeps pace."""

    def __init__(self, transport: Transport, room: Callable[[], Awaitable[None]]) -> None:
        self.peer = transport.peer
        self.send = transport.send
        self.close = transport.close
        self._transport = transport
        self._room = room

    async def receive(self) -> bytes | str:
        """As the transport's, when there is room."""
        await self._room()
        return await self._transport.receive()


class _Attached:
    """One use of a terminal."""

    def __init__(self, use: _Use, target: Target, running: Running) -> None:
        import trio  # noqa: PLC0415

        self._use = use
        self._uri = use.uri
        self._target = target
        self._running = running
        self._name = f"ahpd-terminal-{uuid4().hex[:12]}"
        self._seq = 0
        self._put, self._take = trio.open_memory_channel[str | None](math.inf)
        #: Characters that are still to be shown, and what happens when some were.
        self._behind = 0
        self._shown = trio.Event()
        self._peer: Peer | None = None
        #: Why it is over, and the exit code.
        self._end: tuple[str, int] | None = None

    async def main(self) -> int:
        from ahpd.client.rpc import ConnectionLost, RequestTimeout  # noqa: PLC0415
        from ahpd.protocol.errors import ProtocolError  # noqa: PLC0415
        from ahpd.transports.port import TransportClosed  # noqa: PLC0415

        self._target.check()
        try:
            await self._connect("", is_new=self._use.is_new)
            await self._show()
        except ProtocolError as error:
            raise Refused(error.message) from error
        except (ConnectionLost, RequestTimeout, TransportClosed) as error:
            raise Unreachable(f"the daemon cannot be reached: {error}") from error
        said, code = self._end or ("", exits.OK)
        click.echo(f"\r\n{line(said)}", err=True)
        return code

    async def _connect(self, begin: str, *, is_new: bool = False) -> None:
        """Hear the terminal on a new connection; what it has shown comes behind `begin`."""
        from ahpd.client.rpc import Peer  # noqa: PLC0415

        nursery = self._running.nursery
        transport = await connector(nursery, self._target.address)()
        peer = Peer(_Unhurried(transport, self._room), self._notified)
        nursery.start_soon(peer.run)
        try:
            await self._hear(peer, begin, is_new=is_new)
            self._peer = peer
        finally:
            if self._peer is not peer:
                peer.close("it is of no use")

    async def _hear(self, peer: Peer, begin: str, *, is_new: bool) -> None:
        await self._ask(
            peer,
            "initialize",
            protocolVersions=["1.0.0"],
            clientId=self._name,
            channel="ahp-root://",
            initialSubscriptions=["ahp-root://"],
        )
        if is_new:
            claim = {"kind": "client", "clientId": self._name}
            cwd = Path.cwd().as_uri()
            await self._ask(peer, "createTerminal", channel=self._uri, claim=claim, cwd=cwd)

        def show(found: Any) -> Any:
            state = found["snapshot"]["state"]
            if "lifecycle" in state:  # here, so that what comes next is shown next
                parts = state["content"]
                text = "".join(part.get("value") or part.get("output") or "" for part in parts)
                # Of a new one the first to hear it answers what its shell asks.
                self._to_show(begin + (text if is_new else without_questions(text)))
            return state

        params = {"channel": self._uri}
        state = await peer.request("subscribe", params, within=ANSWER_WITHIN, on_result=show)
        if "lifecycle" not in state:
            raise Unusable(f"{line(self._uri)} is no terminal")
        if state["lifecycle"]["status"] == "exited":
            self._over("the terminal has ended", exits.OK)

    async def _ask(self, peer: Peer, method: str, **params: Any) -> Any:
        return await peer.request(method, params, within=ANSWER_WITHIN)

    async def _show(self) -> None:
        import trio  # noqa: PLC0415

        from ahpd.cli import tty  # noqa: PLC0415

        with tty.raw():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._type)
                nursery.start_soon(self._follow_size)
                nursery.start_soon(self._stay)
                async for text in self._take:
                    if text is None:
                        break
                    await tty.write(text.encode())
                    self._behind -= len(text)
                    self._shown.set()
                    self._shown = trio.Event()
                nursery.cancel_scope.cancel(reason="it is over")

    def _to_show(self, text: str) -> None:
        self._behind += len(text)
        self._put.send_nowait(text)

    async def _room(self) -> None:
        """Wait until what came before is shown, nearly."""
        while self._behind > BEHIND:
            await self._shown.wait()

    def _over(self, why: str, code: int) -> None:
        if self._end is None:
            self._end = (why, code)
        self._put.send_nowait(None)

    # ---- from there -----------------------------------------------------------------------------

    def _notified(self, method: str, params: Any) -> None:
        if method != "action" or "rejectionReason" in params:
            return
        action = params["action"]
        if params["channel"] == self._uri:
            if action["type"] == "terminal/data":
                self._to_show(action["data"])
            elif action["type"] == "terminal/exited":
                code = action.get("exitCode")
                how = "by a signal" if code is None else f"with exit code {code:g}"
                self._over(f"the terminal ended {how}", exits.OK)
        elif action["type"] == "root/terminalsChanged" and all(
            each["resource"] != self._uri for each in action["terminals"]
        ):
            self._over("the terminal was disposed of", exits.OK)

    async def _stay(self) -> None:
        """Come back as often as the connection is lost."""
        while self._peer is not None:
            await self._peer.ended.wait()
            self._peer = None
            if self._end is None:
                leaves = chr(self._use.key[0] + 64).lower()
                self._to_show(
                    f"\r\n\x1b[0;7m the connection is lost; trying again, ctrl-{leaves} leaves "
                    "\x1b[0m\r\n"
                )
                await self._come_back()

    async def _come_back(self) -> None:
        import random  # noqa: PLC0415

        import trio  # noqa: PLC0415

        from ahpd.cli import tty  # noqa: PLC0415
        from ahpd.client.backoff import Backoff  # noqa: PLC0415
        from ahpd.client.rpc import ConnectionLost, RequestTimeout  # noqa: PLC0415
        from ahpd.protocol.errors import ProtocolError  # noqa: PLC0415
        from ahpd.transports.port import TransportClosed  # noqa: PLC0415

        await self._room()  # answers too are read only when there is
        with trio.move_on_after(self._use.reconnect):
            for wait in Backoff(first=0.2, most=5.0).delays(random.Random()):
                await trio.sleep(wait)
                try:
                    await self._connect(tty.ANEW)
                except (ConnectionLost, RequestTimeout, TransportClosed):
                    continue
                except ProtocolError as error:
                    self._over(f"the terminal is gone: {error.message}", exits.REFUSED)
                else:
                    self._tell_size()
                return
        self._over("the connection is lost; the terminal goes on", exits.NO_DAEMON)

    # ---- from here ------------------------------------------------------------------------------

    async def _type(self) -> None:
        from codecs import getincrementaldecoder  # noqa: PLC0415

        from ahpd.cli import tty  # noqa: PLC0415

        decoder = getincrementaldecoder("utf-8")(errors="replace")
        while True:
            keys = await tty.read()
            mine, key, _ = keys.partition(self._use.key)
            text = decoder.decode(mine)
            if text:
                self._dispatch({"type": "terminal/input", "data": text})
            if key or not keys:
                if self._peer is not None:
                    await self._peer.drain()
                self._over("left; the terminal goes on", exits.OK)
                return

    async def _follow_size(self) -> None:
        import trio  # noqa: PLC0415

        with trio.open_signal_receiver(signal.SIGWINCH) as signals:
            self._tell_size()
            async for _ in signals:
                self._tell_size()

    def _tell_size(self) -> None:
        from ahpd.cli import tty  # noqa: PLC0415

        if not self._use.keep_size:
            cols, rows = tty.size()
            self._dispatch({"type": "terminal/resized", "cols": cols, "rows": rows})

    def _dispatch(self, action: dict[str, Any]) -> None:
        """To the terminal, if there is a connection: what was typed without one is not sent."""
        self._seq += 1
        if self._peer is not None and self._peer.lost is None:
            params = {"channel": self._uri, "clientSeq": self._seq, "action": action}
            self._peer.notify("dispatchAction", params)
