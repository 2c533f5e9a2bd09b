"""`FileResources`: the adapter that serves files of this machine. See `ahpd.resources.port`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.resources import (
    CreateResourceWatchParams,
    ResourceCopyParams,
    ResourceDeleteParams,
    ResourceListParams,
    ResourceListResult,
    ResourceMkdirParams,
    ResourceMoveParams,
    ResourceReadParams,
    ResourceReadResult,
    ResourceRequestParams,
    ResourceResolveParams,
    ResourceResolveResult,
    ResourceWriteParams,
)
from ahpd.protocol.uris import URI
from ahpd.resources import reading, transfer, writing
from ahpd.resources.access import Abandoned, Access
from ahpd.resources.inotify import WatchLimit
from ahpd.resources.jail import Folders, lineage, plain
from ahpd.resources.locks import Locks
from ahpd.resources.port import Found, Grant, Served
from ahpd.resources.threads import Threads
from ahpd.resources.uris import to_path
from ahpd.resources.watching import FolderWatch, Watching, no_room, target

if TYPE_CHECKING:
    from ahpd.resources.finding import Finder

T = TypeVar("T")


class FileLimits(Struct, frozen=True):
    """What one request may cost; times in seconds."""

    #: Bytes of the longest file that is read.
    read_bytes: int = 16 << 20
    #: Entries of the largest folder that is listed.
    list_entries: int = 100_000
    #: How long one request may take.
    within: float = 30.0
    #: Requests that may be at work at a time.
    threads: int = 32


class FileResources:
    """See `Resources`. One for a host; it keeps nothing on disk."""

    def __init__(self, limits: FileLimits | None = None) -> None:
        self._limits = limits or FileLimits()
        self._threads = Threads(self._limits.threads, self._limits.within)
        self._locks = Locks()
        self._watching = Watching()
        self._finder: Finder | None = None

    async def request(self, params: ResourceRequestParams, served: Served) -> None:
        """See `Resources`."""
        await self._run(
            "resourceRequest", params.uri, served, lambda access: reading.request(access, params)
        )

    async def read(self, params: ResourceReadParams, served: Served) -> ResourceReadResult:
        """See `Resources`."""
        most = self._limits.read_bytes
        return await self._run(
            "resourceRead", params.uri, served, lambda access: reading.read(access, params, most)
        )

    async def list(self, params: ResourceListParams, served: Served) -> ResourceListResult:
        """See `Resources`."""
        most = self._limits.list_entries
        return await self._run(
            "resourceList", params.uri, served,
            lambda access: reading.list_folder(access, params, most),
        )  # fmt: skip

    async def resolve(self, params: ResourceResolveParams, served: Served) -> ResourceResolveResult:
        """See `Resources`."""
        return await self._run(
            "resourceResolve", params.uri, served, lambda access: reading.resolve(access, params)
        )

    async def write(self, params: ResourceWriteParams, served: Served) -> None:
        """See `Resources`."""
        await self._run(
            "resourceWrite", params.uri, served,
            lambda access: writing.write(access, params),
        )  # fmt: skip

    async def mkdir(self, params: ResourceMkdirParams, served: Served) -> None:
        """See `Resources`."""
        await self._run(
            "resourceMkdir", params.uri, served, lambda access: writing.mkdir(access, params)
        )

    async def delete(self, params: ResourceDeleteParams, served: Served) -> None:
        """See `Resources`."""
        await self._run(
            "resourceDelete", params.uri, served, lambda access: writing.delete(access, params)
        )

    async def copy(self, params: ResourceCopyParams, served: Served) -> None:
        """See `Resources`."""
        await self._run(
            "resourceCopy", params.source, served, lambda access: transfer.copy(access, params)
        )

    async def move(self, params: ResourceMoveParams, served: Served) -> None:
        """See `Resources`."""
        await self._run(
            "resourceMove", params.source, served, lambda access: transfer.move(access, params)
        )

    async def watch(self, params: CreateResourceWatchParams, served: Served) -> FolderWatch:
        """See `Resources`."""
        method, uri = "createResourceWatch", params.uri
        path = await self._run(method, uri, served, lambda access: target(access, params))
        access = Access(method, Folders(()))
        try:
            self._watching.begin()
        except (WatchLimit, OSError) as error:
            raise no_room(access, uri, error) from None
        watch = FolderWatch(self._watching, params, path, access)
        try:
            await self._run(method, uri, served, watch.begin)
        except BaseException:
            watch.close()
            raise
        return watch

    async def place(self, uri: URI) -> URI:
        """See `Resources`."""
        anywhere = Served(["file:///"])
        return await self._run(
            "resourceRequest", uri, anywhere, lambda access: reading.place(access, uri)
        )

    async def keep_watch(self) -> None:
        """See `Resources`."""
        await self._watching.run()

    async def find(self, typed: str, folders: Sequence[URI], most: int) -> Sequence[Found]:
        """See `Resources`."""
        if self._finder is None:
            from ahpd.resources.finding import Finder  # noqa: PLC0415 - nobody types at the start

            self._finder = Finder()
        return await self._finder.find(typed, paths_of(folders), most)

    async def _run(self, method: str, uri: URI, served: Served, job: Callable[[Access], T]) -> T:
        """Do it in a thread, among those of the folder that the URI is in as it is spelled."""
        path = plain(to_path(uri, method))
        paths = paths_of(served.folders)
        named = set(paths)
        folder = next((above for above in lineage(path) if above in named), None)
        granted: dict[Grant, list[bytes]] = {
            "read": paths_of(served.readable),
            "write": paths_of(served.writable),
        }
        access = Access(method, Folders(paths, granted), self._locks)
        try:
            return await self._threads.run(folder, lambda: job(access), access.abandon, method)
        except Abandoned:
            raise ProtocolError(ErrorCode.INTERNAL_ERROR, f"{method}: given up") from None


def paths_of(folders: Sequence[URI]) -> list[bytes]:
    """The paths of those that are files of this machine; no other is served."""
    return [path for path in map(_path_of, folders) if path is not None]


@functools.lru_cache(maxsize=4096)
def _path_of(uri: URI) -> bytes | None:
    try:
        return plain(to_path(uri, "a served folder"))
    except ProtocolError:
        return None
