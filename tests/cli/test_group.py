"""The command line as a whole: how it loads and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from ahpd import __version__
from ahpd.cli import exits, failing, with_command
from ahpd.cli.group import run
from ahpd.cli.running import Running
from ahpd.cli.running import run as run_under_trio
from ahpd.cli.start import _for_serve

BAD_LINE = b'{"dir":"h2c","frame":{}}\n'


def ahpd(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "ahpd", *arguments], input=given, capture_output=True, check=False
    )


def test_help_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == exits.OK
    told = capsys.readouterr().out
    assert "conform" in told
    assert "wire" in told


@pytest.mark.parametrize("of", [[], ["agents"], ["journal"], ["log"], ["wire"]])
def test_no_command_is_described_by_half_a_sentence(
    of: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*of, "--help"]) == exits.OK
    commands = capsys.readouterr().out.split("Commands:")[1].strip().splitlines()
    assert [line for line in commands if not line.endswith(".") or line.endswith("...")] == []


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == exits.OK
    assert __version__ in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["nonsense"], ["--nonsense"], ["conform"], ["wire", "x"]])
def test_a_wrong_command_line_is_a_usage_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == exits.USAGE
    assert "Traceback" not in capsys.readouterr().err


def test_the_exit_code_reaches_the_shell(tmp_path: Path) -> None:
    assert ahpd("--version").returncode == exits.OK
    assert ahpd("wire", "check", "-", given=BAD_LINE).returncode == exits.FAULTS
    missing = ahpd("conform", str(tmp_path / "nowhere"))
    assert missing.returncode == exits.USAGE
    assert b"is no folder" in missing.stderr
    assert b"Traceback" not in missing.stderr


def test_ctrl_c_leaves_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ahpd.conformance.run", interrupted)
    assert run(["conform", "."]) == exits.INTERRUPTED
    assert "Traceback" not in capsys.readouterr().err


def test_a_reader_that_goes_away_leaves_no_traceback(tmp_path: Path) -> None:
    capture = tmp_path / "capture.jsonl"
    capture.write_bytes(BAD_LINE * 20_000)
    with subprocess.Popen(
        [sys.executable, "-m", "ahpd", "wire", "check", str(capture)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        told = process.stderr.read()
    assert told == b""
    assert process.returncode == exits.PIPE_CLOSED


def test_importing_the_command_line_loads_nothing_heavy() -> None:
    code = "import sys, json, ahpd.cli; print(json.dumps(sorted(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    loaded = set(json.loads(result.stdout))
    assert not loaded & {"click", "rich", "trio", "attrs", "ahpd.protocol", "ahpd.cli.group"}


def test_a_command_loads_only_what_it_needs() -> None:
    code = (
        "import sys, json\nfrom ahpd.cli.group import run\n"
        "run(['wire', 'check', '/dev/null', '--json'])\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    loaded = set(json.loads(result.stdout.splitlines()[-1]))
    assert not loaded & {"rich", "trio", "cattrs", "ahpd.reducers", "ahpd.conformance"}


def shell(command: str, *, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """A command line with redirections; ``ahpd`` in it is this one."""
    line = command.replace("ahpd", f"exec {sys.executable} -m ahpd", 1)
    return subprocess.run(["sh", "-c", line], input=given, capture_output=True, check=False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "command",
    ["ahpd wire check -", "ahpd wire check --json -", "ahpd --help", "ahpd status --help"],
)
def test_output_that_cannot_be_written_is_said_in_one_sentence(command: str) -> None:
    done = shell(f"{command} > /dev/full", given=BAD_LINE * 3)
    assert done.returncode == exits.OUTPUT_LOST
    assert done.stderr == b"ahpd: the output could not be written: No space left on device\n"


def test_an_error_that_is_not_of_the_output_is_still_a_bug(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(_: Path) -> None:
        raise OSError("of something else")

    monkeypatch.setattr("ahpd.conformance.run", broken)
    with pytest.raises(OSError, match="of something else"):
        run(["conform", str(tmp_path)])


def test_a_closed_output_is_one_that_nobody_reads() -> None:
    done = shell("ahpd wire check - >&-", given=BAD_LINE)
    assert (done.returncode, done.stderr) == (exits.FAULTS, b"")
    done = shell("ahpd --help >&-")
    assert (done.returncode, done.stderr) == (exits.OK, b"")
    done = shell("ahpd conform nowhere 2>&-")
    assert (done.returncode, done.stdout) == (exits.USAGE, b"")
    done = shell("ahpd conform nowhere 2>&- >&-")
    assert done.returncode == exits.USAGE


def test_nothing_is_said_where_nobody_can_be_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    failing.say("a secret of standard error's")
    assert capsys.readouterr().out == ""


def test_help_says_first_that_a_bare_command_serves(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == exits.OK
    first = capsys.readouterr().out.split("Options:")[0]
    assert "Without a COMMAND it serves" in first


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--state-dir", "a", "start"], "options come after the command: ahpd start"),
        (["--state-dir", "a", "start", "--state-dir", "b"], "options come after the command"),
        (["--port", "5", "status"], "options come after the command: ahpd status"),
        (["start", "--state-dir", "a", "--state-dir", "b"], "--state-dir is given twice: a and b"),
        (["serve", "--state-dir=a", "--state-dir=b"], "--state-dir is given twice: a and b"),
        (["serve", "nonsense"], "unexpected extra argument (nonsense)"),
    ],
)
def test_options_in_the_wrong_place_or_twice_are_explained(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert run(with_command(arguments)) == exits.USAGE
    assert said in capsys.readouterr().err


def test_what_a_daemon_is_started_with_says_its_folder_once() -> None:
    given = ["--port", "0", "--state-dir", "a", "--within=3", "--state-dir=a", "--within", "4"]
    assert _for_serve(given) == ["--port", "0"]


def test_two_interrupts_at_once_are_two() -> None:
    heard = 0

    async def main(running: Running) -> int:
        def on_interrupt() -> bool:
            nonlocal heard
            heard += 1
            return heard < 2

        running.on_interrupt = on_interrupt
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        await trio.sleep_forever()

    before = signal.getsignal(signal.SIGINT)
    assert run_under_trio(main) == exits.INTERRUPTED
    assert heard == 2
    assert signal.getsignal(signal.SIGINT) is before
