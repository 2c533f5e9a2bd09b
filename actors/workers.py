"""Workers: what tool calls of an agent have others do, each in a chat of its own (R-9.13).

A worker's chat is filled by the same agent as the chat whose call it works for, so it is served by
that chat's actor: dispatches to it come there, and what people decide in it goes to that agent. It
can only be read (R-9.16), but whoever may approve and answer elsewhere may do so here.

A worker has one turn, which ends once: when the agent says so; when the turn that started it ends,
unless it is listed as background work; or with the agent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from actors.conversation import Conversation
from actors.endings import end_turn, note_start
from actors.host import Host
from actors.ledger import Channel
from actors.waits import refusal
from ahpd.agents import events as ev
from ahpd.agents.port import Answer
from ahpd.protocol import chat_actions as act
from ahpd.protocol.chat import (
    BackgroundSubagentWork,
    ChatState,
    ToolCallResponsePart,
    ToolChatOrigin,
    Turns,
    tool_call_key,
)
from ahpd.protocol.messages import Message, MessageOrigin
from ahpd.protocol.tools import ToolResultSubagentContent
from ahpd.protocol.uris import URI, worker_chat
from ahpd.reducers.status import IDLE

#: Most workers of one chat that run at a time (R-9.14); of more nothing is shown.
MOST = 100

WorkerEvent: TypeAlias = ev.WorkerStarted | ev.WorkerSays | ev.WorkerEnded
#: Takes in what an agent says in a conversation.
Hear: TypeAlias = Callable[[Conversation, ev.Event], None]


class Worker(Struct, eq=False):
    """One worker. `turn_id` is the turn, of the chat of people's, in which it was started."""

    talk: Conversation
    turn_id: str
    running: bool = True


