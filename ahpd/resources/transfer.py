"""`resourceCopy` and `resourceMove` on files (R-13.21). Blocks.

What is copied is made beside its destination, under a name of its own, and takes its place in one
step: nobody sees half of it, and what was there is there until then.
"""

from __future__ import annotations

import errno
import functools
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeAlias

from ahpd.protocol.errors import ErrorCode
from ahpd.protocol.resources import ResourceCopyParams, ResourceMoveParams
from ahpd.protocol.uris import URI
from ahpd.resources.access import Access
from ahpd.resources.jail import Spot
from ahpd.resources.locks import token
from ahpd.resources.reading import CHUNK, check_ordinary, open_file
from ahpd.resources.writing import DEEPEST, remove_tree

#: An open folder, and a name in it.
_Name: TypeAlias = tuple[int, bytes]

_NOREPLACE = 1
#: How often others may be faster in putting something there before that is an error.
_TRIES = 100
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def copy(access: Access, params: ResourceCopyParams) -> None:
    """Copy a file, or a folder with all in it; links in it are copied as links."""
    source, destination = params.source, params.destination
    with (
        access.reach(source, "read") as found,
        access.reach(destination, "write") as place,
    ):
        if not _may_go(access, params, found, place):
            return
        with _beside(access, destination, place) as new, access.telling(source, "read"):
            if found.is_folder:
                _copy_folder(access, source, (found.parent, found.name), new)
            else:
                fd = open_file(access, source, found, os.O_RDONLY, "read")
                with _closing(fd):
                    _copy_open(access, fd, new)
            with access.telling(destination, "write"):
                _put(access, params, place, new)


def move(access: Access, params: ResourceMoveParams) -> None:
    """Move what is there; a link moves as a link, unless it leads outside."""
    source, destination = params.source, params.destination
    with access.reach(source, "write") as found, access.reach(destination, "write"):
        target = found.path  # what they lead to has to be inside too
    with (
        access.reach(source, "write", follow=False) as found,
        access.reach(destination, "write", follow=False) as place,
    ):
        if not _may_go(access, params, found, place):
            return
        access.check_replaceable(source, found)
        if found.is_link and target == place.path:
            raise access.problem(destination, "is what the link that is to take its place leads to")
        if not _renames(access, params, place, found):
            _carry(access, params, place, found)


def _renames(access: Access, params: ResourceMoveParams, place: Spot, found: Spot) -> bool:
    """Move by renaming; False when the place is on another file system."""
    here = (found.parent, found.name)
    if _are_links(found, place):
        os.unlink(found.name, dir_fd=found.parent)  # the kernel would leave both names there
        return True
    try:
        _put(access, params, place, here)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    return True


def _carry(access: Access, params: ResourceMoveParams, place: Spot, found: Spot) -> None:
    """Move by copying, and then deleting."""
    here = (found.parent, found.name)
    with _beside(access, params.destination, place) as new:
        if found.is_folder:
            _copy_folder(access, params.source, here, new)
        else:
            _copy_one(access, params.source, here, new)
        _put(access, params, place, new)
    _remove(access, params.source, here)


def _may_go(
    access: Access, params: ResourceCopyParams | ResourceMoveParams, found: Spot, place: Spot
) -> bool:
    """Refuse what cannot be; False when there is nothing to do, since it is there already."""
    source, destination = params.source, params.destination
    if found.info is None:
        raise access.failed(source, errno.ENOENT)
    if params.fail_if_exists and place.info is not None:
        raise access.failed(destination, errno.EEXIST)
    if found.path == place.path or (_are_one(found, place) and _name(found) == _name(place)):
        return False
    if found.is_folder and place.path.startswith(found.path.rstrip(b"/") + b"/"):
        raise access.problem(destination, "lies in what is to go there")
    if place.is_folder and found.path.startswith(place.path.rstrip(b"/") + b"/"):
        raise access.problem(destination, "holds what is to take its place")
    if isinstance(params, ResourceCopyParams) and _are_one(found, place):
        return False
    if place.info is not None and found.is_folder != place.is_folder:
        kind = "a folder" if place.is_folder else "not a folder"
        raise access.problem(
            destination, f"exists, and is {kind}: delete it first", ErrorCode.ALREADY_EXISTS
        )
    access.check_replaceable(destination, place)
    access.go_on()
    return True


def _are_one(found: Spot, place: Spot) -> bool:
    """Whether two names are of the same file."""
    one, other = found.info, place.info
    if one is None or other is None:
        return False
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def _are_links(found: Spot, place: Spot) -> bool:
    """Whether a file has both names, and would go on to have one of them without the other."""
    if found.is_folder or found.info is None or found.info.st_nlink < 2:
        return False
    # Where upper and lower case are one, so may these be.
    return _are_one(found, place) and _name(found, lower=True) != _name(place, lower=True)


def _name(found: Spot, *, lower: bool = False) -> tuple[int, int, bytes]:
    """A name and the folder that it is in, whatever way led there: it may be mounted twice."""
    folder = os.fstat(found.parent)
    return folder.st_dev, folder.st_ino, found.name.lower() if lower else found.name


