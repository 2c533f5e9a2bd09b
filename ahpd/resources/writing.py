"""`resourceWrite`, `resourceMkdir` and `resourceDelete` on files (R-13.16 to R-13.24). Blocks.

A file that is there is written in place, so that it keeps its links, its owner and its rights. Room
is made before anything is changed: a disk that is full leaves it as it was.
"""

from __future__ import annotations

import base64
import binascii
import errno
import os
import stat
from contextlib import suppress

from ahpd.protocol.errors import ErrorCode
from ahpd.protocol.resources import ResourceDeleteParams, ResourceMkdirParams, ResourceWriteParams
from ahpd.protocol.uris import URI
from ahpd.resources.access import Access
from ahpd.resources.jail import Spot
from ahpd.resources.reading import CHUNK, etag, open_file

#: How often another file may come to the name that is written to before that is an error.
_TRIES = 100
#: Folders within each other that are deleted in one go; each of them is held open meanwhile.
DEEPEST = 256


def write(access: Access, params: ResourceWriteParams) -> None:
    """Write as `mode` says. With others that write through this host it is one step."""
    uri, content = params.uri, _content(access, params)
    mode, position = params.mode or "truncate", _position(access, params)
    if mode not in ("truncate", "append", "insert"):
        raise access.problem(uri, f"cannot be written in the mode {mode!r}")
    for _ in range(_TRIES):
        with access.reach(uri, "write") as found:
            if found.info is None:
                if params.if_match is not None:
                    raise access.problem(uri, "is not there any more", ErrorCode.CONFLICT)
                if position:
                    raise _outside(access, uri, position, 0)
                if _create(found, content):
                    return
                continue  # it came meanwhile
            if params.create_only:
                raise access.failed(uri, errno.EEXIST)
            try:
                fd = open_file(access, uri, found, os.O_RDWR, "write")
            except FileNotFoundError:
                continue
            try:
                with access.alone(fd):
                    if not _is_still(found, fd):
                        continue  # another has taken its place
                    info = os.fstat(fd)
                    if params.if_match is not None and params.if_match != etag(info):
                        raise access.problem(
                            uri, "has changed since it was looked at", ErrorCode.CONFLICT
                        )
                    if position > info.st_size:
                        raise _outside(access, uri, position, info.st_size)
                    access.go_on()  # from here on it is done
                    _splice(fd, info.st_size, mode, position, content)
                    return
            finally:
                os.close(fd)
    raise access.failed(uri, errno.ELOOP)


def _content(access: Access, params: ResourceWriteParams) -> bytes:
    encoding: str = params.encoding
    if encoding == "utf-8":
        return params.data.encode()
    if encoding != "base64":
        raise access.problem(params.uri, f"cannot be written from the encoding {encoding!r}")
    try:
        return base64.b64decode(params.data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise access.problem(params.uri, f"is to get data that is no base64: {error}") from None


def _position(access: Access, params: ResourceWriteParams) -> int:
    position = params.position or 0
    if position < 0 or position != int(position):
        raise access.problem(params.uri, f"has no position {position:g}")
    return int(position)


def _outside(access: Access, uri: URI, position: int, size: int) -> Exception:
    return access.problem(uri, f"has {size} bytes, so there is no position {position} in it")


def _create(found: Spot, content: bytes) -> bool:
    """Make the file; False when there is one by now. When it cannot be written, there is none.

    It gets its name when all is in it, where the file system knows files without one: nobody sees
    half of it, and a host that is killed leaves none behind.
    """
    try:
        if _create_whole(found, content):
            return True
    except FileExistsError:
        return False
    try:
        fd = found.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        return False
    try:
        _write_all(fd, content, 0)
    except OSError:
        os.unlink(found.name, dir_fd=found.parent)
        raise
    finally:
        os.close(fd)
    return True


def _create_whole(found: Spot, content: bytes) -> bool:
    """Make the file in one step; False where that cannot be. Raises `FileExistsError`."""
    nameless = getattr(os, "O_TMPFILE", None)  # Linux has it
    if nameless is None:
        return False
    try:
        fd = os.open(b".", nameless | os.O_WRONLY | os.O_CLOEXEC, 0o666, dir_fd=found.parent)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT):
            raise
        return False
    try:
        _write_all(fd, content, 0)
        here = f"/proc/self/fd/{fd}".encode()
        os.link(here, found.name, dst_dir_fd=found.parent, follow_symlinks=True)
    except FileNotFoundError:  # there is no /proc
        return False
    finally:
        os.close(fd)
    return True


def _is_still(found: Spot, fd: int) -> bool:
    """Whether the name still stands for the file that was opened."""
    there, opened = found.look(), os.fstat(fd)
    return there is not None and (there.st_dev, there.st_ino) == (opened.st_dev, opened.st_ino)


