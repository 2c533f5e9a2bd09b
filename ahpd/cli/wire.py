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
@click.option("--whole", is_flag=True, help="Each FILE is one connection from its first frame on.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def check(files: tuple[str, ...], *, whole: bool, as_json: bool) -> int:
    """Check captures of frames against the protocol, strictly.

    FILE holds a JSON object a line: {"dir": "c2h" or "h2c", "frame": {...}}; - is the standard
    input, once. Undeclared keys are faults. Exits 1 on a fault, 2 when a FILE cannot be read or is
    no text.

    With --whole, an answer to nothing that is open, and an id used again while it is open, are
    faults too; without it, frames of several connections may be mixed.
    """
    from ahpd.protocol.strict import FrameChecker  # noqa: PLC0415 - the protocol's types are many

    if files.count("-") > 1:
        raise Unusable("-: the standard input can be read only once")
    frames = passed_over = 0
    found: list[tuple[str, FrameFault]] = []
    for name in files:
        checker = FrameChecker(whole=whole)
        for number, line in enumerate(_lines(name), 1):
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


def _lines(name: str) -> Iterator[bytes]:
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
