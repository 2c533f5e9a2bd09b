"""Sets of working directories, of sessions and chats: ordered, the first is the primary one.

An absent set and an empty one are different things (R-9.95), so removing the last directory
leaves an empty set.
"""

from __future__ import annotations

from ahpd.protocol.uris import URI


def with_directory(directories: tuple[URI, ...] | None, directory: URI) -> tuple[URI, ...]:
    """The set with a directory at the end, unless it is in it (R-8.49)."""
    directories = directories or ()
    return directories if directory in directories else (*directories, directory)


def without_directory(
    directories: tuple[URI, ...] | None, directory: URI
) -> tuple[URI, ...] | None:
    """The set without a directory (R-8.49)."""
    if directories is None or directory not in directories:
        return directories
    return tuple(each for each in directories if each != directory)


def with_replaced(
    directories: tuple[URI, ...] | None, directory: URI, replacement: URI
) -> tuple[URI, ...] | None:
    """The set with one directory for another, which stays once, at the earlier place (R-8.54)."""
    if directories is None or directory not in directories:
        return directories
    swapped = [replacement if each == directory else each for each in directories]
    first = swapped.index(replacement)
    return tuple(
        each for place, each in enumerate(swapped) if each != replacement or place == first
    )
