"""``ahpd log follow``: what a host logs, as it happens, over the protocol's telemetry channel."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn
from uuid import uuid4

import attrs
import click

from ahpd import __version__
from ahpd.cli.reach import Refused, Target, Unreachable, connector
from ahpd.cli.running import Running
from ahpd.cli.shown import safe
from ahpd.client.rpc import ConnectionLost, Peer, RequestTimeout
from ahpd.protocol.errors import ProtocolError
from ahpd.protocol.model import Object
from ahpd.protocol.uris import ROOT
from ahpd.protocol.versions import CURRENT
from ahpd.transports.port import TransportClosed

#: Seconds that the host may take for an answer.
ANSWER_WITHIN = 10.0

#: Colours of the bands of severity.
_COLOURS = {"warn": "yellow", "error": "red", "fatal": "red", "debug": "bright_black"}
#: Attributes that are told behind the text, by what they are called there.
_TOLD = {
    "ahp.channel": "channel",
    "ahp.server_seq": "number",
    "ahp.client.id": "client",
    "ahp.turn.id": "turn",
}


@attrs.frozen
class Follower:
    """Follows the records of a `level` and above, of those subsystems, or of all."""

    level: str
    subsystems: frozenset[str]
    as_json: bool

    async def main(self, target: Target, running: Running) -> NoReturn:
        """Until the connection is gone, or Ctrl-C. Raises `Unreachable` and `Refused`."""
        target.check()
        try:
            transport = await connector(running.nursery, target.address)()
        except TransportClosed as error:
            raise Unreachable(f"the daemon cannot be reached: {error}") from None
        peer = Peer(transport, self._heard)
        running.nursery.start_soon(peer.run)
        try:
            await self._subscribe(peer)
        except (ConnectionLost, RequestTimeout) as error:
            raise Unreachable(f"the daemon does not answer: {error}") from None
        except ProtocolError as error:
            raise Refused(error.message) from None
        click.echo("ahpd: following the log from here on", err=True)
        await peer.ended.wait()
        assert peer.lost is not None
        raise Unreachable(f"the connection is gone: {peer.lost.reason}")

    async def _subscribe(self, peer: Peer) -> None:
        who: Object = {
            "channel": ROOT,
            "protocolVersions": [CURRENT],
            "clientId": f"ahpd-log-{uuid4().hex[:12]}",
            "clientInfo": {"name": "ahpd log", "version": __version__},
        }
        hello = await peer.request("initialize", who, within=ANSWER_WITHIN)
        template = (hello.get("telemetry") or {}).get("logs")
        if not isinstance(template, str):
            raise Refused("this host does not tell of its log")
        channel = template.replace("{level}", self.level)
        await peer.request("subscribe", {"channel": channel}, within=ANSWER_WITHIN)

    def _heard(self, method: str, params: Object) -> None:
        if method != "otlp/exportLogs":
            return
        for subsystem, record in _records(params.get("payload")):
            if self.subsystems and subsystem not in self.subsystems:
                continue
            facts = _facts(subsystem, record)
            click.echo(json.dumps(facts) if self.as_json else _line(facts))


def _records(payload: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each record of an export request, and the subsystem that it is of."""
    for resource in payload.get("resourceLogs", ()):
        for scope in resource.get("scopeLogs", ()):
            name = str(scope.get("scope", {}).get("name", "")).removeprefix("ahpd.")
            for record in scope.get("logRecords", ()):
                yield name, record


def _facts(subsystem: str, record: Mapping[str, Any]) -> dict[str, Any]:
    attributes = {
        each.get("key"): next(iter(each.get("value", {}).values()), None)
        for each in record.get("attributes", ())
    }
    nanoseconds = int(record.get("timeUnixNano", 0))
    moment = datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat(timespec="milliseconds")
    return {
        "time": moment.replace("+00:00", "Z"),
        "level": record.get("severityText", ""),
        "subsystem": subsystem,
        "text": record.get("body", {}).get("stringValue", ""),
        "attributes": attributes,
    }


def _line(facts: Mapping[str, Any]) -> str:
    attributes = facts["attributes"]
    band = click.style(f"{facts['level'].upper():<5}", fg=_COLOURS.get(facts["level"]))
    where = attributes.get("ahpd.actor") or facts["subsystem"]
    told = " ".join(f"{name}={attributes[key]}" for key, name in _TOLD.items() if key in attributes)
    text = f"{facts['time']} {band} {safe(where)}: {safe(facts['text'])}"
    if told:
        text += click.style(f"  [{safe(told)}]", dim=True)
    traceback = attributes.get("exception.stacktrace")
    return text if traceback is None else f"{text}\n{safe(traceback)}"