def _splice(fd: int, size: int, mode: str, position: int, content: bytes) -> None:
    """Change the open file, which has `size` bytes."""
    if mode == "truncate":
        _reserve(fd, size, position + len(content))
        _write_all(fd, content, position)
        os.ftruncate(fd, position + len(content))
    elif mode == "append" and not position:
        _append(fd, size, content)
    elif content:
        place = size - position if mode == "append" else position
        _reserve(fd, size, size + len(content))
        _shift(fd, place, size, len(content))
        _write_all(fd, content, place)


def _append(fd: int, size: int, content: bytes) -> None:
    """In one write at the end, wherever that is by then: programs of others append too (R-13.17).

    What is written when it fails half way is taken back, unless others have written behind it.
    """
    import fcntl  # noqa: PLC0415 - seldom wanted at the start

    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_APPEND)
    done = 0
    try:
        while done < len(content):
            done += os.write(fd, content[done:])
    except OSError:
        if done and os.fstat(fd).st_size == size + done:
            os.ftruncate(fd, size)
        raise


def _reserve(fd: int, size: int, wanted: int) -> None:
    """Make room for a file of `wanted` bytes; when there is none it stays as it was."""
    reserve = getattr(os, "posix_fallocate", None)  # macOS has none
    if wanted <= size or reserve is None:
        return
    try:
        reserve(fd, size, wanted - size)
    except OSError as error:
        os.ftruncate(fd, size)
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS):
            raise


def _shift(fd: int, start: int, end: int, by: int) -> None:
    """Move the bytes from `start` to `end` up, the last first."""
    while end > start:
        begin = max(start, end - CHUNK)
        portion = os.pread(fd, end - begin, begin)
        _write_all(fd, portion, begin + by)
        end = begin


def _write_all(fd: int, content: bytes, place: int) -> None:
    view = memoryview(content)
    while view:
        written = os.pwrite(fd, view, place)
        place += written
        view = view[written:]


# ---- folders ------------------------------------------------------------------------------------


def mkdir(access: Access, params: ResourceMkdirParams) -> None:
    """Make a folder and those above it; one that is there is fine (R-13.23)."""
    uri = params.uri
    while True:
        with access.reach(uri, "write", partial=True) as found:
            if found.info is not None:
                if found.is_folder:
                    return
                raise access.failed(uri, errno.EEXIST)
            if b".." in found.rest:
                raise access.failed(uri, errno.ENOENT)
            access.go_on()
            try:
                os.mkdir(found.name, dir_fd=found.parent)
            except FileExistsError:
                continue  # it came meanwhile


def delete(access: Access, params: ResourceDeleteParams) -> None:
    """Delete what is there; of a link the link, not what it leads to (R-13.22)."""
    uri = params.uri
    with access.reach(uri, "write", follow=False) as found:
        if found.info is None:
            raise access.failed(uri, errno.ENOENT)
        access.check_replaceable(uri, found)
        access.go_on()
        if not found.is_folder:
            os.unlink(found.name, dir_fd=found.parent)
        elif params.recursive:
            remove_tree(access, uri, found.parent, found.name)
        else:
            os.rmdir(found.name, dir_fd=found.parent)


def remove_tree(access: Access, uri: URI, parent: int, name: bytes) -> None:
    """Delete a folder and all in it, following no link. Stops when nobody waits any more."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    #: The folders that are open, each with its name and the folders in it still to be deleted.
    way: list[tuple[bytes, int, list[bytes]]] = []
    try:
        fd = os.open(name, flags, dir_fd=parent)
        way.append((name, fd, _empty(access, fd)))
        while way:
            access.go_on()
            name, fd, inner = way[-1]
            if inner:
                if len(way) >= DEEPEST:
                    raise access.problem(uri, f"has more than {DEEPEST} folders in each other")
                below = inner.pop()
                try:
                    fd = os.open(below, flags, dir_fd=fd)
                except FileNotFoundError:
                    continue  # somebody else deletes it too
                way.append((below, fd, []))
                way[-1][2].extend(_empty(access, fd))
            else:
                way.pop()
                os.close(fd)
                with suppress(FileNotFoundError):
                    os.rmdir(name, dir_fd=way[-1][1] if way else parent)
    finally:
        for _, fd, _ in way:
            os.close(fd)


def _empty(access: Access, fd: int) -> list[bytes]:
    """Delete what is no folder in an open one; the names of those that are."""
    folders = []
    with os.scandir(fd) as scanned:
        names = [
            (os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in scanned
        ]
    for name, is_folder in names:
        access.go_on()
        if is_folder:
            folders.append(name)
            continue
        try:
            os.unlink(name, dir_fd=fd)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno != errno.EISDIR or not _is_folder(fd, name):
                raise
            folders.append(name)
    return folders


def _is_folder(fd: int, name: bytes) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
