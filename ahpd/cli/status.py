"""``ahpd status``: whether the daemon runs, and how to reach it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import click

from ahpd.cli import exits

#: Seconds that the daemon may take for an answer before it counts as one that gives none.
ANSWER_WITHIN = 5.0
#: Crashes that are shown; all that are remembered are in the JSON object.
CRASHES = 3


@click.command("status", short_help="Say whether the daemon runs, and how busy it is.")
@click.option("--state-dir", metavar="DIR", help="The state folder of the daemon.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(*, state_dir: str | None, as_json: bool) -> int:
    """Say whether the daemon runs, its URL with the token, and how busy it is.

    Exits 3 when none runs, or when it does not answer.
    """
    from ahpd.daemon.state import folder_at  # noqa: PLC0415

    folder = folder_at(state_dir)
    endpoint = folder.read_endpoint()
    if endpoint is None:
        pid = folder.holder()
        click.echo(json.dumps({"running": False}) if as_json else _absent(pid))
        return exits.NO_DAEMON
    facts: dict[str, Any] = {
        "running": True,
        "answers": False,
        "pid": endpoint.pid,
        "version": endpoint.version,
        "started": endpoint.started,
        "uptimeSeconds": _uptime(endpoint.started),
        "url": endpoint.url,
        "unix": endpoint.unix,
    }
    problem = _ask(endpoint.unix, facts)
    click.echo(json.dumps(facts) if as_json else _as_text(facts, problem))
    return exits.OK if problem is None else exits.NO_DAEMON


def _ask(unix: str, facts: dict[str, Any]) -> str | None:
    """Add what only the daemon knows; why it does not say, if so."""
    from ahpd.cli.asking import NoAnswer, Refusal, ask  # noqa: PLC0415
    from ahpd.daemon.control import STATUS  # noqa: PLC0415

    try:
        [own] = ask(unix, (STATUS, {}), within=ANSWER_WITHIN)
    except (NoAnswer, Refusal) as error:
        return error.message
    facts["answers"] = True
    facts["sessions"] = own["sessions"]
    facts["connections"] = own["connections"] - 1  # one of them was ours
    facts["parked"] = own["parked"]
    facts["journal"] = own["journal"]
    facts["crashes"] = own["crashes"]
    return None


def _absent(pid: int | None) -> str:
    return "not running" if pid is None else f"pid {pid or '?'} takes no clients just now"


def _as_text(facts: dict[str, Any], problem: str | None) -> str:
    rows = [
        ("running", f"pid {facts['pid']}, {_spoken(facts['uptimeSeconds'])}"),
        ("version", facts["version"]),
        ("url", facts["url"]),
        ("socket", facts["unix"]),
    ]
    if problem is not None:
        rows.append(("problem", problem))
    else:
        rows += [("sessions", facts["sessions"]), ("connections", facts["connections"])]
        failing = facts["journal"]["failing"]
        if failing is not None:
            waiting = facts["journal"]["waitingBytes"]
            rows.append(("journal", f"nothing can be kept, so nothing is said: {failing}"))
            rows.append(("", f"{waiting} bytes wait; it goes on by itself when that is mended"))
        rows += _crashed(facts["crashes"])
        rows += [("set aside", f"{path}  (ahpd restart {path})") for path in facts["parked"]]
    return "\n".join(f"{name:<12}{value}" for name, value in rows)


def _crashed(crashes: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The latest crashes, the newest first; a line each for what, and for where more is said."""
    from ahpd.cli.shown import cut, line  # noqa: PLC0415
    from ahpd.cli.words import ago  # noqa: PLC0415

    rows = []
    for each in crashes[: -CRASHES - 1 : -1]:
        when = ago(each["at"], datetime.now(UTC))
        rows.append(("crashed", f"{each['path']}, {when}: {cut(line(each['text']), 100)}"))
        if each["file"] is not None:
            rows.append(("", each["file"]))
    return rows


def _uptime(started: str) -> float | None:
    try:
        age = datetime.now(UTC) - datetime.fromisoformat(started)
    except (ValueError, TypeError):
        return None
    return max(0.0, round(age.total_seconds(), 1))


def _spoken(seconds: float | None) -> str:
    if seconds is None:
        return "for an unknown time"
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86400)
    if days:
        return f"up for {days} d {hours % 24} h"
    if hours:
        return f"up for {hours} h {minutes % 60} min"
    return f"up for {minutes} min" if minutes else f"up for {int(seconds)} s"
