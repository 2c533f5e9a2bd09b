"""Small types that several channels share: text, ranges, files, schemas, errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from ahpd.protocol.model import JSON, Object, Wire
from ahpd.protocol.shapes import Minimum
from ahpd.protocol.uris import URI

JsonPrimitive: TypeAlias = str | float | bool | None


SessionStatus: TypeAlias = Annotated[int, Minimum(0)]


class AgentSelection(Wire):
    """Which of the agents offered by customizations answers, by that customization's URI."""

    uri: URI


class BaseParams(Wire):
    """What the params of every request name: the channel they act on (R-1.14)."""

    channel: URI
    meta: Object | None = None


class ChangesSummary(Wire):
    """Counts of changed lines and files."""

    additions: float | None = None
    deletions: float | None = None
    files: float | None = None


class ConfigPropertySchema(Wire):
    """The schema of one configuration value, a small part of JSON Schema."""

    type: Literal["string", "number", "boolean", "array", "object"]
    title: str
    description: str | None = None
    default: JSON | None = None
    enum: tuple[JsonPrimitive, ...] | None = None
    enum_labels: tuple[str, ...] | None = None
    enum_descriptions: tuple[str, ...] | None = None
    read_only: bool | None = None
    items: ConfigPropertySchema | None = None
    min_items: Annotated[int, Minimum(0)] | None = None
    max_items: Annotated[int, Minimum(0)] | None = None
    properties: Mapping[str, ConfigPropertySchema] | None = None
    required: tuple[str, ...] | None = None
    additional_properties: ConfigPropertySchema | None = None


class ConfigSchema(Wire):
    """The schema of a set of configuration values."""

    type: Literal["object"] = "object"
    properties: Mapping[str, ConfigPropertySchema]
    required: tuple[str, ...] | None = None


class ContentRef(Wire):
    """Content that is read with `resourceRead`; `nonce` changes when the content does (R-9.52)."""

    uri: URI
    size_hint: float | None = None
    content_type: str | None = None
    nonce: str | None = None


class ErrorInfo(Wire):
    """A failure as shown to people; `errorType` is a short stable name."""

    error_type: str
    message: str
    stack: str | None = None
    meta: Object | None = None


class FileEdit(Wire):
    """One file before and after: only `after` creates, only `before` deletes (R-10.49)."""

    before: FileEditSide | None = None
    after: FileEditSide | None = None
    diff: FileEditDiffStats | None = None


class FileEditCollection(Wire):
    """Edits that a tool call would make, shown before it is approved."""

    items: tuple[FileEdit, ...]


class FileEditDiffStats(Wire):
    """Lines added and removed."""

    added: float | None = None
    removed: float | None = None


class FileEditSide(Wire):
    """A file's URI and where its content is read."""

    uri: URI
    content: ContentRef


class Icon(Wire):
    """An image for a list entry."""

    src: URI
    content_type: str | None = None
    sizes: tuple[str, ...] | None = None
    theme: Literal["light", "dark"] | None = None


class Implementation(Wire):
    """Name and version of a peer, for logs and display only (R-2.20)."""

    name: str
    version: str | None = None
    title: str | None = None


class ModelSelection(Wire):
    """A model and its options; values are JSON primitives (R-22.15)."""

    id: str
    config: Mapping[str, JsonPrimitive] | None = None


class PaginatedParams(Wire):
    """What a paged request adds."""

    limit: float | None = None
    cursor: str | None = None


class PaginatedResult(Wire):
    """What a paged result adds."""

    next_cursor: str | None = None


class ProjectInfo(Wire):
    """The project that a session works on."""

    uri: URI
    display_name: str


class ProtectedResourceMetadata(Wire, verbatim=True):
    """An RFC 9728 resource that needs a token; its names are the RFC's own."""

    resource: str
    resource_name: str | None = None
    authorization_servers: tuple[str, ...] | None = None
    jwks_uri: str | None = None
    scopes_supported: tuple[str, ...] | None = None
    bearer_methods_supported: tuple[str, ...] | None = None
    resource_signing_alg_values_supported: tuple[str, ...] | None = None
    resource_documentation: str | None = None
    resource_policy_uri: str | None = None
    resource_tos_uri: str | None = None
    required: bool | None = None


class Markdown(Wire):
    """Text to be shown as Markdown."""

    markdown: str


class TextPosition(Wire):
    """A place in a text: line and character, both from 0."""

    line: float
    character: float


class TextRange(Wire):
    """A half-open range of text."""

    start: TextPosition
    end: TextPosition


class TextSelection(Wire):
    """A selected range."""

    range: TextRange


class UsageInfo(Wire):
    """Tokens that a turn used."""

    input_tokens: float | None = None
    output_tokens: float | None = None
    model: str | None = None
    cache_read_tokens: float | None = None
    meta: Object | None = None


StringOrMarkdown: TypeAlias = str | Markdown
