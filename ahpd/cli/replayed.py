"""What a terminal showed earlier, for showing it again. Pure.

Programs ask terminals things: where the cursor is, what they can do, which colours they have. The
answer comes as if it was typed. Whoever asked had it long ago, so when old output is shown again
nothing may ask any more: the shell that is there now would read the answers as a command.
"""

from __future__ import annotations

import re

_QUESTION = re.compile(
    "\x05"
    "|\x1bZ"
    "|(?:\x1b\\[|\x9b)(?:"
    r"[>=]?[0-9;]*c"  # what it is
    r"|\??[0-9;]*n"  # how it is, where the cursor is
    r"|\??[0-9;]*\$p"  # whether a mode is set
    r"|>[0-9;]*q"  # its version
    r"|\?u|\?[0-9;]*m"  # which keys say more
    r"|(?:1[1-9]|2[01])(?:;[0-9]*)*t"  # its size, its title
    r"|[01]?x|[0-9]*\$w|[0-9;]*\*y"
    ")"
    "|\x1bP[$+]q[^\x07\x18\x1a\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)"  # settings and capabilities
    "|\x1b\\](?:4|5|1[0-9]|21|5[02]);(?:[^\x07\x18\x1a\x1b\x9c]*;)?\\?(?:\x07|\x1b\\\\|\x9c)"
)


def without_questions(text: str) -> str:
    """The same output with nothing in it that a terminal answers."""
    return _QUESTION.sub("", text)
