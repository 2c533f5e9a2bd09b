"""What a tool call would do to files, before it is allowed to."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from ahpd.cli.edits import edit_lines
from ahpd.protocol.common import ContentRef, FileEdit, FileEditDiffStats, FileEditSide

FILE = "file:///w/a%20b.txt"


def side(text: str | None, uri: str = FILE) -> FileEditSide:
    content = uri if text is None else "data:text/plain;charset=utf-8," + quote(text)
    return FileEditSide(uri=uri, content=ContentRef(uri=content))


STATS = FileEditDiffStats(added=1, removed=0)

CASES = [
    (
        FileEdit(after=side("one\n"), diff=STATS),
        ["/w/a b.txt is new (+1 -0)", "  @@ -0,0 +1 @@", "  +one"],
    ),
    (FileEdit(before=side("one\n")), ["/w/a b.txt is deleted", "  @@ -1 +0,0 @@", "  -one"]),
    (
        FileEdit(before=side("a\nb\n"), after=side("a\nc\n")),
        ["/w/a b.txt", "  @@ -1,2 +1,2 @@", "   a", "  -b", "  +c"],
    ),
    (FileEdit(before=side("a"), after=side("a", "file:///w/c")), ["/w/a b.txt becomes /w/c"]),
    (FileEdit(before=side(None), after=side("x"), diff=STATS), ["/w/a b.txt (+1 -0)"]),
    (
        FileEdit(after=side("\x1b[2J\u202e")),
        ["/w/a b.txt is new", "  @@ -0,0 +1 @@", r"  +\x1b[2J\u202e"],
    ),
    (
        FileEdit(after=FileEditSide(uri="x:/\x1b", content=ContentRef(uri="data:;base64,eA=="))),
        [r"x:/\x1b is new", "  @@ -0,0 +1 @@", "  +x"],
    ),
    (
        FileEdit(after=FileEditSide(uri=FILE, content=ContentRef(uri="data:;base64,!"))),
        ["/w/a b.txt is new"],
    ),
]


@pytest.mark.parametrize(("edit", "shown"), CASES)
def test_an_edit(edit: FileEdit, shown: list[str]) -> None:
    assert list(edit_lines(edit)) == shown


def test_a_long_one_is_cut() -> None:
    shown = list(edit_lines(FileEdit(after=side("x\n" * 100))))
    assert len(shown) == 1 + 40 + 1
    assert shown[-1] == "  …"
    assert len(list(edit_lines(FileEdit(after=side("x\n" * 5000))))) == 1
