"""What opens and carries a connection: handshake, subscription, envelope (RULES 2 to 6)."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from ahpd.protocol.actions import StateAction
from ahpd.protocol.annotations import AnnotationsState
from ahpd.protocol.automation import AutomationCapabilities, AutomationRunState, AutomationState
from ahpd.protocol.canvas import CanvasState
from ahpd.protocol.changeset import ChangesetState
from ahpd.protocol.chat import ChatState
from ahpd.protocol.common import BaseParams, Implementation
from ahpd.protocol.model import Object, Unknown, Wire
from ahpd.protocol.resources import ResourceRequestParams, ResourceWatchState
from ahpd.protocol.root import RootState
from ahpd.protocol.session import SessionState
from ahpd.protocol.shapes import NUMBER
from ahpd.protocol.terminal import TerminalState
from ahpd.protocol.uris import URI


class ActionEnvelope(Wire):
    """An action with its place in the one order of the host (R-5.4)."""

    channel: URI
    action: StateAction
    server_seq: Annotated[int, NUMBER]
    origin: ActionOrigin | None = None
    rejection_reason: str | None = None


class ActionOrigin(Wire):
    """The client, and its own number for the dispatch (R-5.5)."""

    client_id: str
    client_seq: float


class ClientCapabilities(Wire):
    """What a client can do; an absent key means it cannot (R-4.9)."""

    mcp_apps: Object | None = None


class DispatchActionParams(Wire):
    """A client's proposal of an action."""

    channel: URI
    client_seq: float
    action: StateAction


class InitializeParams(BaseParams):
    """The first request of a new connection (R-1.34)."""

    channel: Literal["ahp-root://"] = "ahp-root://"
    protocol_versions: tuple[str, ...]
    client_id: str
    client_info: Implementation | None = None
    initial_subscriptions: tuple[URI, ...] | None = None
    locale: str | None = None
    capabilities: ClientCapabilities | None = None


class InitializeResult(Wire):
    """The version chosen, the current number, snapshots (R-4.1)."""

    protocol_version: str
    server_seq: Annotated[int, NUMBER]
    server_info: Implementation | None = None
    snapshots: tuple[Snapshot, ...]
    default_directory: URI | None = None
    completion_trigger_characters: tuple[str, ...] | None = None
    terminal_command_prefix: str | None = None
    telemetry: TelemetryCapabilities | None = None
    automations: AutomationCapabilities | None = None
    meta: Object | None = None


class PermissionDeniedErrorData(Wire):
    """What PermissionDenied (-32009) may carry: the grant that would help."""

    request: ResourceRequestParams | None = None


class PingParams(BaseParams):
    """Asks for a sign of life (R-1.36)."""

    channel: Literal["ahp-root://"] = "ahp-root://"


class ReconnectParams(BaseParams):
    """A known client comes back (R-6.1)."""

    channel: Literal["ahp-root://"] = "ahp-root://"
    client_id: str
    last_seen_server_seq: float
    subscriptions: tuple[URI, ...]


class ReconnectReplayResult(Wire):
    """Everything missed, in order (R-6.2)."""

    type: Literal["replay"] = "replay"
    actions: tuple[ActionEnvelope, ...]
    missing: tuple[URI, ...]


class ReconnectSnapshotResult(Wire):
    """Fresh snapshots, when replay is not possible (R-6.6)."""

    type: Literal["snapshot"] = "snapshot"
    snapshots: tuple[Snapshot, ...]


class Snapshot(Wire):
    """A channel's state with everything up to `fromSeq` in it (R-4.19)."""

    resource: URI
    state: ChannelState
    from_seq: Annotated[int, NUMBER]


class SubscribeParams(BaseParams):
    """Subscribes to the channel named (R-4.18)."""

    delivery: SubscriptionDeliveryOptions | None = None
    view: SubscribeView | None = None


class SubscribeResult(Wire):
    """The snapshot; none for a stateless channel."""

    snapshot: Snapshot | None = None


class SubscribeView(Wire):
    """Advice on how much of a state to send (R-4.25)."""

    turns: float | None = None


class SubscriptionDeliveryOptions(Wire):
    """How long updates may be held back to be merged (R-4.22)."""

    max_latency_ms: float | None = None


class TelemetryCapabilities(Wire):
    """Where each signal can be subscribed (R-20.1)."""

    logs: URI | None = None
    traces: URI | None = None
    metrics: URI | None = None


class UnsubscribeParams(Wire):
    """Ends a subscription, without an answer (R-4.36)."""

    channel: URI


class UnsupportedProtocolVersionErrorData(Wire):
    """What UnsupportedProtocolVersion (-32005) carries (R-2.5)."""

    supported_versions: tuple[str, ...]


ReconnectResult: TypeAlias = ReconnectReplayResult | ReconnectSnapshotResult | Unknown

#: The state of any channel that carries one; told apart by its keys, as it has no tag.
ChannelState: TypeAlias = (
    RootState
    | SessionState
    | TerminalState
    | ChangesetState
    | ResourceWatchState
    | AnnotationsState
    | ChatState
    | CanvasState
    | AutomationState
    | AutomationRunState
    | Unknown
)
