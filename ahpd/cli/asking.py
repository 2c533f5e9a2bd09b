"""Asking a running daemon what only its owner may, over its Unix socket.

No `initialize` comes first: its answer has a place in the order of all others, and waits with them
while the journal fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import trio

from ahpd.cli import exits
from ahpd.cli.reach import unix_address
from ahpd.protocol.errors import ProtocolError
from ahpd.protocol.model import JSON

#: Seconds that the daemon may take for one answer.
ANSWER_WITHIN = 30.0


class NoAnswer(click.ClickException):
    """The daemon cannot be reached, or does not answer."""

    exit_code = exits.NO_DAEMON


class Refusal(click.ClickException):
    """The daemon does not do what it was asked to."""

    exit_code = exits.REFUSED


def ask(unix: str, *requests: tuple[str, dict[str, JSON]], within: float = ANSWER_WITHIN) -> Any:
    """Ask these private requests in order, and return their results. For programs without trio.

    Raises `NoAnswer` and `Refusal`.
    """
    return trio.run(_ask, unix, requests, within)


async def _ask(
    unix: str, requests: Sequence[tuple[str, dict[str, JSON]]], within: float
) -> list[JSON]:
    from ahpd.client.rpc import ConnectionLost, Peer, RequestTimeout  # noqa: PLC0415
    from ahpd.transports.connect import ConnectFailed, connect  # noqa: PLC0415

    results: list[JSON] = []
    failure: click.ClickException | None = None
    async with trio.open_nursery() as nursery:
        try:
            transport = await connect(nursery, unix_address(unix))
            peer = Peer(transport, lambda _method, _params: None)
            nursery.start_soon(peer.run)
            for method, params in requests:
                results.append(await peer.request(method, params, within=within))
        except (ConnectFailed, ConnectionLost, RequestTimeout) as error:
            failure = NoAnswer(f"the daemon does not answer: {error}")
        except ProtocolError as error:
            failure = Refusal(error.message)
        nursery.cancel_scope.cancel(reason="all is answered")
    if failure is not None:
        raise failure
    return results
