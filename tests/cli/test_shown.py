"""Text from elsewhere on a terminal: what could steer it is seen instead."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpd.cli.shown import cut, line, padded, safe, width


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("a\rb", r"a\rb"),
        ("a\r\nb", "a\nb"),
        ("bell\x07 back\x08 del\x7f", r"bell\x07 back\x08 del\x7f"),
        ("\x9b31m", r"\x9b31m"),
        ("\u202eevil\u2066", r"\u202eevil\u2066"),
        ("a\u200bb\ufeff", r"a\u200bb\ufeff"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_what_could_steer_a_terminal_is_escaped(text: str, shown: str) -> None:
    assert safe(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "two\nlines\tand a tab",
        "[bold]not markup[/bold] [/etc/hosts]",
        "https://a.example/b?c=[d]&e=%20#f and C:\\new\\table",
        "größer, 日本語, שלום, 👩‍👩‍👧",
    ],
)
def test_everything_else_stays_as_it_is(text: str) -> None:
    assert safe(text) == text


@given(st.text())
def test_no_control_character_is_left_and_a_second_time_changes_nothing(text: str) -> None:
    shown = safe(text)
    assert safe(shown) == shown
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t"]


@given(st.text())
def test_a_line_is_one_line(text: str) -> None:
    assert "\n" not in line(text)
    assert "\t" not in line(text)


@given(st.text(), st.integers(0, 30))
def test_a_cut_text_fits_and_a_padded_one_fills(text: str, cells: int) -> None:
    text = line(text)
    assert width(cut(text, cells)) <= cells
    assert width(padded(text, cells)) == cells


def test_wide_characters_count_twice() -> None:
    assert width("日本") == 4
    assert cut("日本語", 5) == "日本…"
    assert cut("日本語", 4) == "日…"
    assert cut("short", 5) == "short"
