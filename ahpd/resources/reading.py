"""`resourceRead`, `resourceList` and `resourceResolve` on files (R-13.11 to R-13.15). Blocks."""

from __future__ import annotations

import base64
import errno
import os
import stat
from datetime import UTC, datetime

from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.resources import (
    DirectoryEntry,
    ResourceListParams,
    ResourceListResult,
    ResourceReadParams,
    ResourceReadResult,
    ResourceRequestParams,
    ResourceResolveParams,
    ResourceResolveResult,
    ResourceType,
)
from ahpd.protocol.uris import URI
from ahpd.resources.access import Access
from ahpd.resources.jail import Astray, Spot, spot
from ahpd.resources.port import Grant, wants
from ahpd.resources.uris import to_name, to_path, to_uri

#: Bytes read at a time, between which it is looked whether anybody still waits.
CHUNK = 1 << 20
#: Bytes at the beginning of a file in which a NUL says that it is no text.
_HEAD = 8192

_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


def read(access: Access, params: ResourceReadParams, most: int) -> ResourceReadResult:
    """The content of a file, at most `most` bytes of it: a longer one is refused."""
    uri = params.uri
    with access.reach(uri, "read") as found:
        fd = open_file(access, uri, found, os.O_RDONLY, "read")
        try:
            with access.alone(fd):
                content = _all_of(access, uri, fd, most)
        finally:
            os.close(fd)
        kind = content_type(found.path)
    text = _text_of(content, params.encoding)
    if text is not None:
        return ResourceReadResult(data=text, encoding="utf-8", content_type=kind)
    data = base64.b64encode(content).decode()
    return ResourceReadResult(data=data, encoding="base64", content_type=kind)


def _all_of(access: Access, uri: URI, fd: int, most: int) -> bytes:
    size = os.fstat(fd).st_size
    if size > most:
        raise _too_long(access, uri, most, size)
    content = bytearray()
    while portion := os.read(fd, min(CHUNK, most + 1 - len(content))):
        content += portion
        access.go_on()
        if len(content) > most:  # it grew, or is of a kind that has no size
            raise _too_long(access, uri, most)
    return bytes(content)


def _text_of(content: bytes, wanted: str | None) -> str | None:
    """The content as text where it should be and is; None: as base64 (R-13.11)."""
    if wanted == "base64" or (wanted != "utf-8" and b"\0" in content[:_HEAD]):
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _too_long(access: Access, uri: URI, most: int, size: int | None = None) -> ProtocolError:
    has = f"has {size} bytes" if size is not None else "has more bytes than it says"
    return access.problem(uri, f"{has}; at most {most} are read at a time (limits.read_bytes)")


