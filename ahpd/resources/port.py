"""What the host needs of whoever has the files: `Resources`, and the `Watched` that it gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from ahpd.protocol.resources import (
    CreateResourceWatchParams,
    ResourceChange,
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


class Found(Struct, frozen=True):
    """A file that fits what somebody typed: its path from the folder it is in, and its URI."""

    label: str
    uri: URI


class Watched(Protocol):
    """What changes under one file or folder. It outlives the actor that asks it.

    Changes gather whether anybody asks or not, so whoever comes after one that failed is told what
    happened in between.
    """

    async def changed(self) -> None:
        """Wait until `take` has something to give. Cancelled: nothing is lost."""
        ...

    def take(self, most: int) -> Sequence[ResourceChange]:
        """At most this many of the changes that have been told to nobody yet, in their order."""
        ...

    def close(self) -> None:
        """Let go of it. Sync, and harmless twice."""
        ...


class Resources(Protocol):
    """Files of this machine, as far as they are in `folders`, which are `file:` URIs.

    Each method answers one request of the protocol and raises `ProtocolError` for what cannot be
    done: -32602 for what makes no sense, -32008 for what is not there, -32009 (with the grant that
    would help) for what is outside or not permitted, -32010 and -32011 as RULES 13 has them, and
    -32603 for a file system that fails or does not answer in time. Cancelled, what has been begun
    on the disk may still be done.
    """

    async def request(self, params: ResourceRequestParams, folders: Sequence[URI]) -> None:
        """Return if it may be asked for (R-13.4)."""
        ...

    async def read(self, params: ResourceReadParams, folders: Sequence[URI]) -> ResourceReadResult:
        """The content of a file (R-13.11)."""
        ...

    async def list(self, params: ResourceListParams, folders: Sequence[URI]) -> ResourceListResult:
        """What is in a folder (R-13.13)."""
        ...

    async def resolve(
        self, params: ResourceResolveParams, folders: Sequence[URI]
    ) -> ResourceResolveResult:
        """What is there, and where it really is (R-13.14)."""
        ...

    async def write(self, params: ResourceWriteParams, folders: Sequence[URI]) -> None:
        """Write bytes into a file (R-13.16 to R-13.20)."""
        ...

    async def mkdir(self, params: ResourceMkdirParams, folders: Sequence[URI]) -> None:
        """Make a folder and those above it (R-13.23)."""
        ...

    async def delete(self, params: ResourceDeleteParams, folders: Sequence[URI]) -> None:
        """Delete a file, a link or a folder (R-13.22)."""
        ...

    async def copy(self, params: ResourceCopyParams, folders: Sequence[URI]) -> None:
        """Copy a file or a folder (R-13.21)."""
        ...

    async def move(self, params: ResourceMoveParams, folders: Sequence[URI]) -> None:
        """Move or rename (R-13.21)."""
        ...

    async def watch(self, params: CreateResourceWatchParams, folders: Sequence[URI]) -> Watched:
        """Watch from now on (RULES 14)."""
        ...

    async def keep_watch(self) -> None:
        """Run the part that all watches share, for ever; to be run again after it failed."""
        ...

    async def find(self, typed: str, folders: Sequence[URI], most: int) -> Sequence[Found]:
        """Files in these folders that fit what was typed, the best first; quick, and best effort.

        What is not there or not permitted gives nothing; never fails.
        """
        ...
