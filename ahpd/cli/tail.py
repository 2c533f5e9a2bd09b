"""``ahpd tail``: follow what happens in a session."""

from __future__ import annotations

import click

from ahpd.cli.reach import Target, reaching
from ahpd.cli.running import run


@click.command("tail")
@click.argument("session")
@reaching
@click.option("--json", "as_json", is_flag=True, help="Print the envelopes, one a line.")
def command(session: str, target: Target, *, as_json: bool) -> int:
    """Follow the session with the URI SESSION and all its chats.

    Prints a line for each thing that happens, until the session ends or Ctrl-C. When the connection
    is lost it comes back and goes on where it was.
    """
    from ahpd.cli.whole_session import WholeSession  # noqa: PLC0415 - the protocol's types are many

    followed = WholeSession(session, as_json=as_json)
    return run(lambda running: followed.main(target, running))