def open_file(access: Access, uri: URI, found: Spot, flags: int, grant: Grant) -> int:
    """Open the ordinary file at a spot; anything else is refused, and never waited on.

    Raises `ProtocolError` and `OSError`.
    """
    if found.info is None:
        raise access.failed(uri, errno.ENOENT)
    check_ordinary(access, uri, found.info)
    # It may be a FIFO by now, which without O_NONBLOCK would wait for a peer.
    fd = found.open(flags | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        check_ordinary(access, uri, os.fstat(fd))
    except BaseException:
        os.close(fd)
        raise
    return fd


def check_ordinary(access: Access, uri: URI, info: os.stat_result) -> None:
    """Refuse anything but an ordinary file."""
    if not stat.S_ISREG(info.st_mode):
        kind = _KINDS.get(stat.S_IFMT(info.st_mode), "something else")
        raise access.problem(uri, f"is {kind}, not a file")


def list_folder(access: Access, params: ResourceListParams, most: int) -> ResourceListResult:
    """What is in a folder, sorted by name. More than `most` entries are refused."""
    uri, entries = params.uri, []
    with access.reach(uri, "read") as found:
        if found.info is None:
            raise access.failed(uri, errno.ENOENT)
        if not found.is_folder:
            raise access.problem(uri, "is not a folder")
        fd = found.open_folder()
        try:
            with os.scandir(fd) as scanned:
                for entry in scanned:
                    name = os.fsencode(entry.name)
                    entries.append((to_name(name), _is_folder(access, found, entry, name)))
                    access.go_on()
                    if len(entries) > most:
                        raise access.problem(
                            uri, f"has more than {most} entries (limits.list_entries)"
                        )
        finally:
            os.close(fd)
    return ResourceListResult(
        entries=tuple(
            DirectoryEntry(name=name, type="directory" if is_folder else "file")
            for name, is_folder in sorted(entries)
        )
    )


def _is_folder(access: Access, found: Spot, entry: os.DirEntry[str], name: bytes) -> bool:
    """A link is what it leads to, as far as that may be told."""
    try:
        if not entry.is_symlink():
            return entry.is_dir(follow_symlinks=False)
        with spot(found.path.rstrip(b"/") + b"/" + name) as target:
            return target.is_folder and access.may(target.path, "read")
    except (Astray, OSError):
        return False


def resolve(access: Access, params: ResourceResolveParams) -> ResourceResolveResult:
    """What is there, and where it really is. Of what is above a served folder only that it is."""
    uri, follow = params.uri, params.follow_symlinks is not False
    path = to_path(uri, access.method)
    with access.telling(uri, "read"), spot(path, follow=follow) as found:
        if not access.may(found.path, "read"):
            if found.is_folder and access.folders.below(found.path):
                return ResourceResolveResult(uri=to_uri(found.path), type="directory")
            raise access.denied(uri, "read")
        info = found.info
        if info is None:
            raise access.failed(uri, errno.ENOENT)
        kind: ResourceType = "file"
        if found.is_link:
            kind = "symlink"
        elif found.is_folder:
            kind = "directory"
        is_file = stat.S_ISREG(info.st_mode)
        return ResourceResolveResult(
            uri=to_uri(found.path),
            type=kind,
            size=info.st_size,
            mtime=_iso(info.st_mtime_ns),
            ctime=_iso(info.st_ctime_ns),
            content_type=content_type(found.path) if is_file else None,
            etag=etag(info) if is_file else None,
        )


def request(access: Access, params: ResourceRequestParams) -> None:
    """Whether it may be asked for; it need not be there (R-13.4)."""
    uri, wanted = params.uri, wants(params)
    path = to_path(uri, access.method)
    try:
        with access.telling(uri, *wanted), spot(path, partial=True) as found:
            if b".." in found.rest or not access.may(_whole(found), *wanted):
                raise access.denied(uri, *wanted)
    except ProtocolError as error:
        if error.code != ErrorCode.NOT_FOUND:
            raise


def place(access: Access, uri: URI) -> URI:
    """Where it really is, or would be, wherever that is."""
    with access.telling(uri, "read"), spot(to_path(uri, access.method), partial=True) as found:
        if b".." in found.rest:
            raise access.failed(uri, errno.ENOENT)
        return to_uri(_whole(found))


def _whole(found: Spot) -> bytes:
    """What is not there yet leads nowhere else, unless it goes up again."""
    return b"/".join([found.path.rstrip(b"/"), *found.rest]) or b"/"


def etag(info: os.stat_result) -> str:
    """The version of a file: it changes with its content, and when another takes its place."""
    numbers = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
    return "-".join(f"{number:x}" for number in numbers)


def _iso(ns: int) -> str:
    try:
        moment = datetime.fromtimestamp(ns // 1_000_000_000, UTC)
    except (ValueError, OverflowError):  # a file may say that it is of any time at all
        moment = datetime.fromtimestamp(0, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ns // 1_000_000 % 1000:03d}Z"


def content_type(path: bytes) -> str | None:
    """What its name says that it is."""
    import mimetypes  # noqa: PLC0415 - seldom wanted at the start

    guessed, encoding = mimetypes.guess_type(os.fsdecode(path.rpartition(b"/")[2]), strict=False)
    return guessed if encoding is None else None
