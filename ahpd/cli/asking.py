"""Asking a running daemon something, over its Unix socket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import click
import trio

from ahpd import __version__
from ahpd.cli import exits
from ahpd.cli.reach import unix_address
from ahpd.protocol.errors import ProtocolError
from ahpd.protocol.model import JSON
from ahpd.protocol.uris import ROOT

#: Seconds that the daemon may take for one answer.
ANSWER_WITHIN = 30.0


class NoAnswer(click.ClickException):
    """The daemon cannot be reached, or does not answer."""

    exit_code = exits.NO_DAEMON


class Refusal(click.ClickException):
    """The daemon does not do what it was asked to."""

    exit_code = exits.REFUSED


def ask(unix: str, *requests: tuple[str, dict[str, JSON]], within: float = ANSWER_WITHIN) -> Any:
    """Say hello, ask these in order, and return their results. For programs that do not run trio.

    Raises `NoAnswer` and `Refusal`.
    """
    return trio.run(_ask, unix, requests, within)


async def _ask(
    unix: str, requests: Sequence[tuple[str, dict[str, JSON]]], within: float
) -> list[JSON]:
    from ahpd.client.rpc import ConnectionLost, Peer, RequestTimeout  # noqa: PLC0415
    from ahpd.transports.connect import ConnectFailed, connect  # noqa: PLC0415

    hello: dict[str, JSON] = {
        "channel": ROOT,
        "protocolVersions": ["1.0.0"],
        "clientId": f"ahpd-{uuid4().hex}",
        "clientInfo": {"name": "ahpd", "version": __version__},
    }
    results: list[JSON] = []
    failure: click.ClickException | None = None
    async with trio.open_nursery() as nursery:
        try:
            transport = await connect(nursery, unix_address(unix))
            peer = Peer(transport, lambda _method, _params: None)
            nursery.start_soon(peer.run)
            for method, params in (("initialize", hello), *requests):
                results.append(await peer.request(method, params, within=within))
        except (ConnectFailed, ConnectionLost, RequestTimeout) as error:
            failure = NoAnswer(f"the daemon does not answer: {error}")
        except ProtocolError as error:
            failure = Refusal(error.message)
        nursery.cancel_scope.cancel(reason="all is answered")
    if failure is not None:
        raise failure
    return results[1:]
