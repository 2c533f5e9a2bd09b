"""Every method of the protocol: params, result, direction, and the channel it is bound to.

33 that a client sends (31 requests, `unsubscribe` and `dispatchAction`), 10 requests of the host,
9 notifications of the host (R-1.23 to R-1.26).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from ahpd.protocol import (
    automation,
    changeset,
    chat,
    connection,
    messages,
    resources,
    root,
    session,
    telemetry,
    terminal,
)
from ahpd.protocol.connection import ReconnectResult
from ahpd.protocol.model import WireType
from ahpd.protocol.uris import AUTOMATIONS, ROOT, URI

Direction: TypeAlias = Literal["client->host", "host->client", "both"]
#: What the `channel` of a method names: one fixed URI, or a channel of a kind.
Target: TypeAlias = Literal["root", "automations", "session", "chat", "terminal", "any"]

_FIXED: Mapping[Target, URI] = {"root": ROOT, "automations": AUTOMATIONS}


class Method(Struct, frozen=True):
    """One method. `result` is None where success is ``null`` (R-1.27) or there is no answer."""

    name: str
    params: WireType
    result: Any
    direction: Direction
    target: Target
    is_request: bool = True

    @property
    def fixed_channel(self) -> URI | None:
        """The one URI that `channel` must hold (R-1.15, R-1.16), or None."""
        return _FIXED.get(self.target)

    def sent_by(self, side: Literal["client", "host"]) -> bool:
        """Whether this side may send it."""
        return self.direction == "both" or self.direction.startswith(side)


_C: Final = "client->host"
_H: Final = "host->client"


def _resource(name: str, params: WireType, result: WireType) -> Method:
    return Method(name, params, result, "both", "root")


_REQUESTS = (
    Method("initialize", connection.InitializeParams, connection.InitializeResult, _C, "root"),
    Method("ping", connection.PingParams, None, _C, "root"),
    Method("reconnect", connection.ReconnectParams, ReconnectResult, _C, "root"),
    Method("subscribe", connection.SubscribeParams, connection.SubscribeResult, _C, "any"),
    Method("listSessions", session.ListSessionsParams, session.ListSessionsResult, _C, "root"),
    Method("createSession", session.CreateSessionParams, None, _C, "session"),
    Method("disposeSession", session.DisposeSessionParams, None, _C, "session"),
    Method("createChat", chat.CreateChatParams, None, _C, "session"),
    Method("moveChat", chat.MoveChatParams, chat.MoveChatResult, _C, "chat"),
    Method("disposeChat", chat.DisposeChatParams, None, _C, "chat"),
    Method("fetchTurns", chat.FetchTurnsParams, chat.FetchTurnsResult, _C, "chat"),
    Method("completions", messages.CompletionsParams, messages.CompletionsResult, _C, "chat"),
    Method("createTerminal", terminal.CreateTerminalParams, None, _C, "terminal"),
    Method("disposeTerminal", terminal.DisposeTerminalParams, None, _C, "terminal"),
    Method("authenticate", root.AuthenticateParams, root.AuthenticateResult, _C, "root"),
    Method(
        "resolveSessionConfig",
        session.ResolveSessionConfigParams,
        session.ResolveSessionConfigResult,
        _C,
        "root",
    ),
    Method(
        "sessionConfigCompletions",
        session.SessionConfigCompletionsParams,
        session.SessionConfigCompletionsResult,
        _C,
        "root",
    ),
    Method(
        "invokeChangesetOperation",
        changeset.InvokeChangesetOperationParams,
        changeset.InvokeChangesetOperationResult,
        _C,
        "any",
    ),
    Method(
        "listAutomationTriggerDefinitions",
        automation.ListAutomationTriggerDefinitionsParams,
        automation.ListAutomationTriggerDefinitionsResult,
        _C,
        "root",
    ),
    Method(
        "runAutomation",
        automation.RunAutomationParams,
        automation.RunAutomationResult,
        _C,
        "automations",
    ),
    Method(
        "fetchAutomationRuns",
        automation.FetchAutomationRunsParams,
        automation.FetchAutomationRunsResult,
        _C,
        "automations",
    ),
    _resource(
        "createResourceWatch",
        resources.CreateResourceWatchParams,
        resources.CreateResourceWatchResult,
    ),
    _resource("resourceRead", resources.ResourceReadParams, resources.ResourceReadResult),
    _resource("resourceWrite", resources.ResourceWriteParams, resources.ResourceWriteResult),
    _resource("resourceList", resources.ResourceListParams, resources.ResourceListResult),
    _resource("resourceCopy", resources.ResourceCopyParams, resources.ResourceCopyResult),
    _resource("resourceDelete", resources.ResourceDeleteParams, resources.ResourceDeleteResult),
    _resource("resourceMove", resources.ResourceMoveParams, resources.ResourceMoveResult),
    _resource("resourceResolve", resources.ResourceResolveParams, resources.ResourceResolveResult),
    _resource("resourceMkdir", resources.ResourceMkdirParams, resources.ResourceMkdirResult),
    _resource("resourceRequest", resources.ResourceRequestParams, resources.ResourceRequestResult),
)


def _notice(name: str, params: WireType, direction: Direction, target: Target) -> Method:
    return Method(name, params, None, direction, target, is_request=False)


_NOTIFICATIONS = (
    _notice("unsubscribe", connection.UnsubscribeParams, _C, "any"),
    _notice("dispatchAction", connection.DispatchActionParams, _C, "any"),
    _notice("action", connection.ActionEnvelope, _H, "any"),
    _notice("root/sessionAdded", root.SessionAddedParams, _H, "root"),
    _notice("root/sessionRemoved", root.SessionRemovedParams, _H, "root"),
    _notice("root/sessionSummaryChanged", root.SessionSummaryChangedParams, _H, "root"),
    _notice("root/progress", root.ProgressParams, _H, "root"),
    _notice("auth/required", root.AuthRequiredParams, _H, "any"),
    _notice("otlp/exportLogs", telemetry.OtlpExportLogsParams, _H, "any"),
    _notice("otlp/exportTraces", telemetry.OtlpExportTracesParams, _H, "any"),
    _notice("otlp/exportMetrics", telemetry.OtlpExportMetricsParams, _H, "any"),
)

METHODS: Mapping[str, Method] = {method.name: method for method in (*_REQUESTS, *_NOTIFICATIONS)}

#: What a client sends: 31 requests and 2 notifications.
CLIENT_METHODS = {name: method for name, method in METHODS.items() if method.sent_by("client")}
#: What the host asks of a client: 10 requests.
HOST_REQUESTS = {
    name: method for name, method in METHODS.items() if method.sent_by("host") and method.is_request
}
#: What the host tells clients: 9 notifications.
HOST_NOTIFICATIONS = {
    name: method
    for name, method in METHODS.items()
    if method.sent_by("host") and not method.is_request
}
