"""A session's annotations: remarks on files, made by whoever takes part (RULES 16).

The channel exists as long as its session, empty at first: clients subscribe to it whenever they
connect, and throw when they get no snapshot (quirk 18). How many there are stands in the session's
summary, which the catalogue counts from the state here; so the session's own state says nothing of
them, as no action could keep that up to date.
"""

from __future__ import annotations

from actors import mailboxes
from actors.desk import Desk
from actors.host import Host
from actors.ledger import Channel
from actors.messages import Dispatch
from actors.rules import annotations as rules
from actors.telling import stir_session
from ahpd.protocol.annotations import AnnotationsState
from ahpd.protocol.uris import URI, annotations_of
from supervisors import Actor, ChildSpec


class Annotations(Actor[Dispatch]):
    """See the module's docstring."""

    kind = "annotations"

    def __init__(self, host: Host, session: Channel, channel: Channel) -> None:
        self._session = session
        self._desk = Desk(host, channel)

    async def on_start(self) -> None:
        """Have them counted: an earlier incarnation may not have said that they changed."""
        stir_session(self.find, self._session)

    async def handle(self, message: Dispatch) -> None:
        """One action of a client."""
        state = self._desk.state
        if self._desk.take(message, lambda _, action: rules.judge(state, action)) is not None:
            stir_session(self.find, self._session)


def open_annotations(host: Host, session: URI, base: str) -> Channel:
    """The channel of a session that is made now; `base` is the path of the session's supervisor."""
    none = AnnotationsState(annotations=())
    path = f"{base}/annotations"
    return host.ledger.open(annotations_of(session), "annotations", none, path, session)


def annotations_spec(host: Host, session: Channel) -> ChildSpec:
    """How a session's annotations are supervised."""
    channel = host.ledger.find(annotations_of(session.uri))
    assert channel is not None, f"{session.uri}: no channel for annotations"
    return ChildSpec(
        "annotations",
        Annotations,
        (host, session, channel),
        mailbox=mailboxes.CHANNEL,
        path=channel.path,
    )
