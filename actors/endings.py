"""How a turn ends, whoever ends it: one action, with its duration, exactly once (invariant 7).

Mostly its chat ends it. When the chat is set aside, or goes away with its turn running, others do;
the turn is in the channel's state until then and not after, so it cannot end twice.
"""

from __future__ import annotations

import logging

from actors.clock import from_iso
from actors.host import Host
from actors.ledger import Channel
from actors.turn import ending
from ahpd import reducers
from ahpd.agents.events import Failed, Outcome, Stopped
from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat_actions import ChatActivityChangedAction

_log = logging.getLogger("ahpd.sessions")


def note_start(host: Host, channel: Channel, turn_id: str) -> None:
    """A turn starts now, whatever its client's clock says."""
    channel.note(began=(turn_id, host.clock.ms()))
    _log.debug("turn %s begins", turn_id, extra=_whose(channel, turn_id))


def _whose(channel: Channel, turn_id: str) -> dict[str, object]:
    """For a log line that may be another actor's."""
    return {
        "actor": channel.path,
        "channel": channel.uri,
        "number": channel.seq,
        "client": channel.notes.starter,
        "turn": turn_id,
    }


def end_turn(host: Host, channel: Channel, outcome: Outcome) -> bool:
    """End the running turn of a chat; False when none runs. Its open tool calls end too (R-9.57).

    A resumed turn's duration counts from its first start (R-9.64).
    """
    turn = channel.state.active_turn
    if turn is None:
        return False
    host.tally.turn_ended(outcome)
    whose = _whose(channel, turn.id)
    if isinstance(outcome, Failed):
        why = f"{outcome.error_type}: {outcome.message}"
        _log.info("turn %s failed: %.300s", turn.id, why, extra=whose)
    else:
        _log.debug("turn %s is over: %s", turn.id, type(outcome).__name__.lower(), extra=whose)
    now = host.clock.ms()
    turn_id, began = channel.notes.began
    if turn_id != turn.id:
        began = from_iso(turn.started_at) or now
    _say(host, channel, ending(turn.id, round(max(0.0, now - began), 3), outcome))
    clear_activity(host, channel)
    return True


def cancelled(host: Host) -> Stopped:
    """A client's own action has ended the turn: as any other way to end one, it is counted."""
    stopped = Stopped()
    host.tally.turn_ended(stopped)
    return stopped


def clear_activity(host: Host, channel: Channel) -> None:
    """What the agent of a turn was doing is over with the turn."""
    _say(host, channel, ChatActivityChangedAction())


def close_channel(host: Host, channel: Channel) -> None:
    """A channel ends: nothing more can be said on it, and when all is out nobody hears it.

    A chat's running turn ends first, while there are still subscribers to tell (invariant 7).
    """
    if channel.kind == "chat":
        end_turn(host, channel, Stopped())
    host.ledger.close(channel)
    unhear(host, channel)


def unhear(host: Host, channel: Channel) -> None:
    """When all that was said on it is out, nobody hears it any more."""

    def release() -> None:
        host.subscriptions.remove_channel(channel.uri)
        host.clients.channel_closed(channel.uri)

    host.ledger.post(release)


def _say(host: Host, channel: Channel, action: StateAction) -> None:
    state = reducers.apply("chat", channel.state, action)
    if state is not channel.state:
        host.ledger.append(channel, action, state)
