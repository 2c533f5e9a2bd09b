"""``ahpd verify``: whether what is kept is what the host has, and what it would write again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import attrs
import click
import trio

from ahpd.cli import exits
from ahpd.cli.asking import NoAnswer
from ahpd.cli.journal import folder_option, readable
from ahpd.cli.reach import unix_address
from ahpd.cli.shown import line

if TYPE_CHECKING:
    from ahpd.client.rpc import Peer
    from ahpd.daemon.state import StateFolder

#: Seconds that the daemon may take for an answer.
ANSWER_WITHIN = 30.0
#: How often a channel is looked at again whose file is always past the snapshot.
TRIES = 50


@attrs.define
class Report:
    """What was looked at, and what is not the same, by channel."""

    channels: int = 0
    compared: int = 0
    faults: list[tuple[str, str]] = attrs.field(factory=list)


@click.command("verify")
@folder_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(*, folder: StateFolder, as_json: bool) -> int:
    """Reduce every channel that is kept again, and compare.

    A snapshot must be what would be written again, and the actions after it must lead on from it.
    While a daemon runs, each channel that it has loaded must be the same as in the snapshot that a
    client gets. Prints the first difference of each channel with its place; exits 1 on any.
    """
    report = Report()
    with readable():
        _look(folder, report)
        endpoint = folder.read_endpoint()
        if endpoint is not None:
            trio.run(_compare, endpoint.unix, folder, report)
    if as_json:
        faults = [{"channel": uri, "message": text} for uri, text in report.faults]
        found: dict[str, Any] = {
            "ok": not faults,
            "channels": report.channels,
            "compared": report.compared if endpoint is not None else None,
            "faults": faults,
        }
        click.echo(json.dumps(found))
    else:
        for uri, text in report.faults:
            click.echo(line(f"{uri}: {text}"))
        beside = (
            "no daemon runs" if endpoint is None else f"{report.compared} as the daemon has them"
        )
        click.echo(f"{report.channels} channels, {len(report.faults)} faults; {beside}")
    return exits.FAULTS if report.faults else exits.OK


def _look(folder: StateFolder, report: Report) -> None:
    """At the file alone; what is damaged as a whole is a fault as well."""
    from ahpd.daemon import verifying  # noqa: PLC0415 - the protocol's types are many
    from ahpd.daemon.verifying import JournalDamaged  # noqa: PLC0415

    seen: set[str] = set()
    bad: set[str] = set()
    try:
        for each in verifying.findings(folder.journal):
            seen.add(each.channel)
            text = each.problem or _first(each.expected, each.got, each.what)
            if text is not None and each.channel not in bad:
                bad.add(each.channel)
                report.faults.append((each.channel, text))
    except JournalDamaged as error:
        report.faults.append((str(folder.journal), str(error)))
    report.channels = len(seen)


def _first(expected: Any, got: Any, what: str) -> str | None:
    """The first difference, with its place."""
    from ahpd.conformance.compare import differences  # noqa: PLC0415

    found: Iterator[str] = differences(expected, got, null_is_absent=False)
    text = next(found, None)
    return None if text is None else f"{what}: {text}"


def what_both_have(one: Any, two: Any) -> tuple[Any, Any]:
    """Two states as they are to be compared: of terminals the output that neither has forgotten.

    A host forgets the oldest without a word (R-12.27), so the file may still have it.
    """
    for each in (one, two):
        if not (isinstance(each, dict) and {"content", "lifecycle"} <= each.keys()):
            return one, two
    count = min(len(one["content"]), len(two["content"]))
    if not count:
        return one, two
    parts = [[dict(part) for part in each["content"][-count:]] for each in (one, two)]
    first = [part[0] for part in parts]
    for key in ("value", "output"):
        if all(isinstance(each.get(key), str) for each in first):
            length = min(len(each[key]) for each in first)
            for each in first:
                each[key] = each[key][len(each[key]) - length :]
    return {**one, "content": parts[0]}, {**two, "content": parts[1]}


# ---- beside a daemon ----------------------------------------------------------------------------


async def _compare(unix: str, folder: StateFolder, report: Report) -> None:
    """Each channel that the daemon has loaded. Raises `NoAnswer`."""
    from ahpd import __version__  # noqa: PLC0415
    from ahpd.client.rpc import ConnectionLost, Peer, RequestTimeout  # noqa: PLC0415
    from ahpd.daemon.control import CHANNELS  # noqa: PLC0415
    from ahpd.protocol.errors import ProtocolError  # noqa: PLC0415
    from ahpd.protocol.uris import ROOT  # noqa: PLC0415
    from ahpd.transports.connect import ConnectFailed, connect  # noqa: PLC0415

    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        try:
            peer = Peer(await connect(nursery, unix_address(unix)), lambda _method, _params: None)
            nursery.start_soon(peer.run)
            hello = {
                "channel": ROOT,
                "protocolVersions": ["1.0.0"],
                "clientId": f"ahpd-verify-{uuid4().hex[:12]}",
                "clientInfo": {"name": "ahpd verify", "version": __version__},
            }
            await peer.request("initialize", hello, within=ANSWER_WITHIN)
            for uri in await peer.request(CHANNELS, {}, within=ANSWER_WITHIN):
                text = await _channel(peer, folder, uri)
                report.compared += 1
                if text is not None:
                    report.faults.append((uri, text))
        except (ConnectFailed, ConnectionLost, RequestTimeout, ProtocolError) as error:
            failure = error
        nursery.cancel_scope.cancel(reason="all is compared")
    if failure is not None:
        raise NoAnswer(f"the daemon does not answer: {failure}")


async def _channel(peer: Peer, folder: StateFolder, uri: str) -> str | None:
    """What is not the same, in words; None when nothing is, or the channel has ended meanwhile."""
    from ahpd.daemon import verifying  # noqa: PLC0415
    from ahpd.protocol.errors import ErrorCode, ProtocolError  # noqa: PLC0415

    kept = None
    for _ in range(TRIES):
        try:
            answer = await peer.request("subscribe", {"channel": uri}, within=ANSWER_WITHIN)
        except ProtocolError as error:
            if error.code in (ErrorCode.NOT_FOUND, ErrorCode.SESSION_NOT_FOUND):
                return None
            raise
        peer.notify("unsubscribe", {"channel": uri})
        snapshot = answer["snapshot"]
        try:
            kept = await trio.to_thread.run_sync(
                verifying.reduced, folder.journal, uri, int(snapshot["fromSeq"])
            )
        except ValueError as error:
            return str(error)
        if kept is None:
            # Perhaps it has just ended: then it cannot be subscribed again.
            continue
        if kept.state is not None:
            pair = what_both_have(snapshot["state"], kept.state)
            return _first(*pair, "the daemon has another state")
    return "the file does not have it" if kept is None else None
