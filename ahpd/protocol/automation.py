"""The automation catalogue and automation runs (RULES 17)."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from ahpd.protocol.common import (
    AgentSelection,
    BaseParams,
    ConfigSchema,
    ErrorInfo,
    ModelSelection,
    UsageInfo,
)
from ahpd.protocol.customizations import ClientPluginCustomization, PluginCustomization
from ahpd.protocol.messages import Message
from ahpd.protocol.model import Object, Unknown, Wire
from ahpd.protocol.shapes import AtMostOnePerKind, Minimum
from ahpd.protocol.uris import URI

AutomationMisfirePolicy: TypeAlias = Literal["skip", "runOnce"]


AutomationOperation: TypeAlias = Literal["update", "remove", "run"]


class AutomationAfterDateCondition(Wire):
    """Disables at a date."""

    kind: Literal["afterDate"] = "afterDate"
    date: str


class AutomationAfterRunsCondition(Wire):
    """Disables after a number of scheduled runs (R-17.29)."""

    kind: Literal["afterRuns"] = "afterRuns"
    max: Annotated[int, Minimum(1)]


class AutomationCancelledRunLifecycle(Wire):
    """Cancelled."""

    status: Literal["cancelled"] = "cancelled"
    created_at: str
    started_at: str | None = None
    completed_at: str


class AutomationCapabilities(Wire):
    """What the host can do with automations (R-17.1)."""

    create: AutomationCreateCapability | None = None
    schedules: AutomationScheduleCapabilities | None = None
    run_cancellation: AutomationRunCancellationCapability | None = None
    run_history_limit: float | None = None
    customizations: AutomationCustomizationsCapability | None = None


class AutomationCompletedRunLifecycle(Wire):
    """Done."""

    status: Literal["completed"] = "completed"
    created_at: str
    started_at: str
    completed_at: str
    usage: UsageInfo | None = None


class AutomationCreateCapability(Wire):
    """Clients may create automations."""


class AutomationCreateRequestedAction(Wire):
    """Asks for a new automation; changes no state (R-17.6)."""

    type: Literal["automation/createRequested"] = "automation/createRequested"
    resource: URI
    definition: AutomationDefinition


class AutomationCustomizationsCapability(Wire):
    """Templates may carry plugins (R-17.47)."""


class AutomationDefinition(Wire):
    """What an automation does, and when."""

    title: str
    message: Message
    session: AutomationSessionTemplate
    enabled: bool
    triggers: tuple[AutomationTrigger, ...]
    disable_conditions: DisableConditions | None = None
    meta: Object | None = None


class AutomationDefinitionPatch(Wire):
    """Fields of a definition to replace (R-17.9)."""

    title: str | None = None
    message: Message | None = None
    session: AutomationSessionTemplate | None = None
    enabled: bool | None = None
    triggers: tuple[AutomationTrigger, ...] | None = None
    disable_conditions: DisableConditions | None = None
    meta: Object | None = None


class AutomationEntry(Wire):
    """An automation and its newest runs."""

    resource: URI
    definition: AutomationDefinition
    next_run_at: str | None = None
    run_count: float | None = None
    runs: tuple[AutomationRunSummary, ...]
    runs_next_cursor: str | None = None
    operations: tuple[AutomationOperation, ...]
    customizations: tuple[PluginCustomization, ...] | None = None
    created_at: str
    modified_at: str
    meta: Object | None = None


class AutomationEventTrigger(Wire):
    """Runs on a host's own event."""

    kind: Literal["event"] = "event"
    id: str
    type: str
    title: str
    description: str | None = None
    events: tuple[AutomationTriggerEventDefinition, ...]
    config: Object | None = None


class AutomationFailedRunLifecycle(Wire):
    """Failed."""

    status: Literal["failed"] = "failed"
    created_at: str
    started_at: str | None = None
    completed_at: str
    error: ErrorInfo


class AutomationManualRunOrigin(Wire):
    """Started by hand."""

    kind: Literal["manual"] = "manual"


class AutomationPendingRunLifecycle(Wire):
    """Admitted, not started."""

    status: Literal["pending"] = "pending"
    created_at: str


class AutomationRemovedAction(Wire):
    """Drops an automation (R-17.12)."""

    type: Literal["automation/removed"] = "automation/removed"
    resource: URI


class AutomationRunCancelRequestedAction(Wire):
    """Asks to cancel the run; changes no state (R-17.38)."""

    type: Literal["automationRun/cancelRequested"] = "automationRun/cancelRequested"


class AutomationRunCancellationCapability(Wire):
    """Runs can be cancelled."""


class AutomationRunLifecycleChangedAction(Wire):
    """The run moved on (R-17.35)."""

    type: Literal["automationRun/lifecycleChanged"] = "automationRun/lifecycleChanged"
    lifecycle: AutomationRunLifecycle


class AutomationRunPrimarySessionChangedAction(Wire):
    """Which session to open first (R-17.41)."""

    type: Literal["automationRun/primarySessionChanged"] = "automationRun/primarySessionChanged"
    primary_session: URI | None = None


