"""Whether what a client holds is what the host has."""

from __future__ import annotations

from typing import Any

from ahpd.client import Client
from ahpd.protocol.jsontext import dumps
from ahpd.protocol.model import JSON
from ahpd.protocol.uris import URI
from tests.harness.host import RunningHost

#: Each holder of a part of a chat has a cursor of its own.
_OWN = ("turnsNextCursor",)


def differences(client: Client, host: RunningHost) -> list[str]:
    """What is not the same in the client's confirmed states and in the host's, in words.

    Of a chat of which the client has the newest turns, and a cursor for more, those are compared.
    """
    found = []
    for uri, held in client.channels.items():
        if held.store is None:
            continue
        channel = host.ledger.find(uri)
        if channel is None:
            found.append(f"{client.client_id}: {uri}: the host does not have it")
            continue
        part = getattr(held.store.confirmed, "turns_next_cursor", None) is not None
        found += state_differences(
            f"{client.client_id}: {uri}", held.store.confirmed, channel.state, part=part
        )
    return found


def state_differences(name: str, mine: Any, theirs: Any, *, part: bool = False) -> list[str]:
    """What differs in two states of a channel; with `part` the first may lack older turns."""
    one, two = mine.wire(), theirs.wire()
    if part and len(one.get("turns", ())) <= len(two.get("turns", ())):
        two = {**two, "turns": two["turns"][len(two["turns"]) - len(one["turns"]) :]}
    return [
        f"{name}: {key}: {_shown(one.get(key))} here, {_shown(two.get(key))} at the host"
        for key in sorted(one.keys() | two.keys())
        if key not in _OWN and one.get(key) != two.get(key)
    ]


def state_of(host: RunningHost, uri: URI) -> JSON:
    """The host's state of a channel as plain JSON; for messages and scripted peers."""
    channel = host.ledger.find(uri)
    assert channel is not None, f"the host has no {uri}"
    state: JSON = channel.state.wire()
    return state


def _shown(value: Any) -> str:
    text = dumps(value).decode()
    return text if len(text) <= 300 else f"{text[:150]} … {text[-150:]}"
