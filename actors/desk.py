"""`Desk`: how a channel's actor takes dispatches and says things of its own.

For every channel the order is the same (R-5.7): judge, number, reduce, queue for the subscribers;
then, once the envelope is out, side effects. What is judged differs and is a table of the channel's
rules (`actors.rules`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from actors.host import Host
from actors.ledger import Channel
from actors.messages import Dispatch, Echoed
from ahpd import reducers
from ahpd.protocol.actions import ACTIONS, StateAction, action_type
from ahpd.protocol.faults import shown
from ahpd.protocol.model import Unknown
from supervisors import ActorGone, Ref

#: Says why an action is refused, in words for people; None: it is not.
Judge: TypeAlias = Callable[[Dispatch, StateAction], str | None]

#: Actions that are requests to the host and change no state: echoed like any other (R-5.22).
_REQUESTS = frozenset(
    {
        "terminal/input",
        "automation/createRequested",
        "automation/updateRequested",
        "automationRun/cancelRequested",
    }
)

#: Actions that clients also send to a channel of another kind: renaming a chat (quirk 22),
#: and setting what is its own (R-8.42).
_ALSO_ON = {("session/titleChanged", "chat"), ("session/configChanged", "chat")}


class Desk:
    """One channel's desk; `actor`, if given, is told when what was accepted is out."""

    def __init__(self, host: Host, channel: Channel, actor: Ref[Any] | None = None) -> None:
        self._host = host
        self.channel = channel
        self._actor = actor
        if actor is not None:
            channel.echoes.clear()  # what an earlier incarnation was to act on is in the state
        #: Envelopes that the actor is to act on when they are out, and that are not yet.
        self.under_way = 0

    @property
    def state(self) -> Any:
        """The channel's state now."""
        return self.channel.state

    def take(self, dispatch: Dispatch, judge: Judge) -> StateAction | None:
        """Answer a dispatch, in one step; the action when it was accepted and changed something.

        Invariant 5: exactly one of an echo to all, a refusal to its sender, a no-op to its sender.
        """
        action = dispatch.action
        if action is None:
            self._answer(dispatch, f"this action cannot be read: {dispatch.fault}")
            return None
        reason = self._reason(dispatch, action, judge)
        if reason is not None:
            self._answer(dispatch, reason)
            return None
        state = reducers.apply(self.channel.kind, self.state, action)
        if state is self.state and action_type(action) not in _REQUESTS:
            self._answer(dispatch, None)
            return None
        self._host.ledger.append(
            self.channel, action, state, origin=dispatch.origin, raw=dispatch.raw
        )
        dispatch.answered = True
        self._echo(action)
        return action

    def say(self, action: StateAction) -> bool:
        """An action of the host's own; False when it would change nothing and is not sent."""
        state = reducers.apply(self.channel.kind, self.state, action)
        if state is self.state:
            return False
        return self._host.ledger.append(self.channel, action, state)

    def say_run(self, actions: Sequence[StateAction], state: Any) -> None:
        """Actions of the host's own that together lead to `state`. Raises as `append_run`."""
        self._host.ledger.append_run(self.channel, actions, state)

    def say_and_act(self, action: StateAction) -> bool:
        """As `say`, and the actor gets `Echoed` when it is out."""
        said = self.say(action)
        if said:
            self._echo(action)
        return said

    def refuse(self, dispatch: Dispatch, reason: str) -> None:
        """Refuse a dispatch for a reason that the rules do not know."""
        self._answer(dispatch, reason)

    def accept_unshown(self, dispatch: Dispatch) -> None:
        """Answer what was accepted and is nobody else's to see: the echo, to its sender alone."""
        self._answer(dispatch, None)

    def _echo(self, action: StateAction) -> None:
        actor = self._actor
        if actor is None:
            return

        self.under_way += 1

        echoes = self.channel.echoes

        def release() -> None:
            self.under_way -= 1
            echoes.append(action)
            if len(echoes) == 1:
                with suppress(ActorGone):  # whoever starts there next finds the state and acts
                    actor.cast(Echoed(self.channel), urgent=True)

        self._host.ledger.post(release)

    def _answer(self, dispatch: Dispatch, reason: str | None) -> None:
        dispatch.answered = True
        self._host.ledger.answer(
            self.channel, dispatch.raw, origin=dispatch.origin, asker=dispatch.asker, reason=reason
        )

    def _reason(self, dispatch: Dispatch, action: StateAction, judge: Judge) -> str | None:
        """Who may send it, and whether it belongs here, before its own rules (hazard B05)."""
        if isinstance(action, Unknown):
            return f"there is no action {shown(action.tag)}"
        info = ACTIONS[action.type]
        kind = self.channel.kind
        if info.channel != kind and (action.type, kind) not in _ALSO_ON:
            return f"{action.type} belongs on a {info.channel} channel, this is a {kind} channel"
        if not info.client_may_dispatch:
            return f"{action.type} is the host's to say"
        return judge(dispatch, action)
