"""Text from elsewhere, made fit for a terminal: nothing in it can steer one.

What agents, tools and other clients write may hold escape sequences, and characters that turn
text around or hide it. Here each becomes visible (ESC is shown as ``\\x1b``) and everything else
stays as it is. Pure; the widths are those of a terminal's cells.
"""

from __future__ import annotations

import re

#: C0 without newline and tab, DEL, C1; line and paragraph separator; what changes the direction
#: of text or is not seen at all; halves of characters, which no terminal can show.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_LINE_END = re.compile(r"\r\n")
_BLANKS = re.compile(r"\s+")


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code == 0x0D:
        return r"\r"
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def safe(text: str) -> str:
    """`text` with every character that could steer a terminal escaped.

    Newlines and tabs stay, and the line ends of other systems become newlines.
    """
    return _UNSAFE.sub(_escaped, _LINE_END.sub("\n", text))


def line(text: str) -> str:
    """`text` as one line: `safe`, with every run of blanks and newlines as one space."""
    return _BLANKS.sub(" ", safe(text)).strip()


def width(text: str) -> int:
    """The cells that `text` takes on a terminal."""
    from rich.cells import cell_len  # noqa: PLC0415 - rich costs what a start need not pay

    return cell_len(text)


def cut(text: str, cells: int) -> str:
    """`text` in at most `cells` cells, with an ellipsis where something is left out."""
    from rich.cells import set_cell_size  # noqa: PLC0415

    if width(text) <= cells:
        return text
    return set_cell_size(text, cells - 1).rstrip() + "…" if cells > 0 else ""


def padded(text: str, cells: int) -> str:
    """`text` cut or filled up with spaces to exactly `cells` cells."""
    text = cut(text, cells)
    return text + " " * (cells - width(text))
