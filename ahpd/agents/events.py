"""What an agent does, in neutral words: the events of a turn.

A backend knows nothing of envelopes, numbers or channels (DESIGN: backends). The chat actor turns
each of these into actions in one place, `actors.turn`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from ahpd.protocol.chat import BackgroundWork
from ahpd.protocol.common import FileEdit, ProtectedResourceMetadata, StringOrMarkdown
from ahpd.protocol.customizations import Customization, McpServerState
from ahpd.protocol.inputs import ChatInputRequest, ChatInputResponseKind
from ahpd.protocol.model import JSON, Object
from ahpd.protocol.tools import (
    ConfirmationOption,
    McpAuthRequirement,
    ToolCallRiskAssessment,
    ToolResultContent,
)
from ahpd.protocol.uris import URI


class TextChunk(Struct, frozen=True):
    """More of the answer."""

    text: str


class ThoughtChunk(Struct, frozen=True):
    """More of what the agent thinks."""

    text: str


class ToolStarted(Struct, frozen=True):
    """The agent means to call a tool. `call_id` is the agent's own and unique in the turn.

    `title` is for people. `kind` is the `_meta.toolKind` a client draws the row by, if known.
    `server` is the id of the MCP server whose tool it is (R-18.28).
    """

    call_id: str
    name: str
    title: str
    kind: str | None = None
    server: str | None = None


class ToolInputChunk(Struct, frozen=True):
    """More of a call's input, as JSON text, while the agent still writes it."""

    call_id: str
    text: str


class ToolReady(Struct, frozen=True):
    """The call's input is complete and it runs: nobody has to be asked."""

    call_id: str
    message: StringOrMarkdown
    input: str | None = None


class ToolAsks(Struct, frozen=True):
    """The call waits until somebody allows it; the backend gets a `Permission` as the answer."""

    call_id: str
    message: StringOrMarkdown
    input: str | None = None
    title: StringOrMarkdown | None = None
    editable: bool = False
    options: Sequence[ConfirmationOption] = ()
    #: What it would do to files.
    edits: Sequence[FileEdit] = ()


class ToolOutput(Struct, frozen=True):
    """All output of a running call so far."""

    call_id: str
    content: Sequence[ToolResultContent]


class ToolFinished(Struct, frozen=True):
    """A call is over, well or badly. A call that was denied is not finished but just ends.

    `asks_approval`: the agent wants to know whether it may use the result, and waits for a
    `Verdict` (R-10.24).
    """

    call_id: str
    success: bool
    message: StringOrMarkdown
    content: Sequence[ToolResultContent] = ()
    error: str | None = None
    asks_approval: bool = False


class Cost(Struct, frozen=True):
    """What something cost, in a currency by its ISO 4217 code."""

    amount: float
    currency: str


class Context(Struct, frozen=True):
    """How full the model's context is, in tokens."""

    used: float
    size: float


class UsageReport(Struct, frozen=True):
    """Tokens so far in this turn, what they cost, and how full the context is.

    The protocol has no field for the last two: they go to `_meta`, as `extra` does.
    """

    input_tokens: float | None = None
    output_tokens: float | None = None
    cache_read_tokens: float | None = None
    model: str | None = None
    extra: Object | None = None
    cost: Cost | None = None
    context: Context | None = None


class TitleProposed(Struct, frozen=True):
    """The agent's name for the conversation."""

    title: str


class ActivityChanged(Struct, frozen=True):
    """What the agent is doing, in words; None: nothing to say."""

    activity: str | None


class SystemNotice(Struct, frozen=True):
    """Something the agent's harness says, which makes sense by itself (R-9.51)."""

    content: StringOrMarkdown


class QuestionsAsked(Struct, frozen=True):
    """Questions to people, or a URL for them to open; the backend gets `Answers` (R-11.1)."""

    request: ChatInputRequest


class QuestionsOver(Struct, frozen=True):
    """Nobody need answer these any more: the agent took them back, or has the answer elsewhere."""

    request_id: str
    response: ChatInputResponseKind


class RiskJudged(Struct, frozen=True):
    """How risky a call is that waits for permission; may come again when it is known (R-10.12)."""

    call_id: str
    assessment: ToolCallRiskAssessment


