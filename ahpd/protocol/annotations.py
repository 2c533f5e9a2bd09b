"""The annotations channel of a session (RULES 16)."""

from __future__ import annotations

from typing import Literal

from ahpd.protocol.common import StringOrMarkdown, TextRange
from ahpd.protocol.model import Object, Wire
from ahpd.protocol.uris import URI


class Annotation(Wire):
    """A remark on a file, with at least one entry (R-16.5)."""

    id: str
    origin: AnnotationOrigin
    resource: URI
    range: TextRange | None = None
    resolved: bool
    entries: tuple[AnnotationEntry, ...]
    meta: Object | None = None


class AnnotationEntry(Wire):
    """One text of an annotation."""

    id: str
    text: StringOrMarkdown
    meta: Object | None = None


class AnnotationOrigin(Wire):
    """Where an annotation came from (R-16.8)."""

    session: URI
    chat: URI | None = None
    turn_id: str | None = None


class AnnotationsEntryRemovedAction(Wire):
    """Drops one entry."""

    type: Literal["annotations/entryRemoved"] = "annotations/entryRemoved"
    annotation_id: str
    entry_id: str


class AnnotationsEntrySetAction(Wire):
    """Inserts or replaces one entry by id."""

    type: Literal["annotations/entrySet"] = "annotations/entrySet"
    annotation_id: str
    entry: AnnotationEntry


class AnnotationsRemovedAction(Wire):
    """Drops an annotation."""

    type: Literal["annotations/removed"] = "annotations/removed"
    annotation_id: str


class AnnotationsSetAction(Wire):
    """Inserts or replaces an annotation by id."""

    type: Literal["annotations/set"] = "annotations/set"
    annotation: Annotation


class AnnotationsState(Wire):
    """A session's annotations."""

    annotations: tuple[Annotation, ...]


class AnnotationsSummary(Wire):
    """Counts for the session's summary."""

    resource: URI
    annotation_count: float
    entry_count: float


class AnnotationsUpdatedAction(Wire):
    """Changes the given properties, never entries (R-16.3)."""

    type: Literal["annotations/updated"] = "annotations/updated"
    annotation_id: str
    origin: AnnotationOrigin | None = None
    resource: URI | None = None
    range: TextRange | None = None
    resolved: bool | None = None
