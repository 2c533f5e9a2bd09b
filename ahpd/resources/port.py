"""What the host needs of whoever has the files: `Resources`, and the `Watched` that it gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

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

#: What somebody may want to do with a place.
Grant: TypeAlias = Literal["read", "write"]


def wants(params: ResourceRequestParams) -> tuple[Grant, ...]:
    """What is asked for: neither flag means to read (R-13.4)."""
    if not params.write:
        return ("read",)
    return ("read", "write") if params.read else ("write",)


class Found(Struct, frozen=True):
    """A file that fits what somebody typed: its path from the folder it is in, and its URI."""

    label: str
    uri: URI


class Served(Struct, frozen=True):
    """What may be reached, as `file:` URIs; all that is in a folder goes with it.

    `folders` are served as they are named, links and all. What was granted beside them, `readable`
    and `writable`, is where it really is: what a link leads to that came later was not granted.
    """

    folders: Sequence[URI]
    readable: Sequence[URI] = ()
    writable: Sequence[URI] = ()


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
    """Files of this machine, as far as they are `served`.

    Each method answers one request of the protocol and raises `ProtocolError` for what cannot be
    done: -32602 for what makes no sense, -32008 for what is not there, -32009 (with the grant that
    would help) for what is outside or not permitted, -32010 and -32011 as RULES 13 has them, and
    -32603 for a file system that fails or does not answer in time. Cancelled, what has been begun
    on the disk may still be done.
    """

    async def request(self, params: ResourceRequestParams, served: Served) -> None:
        """Return if it may be asked for (R-13.4)."""
        ...

    async def read(self, params: ResourceReadParams, served: Served) -> ResourceReadResult:
        """The content of a file (R-13.11)."""
        ...

    async def list(self, params: ResourceListParams, served: Served) -> ResourceListResult:
        """What is in a folder (R-13.13)."""
        ...

    async def resolve(self, params: ResourceResolveParams, served: Served) -> ResourceResolveResult:
        """What is there, and where it really is (R-13.14)."""
        ...

    async def write(self, params: ResourceWriteParams, served: Served) -> None:
        """Write bytes into a file (R-13.16 to R-13.20)."""
        ...

    async def mkdir(self, params: ResourceMkdirParams, served: Served) -> None:
        """Make a folder and those above it (R-13.23)."""
        ...

    async def delete(self, params: ResourceDeleteParams, served: Served) -> None:
        """Delete a file, a link or a folder (R-13.22)."""
        ...

    async def copy(self, params: ResourceCopyParams, served: Served) -> None:
        """Copy a file or a folder (R-13.21)."""
        ...

    async def move(self, params: ResourceMoveParams, served: Served) -> None:
        """Move or rename (R-13.21)."""
        ...

    async def watch(self, params: CreateResourceWatchParams, served: Served) -> Watched:
        """Watch from now on (RULES 14)."""
        ...

    async def place(self, uri: URI) -> URI:
        """Where this really is, or would be, served or not: what there is to be granted."""
        ...

    async def keep_watch(self) -> None:
        """Run the part that all watches share, for ever; to be run again after it failed."""
        ...

    async def find(self, typed: str, folders: Sequence[URI], most: int) -> Sequence[Found]:
        """Files in these folders that fit what was typed, the best first; quick, and best effort.

        What is not there or not permitted gives nothing; never fails.
        """
        ...
