"""`kill -9` on real hosts while real clients work, at moments from a seed; see `processes`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.clients import Clients
from actors.ledger import Ledger
from actors.recording import Recorder
from actors.replay import ReplayWindow
from actors.restoring import restore_channel
from ahpd.journal.file import read_only
from ahpd.journal.reading import read_channels, read_kept
from ahpd.protocol.jsontext import loads
from ahpd.protocol.model import JSON
from ahpd.protocol.uris import ROOT, URI
from tests.chaos.kept import envelopes_of, says
from tests.chaos.processes import CHANNELS, CHAT, SESSION, Round
from tests.harness.stream import ENDINGS

pytestmark = pytest.mark.real_time

#: What may be done again when it is sent again: it says how things are to be.
_AGAIN = frozenset({"chat/draftChanged", "session/titleChanged"})


def test_a_round(round_seed: int, tmp_path: Path) -> None:
    """Every fourth one is over stdio, the others with a daemon."""
    it = Round(round_seed, tmp_path, stdio=round_seed % 4 == 3)
    log = it.place.log
    try:
        trio.run(it.run)
        wrong = list(faults(it))
    except Exception as error:
        said = log.read_text(errors="replace")[-3000:] if log.exists() else ""
        raise AssertionError(f"round {round_seed}: {said}") from error
    assert not wrong, "\n".join([f"round {round_seed}", *wrong])


def faults(it: Round) -> Iterator[str]:
    """All that is wrong after a round."""
    yield from it.taps.faults
    if it.exit_code != 0:
        yield f"the last host ended with {it.exit_code}"
    if it.place.log.exists() and "Traceback" in it.place.log.read_text(errors="replace"):
        yield f"a host failed: {it.place.log.read_text(errors='replace')[-2000:]}"
    for user in it.users:
        for uri in CHANNELS:
            if user.states[uri] != it.told[uri]:
                yield f"{user.name}: {uri}: {user.states[uri]} here, {it.told[uri]} at the host"
    journal, states = _journal(it.place.state / "journal.db")
    for uri in CHANNELS:
        if states.get(uri) != it.told[uri]:
            yield f"journal: {uri}: {states.get(uri)} there, {it.told[uri]} at the host"
    yield from _answers(it, journal)
    yield from _turns(journal)
    yield from _contents(it, journal)
    yield from _reconnects(it)


def _journal(path: Path) -> tuple[dict[int, Any], dict[URI, JSON]]:
    """Every envelope by its number, and every state."""
    connection = read_only(path)
    try:
        kept = read_kept(connection, limit=1_000_000)
        channels = [*read_channels(connection, ROOT), *read_channels(connection, SESSION)]
    finally:
        connection.close()
    recorder = Recorder(Ledger(), Clients(), ReplayWindow(0))
    states = {
        each.uri: restore_channel(each, each.path, recorder).state.wire() for each in channels
    }
    return {each.seq: loads(each.params) for each in kept.window}, states


def _answers(it: Round, journal: dict[int, Any]) -> Iterator[str]:
    """Each accepted dispatch is in exactly once, and no other is."""
    accepted: Counter[tuple[str, int]] = Counter(
        (each["origin"]["clientId"], each["origin"]["clientSeq"])
        for each in journal.values()
        if "origin" in each and "rejectionReason" not in each
    )
    for user in it.users:
        for operation in user.operations:
            outcome, name = operation.outcome, operation.action.type  # type: ignore[union-attr]
            count = accepted[user.name, operation.client_seq]
            if outcome is None:
                yield f"{user.name}: {operation} has no answer"
            elif outcome.kind == "accepted" and count != 1 and not (count and name in _AGAIN):
                yield f"{user.name}: {operation} is in {count} times"
            elif outcome.kind == "refused" and count:
                yield f"{user.name}: {operation} is in, but {outcome.reason}"


def _turns(journal: dict[int, Any]) -> Iterator[str]:
    started: Counter[str] = Counter()
    ended: Counter[str] = Counter()
    for each in journal.values():
        action = each["action"]
        if "rejectionReason" in each or each["channel"] != CHAT:
            continue
        started[action.get("turnId", "")] += action["type"] == "chat/turnStarted"
        ended[action.get("turnId", "")] += action["type"] in ENDINGS
    for turn in started | ended:
        if (started[turn], ended[turn]) not in ((1, 1), (0, 0)):
            yield f"{turn}: started {started[turn]} times, ended {ended[turn]} times"


def _contents(it: Round, journal: dict[int, Any]) -> Iterator[str]:
    """What a client was told is what the journal holds under that number."""
    for tap in it.taps.all:
        for envelope in envelopes_of(tap.frames):
            own = journal.get(int(envelope["serverSeq"]))
            if own is None or not says(envelope, own):
                yield f"{tap.name}: was told {envelope}, the journal has {own}"


def _reconnects(it: Round) -> Iterator[str]:
    """Everybody who came back was answered by replay."""
    for tap in it.taps.all:
        asked = {f["id"] for way, f in tap.frames if f.get("method") == "reconnect"}
        for way, frame in tap.frames:
            answers = way == "h2c" and frame.get("id") in asked and "method" not in frame
            if answers and frame.get("result", {}).get("type") != "replay":
                yield f"{tap.name}: reconnect was answered by {frame}"
