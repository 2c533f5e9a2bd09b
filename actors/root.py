"""The root channel: the agents, the host's settings, how many sessions there are (RULES 7)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeAlias

from msgspec import Struct

from actors.desk import Desk
from actors.host import Host
from actors.messages import Dispatch, SessionsCounted
from actors.restoring import CannotRestore, restore_channel
from actors.root_config import apply, config_state, left_values, own_values, sort_push
from actors.telling import tell
from ahpd.agents.port import Changing
from ahpd.journal.port import KeptChannel
from ahpd.protocol.root import (
    RootActiveSessionsChangedAction,
    RootAgentsChangedAction,
    RootConfigChangedAction,
    RootState,
)
from ahpd.protocol.uris import ROOT
from supervisors import Actor


class AgentsMoved(Struct, frozen=True):
    """What clients are told of an agent may have changed: look (R-7.8)."""


Incoming: TypeAlias = Dispatch | SessionsCounted | AgentsMoved


class Root(Actor[Incoming]):
    """See the module's docstring."""

    kind = "root"

    def __init__(self, host: Host) -> None:
        self._host = host

    async def on_start(self) -> None:
        """Say what the agents are now, and how many sessions there are."""
        channel = self._host.ledger.find(ROOT)
        assert channel is not None
        self._desk = Desk(self._host, channel)
        ref = self.ref
        for agent in self._host.agents.values():
            if isinstance(agent, Changing):
                agent.watch(lambda: tell(ref, AgentsMoved()))
        self._tell_agents()
        self._tell_settings()
        self._counted(len(self._host.catalogue or ()))

    async def handle(self, message: Incoming) -> Any:
        """One message; see `actors.messages` for what each says."""
        match message:
            case Dispatch():
                self._take(message)
            case SessionsCounted():
                self._counted(message.count)
            case AgentsMoved():
                self._tell_agents()

    def _take(self, dispatch: Dispatch) -> None:
        """Settings; the good ones of a push that also holds bad ones are taken (R-7.6)."""
        action = dispatch.action
        if not isinstance(action, RootConfigChangedAction):
            self._desk.take(dispatch, lambda _, __: None)
            return
        push = sort_push(action)
        dispatch.asker.settings.update(push.own)
        if push.faults:
            self._desk.refuse(dispatch, push.reason or "")
            self._desk.say(RootConfigChangedAction(config=push.shared))
        elif push.own:
            # In the host's words, because those of the client hold what nobody else is shown.
            self._desk.say(RootConfigChangedAction(config=push.shared, replace=action.replace))
            self._desk.accept_unshown(dispatch)
        else:
            self._desk.take(dispatch, lambda _, __: None)
        apply(self._host, self._desk.state.config.values)

    def _tell_agents(self) -> None:
        agents = tuple(agent.info for agent in self._host.agents.values())
        self._desk.say(RootAgentsChangedAction(agents=agents))

    def _tell_settings(self) -> None:
        """The host may have been started with other ones than were set when it was left."""
        self._desk.say(RootConfigChangedAction(config=own_values(self._host)))

    def _counted(self, count: int) -> None:
        self._desk.say(RootActiveSessionsChangedAction(active_sessions=count))


def begin_root(host: Host, kept: KeptChannel | None) -> None:
    """Open the root, or take it up where it was left.

    A setting that somebody changed while the host ran stays changed, unless it is now started with
    another value than it was then. A root that this version would describe otherwise is begun anew,
    and whoever held the old one gets a snapshot.
    """
    config = config_state(host)
    begun_with = dict(config.values)
    channel = None
    if kept is not None:
        with suppress(CannotRestore):
            channel = restore_channel(kept, "root", host.recorder)
    if channel is not None and channel.state.config is not None:
        values = left_values(channel.state.config.values, channel.notes.settings, begun_with)
        apply(host, {**begun_with, **values})
        config = config.evolve(values=values)
        if channel.state.config.schema != config.schema:
            channel = None
    if channel is not None:
        host.ledger.admit(channel)
    else:
        if kept is not None:
            host.clients.channel_closed(ROOT)
        state = RootState(
            agents=tuple(agent.info for agent in host.agents.values()),
            active_sessions=0,
            config=config,
        )
        channel = host.ledger.open(ROOT, "root", state, "root")
    channel.note(settings=begun_with)
