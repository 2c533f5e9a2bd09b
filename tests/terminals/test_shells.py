"""Shells that tell of themselves, with the person's own files read and left alone."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from ahpd.terminals.port import CommandBegan, CommandEnded, Detected, Ended, Moved, Output
from ahpd.terminals.pty import PtyTerminals
from ahpd.terminals.shells import line_for, scripts, shell_in
from tests.terminals.support import ENVIRONMENT, Talk, talking

#: Files of the person's, for each shell: they set a prompt and say that they were read.
OWN = {
    "bash": {".bashrc": "PS1='own> '; PROMPT_COMMAND='last=$?'; echo read\n"},
    "zsh": {".zshrc": "PS1='own> '; echo read\n", ".zshenv": "export FROM_ENV=1\n"},
    "fish": {".config/fish/config.fish": "function fish_prompt; echo -n 'own> '; end; echo read\n"},
}


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"there is no {shell} here")


SHELLS = [pytest.param(shell, marks=needs(shell)) for shell in OWN]


def at_home(home: Path, shell: str, **more: str) -> PtyTerminals:
    for name, text in OWN[shell].items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    path = shutil.which(shell)
    assert path is not None
    return PtyTerminals({**ENVIRONMENT, "SHELL": path, "HOME": str(home), **more})


def commands(talk: Talk) -> list[object]:
    return [piece for piece in talk.pieces if isinstance(piece, CommandBegan | CommandEnded)]


@pytest.mark.real_time
@pytest.mark.parametrize("shell", SHELLS)
async def test_a_shell_tells_of_its_commands(shell: str, tmp_path: Path) -> None:
    before = sorted(OWN[shell])
    async with talking(at_home(tmp_path, shell)) as talk:
        await talk.until_piece(Detected())
        await talk.until("own> ")
        await talk.say("echo 'a;b' \\\\ ä")
        await talk.until_piece(CommandEnded(0))
        await talk.say("sh -c 'exit 7'")
        await talk.until_piece(CommandEnded(7))
        await talk.say("")
        await talk.say("exit 3")
        assert await talk.ended() == Ended(3)
    assert "read" in talk.text
    assert "]633;" not in talk.text
    # fish ends the last one too.
    assert commands(talk)[:5] == [
        CommandBegan("echo 'a;b' \\\\ ä"),
        CommandEnded(0),
        CommandBegan("sh -c 'exit 7'"),
        CommandEnded(7),
        CommandBegan("exit 3"),
    ]
    assert sum(isinstance(piece, Detected) for piece in talk.pieces) == 1
    own = {name: (tmp_path / name).read_text() for name in before}
    assert own == OWN[shell], "the person's files are as they were"


@pytest.mark.real_time
@pytest.mark.parametrize("shell", SHELLS)
async def test_a_shell_tells_where_it_is(shell: str, tmp_path: Path) -> None:
    folder = tmp_path / "ä b%c;d"
    folder.mkdir()
    async with talking(at_home(tmp_path, shell)) as talk:
        await talk.until("own> ")
        await talk.say(f"cd '{folder}'")
        await talk.until_piece(Moved(folder.as_uri()))


@pytest.mark.real_time
@pytest.mark.parametrize("shell", SHELLS)
async def test_programs_are_not_told_the_nonce_and_cannot_forge_marks(
    shell: str, tmp_path: Path
) -> None:
    async with talking(at_home(tmp_path, shell)) as talk:
        await talk.until("own> ")
        await talk.say(
            "env | grep -c AHPD_; printf '\\033]633;D;0\\007\\033]633;A\\007'; sh -c 'exit 9'"
        )
        await talk.until_piece(CommandEnded(9))
    assert len(commands(talk)) == 2
    assert re.search(r"[\r\n]0\r\n", talk.text)


@pytest.mark.real_time
async def test_bash_does_not_tell_what_history_does_not_take(tmp_path: Path) -> None:
    own = "PS1='own> '; HISTCONTROL=ignoreboth; echo read\n"
    terminals = at_home(tmp_path, "bash")
    (tmp_path / ".bashrc").write_text(own)
    async with talking(terminals) as talk:
        await talk.until("own> ")
        for line, code in (("(exit 4)", 4), (" (exit 5)", 5), ("(exit 6)", 6)):
            await talk.say(line)
            await talk.until_piece(CommandEnded(code))
    began = [piece.line for piece in talk.pieces if isinstance(piece, CommandBegan)]
    assert began == ["(exit 4)", "", "(exit 6)"]


@pytest.mark.real_time
@pytest.mark.parametrize("change", ["PS0='<mine>'", "unset PS0", "set -u; unset PS0"])
async def test_bash_tells_of_commands_whatever_becomes_of_its_ps0(
    change: str, tmp_path: Path
) -> None:
    async with talking(at_home(tmp_path, "bash")) as talk:
        await talk.until("own> ")
        await talk.say(change)
        await talk.until_piece(CommandEnded(0))
        await talk.say("(exit 4)")
        await talk.until_piece(CommandEnded(4))
        began = [piece.line for piece in talk.pieces if isinstance(piece, CommandBegan)]
        assert began == [change, "(exit 4)"]
        assert talk.text.count("<mine>") == (2 if "mine" in change else 0)  # typed, and shown


@pytest.mark.real_time
@pytest.mark.parametrize(
    "prompt", ["PROMPT_COMMAND=('a=$?' 'b=1')", "unset PROMPT_COMMAND", "set -u"]
)
async def test_bash_with_any_prompt_command(prompt: str, tmp_path: Path) -> None:
    terminals = at_home(tmp_path, "bash")
    (tmp_path / ".bashrc").write_text(f"PS1='own> '; {prompt}\n")
    async with talking(terminals) as talk:
        await talk.until("own> ")
        await talk.say("(exit 4)")
        await talk.until_piece(CommandEnded(4))
        await talk.say('echo "code=$a."' if "a=" in prompt else "echo code=4.")
        await talk.until("code=4.\r\n")


@pytest.mark.real_time
async def test_a_shell_that_nobody_integrated_works_without_telling(tmp_path: Path) -> None:
    async with talking(PtyTerminals({**ENVIRONMENT, "SHELL": "/bin/sh"})) as talk:
        await talk.say("echo 'o'ut; exit 2")
        assert await talk.ended() == Ended(2)
    assert "out\r\n" in talk.text
    assert all(isinstance(piece, Output) for piece in talk.pieces)


def test_how_each_shell_is_started() -> None:
    folder = scripts()
    assert folder is not None
    started: dict[str, list[str]] = {}
    extras: dict[str, Mapping[str, str]] = {}
    for shell in ("/bin/bash", "/usr/bin/zsh", "/usr/bin/fish", "/bin/dash"):
        environment = {"SHELL": shell, "TMUX": "ours", "ZDOTDIR": "/z"}
        line = line_for(environment, None)
        assert "TMUX" not in environment
        assert (line.nonce is not None) == (shell != "/bin/dash")
        assert (line.environment.get("AHPD_SHELL_NONCE") == line.nonce) or line.nonce is None
        started[os.path.basename(shell)] = list(line.arguments)
        extras[os.path.basename(shell)] = line.environment
    assert started == {
        "bash": ["/bin/bash", "--init-file", str(folder / "ahpd.bash"), "-i"],
        "zsh": ["/usr/bin/zsh", "-i"],
        "fish": ["/usr/bin/fish", "-i", "--init-command", f"source '{folder / 'ahpd.fish'}'"],
        "dash": ["/bin/dash"],
    }
    assert extras["zsh"]["ZDOTDIR"] == str(folder / "zsh")
    assert extras["zsh"]["AHPD_ZDOTDIR"] == "/z"
    for name in (
        "ahpd.bash",
        "ahpd.zsh",
        "ahpd.fish",
        "zsh/.zshrc",
        "zsh/.zshenv",
        "zsh/.zprofile",
    ):
        assert (folder / name).is_file()


def test_a_single_command_is_run_by_the_persons_shell() -> None:
    line = line_for({"SHELL": "/bin/bash"}, "ls | wc")
    assert list(line.arguments) == ["/bin/bash", "-c", "ls | wc"]
    assert line.nonce is None


def test_without_a_shell_in_the_environment_it_is_the_systems() -> None:
    assert os.path.isabs(shell_in({}))
