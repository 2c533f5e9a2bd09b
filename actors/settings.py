"""The values of a session's settings, and whose they are (R-8.42).

Most are the whole session's. Some each chat has for itself: the session's state has one place for
each and shows what was set last, so the chats' own values are kept on their channels.
"""

from __future__ import annotations

from collections.abc import Callable

from actors.host import Host
from actors.ledger import Channel
from actors.messages import Configured
from ahpd.agents.port import Agent, Configurable
from ahpd.protocol.model import JSON, Object
from ahpd.protocol.session import SessionState


def begin_session(session: Channel, configured: Configured) -> None:
    """A session begins with these settings."""
    values = configured.state.values if configured.state is not None else {}
    own = configured.chat_scoped
    session.note(
        chat_scoped=own, settings={key: each for key, each in values.items() if key in own}
    )


def begin_chat(session: Channel, chat: Channel, client_id: str) -> None:
    """A chat of it begins for a client, with what a chat begins with there."""
    chat.note(settings=session.notes.settings, starter=client_id)


def note(session: Channel, chat: Channel | None, config: Object) -> None:
    """Settings changed in a chat, or for the session, in whose place its default chat stands."""
    if chat is not None:
        own = {key: each for key, each in config.items() if key in session.notes.chat_scoped}
        if own:
            chat.note(settings={**chat.notes.settings, **own})


def config_of(host: Host, chat: Channel) -> Object:
    """The settings that a chat's agent works with."""
    session = host.ledger.find(chat.owner) if chat.owner is not None else None
    if session is None or not isinstance(session.state, SessionState):
        return {}
    config = session.state.config
    values = config.values if config is not None else {}
    shared = {key: each for key, each in values.items() if key not in session.notes.chat_scoped}
    return {**shared, **chat.notes.settings}


def refusal_of(agent: Agent) -> Callable[[str, JSON], str | None]:
    """Why an agent does not take a value, in its own words (R-8.42)."""

    def refusal(key: str, value: JSON) -> str | None:
        # Looked at here: it is as dear as half a dispatch, and few dispatches set anything.
        return agent.config_refusal(key, value) if isinstance(agent, Configurable) else None

    return refusal
