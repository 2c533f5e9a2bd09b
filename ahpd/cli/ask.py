"""``ahpd ask``: put something to an agent and see the answer come."""

from __future__ import annotations

import click

from ahpd.cli.reach import Target, reaching
from ahpd.cli.running import run


@click.command("ask")
@click.argument("prompt")
@reaching
@click.option("--session", metavar="URI", help="Go on in this session instead of a new one.")
@click.option("--agent", metavar="NAME", help="The agent of a new session.")
@click.option("--yes", is_flag=True, help="Approve whatever the agent asks for.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
def command(
    prompt: str,
    target: Target,
    *,
    session: str | None,
    agent: str | None,
    yes: bool,
    as_json: bool,
) -> int:
    """Ask an agent and print its answer as it comes.

    The answer goes to standard output, everything else to standard error. When the agent asks for
    permission you are asked on the terminal; without one the answer is no, unless --yes is given.
    The first Ctrl-C cancels the turn, a second one leaves.

    Exits 0 when the turn is done, 4 when the host refused it, 5 when the agent failed, 6 when the
    turn was cancelled.
    """
    if not prompt.strip():
        raise click.UsageError("PROMPT is empty: there is nothing to ask")
    if session is not None and agent is not None:
        raise click.UsageError("--agent is for a new session; --session names one that has its own")
    from ahpd.cli.one_turn import OneTurn  # noqa: PLC0415 - the protocol's types are many

    turn = OneTurn(prompt, session=session, agent=agent, yes=yes, as_json=as_json)
    return run(lambda running: turn.main(target, running))
