"""``ahpd wire``: what to do with captures of frames."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from ahpd.cli import exits
from ahpd.cli.group import Unusable

if TYPE_CHECKING:
    from ahpd.protocol.strict import FrameFault


#: Bytes at the start of a file that tell whether it is text.
_LOOKED_AT = 8192


@click.group("wire")
def command() -> None:
    """Work with captures of frames."""


@command.command("check")
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(allow_dash=True)
)
@click.option("--whole", is_flag=True, help="Each connection is there from its first frame on.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def check(files: tuple[str, ...], *, whole: bool, as_json: bool) -> int:
    """Check captures of frames against the protocol, strictly.

    FILE holds a JSON object a line: {"dir": "c2h" or "h2c", "frame": {...}}, or a message with
    "_ahpLog" in it; - is the standard input, once. Undeclared keys are faults. Exits 1 on a fault,
    2 when a FILE cannot be read or is no text.

    Connections are told apart where the lines do so. With --whole each is there from its first
    frame on: an answer to nothing that is open, and an id used again while it is open, are faults
    too.
    """
    from ahpd.cli.wire_checking import Connections  # noqa: PLC0415 - the protocol's types are many

    if files.count("-") > 1:
        raise Unusable("-: the standard input can be read only once")
    frames = passed_over = 0
    found: list[tuple[str, FrameFault]] = []
    for name in files:
        checker = Connections(whole=whole)
        for number, line in enumerate(lines_of(name), 1):
            for fault in checker.check_line(line, number):
                found.append((name, fault))
                if not as_json:
                    click.echo(f"{name}:{fault}")
        frames += checker.frames
        passed_over += checker.passed_over
    if as_json:
        click.echo(json.dumps(_as_json(found, frames, passed_over)))
    else:
        click.echo(
            f"{frames} frames, {len(found)} faults, {passed_over} of methods outside the protocol"
        )
    return exits.FAULTS if found else exits.OK


@command.command("show", short_help="Print captures as a timeline.")
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(allow_dash=True)
)
@click.option("--conn", multiple=True, metavar="N", help="Of this connection only; repeatable.")
@click.option(
    "--only", multiple=True, metavar="WORD", help="Methods, actions and channels with it in them."
)
@click.option("--all", "show_all", is_flag=True, help="Fold no runs of the same.")
@click.option("--full", is_flag=True, help="Print each message whole below its line.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each line instead.")
def show(
    files: tuple[str, ...],
    *,
    conn: tuple[str, ...],
    only: tuple[str, ...],
    show_all: bool,
    full: bool,
    as_json: bool,
) -> int:
    """Print captures as a timeline: when, which connection, which way, what, and how long an answer
    took.

    FILE is as for check; several are read one after the other, so name the oldest first. Runs of
    the same kind, such as the deltas of an answer, are one line. Exits 2 when a FILE cannot be
    read.
    """
    from ahpd.cli.wire_shown import Timeline, Wanted  # noqa: PLC0415 - rich is slow to import

    if files.count("-") > 1:
        raise Unusable("-: the standard input can be read only once")
    fold = not (show_all or full)
    timeline = Timeline(Wanted(conn, only), fold=fold, full=full, as_json=as_json)
    for name in files:
        for number, line in enumerate(lines_of(name), 1):
            timeline.add(line, number)
    timeline.end()
    return exits.OK


def lines_of(name: str) -> Iterator[bytes]:
    """The lines of a capture. Raises `Unusable`."""
    try:
        with _opened(name) as file:
            # A whole megabyte of faults would say no more than this.
            start = file.read1(_LOOKED_AT)
            if b"\0" in start:
                raise Unusable(f"{name}: is no text, and so no capture")
            yield from io.BytesIO(start + file.readline())
            yield from file
    except OSError as error:
        raise Unusable(f"{name}: {error.strerror}") from None


def _opened(name: str) -> AbstractContextManager[io.BufferedReader]:
    if name != "-":
        return Path(name).open("rb")
    if sys.stdin is None:
        raise Unusable("-: there is no standard input")
    return nullcontext(cast("io.BufferedReader", sys.stdin.buffer))  # not ours to close


def _as_json(
    found: list[tuple[str, FrameFault]], frames: int, passed_over: int
) -> dict[str, object]:
    return {
        "ok": not found,
        "frames": frames,
        "passedOver": passed_over,
        "faults": [
            {
                "file": name,
                "line": fault.number,
                "method": fault.method,
                "path": fault.path,
                "message": fault.message,
            }
            for name, fault in found
        ],
    }
