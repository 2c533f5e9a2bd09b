"""``ahpd demo``: one host, two screens, and what happens to them.

`host` starts a host as a process of its own, `screen` is a client that keeps a record, `story` and
`crash` play, `checks` says what was proved, `view` draws both screens while it plays.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from ahpd.cli import exits
from ahpd.cli.reach import connector
from ahpd.cli.running import Running, run
from ahpd.cli.shown import safe

if TYPE_CHECKING:
    from rich.console import Console

    from ahpd.cli.demo.checks import Check
    from ahpd.cli.demo.host import HostProcess
    from ahpd.cli.demo.story import Stage
    from ahpd.client import Connect

#: Pictures a second.
_RATE = 12


@click.command("demo", short_help="See a host at work, with two screens on one session.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option("--crash", is_flag=True, help="Kill the host's process in mid-turn instead.")
def command(*, as_json: bool, crash: bool) -> int:
    """See a host at work: two screens join one session, and things happen to them.

    Starts a host of its own on a free port, plays a story of some ten seconds on it, and stops it.
    Exits 1 when one of the checks at the end does not hold.
    """
    demo = _Demo(as_json=as_json, crash=crash)
    with tempfile.TemporaryDirectory(prefix="ahpd-demo-") as folder:
        return run(lambda running: demo.main(Path(folder), running))


@attrs.define
class _Demo:
    """One run of the demo: where it is shown, and what came out."""

    as_json: bool
    #: Play the story in which the host is killed.
    crash: bool = False
    began: float = attrs.field(factory=time.monotonic)
    steps: list[tuple[float, str]] = attrs.field(factory=list)
    #: Why the story ended early.
    failure: str | None = None
    _console: Console | None = None
    #: Whether sentences are printed when they are told.
    _aloud: bool = True

    async def main(self, folder: Path, running: Running) -> int:
        """Play it; returns the exit code."""
        from ahpd.cli.demo.host import host_process  # noqa: PLC0415

        async with host_process(folder) as host:
            stage = await self._play(host, running)
        if host.url:
            stage.checks.append(_stopped(host))
        self._report(stage, seconds=time.monotonic() - self.began)
        return exits.OK if self._ok(stage) else exits.FAULTS

    async def _play(self, host: HostProcess, running: Running) -> Stage:
        """Play the story on a host that is starting; `failure` says when it breaks off."""
        # Only now, so that the host starts meanwhile.
        import trio  # noqa: PLC0415

        from ahpd.cli.demo.crash import play_crash  # noqa: PLC0415
        from ahpd.cli.demo.host import HostFailed  # noqa: PLC0415
        from ahpd.cli.demo.story import Stage, StoryFailed, play  # noqa: PLC0415

        live = self._live()
        self._aloud = not live and not self.as_json
        stage = Stage(self._tell, pause=1.0 if live else 0.0)
        try:
            async with trio.open_nursery() as nursery:
                if live:
                    nursery.start_soon(self._draw, stage)
                await host.ready()
                stage.say(f"A host runs: process {host.pid}, at {host.address}")
                dials = _dial(running, lambda: host.url), _dial(running, lambda: host.unix)
                if self.crash:
                    await play_crash(stage, host, *dials)
                else:
                    await play(stage, *dials)
                nursery.cancel_scope.cancel(reason="the story is over")
        except* (HostFailed, StoryFailed) as group:
            self.failure = str(group.exceptions[0])
        return stage

    def _ok(self, stage: Stage) -> bool:
        return self.failure is None and all(check.ok for check in stage.checks)

    def _tell(self, sentence: str) -> None:
        at = time.monotonic() - self.began
        self.steps.append((at, sentence))
        if self._aloud:
            click.echo(_step(at, sentence))
            sys.stdout.flush()

    # ---- the live view -----------------------------------------------------------------------

    def _live(self) -> bool:
        """Whether there is a terminal that can show both screens."""
        if self.as_json or not sys.stdout.isatty():
            return False
        from rich.console import Console  # noqa: PLC0415

        from ahpd.cli.demo.view import LEAST_HEIGHT, LEAST_WIDTH  # noqa: PLC0415

        self._console = Console(highlight=False, markup=False, emoji=False)
        return (
            self._console.is_terminal
            and not self._console.is_dumb_terminal
            and self._console.encoding.startswith("utf")
            and self._console.width >= LEAST_WIDTH
            and self._console.height >= LEAST_HEIGHT
        )

    async def _draw(self, stage: Stage) -> None:
        """Draw until cancelled; the terminal is then as it was."""
        import trio  # noqa: PLC0415
        from rich.live import Live  # noqa: PLC0415

        from ahpd.cli.demo.view import View  # noqa: PLC0415

        with Live(View(stage), console=self._console, screen=True, auto_refresh=False) as live:
            while True:
                live.refresh()
                await trio.sleep(1 / _RATE)

    # ---- the end -----------------------------------------------------------------------------

    def _report(self, stage: Stage, *, seconds: float) -> None:
        if self.as_json:
            click.echo(json.dumps(self._as_json(stage, seconds)))
            return
        if not self._aloud:
            for at, sentence in self.steps:
                click.echo(_step(at, sentence))
        click.echo()
        if self.failure is not None:
            click.echo(f"{click.style('The story broke off', fg='red')}: {safe(self.failure)}")
        for check in stage.checks:
            click.echo(_line(check))
        for difference in stage.differences:
            click.echo(f"       {safe(difference)}")
        told = "All of it holds" if self._ok(stage) else "Not all of it holds"
        click.echo(f"\n{told}. {seconds:.1f} s.")

    def _as_json(self, stage: Stage, seconds: float) -> dict[str, object]:
        chat = stage.phone.chat_state
        turns = () if chat is None else chat.turns
        return {
            "ok": self._ok(stage),
            "failure": self.failure,
            "seconds": round(seconds, 3),
            "steps": [{"at": round(at, 3), "text": text} for at, text in self.steps],
            "checks": [attrs.asdict(check) for check in stage.checks],
            "differences": stage.differences,
            "replayed": stage.editor.replayed,
            "replays": {screen.name: screen.replayed for screen in stage.screens},
            "turns": [{"id": turn.id, "state": turn.state} for turn in turns],
        }


def _stopped(host: HostProcess) -> Check:
    from ahpd.cli.demo.checks import Check  # noqa: PLC0415

    seen = "it had to be killed" if host.killed else f"exit code {host.stopped}"
    return Check("the host stopped when asked", not host.killed, seen)


def _dial(running: Running, address: Callable[[], str]) -> Connect:
    return connector(running.nursery, address)


def _step(at: float, sentence: str) -> str:
    return f"{at:5.1f} s  {sentence}"


def _line(check: Check) -> str:
    mark = click.style("  ok ", fg="green") if check.ok else click.style(" FAIL", fg="red")
    return f"{mark}  {check.name:<38}{check.seen}"
