"""What one request may reach, and how its failures are told: shared by all that work on files.

Everything here blocks, and runs in threads.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ahpd.protocol.connection import PermissionDeniedErrorData
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.resources import ResourceRequestParams
from ahpd.protocol.uris import URI
from ahpd.resources.jail import Astray, Folders, Spot, spot
from ahpd.resources.locks import Locks
from ahpd.resources.port import Grant
from ahpd.resources.uris import to_path

#: What an `errno` means to whoever asked, and in words where the system's are none for people.
_CODES: dict[int, tuple[ErrorCode, str]] = {
    errno.ENOENT: (ErrorCode.NOT_FOUND, "does not exist"),
    errno.ENOTDIR: (ErrorCode.NOT_FOUND, "lies under something that is not a folder"),
    errno.ELOOP: (ErrorCode.NOT_FOUND, "is a link that leads nowhere, or changes all the time"),
    errno.EACCES: (ErrorCode.PERMISSION_DENIED, "may not be used by this host's user"),
    errno.EPERM: (ErrorCode.PERMISSION_DENIED, "may not be used by this host's user"),
    errno.EROFS: (ErrorCode.PERMISSION_DENIED, "is on a file system that is read-only"),
    errno.EEXIST: (ErrorCode.ALREADY_EXISTS, "exists already"),
    errno.EISDIR: (ErrorCode.INVALID_PARAMS, "is a folder"),
    errno.ENOTEMPTY: (ErrorCode.INVALID_PARAMS, "is a folder that is not empty"),
    errno.ENAMETOOLONG: (ErrorCode.INVALID_PARAMS, "has a name that is too long"),
    errno.ENXIO: (ErrorCode.INVALID_PARAMS, "is no ordinary file"),
    errno.ENOSPC: (ErrorCode.INTERNAL_ERROR, "cannot be written: the disk is full"),
    errno.EDQUOT: (ErrorCode.INTERNAL_ERROR, "cannot be written: the quota is used up"),
}


class Abandoned(Exception):
    """Nobody waits for this any more."""


class Access:
    """One request: its method, the folders that are served, and whether anybody still waits.

    `locks` are those of all requests that work on the same files.
    """

    def __init__(self, method: str, folders: Folders, locks: Locks | None = None) -> None:
        self.method = method
        self.folders = folders
        self._locks = locks or Locks()
        self._over = threading.Event()

    def abandon(self) -> None:
        """Nobody waits any more: stop at the next place where that does no harm. Any thread."""
        self._over.set()

    def go_on(self) -> None:
        """Raise `Abandoned` when nobody waits any more."""
        if self._over.is_set():
            raise Abandoned

    @contextmanager
    def alone(self, fd: int) -> Iterator[None]:
        """No other request is at this open file for the length of the block.

        Raises `Abandoned` when nobody waits any more.
        """
        info = os.fstat(fd)
        with self._locks.hold((info.st_dev, info.st_ino), self.go_on):
            yield

    # ---- what may be reached -----------------------------------------------------------------

    @contextmanager
    def reach(
        self, uri: URI, grant: Grant, *, follow: bool = True, partial: bool = False
    ) -> Iterator[Spot]:
        """Where a URI leads, inside the folders; see `spot`. Raises `ProtocolError`.

        Who would replace or remove what is there has to ask `check_replaceable` as well.
        """
        path = to_path(uri, self.method)
        with self.telling(uri, grant), spot(path, follow=follow, partial=partial) as found:
            if not self.folders.holds(found.path, grant):
                raise self.denied(uri, grant)
            yield found

    def check_replaceable(self, uri: URI, found: Spot) -> None:
        """Refuse to remove or replace a folder that is served as such."""
        if self.folders.is_as_a_whole(found.path):
            raise self.problem(
                uri, "is served as a whole, and stays where it is", ErrorCode.PERMISSION_DENIED
            )

    # ---- how it is told ----------------------------------------------------------------------

    @contextmanager
    def telling(self, uri: URI, *grants: Grant) -> Iterator[None]:
        """What fails in the block is told about this URI."""
        try:
            yield
        except Astray as error:
            # What is outside is not told about, not even whether it is there.
            if not self.may(error.path, *grants):
                raise self.denied(uri, *grants) from None
            raise self.failed(uri, error.code) from None
        except OSError as error:
            raise self.failed(uri, error.errno or errno.EIO) from None

    def may(self, path: bytes, *grants: Grant) -> bool:
        """Whether a real path may be used in all these ways."""
        return all(self.folders.holds(path, grant) for grant in grants)

    def denied(self, uri: URI, *grants: Grant) -> ProtocolError:
        """R-13.2: with what would have to be granted."""
        request = ResourceRequestParams(
            uri=uri,
            read=True if "read" in grants else None,
            write=True if "write" in grants else None,
        )
        what = f"{self.method}: {shown(uri)} is outside the folders that are served here"
        data = PermissionDeniedErrorData(request=request).wire()
        return ProtocolError(ErrorCode.PERMISSION_DENIED, what, data)

    def failed(self, uri: URI, code: int) -> ProtocolError:
        """What an `errno` is answered with."""
        known = _CODES.get(code)
        if known is None:
            return self.problem(uri, f"failed: {os.strerror(code)}", ErrorCode.INTERNAL_ERROR)
        return self.problem(uri, known[1], known[0])

    def problem(
        self, uri: URI, what: str, code: ErrorCode = ErrorCode.INVALID_PARAMS
    ) -> ProtocolError:
        """A refusal, in words."""
        return ProtocolError(code, f"{self.method}: {shown(uri)} {what}")


def shown(uri: URI) -> str:
    """A URI in a message for people."""
    text = uri if uri.isprintable() else ascii(uri)
    return text if len(text) <= 200 else text[:199] + "…"