def _put(
    access: Access, params: ResourceCopyParams | ResourceMoveParams, place: Spot, new: _Name
) -> None:
    """Rename `new` to its place; what is there gives way, unless that is an error."""
    there = (place.parent, place.name)
    if params.fail_if_exists:
        _rename_new(new, there)
        return
    for _ in range(_TRIES):
        if _replaces(new, there):
            return
        # A folder cannot be renamed over: it is set aside, and deleted when its place is taken.
        aside = (place.parent, _hidden())
        try:
            _rename(there, aside)
        except FileNotFoundError:
            continue  # gone by itself
        try:
            is_done = _replaces(new, there)
        except OSError:
            _rename(aside, there)
            raise
        _remove(access, params.destination, aside)
        if is_done:
            return
    raise access.failed(params.destination, errno.EEXIST)


def _replaces(new: _Name, there: _Name) -> bool:
    """Rename; False when what is there stands in the way, as it may again a moment later."""
    try:
        _rename(new, there)
    except OSError as error:
        if error.errno not in (errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def _rename(old: _Name, new: _Name) -> None:
    os.rename(old[1], new[1], src_dir_fd=old[0], dst_dir_fd=new[0])


def _rename_new(old: _Name, new: _Name) -> None:
    """Rename, unless there is something of the new name."""
    renameat2 = _renameat2()
    if renameat2 is not None:
        if renameat2(*old, *new, _NOREPLACE) == 0:
            return
        code = _errno()
        if code not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(code, os.strerror(code))
    with suppress(FileNotFoundError):
        os.stat(new[1], dir_fd=new[0], follow_symlinks=False)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    _rename(old, new)


def _errno() -> int:
    import ctypes  # noqa: PLC0415 - as above

    return ctypes.get_errno()


@functools.cache
def _renameat2() -> Callable[[int, bytes, int, bytes, int], int] | None:
    import ctypes  # noqa: PLC0415 - seldom wanted at the start

    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        return None
    function.argtypes = (
        ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint,
    )  # fmt: skip
    return function  # type: ignore[no-any-return]


# ---- making copies ------------------------------------------------------------------------------


def _hidden() -> bytes:
    return b".ahpd-" + token().encode()


@contextmanager
def _beside(access: Access, uri: URI, place: Spot) -> Iterator[_Name]:
    """A name beside a place; what is left of that name at the end is deleted."""
    new = (place.parent, _hidden())
    try:
        yield new
    finally:
        _remove(access, uri, new)


def _remove(access: Access, uri: URI, what: _Name) -> None:
    """Delete what is there, if anything; also when nobody waits any more."""
    parent, name = what
    with suppress(FileNotFoundError):
        try:
            os.unlink(name, dir_fd=parent)
        except OSError as error:
            if error.errno not in (errno.EISDIR, errno.EPERM):
                raise
            remove_tree(Access(access.method, access.folders), uri, parent, name)


def _copy_folder(access: Access, uri: URI, old: _Name, new: _Name, depth: int = 1) -> None:
    """Copy a folder and all in it, following no link."""
    if depth > DEEPEST:
        raise access.problem(uri, f"has more than {DEEPEST} folders in each other")
    os.mkdir(new[1], 0o700, dir_fd=new[0])
    with (
        _closing(os.open(old[1], _FOLDER, dir_fd=old[0])) as source,
        _closing(os.open(new[1], _FOLDER, dir_fd=new[0])) as target,
    ):
        with os.scandir(source) as scanned:
            entries = [(os.fsencode(it.name), it.is_dir(follow_symlinks=False)) for it in scanned]
        for name, is_folder in entries:
            access.go_on()
            if is_folder:
                _copy_folder(access, uri, (source, name), (target, name), depth + 1)
            else:
                _copy_one(access, uri, (source, name), (target, name))
        os.fchmod(target, os.fstat(source).st_mode & 0o777)


def _copy_one(access: Access, uri: URI, old: _Name, new: _Name) -> None:
    """Copy a link as a link, and a file; anything else cannot be copied."""
    parent, name = old
    info = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if stat.S_ISLNK(info.st_mode):
        os.symlink(os.readlink(name, dir_fd=parent), new[1], dir_fd=new[0])
        return
    check_ordinary(access, uri, info)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    with _closing(os.open(name, flags, dir_fd=parent)) as fd:
        check_ordinary(access, uri, os.fstat(fd))
        _copy_open(access, fd, new)


def _copy_open(access: Access, source: int, new: _Name) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with access.alone(source), _closing(os.open(new[1], flags, 0o600, dir_fd=new[0])) as target:
        while portion := os.read(source, CHUNK):
            access.go_on()
            view = memoryview(portion)
            while view:
                view = view[os.write(target, view) :]
        os.fchmod(target, os.fstat(source).st_mode & 0o777)


@contextmanager
def _closing(fd: int) -> Iterator[int]:
    try:
        yield fd
    finally:
        os.close(fd)
