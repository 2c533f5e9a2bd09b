"""Two kinds of output on one screen: an answer on standard output, the rest on standard error.

Whoever sends only the answer into a file gets it whole and nothing else. Where both meet, on a
terminal or after ``2>&1``, neither breaks into a line of the other. Everything is made safe for a
terminal here.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from ahpd.cli.shown import safe


class Output:
    """Prints as things come. `quiet`: only what `item` is told to print `always`."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._shared = _meet()
        #: Whether the last line of the answer, or of a thought, has not ended.
        self._saying = False
        self._thinking = False
        #: Whether somebody is asked to type.
        self._prompting = False
        #: The part to which the last piece of its kind belonged.
        self._said = self._thought = -1

    def say(self, text: str, part: int) -> None:
        """A piece of the answer."""
        if self._quiet or not text:
            return
        self._end_thought()
        if part != self._said:
            if self._saying and not text.startswith("\n"):
                click.echo()
            elif self._shared and not self._saying:
                text = text.lstrip("\n")  # it begins on a line of its own already
        self._said = part
        _put(safe(text), err=False)
        self._saying = not text.endswith("\n")

    def think(self, text: str, part: int) -> None:
        """A piece of what the agent thinks."""
        if self._quiet or not text:
            return
        self._end_saying()
        if self._thinking and part != self._thought:
            click.echo(err=True)
        self._thought = part
        _put(click.style(safe(text), dim=True), err=True)
        self._thinking = not text.endswith("\n")

    def item(self, text: str, *, always: bool = False, **style: Any) -> None:
        """A line of its own, on standard error."""
        if self._quiet and not always:
            return
        self._end_thought()
        self._end_saying()
        self._end_prompt()
        click.echo(click.style(safe(text), **style) if style else safe(text), err=True)

    def prompt(self, text: str) -> None:
        """The line on which somebody is to type; printed in any case."""
        self._end_prompt()
        click.echo(click.style(safe(text), bold=True), err=True, nl=False)
        self._prompting = True

    def typed(self) -> None:
        """Somebody typed a line, which ended the prompt's."""
        self._prompting = False

    def finish(self) -> None:
        """End what is open."""
        self._end_thought()
        self._end_prompt()
        if self._saying:
            click.echo()
            self._saying = False

    def _end_prompt(self) -> None:
        if self._prompting:
            click.echo(err=True)
            self._prompting = False

    def _end_thought(self) -> None:
        if self._thinking:
            click.echo(err=True)
            self._thinking = False

    def _end_saying(self) -> None:
        if self._saying and self._shared:
            click.echo()
            self._saying = False


def _meet() -> bool:
    """Whether both streams end up in one place."""
    if sys.stdout.isatty() and sys.stderr.isatty():
        return True
    try:
        out, err = os.fstat(sys.stdout.fileno()), os.fstat(sys.stderr.fileno())
    except (OSError, ValueError):  # no files, or closed
        return False
    return os.path.samestat(out, err)


def _put(text: str, *, err: bool) -> None:
    click.echo(text, err=err, nl=False)
    (sys.stderr if err else sys.stdout).flush()
