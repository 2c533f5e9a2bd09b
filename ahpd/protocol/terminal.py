"""The terminal channel: state, actions and commands (RULES 12)."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ahpd.protocol.common import BaseParams
from ahpd.protocol.model import Unknown, Wire
from ahpd.protocol.persistent import AnyText, Seq
from ahpd.protocol.uris import URI


class CreateTerminalParams(BaseParams):
    """Opens the terminal named by `channel` (R-12.10)."""

    claim: TerminalClaim
    name: str | None = None
    cwd: URI | None = None
    cols: float | None = None
    rows: float | None = None


class DisposeTerminalParams(BaseParams):
    """Ends the terminal named by `channel` (R-12.12)."""


class TerminalClaimedAction(Wire):
    """Hands the terminal to another owner (R-12.1)."""

    type: Literal["terminal/claimed"] = "terminal/claimed"
    claim: TerminalClaim


class TerminalClearedAction(Wire):
    """Empties the content only (R-12.21)."""

    type: Literal["terminal/cleared"] = "terminal/cleared"


class TerminalClientClaim(Wire):
    """A client owns the terminal."""

    kind: Literal["client"] = "client"
    client_id: str


class TerminalCommandDetectionAvailableAction(Wire):
    """Commands are told apart from now on (R-12.30)."""

    type: Literal["terminal/commandDetectionAvailable"] = "terminal/commandDetectionAvailable"


class TerminalCommandExecutedAction(Wire):
    """A command begins; `timestamp` in Unix milliseconds."""

    type: Literal["terminal/commandExecuted"] = "terminal/commandExecuted"
    command_id: str
    command_line: str
    timestamp: float


class TerminalCommandFinishedAction(Wire):
    """A command ended."""

    type: Literal["terminal/commandFinished"] = "terminal/commandFinished"
    command_id: str
    exit_code: float | None = None
    duration_ms: float | None = None


class TerminalCommandPart(Wire):
    """A command and its output."""

    type: Literal["command"] = "command"
    command_id: str
    command_line: str
    output: AnyText
    timestamp: float
    is_complete: bool
    exit_code: float | None = None
    duration_ms: float | None = None


class TerminalCwdChangedAction(Wire):
    """The shell's directory changed."""

    type: Literal["terminal/cwdChanged"] = "terminal/cwdChanged"
    cwd: URI


class TerminalDataAction(Wire):
    """Output, appended to the last part (R-12.18)."""

    type: Literal["terminal/data"] = "terminal/data"
    data: str


class TerminalExitedAction(Wire):
    """The process ended (R-12.14)."""

    type: Literal["terminal/exited"] = "terminal/exited"
    exit_code: float | None = None


class TerminalExitedLifecycleState(Wire):
    """Ended; without a code when a signal ended it."""

    status: Literal["exited"] = "exited"
    exit_code: float | None = None


class TerminalInfo(Wire):
    """A terminal's row in the root state."""

    resource: URI
    title: str
    claim: TerminalClaim
    lifecycle: TerminalLifecycleState


class TerminalInputAction(Wire):
    """Keys for the process; changes no state (R-12.19)."""

    type: Literal["terminal/input"] = "terminal/input"
    data: str


class TerminalResizedAction(Wire):
    """The size in cells (R-12.22)."""

    type: Literal["terminal/resized"] = "terminal/resized"
    cols: float
    rows: float


class TerminalRunningLifecycleState(Wire):
    """Running."""

    status: Literal["running"] = "running"


class TerminalSessionClaim(Wire):
    """A session's chat owns the terminal (R-12.2)."""

    kind: Literal["session"] = "session"
    session: URI
    chat: URI
    turn_id: str | None = None
    tool_call_id: str | None = None


class TerminalState(Wire):
    """A terminal: what it has shown, its size, its owner."""

    title: str
    cwd: URI | None = None
    cols: float | None = None
    rows: float | None = None
    content: TerminalContent
    lifecycle: TerminalLifecycleState
    claim: TerminalClaim
    supports_command_detection: bool | None = None
    is_pty: bool | None = None


class TerminalTitleChangedAction(Wire):
    """The title."""

    type: Literal["terminal/titleChanged"] = "terminal/titleChanged"
    title: str


class TerminalUnclassifiedPart(Wire):
    """Output outside any known command."""

    type: Literal["unclassified"] = "unclassified"
    value: AnyText


class TerminalContent(Seq["TerminalContentPart"]):
    """What a terminal has shown: the output of commands and what lies between them."""


TerminalClaim: TypeAlias = TerminalClientClaim | TerminalSessionClaim | Unknown


TerminalContentPart: TypeAlias = TerminalUnclassifiedPart | TerminalCommandPart | Unknown


TerminalLifecycleState: TypeAlias = (
    TerminalRunningLifecycleState | TerminalExitedLifecycleState | Unknown
)
