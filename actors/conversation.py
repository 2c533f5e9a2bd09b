"""`Conversation`: a chat as its agent fills it, whichever of the two kinds it is.

A chat of people's and a chat that a tool call started for its worker are filled by the same events
in the same way (`actors.turn`). What differs, who starts and ends their turns, is their owners'
business: `actors.chat` and `actors.workers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import structs

from actors.desk import Desk
from actors.host import Host
from actors.ledger import Channel
from actors.outputs import Outputs
from actors.turn import actions_beside, actions_for
from actors.waits import Waits, refusal
from ahpd import reducers
from ahpd.agents import events as ev
from ahpd.agents.port import Answer
from ahpd.protocol import chat_actions as act
from ahpd.protocol.chat import ChatState, MarkdownResponsePart, ReasoningResponsePart
from ahpd.protocol.tools import ToolResultContent, ToolResultSubagentContent
from supervisors import Actor

#: Gives the agent an answer. Sync, and harmless when there is no agent any more.
Tell: TypeAlias = Callable[[Answer], None]

#: What pieces of text go on with, and as what they are said.
_TEXT: Mapping[type, tuple[type[Any], type[Any]]] = {
    ev.TextChunk: (MarkdownResponsePart, act.ChatDeltaAction),
    ev.ThoughtChunk: (ReasoningResponsePart, act.ChatReasoningAction),
}

#: What an agent says all the time and no row depends on: no reason to look at the row.
_STREAM = (act.ChatDeltaAction, act.ChatReasoningAction, act.ChatToolCallDeltaAction)


class Conversation:
    """See the module. `waits` is the agent's, of all chats that it fills."""

    def __init__(
        self, host: Host, channel: Channel, actor: Actor[Any], waits: Waits, tell_agent: Tell
    ) -> None:
        self.channel = channel
        self.desk = Desk(host, channel, actor.ref)
        self._outputs = Outputs(actor, channel.uri)
        self._waits = waits
        self._tell_agent = tell_agent
        #: The chats of the workers that calls of the running turn have started, by call.
        self._links: dict[str, ToolResultSubagentContent] = {}

    @property
    def state(self) -> ChatState:
        """The chat now."""
        state: ChatState = self.channel.state
        return state

    def hear(self, event: ev.Event) -> bool:
        """Say what `event` means for the running turn; whether the chat's row may have moved.

        What the agent asks and nobody can see is refused at once (hazard B28). Raises `ParseError`
        for what no JSON text can hold.
        """
        if self.state.active_turn is None:
            self.refuse(event)
            return False
        was_asked, answer = self._waits.again(self.channel.uri, event)
        if was_asked:  # by an agent that is gone: everybody has seen it
            if answer is None:
                self.note_wait(event)
            else:
                self._tell_agent(answer)
            return False
        match event:
            case ev.ToolOutput() if not self._outputs.may_say(event):
                return False
            case ev.ToolReady() | ev.ToolFinished():
                self._outputs.forget(event.call_id)
            case ev.ToolNeedsAuth():
                self.output_due(event.call_id)  # a call that pauses keeps what it has
            case _:
                pass
        return self._say(event)

    def hear_text(self, events: Sequence[ev.TextChunk | ev.ThoughtChunk]) -> bool:
        """Say pieces of one kind that came in one go, an action each, as one step of the state.

        False, and nothing said, when they do not go on with the last part. Raises `ParseError` for
        what no JSON can hold; then nothing is said either.
        """
        turn = self.state.active_turn
        kind, make = _TEXT[type(events[0])]
        last = turn.response_parts[-1] if turn is not None and turn.response_parts else None
        if turn is None or not isinstance(last, kind):
            return False
        texts = [event.text for event in events if event.text]
        if texts:
            whole = make(turn_id=turn.id, part_id=last.id, content="".join(texts))
            state = reducers.apply("chat", self.state, whole)
            actions = [make(turn_id=turn.id, part_id=last.id, content=text) for text in texts]
            self.desk.say_run(actions, state)
        return True

    def output_due(self, call_id: str) -> bool:
        """Say what output of a call is held; whether there was any."""
        event = self._outputs.take(call_id)
        return event is not None and self._say(event)

    def _say(self, event: ev.Event) -> bool:
        turn, event = self.state.active_turn, self._with_link(event)
        if turn is None:
            return False
        said = moved = False
        for action in actions_for(turn, event):
            if self.desk.say(action):
                said = True
                moved |= not isinstance(action, _STREAM)
        if isinstance(event, ev.ToolReady) and event.call_id in self._links:
            self.link(event.call_id, self._links[event.call_id])  # ready has dropped it
        asks_anew = self.note_wait(event)
        if asks_anew and not said:
            self.refuse(event)
        return moved

    def note_wait(self, event: ev.Event) -> bool:
        """The agent said this; False when it asks nothing, or asked it before."""
        return self._waits.note(self.channel.uri, event)

    def hear_beside(self, event: ev.Event) -> bool:
        """Say what `event` means whether or not a turn runs; whether anything changed."""
        said = [self.desk.say(action) for action in actions_beside(event)]
        return any(said)

    def refuse(self, event: ev.Event) -> None:
        """Let the agent go on, if it asks something here that nobody will see."""
        answer = refusal(event)
        if answer is not None:
            self._waits.take(self.channel.uri, answer)
            self._tell_agent(answer)

    def link(self, call_id: str, worker: ToolResultSubagentContent) -> bool:
        """A call of the running turn has a worker: its content names the chat (R-9.13)."""
        self._links[call_id] = worker
        turn = self.state.active_turn
        if turn is None:
            return False
        action = act.ChatToolCallContentChangedAction(
            turn_id=turn.id,
            tool_call_id=call_id,
            content=(worker,),
            meta={"toolKind": "subagent", "subagentChatUri": worker.resource},
        )
        return self.desk.say(action)

    def turn_is_over(self) -> None:
        """Its calls are over with it."""
        self._links.clear()
        self._outputs.clear()

    def _with_link(self, event: ev.Event) -> ev.Event:
        """The same with the worker's chat in it, when it brings content of a call that has one."""
        if not isinstance(event, ev.ToolOutput | ev.ToolFinished):
            return event
        link = self._links.get(event.call_id)
        if link is None:
            return event
        content: tuple[ToolResultContent, ...] = (link, *event.content)
        return structs.replace(event, content=content)
