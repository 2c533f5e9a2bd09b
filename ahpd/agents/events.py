"""What an agent does, in neutral words: the events of a turn.

A backend knows nothing of envelopes, numbers or channels (DESIGN: backends). The chat actor turns
each of these into actions in one place, `actors.turn`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import attrs

from ahpd.protocol.common import StringOrMarkdown
from ahpd.protocol.model import JSON, Object
from ahpd.protocol.tools import ConfirmationOption, ToolResultContent


@attrs.frozen
class TextChunk:
    """More of the answer."""

    text: str


@attrs.frozen
class ThoughtChunk:
    """More of what the agent thinks."""

    text: str


@attrs.frozen
class ToolStarted:
    """The agent means to call a tool. `call_id` is the agent's own and unique in the turn.

    `title` is for people. `kind` is the `_meta.toolKind` a client draws the row by, if known.
    """

    call_id: str
    name: str
    title: str
    kind: str | None = None


@attrs.frozen
class ToolInputChunk:
    """More of a call's input, as JSON text, while the agent still writes it."""

    call_id: str
    text: str


@attrs.frozen
class ToolReady:
    """The call's input is complete and it runs: nobody has to be asked."""

    call_id: str
    message: StringOrMarkdown
    input: str | None = None


@attrs.frozen
class ToolAsks:
    """The call waits until somebody allows it; the backend gets a `Permission` as the answer."""

    call_id: str
    message: StringOrMarkdown
    input: str | None = None
    title: StringOrMarkdown | None = None
    editable: bool = False
    options: Sequence[ConfirmationOption] = ()


@attrs.frozen
class ToolOutput:
    """All output of a running call so far."""

    call_id: str
    content: Sequence[ToolResultContent]


@attrs.frozen
class ToolFinished:
    """A call is over, well or badly. A call that was denied is not finished but just ends."""

    call_id: str
    success: bool
    message: StringOrMarkdown
    content: Sequence[ToolResultContent] = ()
    error: str | None = None


@attrs.frozen
class UsageReport:
    """Tokens so far in this turn; `extra` goes to `_meta` (cost, context)."""

    input_tokens: float | None = None
    output_tokens: float | None = None
    cache_read_tokens: float | None = None
    model: str | None = None
    extra: Object | None = None


@attrs.frozen
class TitleProposed:
    """The agent's name for the conversation."""

    title: str


@attrs.frozen
class ActivityChanged:
    """What the agent is doing, in words; None: nothing to say."""

    activity: str | None


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
)


@attrs.frozen
class Done:
    """The turn ended well."""


@attrs.frozen
class Stopped:
    """The turn ended because it was cancelled."""


@attrs.frozen
class Failed:
    """The turn ended badly. `resumable`: trying again may help (R-9.66)."""

    message: str
    error_type: str = "AgentError"
    resumable: bool = False
    meta: JSON = None


Outcome: TypeAlias = Done | Stopped | Failed
