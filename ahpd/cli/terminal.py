"""``ahpd terminal``: use one of the daemon's terminals from this one, beside whoever else does.

All that it shows is written here as it comes, and every key goes there, but for the one that
leaves. What comes is the output of programs, and steers this terminal as if they ran here.
"""

from __future__ import annotations

import math
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import click

from ahpd.cli import exits
from ahpd.cli.group import Unusable
from ahpd.cli.reach import Refused, Target, Unreachable, connector, reaching
from ahpd.cli.running import Running, run
from ahpd.cli.shown import line

if TYPE_CHECKING:
    from ahpd.client.rpc import Peer

#: Seconds that the daemon may take for one answer.
ANSWER_WITHIN = 30.0


def _key(_: click.Context, __: click.Parameter, name: str) -> bytes:
    letter = name.removeprefix("ctrl-").upper()
    if not name.startswith("ctrl-") or len(letter) != 1 or not "@" <= letter <= "_":
        raise click.BadParameter("it has to be ctrl- and a letter, or one of @ [ \\ ] ^ _")
    return bytes([ord(letter) - 64])


@click.command("terminal")
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
@click.option("--keep-size", is_flag=True, help="Do not give it this terminal's size.")
def command(
    uri: str | None, target: Target, *, new: bool, detach_key: bytes, keep_size: bool
) -> int:
    """Use the terminal with the URI URI, until it ends or ctrl-] is pressed.

    Others may use it at the same time. It goes on when this command ends. Exits 0 then, 3 when the
    connection is lost, 4 when there is no such terminal.
    """
    from ahpd.cli import tty  # noqa: PLC0415 - not for --help

    if (uri is None) is not new:
        raise Unusable("say which terminal, by its URI (see: ahpd terminals), or --new")
    if not tty.is_there():
        raise Unusable("a terminal is used from a terminal: input and output have to be one")
    attached = _Attached(uri or f"ahp-terminal:/{uuid4()}", new, detach_key, keep_size)
    return run(lambda running: attached.main(target, running))


class _Attached:
    """One use of a terminal."""

    def __init__(self, uri: str, is_new: bool, detach_key: bytes, keep_size: bool) -> None:
        import trio  # noqa: PLC0415

        self._uri = uri
        self._is_new = is_new
        self._key = detach_key
        self._keep_size = keep_size
        self._seq = 0
        self._put, self._take = trio.open_memory_channel[str | None](math.inf)
        #: Why it is over, and the exit code.
        self._end: tuple[str, int] | None = None

    async def main(self, target: Target, running: Running) -> int:
        from ahpd.client.rpc import ConnectionLost, Peer, RequestTimeout  # noqa: PLC0415
        from ahpd.protocol.errors import ProtocolError  # noqa: PLC0415
        from ahpd.transports.port import TransportClosed  # noqa: PLC0415

        target.check()
        try:
            peer = Peer(await connector(running.nursery, target.address)(), self._notified)
            running.nursery.start_soon(peer.run)
            before = await self._hello(peer)
            await self._use(peer, before)
        except ProtocolError as error:
            raise Refused(error.message) from error
        except (ConnectionLost, RequestTimeout, TransportClosed) as error:
            raise Unreachable(f"the daemon cannot be reached: {error}") from error
        said, code = self._end or ("", exits.OK)
        click.echo(line(said), err=True)
        return code

    async def _hello(self, peer: Peer) -> str:
        """Begin to hear the terminal; what it has shown before."""
        name = f"ahpd-terminal-{uuid4().hex[:12]}"
        await self._ask(
            peer,
            "initialize",
            protocolVersions=["1.0.0"],
            clientId=name,
            channel="ahp-root://",
            initialSubscriptions=["ahp-root://"],
        )
        if self._is_new:
            claim = {"kind": "client", "clientId": name}
            cwd = Path.cwd().as_uri()
            await self._ask(peer, "createTerminal", channel=self._uri, claim=claim, cwd=cwd)
        found = await self._ask(peer, "subscribe", channel=self._uri)
        state = found["snapshot"]["state"]
        if "lifecycle" not in state:
            raise Unusable(f"{line(self._uri)} is no terminal")
        if state["lifecycle"]["status"] == "exited":
            self._over("the terminal has ended", exits.OK)
        return "".join(part.get("value") or part.get("output") or "" for part in state["content"])

    async def _ask(self, peer: Peer, method: str, **params: Any) -> Any:
        return await peer.request(method, params, within=ANSWER_WITHIN)

    async def _use(self, peer: Peer, before: str) -> None:
        import trio  # noqa: PLC0415

        from ahpd.cli import tty  # noqa: PLC0415

        with tty.raw():
            await tty.write(before.encode())
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._type, peer)
                nursery.start_soon(self._follow_size, peer)
                nursery.start_soon(self._lost, peer)
                async for text in self._take:
                    if text is None:
                        break
                    await tty.write(text.encode())
                nursery.cancel_scope.cancel(reason="it is over")

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
                self._put.send_nowait(action["data"])
            elif action["type"] == "terminal/exited":
                code = action.get("exitCode")
                how = "by a signal" if code is None else f"with exit code {code:g}"
                self._over(f"the terminal ended {how}", exits.OK)
        elif action["type"] == "root/terminalsChanged" and all(
            each["resource"] != self._uri for each in action["terminals"]
        ):
            self._over("the terminal was disposed of", exits.OK)

    async def _lost(self, peer: Peer) -> None:
        await peer.ended.wait()
        self._over("the connection is lost; the terminal goes on", exits.NO_DAEMON)

    # ---- from here ------------------------------------------------------------------------------

    async def _type(self, peer: Peer) -> None:
        from codecs import getincrementaldecoder  # noqa: PLC0415

        from ahpd.cli import tty  # noqa: PLC0415

        decoder = getincrementaldecoder("utf-8")(errors="replace")
        while True:
            keys = await tty.read()
            mine, key, _ = keys.partition(self._key)
            text = decoder.decode(mine)
            if text:
                self._dispatch(peer, {"type": "terminal/input", "data": text})
            if key or not keys:
                await peer.drain()
                self._over("left; the terminal goes on", exits.OK)
                return

    async def _follow_size(self, peer: Peer) -> None:
        import trio  # noqa: PLC0415

        from ahpd.cli import tty  # noqa: PLC0415

        if self._keep_size:
            return
        with trio.open_signal_receiver(signal.SIGWINCH) as signals:
            while True:
                cols, rows = tty.size()
                self._dispatch(peer, {"type": "terminal/resized", "cols": cols, "rows": rows})
                await anext(signals)

    def _dispatch(self, peer: Peer, action: dict[str, Any]) -> None:
        self._seq += 1
        if peer.lost is None:
            params = {"channel": self._uri, "clientSeq": self._seq, "action": action}
            peer.notify("dispatchAction", params)
