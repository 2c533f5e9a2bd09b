"""Whose a waiting message is: the turn that it becomes is that client's (R-19.3)."""

from __future__ import annotations

from actors.ledger import Channel


def note_sender(channel: Channel, key: str, client_id: str) -> None:
    """This client left a message."""
    channel.note(senders={**channel.notes.senders, key: client_id})


def take_sender(channel: Channel, key: str) -> str | None:
    """Whose the message was, which waits no longer."""
    senders = dict(channel.notes.senders)
    sender = senders.pop(key, None)
    if sender is not None:
        channel.note(senders=senders)
    return sender
