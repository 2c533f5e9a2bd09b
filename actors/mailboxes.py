"""How full the actors' mailboxes may get, and what each kind of sender meets at a full one.

Backpressure lives at the edges (DESIGN: how messages flow): a connection and an agent's run wait
for room, which is how a fast peer is slowed down. Between the host's own actors a full mailbox is
a fault that names both ends.
"""

from __future__ import annotations

from supervisors import AtBound, MailboxSpec

_EDGES = {"connection": AtBound.WAIT, "agent": AtBound.WAIT, "outside": AtBound.WAIT}

#: For actors that answer for a channel.
CHANNEL = MailboxSpec(items=4096, size=32 << 20, at_bound=_EDGES)

#: For a connection: what its peer sent and it has not looked at. Behind more than this a ping waits
#: unread, so it is wide enough for whatever a client may send at once.
CONNECTION = MailboxSpec(items=16_384, size=128 << 20, at_bound={"reader": AtBound.WAIT})
