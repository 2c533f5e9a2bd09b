"""Old output, shown again, asks nothing."""

from __future__ import annotations

import pytest

from ahpd.cli.replayed import without_questions


@pytest.mark.parametrize(
    "question",
    [
        "\x05", "\x1bZ", "\x1b[c", "\x1b[0c", "\x1b[>c", "\x1b[>0c", "\x1b[=c", "\x1b[5n",
        "\x1b[6n", "\x1b[?6n", "\x1b[?996n", "\x1b[?2026$p", "\x1b[4$p", "\x1b[>q", "\x1b[>0q",
        "\x1b[?u", "\x1b[?4m", "\x1b[18t", "\x1b[14;2t", "\x1b[21t", "\x1b[x", "\x1b[1$w", "\x9b6n",
        "\x1bP$qm\x1b\\", "\x1bP+q544e;436f\x1b\\", "\x1b]10;?\x07", "\x1b]11;?\x1b\\",
        "\x1b]4;1;?\x07", "\x1b]52;c;?\x07",
    ],
)  # fmt: skip
def test_questions_go(question: str) -> None:
    assert without_questions(f"a{question}b") == "ab"


@pytest.mark.parametrize(
    "other",
    [
        "c", "6n", "\x1b[m", "\x1b[1;31m", "\x1b[6A", "\x1b[?25h", "\x1b[?1049l", "\x1b[u",
        "\x1b[2 q", "\x1b[>4;1m", "\x1b[>1u", "\x1b[22;0t", "\x1b[8;24;80t", "\x1b[!p",
        "\x1b]0;why?\x07", "\x1b]10;#fff\x07", "\x1b]7;file://h/a?\x07", "\x1b]8;;http://a/?q\x1b\\",
        "\x1bPq#0\x1b\\", "\x1b[?1$", "\x1b]11;", "\x1bP$q",
    ],
)  # fmt: skip
def test_all_else_stays(other: str) -> None:
    assert without_questions(f"a{other}") == f"a{other}"
