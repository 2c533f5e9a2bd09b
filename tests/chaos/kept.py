"""Whether the journal holds what the host has, and whether each number always meant the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from actors.clients import Clients
from actors.keeping import attached_json, baselines_json, heritage_json, notes_json
from actors.ledger import Channel, Ledger
from actors.recording import Recorder
from actors.replay import ReplayWindow
from actors.restoring import CannotRestore, restore_channel
from ahpd.journal.file import read_only
from ahpd.journal.port import Kept, KeptChannel
from ahpd.journal.reading import read_channels, read_kept
from ahpd.protocol.jsontext import loads
from ahpd.protocol.model import JSON
from ahpd.protocol.uris import ROOT, URI
from tests.harness import RunningHost
from tests.harness.replicas import state_differences


def contents(host: RunningHost) -> Iterator[str]:
    """Each number that a client was given meant the same to everybody, over all restarts."""
    meant: dict[int, tuple[JSON, JSON]] = {}
    for entry in host.stream.entries:
        windowed = loads(entry.windowed) if entry.windowed is not None else None
        if entry.seq in meant:
            yield f"number {entry.seq} was given out twice"
        meant[entry.seq] = loads(entry.params), windowed
    seen: set[int] = set()
    for tap in host.taps.all:
        for envelope in envelopes_of(tap.frames):
            if id(envelope) in seen:
                continue
            seen.add(id(envelope))
            if not any(says(envelope, own) for own in meant.get(int(envelope["serverSeq"]), ())):
                yield f"{tap.name}: was told {envelope}, which the host did not say"


def says(told: Any, own: Any) -> bool:
    """Whether a client was told what the host said; several deltas may have been joined in one."""
    if told == own or own is None:
        return bool(told == own)
    ends = str(told["action"].get("content", "")).endswith(str(own["action"].get("content")))
    rest = {**told, "action": {**told["action"], "content": own["action"].get("content")}}
    return ends and bool(rest == own)


def envelopes_of(frames: list[tuple[Any, Any]]) -> Iterator[Any]:
    """Every envelope that a client was sent, replayed or not."""
    for way, frame in frames:
        if way != "h2c" or not isinstance(frame, dict):
            continue
        if frame.get("method") == "action":
            yield frame["params"]
        result = frame.get("result")
        if isinstance(result, dict) and result.get("type") == "replay":
            yield from result["actions"]


def journal_differences(host: RunningHost, path: Path) -> Iterator[str]:
    """What a host that starts now would not find as this one has it. Nothing may be under way."""
    connection = read_only(path)
    try:
        kept = read_kept(connection, limit=host.replay)
        found = {each.uri: each for each in read_channels(connection, ROOT)}
        for session in kept.sessions:
            for each in read_channels(connection, session.uri):
                found[each.uri] = each
    finally:
        connection.close()
    yield from _tables(host, kept)
    held = {uri for uri, each in host.ledger.channels.items() if each.kind != "resourceWatch"}
    dormant = {uri for uri in found if host.tables.dormant.owner_of(uri) is not None}
    if found.keys() != held | dormant:
        wrong = sorted(found.keys() ^ (held | dormant))
        yield f"journal: {wrong}: in the host or in the journal, not in both"
    for uri, each in found.items():
        yield from _channel(uri, each, host.ledger.find(uri))


def _tables(host: RunningHost, kept: Kept) -> Iterator[str]:
    tables = host.tables
    if kept.seq != host.ledger.seq:
        yield f"journal: at {kept.seq}, the host at {host.ledger.seq}"
    if {each.uri for each in kept.sessions} != (tables.catalogue or {}).keys():
        listed = sorted(tables.catalogue or ())
        yield f"journal: sessions {[each.uri for each in kept.sessions]}, the host lists {listed}"
    clients = {each.client_id: each for each in kept.clients}
    here = {record.client_id: record for record in tables.clients}
    if clients.keys() != here.keys():
        yield f"journal: clients {sorted(clients)}, the host knows {sorted(here)}"
    for client_id, record in here.items():
        facts = clients.get(client_id)
        if facts is None:
            continue
        left = None if record.connections else record.left_at
        own = (record.version, left, record.has_lost_place, baselines_json(record.baselines))
        there = (facts.version, facts.left_at, facts.has_lost_place, facts.baselines)
        if own != there:
            yield f"journal: the client {client_id} is {there}, here {own}"


def _channel(uri: URI, kept: KeptChannel, channel: Channel | None) -> Iterator[str]:
    recorder = Recorder(Ledger(), Clients(), ReplayWindow(0))
    try:
        again = restore_channel(kept, kept.path, recorder)
    except CannotRestore as error:
        yield f"journal: {uri}: {error}"
        return
    if channel is None:
        return
    yield from state_differences(f"journal: {uri}", again.state, channel.state)
    for what, one, two in (
        ("owner", again.owner, channel.owner),
        ("place", _tail(again.path), _tail(channel.path)),
        ("used ids", list(again.used), list(channel.used)),
        ("notes", notes_json(again.notes), notes_json(channel.notes)),
        ("heritage", heritage_json(again.notes.heritage), heritage_json(channel.notes.heritage)),
        ("attachments", _attached(again), _attached(channel)),
    ):
        if one != two:
            yield f"journal: {uri}: {what}: {one} there, {two} here"


def _tail(path: str) -> str:
    return path.split("/", 2)[-1]


def _attached(channel: Channel) -> JSON:
    return {key: attached_json(each) for key, each in channel.notes.attached.items()}
