"""What an agent is asked that belongs to no chat that is open: by a process for that alone."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import trio

from ahpd.agents.acp import handshake
from ahpd.agents.acp.backend import QUIET, QUIET_AT_ONCE, SETTLED_WITHIN
from ahpd.agents.acp.contents import block_text
from ahpd.agents.acp.deaf import Deaf
from ahpd.agents.acp.handshake import Abilities, Where
from ahpd.agents.acp.mapping import Updates, merged
from ahpd.agents.acp.rpc import Link
from ahpd.agents.acp.settings import Setting, settings_of
from ahpd.agents.acp.signin import Grant
from ahpd.agents.acp.tolerant import dict_of, dicts_of, text_of
from ahpd.agents.events import (
    ActivityChanged,
    CommandsChanged,
    Event,
    MetaChanged,
    TitleProposed,
    UsageReport,
)
from ahpd.agents.port import AgentFailed, PastConversation, PastTurn
from ahpd.protocol.messages import Message, MessageOrigin
from ahpd.protocol.model import JSON

T = TypeVar("T")

if TYPE_CHECKING:
    from ahpd.agents.acp.agent import AcpAgent

#: Seconds that one of these may take to answer.
WITHIN = 30.0
#: And to put away what was only tried.
PUT_AWAY_WITHIN = 2.0
#: Pages of a list that are asked for, and conversations that are taken from them.
PAGES = 100
MOST = 5000


async def errand(
    agent: AcpAgent,
    do: Callable[[Link, Abilities], Awaitable[T]],
    listener: Deaf | None = None,
    cwd: str | None = None,
) -> T:
    """What `do` gives, with a process of the agent's that has been greeted, in the folder `cwd`.

    Raises `AgentFailed`. However it ends, no process is left.
    """
    process = await agent.start(Grant(), cwd or tempfile.gettempdir())
    done: list[T] = []
    failed: AgentFailed | None = None
    try:
        listener = listener or Deaf()
        link = listener.link = Link(process, listener)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.run)
            try:
                about = Abilities(agent.name, agent.command, conceal=process.concealed)
                able = await handshake.initialize(link, about, agent.version, {})
                agent.learned.meet(able)
                done.append(await do(link, able))
            except AgentFailed as error:  # out of the nursery it would be a group
                failed = error
            nursery.cancel_scope.cancel("the errand is done")
    finally:
        with trio.CancelScope(shield=True):  # some seconds at most: see `end`
            await process.end()
    if failed is not None:
        raise failed
    return done[0]


async def sign_out(agent: AcpAgent) -> None:
    """Have the agent forget who is signed in. Raises `AgentFailed`."""

    async def do(link: Link, able: Abilities) -> None:
        if able.signs_out:
            await handshake.asked(link, "logout", {}, WITHIN, able)

    await errand(agent, do)


async def delete(agent: AcpAgent, conversation: str) -> None:
    """Have the agent delete a conversation, if it can. Raises `AgentFailed`."""

    async def do(link: Link, able: Abilities) -> None:
        if able.deletes:
            params: JSON = {"sessionId": conversation}
            await handshake.asked(link, "session/delete", params, WITHIN, able)

    await errand(agent, do)


async def settings(agent: AcpAgent, cwd: str) -> Mapping[str, Setting]:
    """What can be set in a session there: one is begun, and taken back. Raises `AgentFailed`."""

    async def do(link: Link, able: Abilities) -> Mapping[str, Setting]:
        begun = await handshake.new(link, able, Where(cwd))
        agent.learned.begun.add(begun.session)
        method = "session/delete" if able.deletes else "session/close" if able.closes else None
        if method is not None:
            with suppress(AgentFailed):
                params: JSON = {"sessionId": begun.session}
                await handshake.asked(link, method, params, PUT_AWAY_WITHIN, able)
        return settings_of(begun.answer) or {}

    return await errand(agent, do, cwd=cwd)


async def conversations(agent: AcpAgent) -> Sequence[PastConversation] | None:
    """All conversations that the agent keeps and that were not begun here; None: it does not tell.

    Raises `AgentFailed`.
    """

    async def do(link: Link, able: Abilities) -> Sequence[PastConversation] | None:
        if not (able.lists and able.loads):
            return None
        found: dict[str, PastConversation] = {}
        cursor: str | None = None
        for _ in range(PAGES):
            params: JSON = {} if cursor is None else {"cursor": cursor}
            page = await handshake.asked(link, "session/list", params, WITHIN, able)
            for each in dicts_of(page, "sessions"):
                one = _conversation(each)
                if one is not None and one.name not in agent.learned.begun:
                    found[one.name] = one
            cursor = text_of(page, "nextCursor")
            if cursor is None:
                break
        return list(found.values())[:MOST]

    return await errand(agent, do)


def _conversation(told: dict[str, Any]) -> PastConversation | None:
    name, cwd = text_of(told, "sessionId"), text_of(told, "cwd")
    if not name:
        return None
    folder = "file://" + quote(cwd) if cwd is not None and cwd.startswith("/") else None
    return PastConversation(name, text_of(told, "title"), folder, text_of(told, "updatedAt"))


async def recall(agent: AcpAgent, name: str, cwd: str) -> Sequence[PastTurn]:
    """What was said in a conversation, as the agent repeats it. Raises `AgentFailed`."""
    listener = Recall(name, cwd)

    async def do(link: Link, able: Abilities) -> Sequence[PastTurn]:
        begun = await handshake.take_up(link, able, name, Where(cwd), ways=("load",))
        if begun is None:
            raise AgentFailed("the agent cannot load conversations")
        await listener.settle(QUIET_AT_ONCE if agent.learned.repeats_at_once else QUIET)
        return listener.turns()

    return await errand(agent, do, listener, cwd)


class Recall(Deaf):
    """Hears a conversation being repeated: a turn from each message of a person's to the next."""

    def __init__(self, name: str, cwd: str) -> None:
        super().__init__()
        self._name = name
        self._updates = Updates(cwd)
        self._turns: list[tuple[list[str], list[Event]]] = []
        self._is_message = False
        self._heard_at = 0.0

    def heard(self, method: str, params: dict[str, Any]) -> None:
        """See `Listener`."""
        self._heard_at = trio.current_time()
        update = dict_of(params, "update")
        if method != "session/update" or params.get("sessionId") not in (None, self._name):
            return
        if update.get("sessionUpdate") == "user_message_chunk":
            text = block_text(update.get("content")) or ""
            if not self._is_message:
                self._close()
                self._turns.append(([], []))
            self._turns[-1][0].append(text)
            self._is_message = True
            return
        events = self._updates.in_turn(update)
        if events and any(not isinstance(each, _BESIDE) for each in events):
            self._is_message = False
            if not self._turns:
                self._turns.append(([], []))
            self._turns[-1][1].extend(events)

    def _close(self) -> None:
        """What was left open of the last turn is over."""
        if self._turns:
            self._turns[-1][1].extend(self._updates.calls.close())
        self._updates.begin()

    async def settle(self, quiet: float) -> None:
        """Until nothing has come for so long: some go on after they have answered."""
        with trio.move_on_after(SETTLED_WITHIN):
            # Each time that something is heard there is more to wait for.
            while (left := self._heard_at + quiet - trio.current_time()) > 0:  # noqa: ASYNC110
                await trio.sleep(left)

    def turns(self) -> Sequence[PastTurn]:
        """What was heard, with the pieces of each text as one."""
        self._close()
        return [
            PastTurn(
                Message(text="".join(said), origin=MessageOrigin(kind="user" if said else "agent")),
                merged(events),
            )
            for said, events in self._turns
        ]


#: What may come with a conversation that is repeated, and is in none of its turns.
_BESIDE = CommandsChanged | MetaChanged | TitleProposed | UsageReport | ActivityChanged
