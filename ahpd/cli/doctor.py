"""``ahpd doctor``: whether all is well with the installation and with the daemon that runs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from ahpd.cli import exits
from ahpd.cli.serve_options import Remembering, flags_from, serve_options
from ahpd.cli.shown import line
from ahpd.cli.words import count

if TYPE_CHECKING:
    from ahpd.daemon.doctor import Finding, Subject
    from ahpd.daemon.launch import Launch
    from ahpd.daemon.state import StateFolder

#: Seconds that an agent has to answer.
WITHIN = 30.0

_MARKS = {"ok": ("✓", "ok", "green"), "warn": ("!", "!", "yellow"), "fail": ("✗", "X", "red")}


@click.command(
    "doctor", cls=Remembering, short_help="Look whether all is well, and say what to do if not."
)
@serve_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option("--no-agents", is_flag=True, help="Start no agent to see whether it answers.")
@click.option(
    "--within",
    type=click.FloatRange(min=0.1),
    default=WITHIN,
    metavar="SECONDS",
    help="How long each agent may take to answer.  [30]",
)
@click.pass_context
def command(
    ctx: click.Context, /, *, as_json: bool, no_agents: bool, within: float, **values: Any
) -> int:
    """Look whether all is well with the installation, the daemon and the agents, and say what to
    do where it is not.

    It takes the options of serve, and looks at a daemon that would be started with them; without
    any, at the one that runs. Nothing is changed. Exits 1 when something does not work; what may
    not go on to work is a warning, and no fault.
    """
    from ahpd.cli.doctor_daemon import daemon_findings  # noqa: PLC0415
    from ahpd.cli.running import Running, run  # noqa: PLC0415
    from ahpd.daemon.doctor import examine  # noqa: PLC0415
    from ahpd.daemon.state import folder_at  # noqa: PLC0415

    folder = folder_at(values["state_dir"])
    given = any(value for name, value in values.items() if name not in ("state_dir", "quiet"))
    subject = _subject(folder, None if given else _past(folder), values)
    found: list[Finding] = []
    progress = _progress()

    async def main(_: Running) -> int:
        agents = None if no_agents else within
        found.extend(await examine(subject, agents_within=agents, moved=progress))
        return exits.OK

    code = run(main)
    progress(0, 0)
    if code != exits.OK:
        return code
    found += daemon_findings(subject)
    bad = any(each.level.value == "fail" for each in found)
    if as_json:
        click.echo(json.dumps({"ok": not bad, "findings": [_fact(each) for each in found]}))
    else:
        for text in _as_text(found):
            click.echo(text)
    return exits.FAULTS if bad else exits.OK


# ---- what is looked at ---------------------------------------------------------------------------


def _past(folder: StateFolder) -> dict[str, Any] | None:
    """The options that the running daemon was started with, from the folder it was started in."""
    from ahpd.cli.serve import command as serve  # noqa: PLC0415
    from ahpd.daemon import detached  # noqa: PLC0415

    if folder.holder() is None:
        return None
    past = detached.past(folder)
    with suppress(OSError):  # file names are meant from there
        os.chdir(past.folder)
    try:
        values = serve.make_context("serve", list(past.arguments)).params
    except click.ClickException:  # of another version
        return None
    return {name: value for name, value in values.items() if name != "stdio"}


def _subject(folder: StateFolder, past: dict[str, Any] | None, values: dict[str, Any]) -> Subject:
    from ahpd.daemon.config import Config  # noqa: PLC0415
    from ahpd.daemon.doctor import Subject  # noqa: PLC0415
    from ahpd.daemon.errors import ConfigError  # noqa: PLC0415
    from ahpd.daemon.launch import Launch  # noqa: PLC0415
    from ahpd.daemon.launching import make_launch  # noqa: PLC0415

    warnings: list[str] = []
    wrong: str | None = None
    try:
        launch = make_launch(flags_from(values if past is None else past, ()), warnings.append)
    except ConfigError as error:
        launch, wrong = Launch(config=Config()), str(error)
    token = launch.token.file
    return Subject(
        folder=folder,
        config=launch.config,
        paths=_served(launch),
        wrong=wrong,
        warnings=warnings,
        endpoint=folder.read_endpoint(),
        pid=folder.holder(),
        token_file=None if token is None else str(token),
        needs_token=not launch.token.none and launch.token.token is None,
    )


def _served(launch: Launch) -> Sequence[str]:
    return [str(each) for each in launch.paths or launch.config.path] or [os.getcwd()]


# ---- what is said --------------------------------------------------------------------------------


def _progress() -> Callable[[int, int], None]:
    """Says on a terminal how much is done; 0 of 0 takes that away again."""

    def show(done: int, of: int) -> None:
        text = f"{done} of {of} looked at …" if of else ""
        click.echo(f"\r\x1b[2K{text}", err=True, nl=False)

    return show if sys.stderr.isatty() else lambda _done, _of: None


def _fact(finding: Finding) -> dict[str, str]:
    return {
        "group": finding.group,
        "check": finding.check,
        "level": finding.level.value,
        "text": finding.text,
        "advice": finding.advice,
    }


def _as_text(found: Sequence[Finding]) -> Iterator[str]:
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    column = 0 if encoding == "utf8" else 1
    wide = max(len(each.check) for each in found)
    group = ""
    for each in found:
        if each.group != group:
            yield from (
                ("", click.style(each.group, bold=True))
                if group
                else (click.style(each.group, bold=True),)
            )
            group = each.group
        mark, plain, colour = _MARKS[each.level.value]
        sign = click.style(f"{(mark, plain)[column]:<2}", fg=colour)
        yield f"  {sign} {line(each.check):<{wide}}  {line(each.text)}"
        if each.advice:
            yield click.style(
                f"     {'':<{wide}}  {'→' if not column else '->'} {line(each.advice)}", dim=True
            )
    bad = sum(each.level.value == "fail" for each in found)
    doubtful = sum(each.level.value == "warn" for each in found)
    yield ""
    if not bad and not doubtful:
        yield "All is well."
        return
    yield f"{count(bad, 'fault')}, {count(doubtful, 'warning')}."
