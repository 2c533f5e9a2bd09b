"""``ahpd agents``: which agents there are, and whether they can be used."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ahpd.cli import exits
from ahpd.cli.group import Unusable
from ahpd.cli.shown import line, padded, width

if TYPE_CHECKING:
    from pathlib import Path

    from ahpd.daemon.agents import Answer, Listed

_HEAD = ("NAME", "AGENT", "VERSION", "ANSWERS", "SIGN-IN", "FROM")
_SOURCES = {"configured": "configured", "found": "found here"}
_SIGN_IN = {True: "needed", False: "not needed", None: "not known"}
#: Seconds that one agent has; some take ten to start.
WITHIN = 30.0

_config = click.option("--config", metavar="FILE", help="The configuration file.")


@click.group(
    "agents",
    invoke_without_command=True,
    short_help="List the agents, and say whether they answer.",
)
@_config
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option(
    "--within",
    type=click.FloatRange(min=0, min_open=True),
    default=WITHIN,
    show_default=True,
    metavar="S",
    help="Seconds that each of them has to answer.",
)
@click.option(
    "--handshake-only",
    is_flag=True,
    help="Begin no conversation; whether a sign-in is needed is not known then.",
)
@click.option("--no-start", is_flag=True, help="Start none of them; say what is installed.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    config: str | None,
    as_json: bool,
    within: float,
    handshake_only: bool,
    no_start: bool,
) -> int:
    """List the agents: configured ones, those found on this machine, and the known others.

    Those that are installed are started, asked who they are, and ended again. An empty conversation
    is begun with each in a temporary folder, since many say only then that they want a sign-in.
    """
    if ctx.invoked_subcommand is not None:
        return exits.OK
    from ahpd.daemon.agents import ask_agents, listed_agents  # noqa: PLC0415 - not for --help

    agents = list(listed_agents(_loaded(config)))
    answers: dict[str, Answer] = {}
    asked = [each for each in agents if each.program is not None and not no_start]
    if asked:
        from ahpd.cli.running import Running, run  # noqa: PLC0415

        progress = _progress(len(asked))

        async def main(_: Running) -> int:
            def heard(agent: Listed, answer: Answer) -> None:
                answers[agent.name] = answer
                progress(len(answers))

            await ask_agents(asked, heard, within=within, handshake_only=handshake_only)
            return exits.OK

        code = run(main)
        progress(0)
        if code != exits.OK:
            return code
    if as_json:
        click.echo(
            json.dumps({"agents": [_facts(each, answers.get(each.name)) for each in agents]})
        )
    else:
        for text in _as_text(agents, answers):
            click.echo(text)
    return exits.OK


@command.command(
    "add",
    context_settings={"ignore_unknown_options": True},
    short_help="Write an agent into the configuration file.",
)
@click.argument("name")
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
@_config
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="A variable of its environment.")
@click.option("--replace", is_flag=True, help="Replace an agent of that name.")
def add(
    *, name: str, program: tuple[str, ...], config: str | None, env: tuple[str, ...], replace: bool
) -> int:
    """Write an agent into the configuration file: ahpd agents add NAME -- COMMAND...

    The COMMAND of a known agent need not be said. What else is in the file stays as it is.
    """
    from ahpd.cli.failing import say  # noqa: PLC0415
    from ahpd.daemon.agents import known_agent  # noqa: PLC0415 - not for --help
    from ahpd.daemon.config_edit import add_agent  # noqa: PLC0415
    from ahpd.daemon.errors import ConfigError  # noqa: PLC0415
    from ahpd.daemon.launching import place_program  # noqa: PLC0415

    known = known_agent(name)
    wanted = program or (known.command if known is not None else ())
    if not wanted:
        raise click.UsageError(f"{name} is no known agent: say its command after --")
    wanted = place_program(wanted)
    file = _file(config)
    try:
        add_agent(file, name, wanted, _variables(env), replace=replace, warn=say)
    except ConfigError as error:
        raise Unusable(str(error)) from None
    click.echo(f"{name} is in {file}. A daemon that runs has it after: ahpd restart")
    _warn_of_missing(wanted[0], None if known is None else known.install)
    return exits.OK


def _variables(given: Sequence[str]) -> Mapping[str, str]:
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise click.UsageError("--env: expected NAME=VALUE")
        found[name] = value
    return found


def _warn_of_missing(program: str, install: str | None) -> None:
    import shutil  # noqa: PLC0415

    if shutil.which(program) is None:
        how = "" if install is None else f"; it comes by: {install}"
        click.echo(f"{program} is not installed{how}", err=True)


def _file(config: str | None) -> Path:
    from pathlib import Path  # noqa: PLC0415

    from ahpd.daemon.launching import default_file  # noqa: PLC0415

    return default_file() if config is None else Path(config).expanduser()


def _loaded(config: str | None) -> Any:
    from ahpd.cli.failing import say  # noqa: PLC0415
    from ahpd.daemon.errors import ConfigError  # noqa: PLC0415
    from ahpd.daemon.launching import load  # noqa: PLC0415

    try:
        return load(config, say)
    except ConfigError as error:
        raise Unusable(str(error)) from None


def _progress(count: int) -> Callable[[int], None]:
    """Says on a terminal how many have answered; 0 takes that away again."""

    def show(answered: int) -> None:
        text = f"{answered} of {count} agents have answered …" if answered else ""
        click.echo(f"\r\x1b[2K{text}", err=True, nl=False)

    def say_nothing(_: int) -> None:
        pass

    if not sys.stderr.isatty():
        return say_nothing
    click.echo(f"asking {count} agents …", err=True, nl=False)
    return show


# ---- what is printed -----------------------------------------------------------------------------


def _facts(agent: Listed, answer: Answer | None) -> dict[str, Any]:
    """An agent with all that is known of it."""
    return {
        "name": agent.name,
        "title": agent.title,
        "source": agent.source,
        "command": list(agent.command),
        "installed": agent.is_installed,
        "program": agent.program,
        "package": agent.package,
        "install": agent.install,
        "notes": agent.notes,
        "version": (answer.version if answer is not None else None) or agent.version(),
        "answers": None if answer is None else answer.problem is None,
        "problem": None if answer is None else answer.problem,
        "trouble": None if answer is None else answer.trouble,
        "needsSignIn": None if answer is None else answer.needs_sign_in,
        "signIn": [] if answer is None else list(answer.sign_in),
    }


def _as_text(agents: Sequence[Listed], answers: Mapping[str, Answer]) -> Iterator[str]:
    here = [each for each in agents if each.source != "known"]
    if here:
        yield from _table(here, answers)
    else:
        yield "No agent is configured, and none of the known ones is installed."
    others = [each for each in agents if each.source == "known"]
    if others:
        yield ""
        yield click.style("Known, and not installed:", bold=True)
    names = max((width(each.name) for each in others), default=0)
    for each in others:
        how = each.install or each.notes or ""
        yield f"  {padded(each.name, names)}  {how}"


def _table(agents: Sequence[Listed], answers: Mapping[str, Answer]) -> Iterator[str]:
    rows = [_row(each, answers.get(each.name)) for each in agents]
    widths = [max(map(width, column)) for column in zip(_HEAD, *rows, strict=True)]
    yield click.style(_line(_HEAD, widths), bold=True)
    for agent, row in zip(agents, rows, strict=True):
        yield _line(row, widths)
        for text in _details(agent, answers.get(agent.name)):
            yield click.style(f"  {text}", dim=True)


def _row(agent: Listed, answer: Answer | None) -> tuple[str, ...]:
    version = (answer.version if answer is not None else None) or agent.version()
    title = agent.title or (answer.title if answer is not None else None)
    if not agent.command:
        title, answers = title or "a script", "-"
    elif agent.program is None:
        answers = "not installed"
    elif answer is None:
        answers = "not asked"
    else:
        answers = "no" if answer.problem is not None else "yes"
    asked = answer is not None and answer.problem is None
    signs_in = _SIGN_IN[answer.needs_sign_in] if asked and answer is not None else "-"
    cells = (agent.name, title or "-", version or "-", answers, signs_in, _SOURCES[agent.source])
    return tuple(line(each) for each in cells)


def _details(agent: Listed, answer: Answer | None) -> Iterator[str]:
    if agent.command and agent.program is None:
        yield f"there is no program {line(agent.command[0])}" + (
            f"; it comes by: {agent.install}" if agent.install is not None else ""
        )
    if answer is not None and answer.problem is not None:
        yield from (line(each) for each in answer.problem.splitlines()[:4] if each.strip())
    if answer is not None and answer.trouble is not None:
        yield f"it begins no conversation: {line(answer.trouble)}"
    if answer is not None and answer.needs_sign_in:
        yield f"signs in by: {line(', '.join(answer.sign_in)) or 'it does not say how'}"
    if agent.notes is not None:
        yield agent.notes


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(padded(*each) for each in zip(cells, widths, strict=True)).rstrip()