class Workers:
    """The workers of the agent that fills one chat, with the workers of those.

    `hear` takes what a worker says while it runs, `hear_beside` what it says when it does not;
    `open_talk` makes the conversation of a channel; `release` answers what is still asked in a chat
    that is over; `moved` says that something happened in one.
    """

    def __init__(
        self,
        host: Host,
        channel: Channel,
        *,
        open_talk: Callable[[Channel], Conversation],
        hear: Hear,
        hear_beside: Hear,
        tell_agent: Callable[[Answer], None],
        release: Callable[[URI], None],
        moved: Callable[[Channel], None],
    ) -> None:
        self._host = host
        self._channel = channel
        self._open_talk = open_talk
        self._hear = hear
        self._hear_beside = hear_beside
        self._tell_agent = tell_agent
        self._release = release
        self._moved = moved
        self._workers: dict[str, Worker] = {}
        #: Conversations of all worker chats that were needed, by chat.
        self._talks: dict[URI, Conversation] = {}

    # ---- what there is -----------------------------------------------------------------------

    def talk_in(self, channel: Channel) -> Conversation:
        """The conversation of a worker's chat, also of one that ran before this actor did."""
        talk = self._talks.get(channel.uri)
        if talk is None or talk.channel is not channel:
            talk = self._talks[channel.uri] = self._open_talk(channel)
        return talk

    def running_in(self) -> set[URI]:
        """The chats in which a worker runs."""
        return {each.talk.channel.uri for each in self._workers.values() if each.running}

    def located(self, event: ev.BackgroundSet) -> ev.BackgroundSet | None:
        """The same with the chat of the worker that it names (R-9.100); None: there is none."""
        if event.worker is None:
            return event
        worker = self._workers.get(event.worker)
        if worker is None or not isinstance(event.work, BackgroundSubagentWork):
            return None
        return ev.BackgroundSet(event.work.evolve(chat=worker.talk.channel.uri))

    # ---- what the agent says -----------------------------------------------------------------

    def hear(self, speaker: Conversation, event: WorkerEvent) -> None:
        """What `speaker` says about its workers, or has them say."""
        match event:
            case ev.WorkerStarted():
                self._start(speaker, event)
            case ev.WorkerSays():
                self._says(event)
            case ev.WorkerEnded():
                worker = self._workers.get(event.worker)
                if worker is not None:
                    self._end(worker, event.outcome)
                    self._release(worker.talk.channel.uri)

    def _says(self, event: ev.WorkerSays) -> None:
        worker = self._workers.get(event.worker)
        for each in event.events:
            if worker is None:
                answer = refusal(each)
                if answer is not None:
                    self._tell_agent(answer)
            elif worker.running:
                self._hear(worker.talk, each)
            else:
                self._hear_beside(worker.talk, each)

    def _start(self, speaker: Conversation, event: ev.WorkerStarted) -> None:
        """A chat for the worker, with its turn; the call and the chat name each other (R-9.13)."""
        turn = speaker.state.active_turn
        known = self._workers.get(event.worker)
        if turn is None or (known is not None and known.running) or len(self.running_in()) >= MOST:
            return
        place = turn.response_parts.index_of(tool_call_key(event.call_id))
        if place < 0 or not isinstance(turn.response_parts[place], ToolCallResponsePart):
            return
        channel = self._open(speaker, event)
        talk = self.talk_in(channel)
        main_turn = self._channel.state.active_turn
        self._workers[event.worker] = Worker(talk, main_turn.id if main_turn is not None else "")
        turn_id = self._host.new_id()
        channel.consume(turn_id)
        note_start(self._host, channel, turn_id)
        message = Message(text=event.prompt or event.title, origin=MessageOrigin(kind="agent"))
        talk.desk.say(
            act.ChatTurnStartedAction(
                turn_id=turn_id, started_at=self._host.clock.now(), message=message
            )
        )
        content = ToolResultSubagentContent(resource=channel.uri, title=event.title)
        if speaker.link(event.call_id, content):
            self._moved(speaker.channel)
        self._moved(channel)

    def _open(self, speaker: Conversation, event: ev.WorkerStarted) -> Channel:
        """The channel of the worker's chat; the same again when the call has another worker."""
        host, session = self._host, self._channel.owner
        assert session is not None, f"{self._channel.uri}: a chat without its session"
        uri = worker_chat(session, event.call_id)
        held = host.ledger.find(uri)
        if held is not None:
            origin = ToolChatOrigin(chat=speaker.channel.uri, tool_call_id=event.call_id)
            is_free = uri not in self.running_in() and held.state.active_turn is None
            if held.path == self._channel.path and held.state.origin == origin and is_free:
                return held
            uri = worker_chat(session, f"{event.call_id}/{host.new_id()}")
        chat = ChatState(
            resource=uri,
            title=event.title,
            status=IDLE,
            modified_at=host.clock.now(),
            origin=ToolChatOrigin(chat=speaker.channel.uri, tool_call_id=event.call_id),
            interactivity="read-only",
            working_directories=speaker.state.working_directories,
            turns=Turns(),
        )
        return host.ledger.open(uri, "chat", chat, self._channel.path, session)

    # ---- how they end ------------------------------------------------------------------------

    def end_turn(self, turn_id: str, outcome: ev.Outcome) -> None:
        """The turn in which they were started is over: those that do not go on beside it end.

        A worker whose end was not told has not done its work, however the turn ended.
        """
        ending = ev.Stopped() if isinstance(outcome, ev.Done) else outcome
        for worker in self._workers.values():
            if worker.turn_id == turn_id and not self._is_in_background(worker):
                self._end(worker, ending)

    def end_all(self, outcome: ev.Outcome) -> None:
        """The agent is gone. Also of worker chats that an earlier incarnation left running."""
        for worker in self._workers.values():
            self._end(worker, outcome)
        for channel in list(self._host.ledger.channels.values()):
            if channel.path == self._channel.path and channel is not self._channel:
                self._end_in(self.talk_in(channel), outcome)

    def _end(self, worker: Worker, outcome: ev.Outcome) -> None:
        worker.running = False
        self._end_in(worker.talk, outcome)

    def _end_in(self, talk: Conversation, outcome: ev.Outcome) -> None:
        talk.turn_is_over()
        if end_turn(self._host, talk.channel, outcome):
            self._moved(talk.channel)

    def _is_in_background(self, worker: Worker) -> bool:
        uri = worker.talk.channel.uri
        channels = (self._channel, *(talk.channel for talk in self._talks.values()))
        return any(
            isinstance(work, BackgroundSubagentWork) and work.chat == uri
            for channel in channels
            for work in channel.state.background_work or ()
        )
