"""What a tool call would do to files, as lines for people, with a diff where it is known. Pure."""

from __future__ import annotations

import base64
import binascii
import difflib
from collections.abc import Iterator, Sequence
from itertools import islice
from urllib.parse import unquote, unquote_to_bytes

from ahpd.cli.shown import line, safe
from ahpd.protocol.common import FileEdit, FileEditSide

#: Lines of one file's diff that are shown.
_LINES = 40
#: Lines around a change that are shown.
_AROUND = 2
#: Lines of both sides together beyond which only counts are shown: comparing costs their product.
_COMPARED = 4000


def edit_lines(edit: FileEdit) -> Iterator[str]:
    """One file's edit: its name with what becomes of it, then its diff as far as it is known."""
    yield _headline(edit)
    before, after = _text(edit.before), _text(edit.after)
    if before is None or after is None or len(before) + len(after) > _COMPARED:
        return
    diff = islice(difflib.unified_diff(before, after, lineterm="", n=_AROUND), 2, None)
    for number, each in enumerate(diff):
        if number == _LINES:
            yield "  …"
            return
        yield f"  {safe(each)}"


def _headline(edit: FileEdit) -> str:
    side = edit.after or edit.before
    name = "a file" if side is None else line(_name(side))
    if edit.after is None:
        told = [name, "is deleted"]
    elif edit.before is None:
        told = [name, "is new"]
    elif edit.before.uri != edit.after.uri:
        told = [line(_name(edit.before)), "becomes", name]
    else:
        told = [name]
    if edit.diff is not None:
        told.append(f"(+{edit.diff.added or 0:g} -{edit.diff.removed or 0:g})")
    return " ".join(told)


def _name(side: FileEditSide) -> str:
    return unquote(side.uri.removeprefix("file://")) if side.uri.startswith("file:") else side.uri


def _text(side: FileEditSide | None) -> Sequence[str] | None:
    """The lines of a side that is not there, or holds its text itself; None for any other."""
    if side is None:
        return ()
    head, comma, body = side.content.uri.partition(",")
    if not head.startswith("data:") or not comma:
        return None
    data = unquote_to_bytes(body)
    if head.endswith(";base64"):
        try:
            data = base64.b64decode(data, validate=True)
        except binascii.Error:
            return None
    return data.decode(errors="replace").splitlines()