class AutomationRunSessionRemovedAction(Wire):
    """A session left the run."""

    type: Literal["automationRun/sessionRemoved"] = "automationRun/sessionRemoved"
    session: URI


class AutomationRunSessionSetAction(Wire):
    """A session joined the run."""

    type: Literal["automationRun/sessionSet"] = "automationRun/sessionSet"
    session: URI


class AutomationRunState(Wire):
    """One run."""

    resource: URI
    automation: URI
    origin: AutomationRunOrigin
    lifecycle: AutomationRunLifecycle
    sessions: tuple[URI, ...]
    primary_session: URI | None = None
    meta: Object | None = None


class AutomationRunSummary(Wire):
    """A run's row in its automation."""

    resource: URI
    automation: URI
    origin: AutomationRunOrigin
    lifecycle: AutomationRunLifecycle
    primary_session: URI | None = None
    session_count: float
    meta: Object | None = None


class AutomationRunningRunLifecycle(Wire):
    """Running, also while its session waits for people (R-17.36)."""

    status: Literal["running"] = "running"
    created_at: str
    started_at: str


class AutomationSchedule(Wire):
    """Five cron fields and an IANA time zone (R-17.17)."""

    expression: str
    time_zone: str


class AutomationScheduleCapabilities(Wire):
    """Schedules work; how often they may fire."""

    min_interval_minutes: float | None = None


class AutomationScheduleTrigger(Wire):
    """Runs on a schedule; missed times run once unless ``skip`` (R-17.23)."""

    kind: Literal["schedule"] = "schedule"
    id: str
    schedule: AutomationSchedule
    misfire_policy: AutomationMisfirePolicy | None = None


class AutomationSessionTemplate(Wire):
    """The session that a run makes."""

    provider: str | None = None
    model: ModelSelection | None = None
    agent: AgentSelection | None = None
    working_directories: tuple[URI, ...] | None = None
    config: Object | None = None
    customizations: tuple[ClientPluginCustomization, ...] | None = None


class AutomationSetAction(Wire):
    """Inserts or replaces an automation (R-17.11)."""

    type: Literal["automation/set"] = "automation/set"
    automation: AutomationEntry


class AutomationState(Wire):
    """All automations that the client may see."""

    entries: tuple[AutomationEntry, ...]
    meta: Object | None = None


class AutomationTriggerDefinition(Wire):
    """A kind of event that the host can trigger on."""

    type: str
    title: str
    description: str | None = None
    events: tuple[AutomationTriggerEventDefinition, ...]
    config_schema: ConfigSchema | None = None


class AutomationTriggerEventDefinition(Wire):
    """One event of such a kind."""

    id: str
    title: str
    description: str | None = None


class AutomationTriggeredRunOrigin(Wire):
    """Started by a trigger."""

    kind: Literal["trigger"] = "trigger"
    trigger_id: str
    scheduled_for: str | None = None
    catch_up: bool | None = None
    event: Object | None = None


class AutomationUpdateRequestedAction(Wire):
    """Asks for a change; changes no state (R-17.6)."""

    type: Literal["automation/updateRequested"] = "automation/updateRequested"
    resource: URI
    changes: AutomationDefinitionPatch


class FetchAutomationRunsParams(BaseParams):
    """Asks for older runs (R-17.42)."""

    channel: Literal["ahp-automations://"] = "ahp-automations://"
    automation: URI
    cursor: str | None = None


class FetchAutomationRunsResult(Wire):
    """Empty: the runs come as `automation/set` (R-17.42)."""


class ListAutomationTriggerDefinitionsParams(BaseParams):
    """Asks for the host's own events in a context (R-17.25)."""

    channel: Literal["ahp-root://"] = "ahp-root://"
    provider: str | None = None
    working_directories: tuple[URI, ...] | None = None
    session_config: Object | None = None


class ListAutomationTriggerDefinitionsResult(Wire):
    """The kinds of events."""

    items: tuple[AutomationTriggerDefinition, ...]


class RunAutomationParams(BaseParams):
    """Starts a run by hand; `requestId` makes it safe to repeat (R-17.32)."""

    channel: Literal["ahp-automations://"] = "ahp-automations://"
    automation: URI
    request_id: str


class RunAutomationResult(Wire):
    """The run's channel."""

    resource: URI


AutomationDisableCondition: TypeAlias = (
    AutomationAfterRunsCondition | AutomationAfterDateCondition | Unknown
)


AutomationRunLifecycle: TypeAlias = (
    AutomationPendingRunLifecycle
    | AutomationRunningRunLifecycle
    | AutomationCompletedRunLifecycle
    | AutomationFailedRunLifecycle
    | AutomationCancelledRunLifecycle
    | Unknown
)


AutomationRunOrigin: TypeAlias = AutomationManualRunOrigin | AutomationTriggeredRunOrigin | Unknown


AutomationTrigger: TypeAlias = AutomationScheduleTrigger | AutomationEventTrigger | Unknown

DisableConditions: TypeAlias = Annotated[tuple[AutomationDisableCondition, ...], AtMostOnePerKind()]
