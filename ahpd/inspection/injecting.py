"""What somebody who looks inside puts into an actor's mailbox.

Either an action, as JSON, which is then a dispatch like a client's; or a Python expression that
makes a message, in which the names of `actors.messages`, of the agents' events, of JSON-RPC's
messages and of the protocol's actions are known.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from itertools import chain
from typing import Any

from actors import messages
from actors.credentials import Credentials
from actors.ledger import Entry, Origin
from actors.messages import Dispatch
from actors.reverse import Reverse
from actors.subscriptions import Subscription
from ahpd.agents import events
from ahpd.inspection.python import compiled, evaluated
from ahpd.inspection.shown import in_words
from ahpd.inspection.subjects import Subject
from ahpd.inspection.words import brief
from ahpd.protocol import actions, jsonrpc
from ahpd.protocol.codec import DecodeError, decode
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.frame import Frame
from ahpd.protocol.jsontext import ParseError, loads
from ahpd.protocol.model import JSON
from supervisors import SupervisorsError

#: The client that injected dispatches are of.
CLIENT = "ahpd-attach"


class Asker:
    """Stands for the connection of a dispatch that came on none."""

    def __init__(self) -> None:
        self.client_id: str | None = CLIENT
        self.is_old = False
        self.backlog = 0
        #: Nobody is asked anything.
        self.reverse = Reverse(lambda _: None)
        self.settings: dict[str, JSON] = {}
        self.credentials = Credentials()

    def hear(self, entry: Entry, subscription: Subscription) -> None:
        """See `Listener`."""

    def flush(self) -> None:
        """See `Listener`."""

    def tell(self, frame: Frame) -> None:
        """See `Listener`."""


class Injector:
    """Puts messages into the mailbox of one actor."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._dispatches = 0
        self._waiting: list[Dispatch] = []

    def inject(self, text: str) -> str:
        """Put in what `text` means; what that was, in words. Sync.

        Raises `ProtocolError` when it means nothing, is no message for this actor, or there is no
        room.
        """
        subject = self._subject
        actor = subject.actor
        if actor is None:
            raise ProtocolError(ErrorCode.NOT_FOUND, f"{subject.path} does not run")
        message = self._dispatch(text) if text.lstrip().startswith("{") else self._message(text)
        accepted = accepted_by(type(actor))
        if accepted and not isinstance(message, accepted):
            names = ", ".join(sorted(each.__name__ for each in accepted))
            what = in_words(message, 80)
            raise ProtocolError(
                ErrorCode.INVALID_PARAMS, f"{subject.path} does not take {what}; it takes: {names}"
            )
        try:
            subject.ref.cast(message)
        except SupervisorsError as error:
            raise ProtocolError(ErrorCode.CONFLICT, str(error)) from None
        return brief(message)

    def answer_to(self, message: object) -> str | None:
        """What a message that has been handled was answered, if it is a dispatch put in here."""
        mine = next((each for each in self._waiting if each is message), None)
        if mine is None:
            return None
        self._waiting.remove(mine)
        host = self._subject.host
        for item in chain(reversed(host.ledger.queue), host.window.newest_first()):
            if isinstance(item, Entry) and item.asker is mine.asker:
                params = loads(item.params)
                reason = params.get("rejectionReason") if isinstance(params, dict) else None
                return "it changes nothing" if reason is None else f"refused: {reason}"
        return "accepted" if mine.answered else "not answered"

    def _dispatch(self, text: str) -> Dispatch:
        channel = self._subject.channel
        if channel is None:
            raise ProtocolError(
                ErrorCode.INVALID_PARAMS,
                f"{self._subject.path} has no channel, so it takes no actions",
            )
        try:
            raw = loads(text)
            action = decode(actions.StateAction, raw)
        except ParseError as error:
            raise ProtocolError(ErrorCode.INVALID_PARAMS, str(error)) from None
        except DecodeError as error:
            raise ProtocolError(ErrorCode.INVALID_PARAMS, f"no action: {error.fault}") from None
        self._dispatches += 1
        made = Dispatch(channel, Origin(CLIENT, self._dispatches), Asker(), raw, action)
        self._waiting.append(made)
        return made

    def _message(self, text: str) -> object:
        try:
            return evaluated(compiled(text, "<expression>"), _NAMES)
        except Exception as error:  # noqa: BLE001 the expression is somebody's own
            words = f"{type(error).__name__}: {in_words(error, 200)}"
            raise ProtocolError(
                ErrorCode.INVALID_PARAMS,
                f"neither an action in JSON nor an expression that makes a message: {words}",
            ) from None


def accepted_by(actor: type) -> tuple[type, ...]:
    """The classes of messages that an actor takes, by its annotations; empty: nobody says."""
    try:
        hint = typing.get_type_hints(actor.handle).get("message")  # type: ignore[attr-defined]
    except (NameError, TypeError, AttributeError):
        return ()
    options = typing.get_args(hint) or (hint,)
    return tuple(each for each in options if isinstance(each, type))


def _public(module: object) -> Mapping[str, Any]:
    return {name: each for name, each in vars(module).items() if isinstance(each, type)}


_NAMES: Mapping[str, Any] = {
    **_public(actions),
    **_public(jsonrpc),
    **_public(events),
    **_public(messages),
}
