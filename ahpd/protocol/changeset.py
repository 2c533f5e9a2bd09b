"""The changeset channel: files that changed, and operations on them (RULES 15)."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ahpd.protocol.common import (
    BaseParams,
    ContentRef,
    ErrorInfo,
    FileEdit,
    StringOrMarkdown,
    TextRange,
)
from ahpd.protocol.model import Object, Unknown, Wire
from ahpd.protocol.uris import URI

ChangesetOperationScope: TypeAlias = Literal["changeset", "resource", "range"]


ChangesetOperationStatus: TypeAlias = Literal["idle", "running", "error", "disabled"]


ChangesetStatus: TypeAlias = Literal["computing", "recomputing", "ready", "error"]


class Changeset(Wire):
    """A catalogue entry; the content is behind the expanded `uriTemplate` (R-15.2)."""

    label: str
    uri_template: str
    description: str | None = None
    change_kind: str
    capabilities: ChangesetCapabilities | None = None


class ChangesetCapabilities(Wire):
    """What can be done with a changeset beyond looking."""

    review: Object | None = None


class ChangesetClearedAction(Wire):
    """Empties the files: a new start, or the end of the session (R-15.17)."""

    type: Literal["changeset/cleared"] = "changeset/cleared"


class ChangesetContentChangedAction(Wire):
    """Replaces the files, and the operations if given (R-15.13)."""

    type: Literal["changeset/contentChanged"] = "changeset/contentChanged"
    files: tuple[ChangesetFile, ...]
    operations: tuple[ChangesetOperation, ...] | None = None


class ChangesetFile(Wire):
    """One changed file."""

    id: str
    edit: FileEdit
    reviewed: bool | None = None
    meta: Object | None = None


class ChangesetFileRemovedAction(Wire):
    """Drops a file."""

    type: Literal["changeset/fileRemoved"] = "changeset/fileRemoved"
    file_id: str


class ChangesetFileSetAction(Wire):
    """Inserts or replaces a file by id."""

    type: Literal["changeset/fileSet"] = "changeset/fileSet"
    file: ChangesetFile


class ChangesetFilesReviewChangedAction(Wire):
    """Marks files reviewed or not; the one action clients send (R-15.17)."""

    type: Literal["changeset/filesReviewChanged"] = "changeset/filesReviewChanged"
    files: tuple[str, ...]
    reviewed: bool


class ChangesetOperation(Wire):
    """Something that can be done with a changeset, a file or a range."""

    id: str
    label: str
    description: str | None = None
    scopes: tuple[ChangesetOperationScope, ...]
    confirmation: StringOrMarkdown | None = None
    icon: str | None = None
    group: str | None = None
    status: ChangesetOperationStatus
    error: ErrorInfo | None = None


class ChangesetOperationFollowUp(Wire):
    """Content to open after an operation."""

    content: ContentRef
    external: bool | None = None


class ChangesetOperationStatusChangedAction(Wire):
    """Sets an operation's status; an error only with ``error``."""

    type: Literal["changeset/operationStatusChanged"] = "changeset/operationStatusChanged"
    operation_id: str
    status: ChangesetOperationStatus
    error: ErrorInfo | None = None


class ChangesetResourceTarget(Wire):
    """A file as an operation's target."""

    kind: Literal["resource"] = "resource"
    resource: URI
    side: Literal["before", "after"] | None = None


class ChangesetRangeTarget(Wire):
    """A range of a file as an operation's target."""

    kind: Literal["range"] = "range"
    resource: URI
    side: Literal["before", "after"] | None = None
    range: TextRange


class ChangesetOperationsChangedAction(Wire):
    """Replaces or removes the operations."""

    type: Literal["changeset/operationsChanged"] = "changeset/operationsChanged"
    operations: tuple[ChangesetOperation, ...] | None = None


class ChangesetState(Wire):
    """Files that changed, and what can be done with them."""

    status: ChangesetStatus
    error: ErrorInfo | None = None
    files: tuple[ChangesetFile, ...]
    operations: tuple[ChangesetOperation, ...] | None = None


class ChangesetStatusChangedAction(Wire):
    """Sets the status; an error only with ``error`` (R-15.11)."""

    type: Literal["changeset/statusChanged"] = "changeset/statusChanged"
    status: ChangesetStatus
    error: ErrorInfo | None = None


class InvokeChangesetOperationParams(BaseParams):
    """Runs an operation of the changeset named by `channel`."""

    operation_id: str
    target: ChangesetOperationTarget | None = None


class InvokeChangesetOperationResult(Wire):
    """What an operation has to say when it worked."""

    message: StringOrMarkdown | None = None
    follow_up: ChangesetOperationFollowUp | None = None


ChangesetOperationTarget: TypeAlias = ChangesetResourceTarget | ChangesetRangeTarget | Unknown