class ClientToolCalled(Struct, frozen=True):
    """The model calls a tool that a client offers; the backend gets a `ClientResult`.

    `name` is what the model was offered: ``<clientId>__<tool>``, or the bare name of a tool.
    """

    call_id: str
    name: str
    title: str
    input: str | None = None


class ToolNeedsAuth(Struct, frozen=True):
    """A running call of an MCP server's tool pauses until there is a token (R-10.27).

    The backend gets `Authorized`. `server` is the id of the server, as in `ToolStarted`.
    """

    call_id: str
    server: str
    requirement: McpAuthRequirement


class BackgroundSet(Struct, frozen=True):
    """Work that goes on beside the turns, new or changed (R-9.97).

    For a worker `worker` is its id, and the host fills in the chat it talks in (R-9.100).
    """

    work: BackgroundWork
    worker: str | None = None


class BackgroundGone(Struct, frozen=True):
    """Work that has ended."""

    work_id: str


class WorkerStarted(Struct, frozen=True):
    """A tool call gave work to a worker, which talks in a chat of its own (R-9.13).

    `worker` is the agent's name for it, `prompt` what it was told. It ends with the turn unless it
    is listed as background work.
    """

    worker: str
    call_id: str
    title: str
    prompt: str | None = None


class WorkerSays(Struct, frozen=True):
    """What a worker does; workers may have workers of their own."""

    worker: str
    events: Sequence[Event]


class WorkerEnded(Struct, frozen=True):
    """A worker is done."""

    worker: str
    outcome: Outcome


class Command(Struct, frozen=True):
    """A slash command; `is_skill`: it is one of the agent's skills."""

    name: str
    description: str = ""
    argument_hint: str | None = None
    is_skill: bool = False


class CommandsChanged(Struct, frozen=True):
    """The slash commands that the agent takes now, all of them."""

    commands: Sequence[Command]


class CustomizationsChanged(Struct, frozen=True):
    """What the agent was customized with, all of it: containers and MCP servers (R-18.1)."""

    customizations: Sequence[Customization]


class ServerChanged(Struct, frozen=True):
    """What has become of an MCP server; `channel`: where its apps can reach it (R-18.18)."""

    server: str
    state: McpServerState
    channel: URI | None = None


class MetaChanged(Struct, frozen=True):
    """What the agent has to say of the session that the protocol has no field for (R-8.38).

    The whole of it; None: nothing any more. Keys are prefixed (`ahpd.model`), or as others have
    agreed on.
    """

    meta: Object | None


class SettingsChanged(Struct, frozen=True):
    """The agent itself has set these settings of the chat to other values."""

    values: Object


class ConversationNamed(Struct, frozen=True):
    """What the agent itself knows this chat's conversation by.

    The host keeps it, and gives it to whatever backend is opened for the chat later
    (`OpenRequest.conversation`), so that the agent goes on with it; None: it knows of none.
    """

    name: str | None


Event: TypeAlias = (
    TextChunk
    | ThoughtChunk
    | ToolStarted
    | ToolInputChunk
    | ToolReady
    | ToolAsks
    | ToolOutput
    | ToolFinished
    | UsageReport
    | TitleProposed
    | ActivityChanged
    | SystemNotice
    | QuestionsAsked
    | QuestionsOver
    | RiskJudged
    | ClientToolCalled
    | ToolNeedsAuth
    | BackgroundSet
    | BackgroundGone
    | WorkerStarted
    | WorkerSays
    | WorkerEnded
    | CommandsChanged
    | CustomizationsChanged
    | ServerChanged
    | MetaChanged
    | ConversationNamed
    | SettingsChanged
)


class Done(Struct, frozen=True):
    """The turn ended well."""


class Stopped(Struct, frozen=True):
    """The turn ended because it was cancelled."""


class Failed(Struct, frozen=True):
    """The turn ended badly. `resumable`: trying again may help (R-9.66).

    `needs`: what tokens may be handed over for before it is tried again (R-19.12).
    """

    message: str
    error_type: str = "AgentError"
    resumable: bool = False
    meta: JSON = None
    needs: Sequence[ProtectedResourceMetadata] = ()


Outcome: TypeAlias = Done | Stopped | Failed
