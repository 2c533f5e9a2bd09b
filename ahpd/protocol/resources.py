"""Files and other resources, in both directions, and watches on them (RULES 13, 14)."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ahpd.protocol.common import BaseParams
from ahpd.protocol.model import Wire
from ahpd.protocol.uris import URI

ContentEncoding: TypeAlias = Literal["base64", "utf-8"]


ResourceChangeType: TypeAlias = Literal["added", "updated", "deleted"]


ResourceType: TypeAlias = Literal["file", "directory", "symlink"]


ResourceWriteMode: TypeAlias = Literal["truncate", "append", "insert"]


class CreateResourceWatchParams(BaseParams):
    """Watches a file or folder (R-14.5)."""

    channel: Literal["ahp-root://"] = "ahp-root://"
    uri: URI
    recursive: bool | None = None
    excludes: GlobPatterns | None = None
    includes: GlobPatterns | None = None


class CreateResourceWatchResult(Wire):
    """The channel to subscribe to."""

    channel: URI


class DirectoryEntry(Wire):
    """A name in a folder."""

    name: str
    type: Literal["file", "directory"]


class ResourceChange(Wire):
    """One thing that changed."""

    uri: URI
    type: ResourceChangeType


class ResourceCopyParams(BaseParams):
    """Copies a resource."""

    channel: Literal["ahp-root://"] = "ahp-root://"
    source: URI
    destination: URI
    fail_if_exists: bool | None = None


class ResourceCopyResult(Wire):
    """Empty by definition."""


class ResourceDeleteParams(BaseParams):
    """Deletes a resource."""

    channel: Literal["ahp-root://"] = "ahp-root://"
    uri: URI
    recursive: bool | None = None


class ResourceDeleteResult(Wire):
    """Empty by definition."""


class ResourceListParams(BaseParams):
    """Asks what a directory holds."""

    channel: Literal["ahp-root://"] = "ahp-root://"
    uri: URI


class ResourceListResult(Wire):
    """A directory's entries."""

    entries: tuple[DirectoryEntry, ...]


class ResourceMkdirParams(BaseParams):
    """Makes a directory."""

    channel: Literal["ahp-root://"] = "ahp-root://"
    uri: URI


class ResourceMkdirResult(Wire):
    """Empty by definition."""


class ResourceMoveParams(BaseParams):
    """Moves or renames a resource."""

    channel: Literal["ahp-root://"] = "ahp-root://"
    source: URI
    destination: URI
    fail_if_exists: bool | None = None


class ResourceMoveResult(Wire):
    """Empty by definition."""


class ResourceReadParams(BaseParams):
    """Asks for the content of a resource."""

    channel: Literal["ahp-root://"] = "ahp-root://"
    uri: str
    encoding: ContentEncoding | None = None


class ResourceReadResult(Wire):
    """The content of a resource."""

    data: str
    encoding: ContentEncoding
    content_type: str | None = None


class ResourceRequestParams(BaseParams):
    """Asks for access; neither flag means read (R-13.4)."""

    channel: Literal["ahp-root://"] = "ahp-root://"
    uri: URI
    read: bool | None = None
    write: bool | None = None


class ResourceRequestResult(Wire):
    """Empty by definition."""


class ResourceResolveParams(BaseParams):
    """Asks what a URI is, links followed by default (R-13.14)."""

    channel: Literal["ahp-root://"] = "ahp-root://"
    uri: URI
    follow_symlinks: bool | None = None


class ResourceResolveResult(Wire):
    """Kind, size, times and version; `etag` fits `ifMatch`."""

    uri: URI
    type: ResourceType
    size: float | None = None
    mtime: str | None = None
    ctime: str | None = None
    content_type: str | None = None
    etag: str | None = None


class ResourceWatchChangedAction(Wire):
    """A batch of changes, never empty (R-14.8)."""

    type: Literal["resourceWatch/changed"] = "resourceWatch/changed"
    changes: ResourceChanges


class ResourceWatchState(Wire):
    """What is watched (R-14.7)."""

    root: URI
    recursive: bool
    excludes: GlobPatterns | None = None
    includes: GlobPatterns | None = None


class ResourceWriteParams(BaseParams):
    """Writes bytes at a place given in bytes (R-13.16)."""

    channel: Literal["ahp-root://"] = "ahp-root://"
    uri: URI
    data: str
    encoding: ContentEncoding
    content_type: str | None = None
    create_only: bool | None = None
    mode: ResourceWriteMode | None = None
    position: float | None = None
    if_match: str | None = None


class ResourceWriteResult(Wire):
    """Empty by definition."""


class GlobPatterns(Wire):
    """Patterns relative to the target; excludes win (R-14.6)."""

    items: tuple[str, ...]


class ResourceChanges(Wire):
    """The changes of one batch."""

    items: tuple[ResourceChange, ...]
