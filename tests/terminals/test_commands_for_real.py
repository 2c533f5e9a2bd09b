"""``!command`` in real shells: what one leaves the next one finds, and a busy one is left alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import trio

from ahpd.protocol.uris import ROOT
from tests.actors.support import C, S, cancelled, ending, started
from tests.harness import RawPeer
from tests.terminals.hosts import RealHost, real_host
from tests.terminals.support import WITHIN, children

pytestmark = pytest.mark.real_time


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"there is no {program} here")


async def in_a_session(it: RealHost, folder: Path) -> RawPeer:
    ann = await it.peer("ann")
    await ann.request("createSession", channel=S, workingDirectories=[folder.as_uri()])
    await ann.subscribe(C)
    return ann


def last_call(it: RealHost) -> Any:
    channel = it.host.ledger.find(C)
    assert channel is not None
    (part,) = channel.state.wire()["turns"][-1]["responseParts"]
    return part["toolCall"]


async def ran(it: RealHost, ann: RawPeer, command: str, turn: str) -> Any:
    """Run a command to the turn's end; the call."""
    await ann.dispatch(C, started(turn, f"!{command}"))
    await ending(ann, turn, WITHIN)
    return last_call(it)


def preview(call: Any) -> str:
    text: str = call["content"][0]["result"]["preview"]
    return text


def uri_of(call: Any) -> str:
    uri: str = call["content"][0]["resource"]
    return uri


@pytest.mark.parametrize(
    ("shell", "assign"),
    [
        pytest.param("bash", "x='a b'", marks=needs("bash")),
        pytest.param("zsh", "x='a b'", marks=needs("zsh")),
        pytest.param("fish", "set x 'a b'", marks=needs("fish")),
    ],
)
async def test_one_shell_keeps_its_folder_and_variables(
    shell: str, assign: str, tmp_path: Path
) -> None:
    (tmp_path / "inner").mkdir()
    before = children()
    environment = {"SHELL": shutil.which(shell) or "", "HOME": str(tmp_path)}
    async with real_host(environment=environment) as it:
        ann = await in_a_session(it, tmp_path)
        first = await ran(it, ann, f"cd inner; {assign}", "t1")
        assert first["success"] is True
        second = await ran(it, ann, 'pwd; echo "<$x>"; sh -c "exit 7"', "t2")
        assert uri_of(second) == uri_of(first)
        assert preview(second).splitlines() == [str(tmp_path / "inner"), "<a b>"]
        assert second["content"][0]["result"]["exitCode"] == 7
        third = await ran(it, ann, "for i in 1 2\n  echo line$i\nend" if shell == "fish" else
                          "for i in 1 2; do\n  echo line$i\ndone", "t3")  # fmt: skip
        assert preview(third).splitlines() == ["line1", "line2"]
        fourth = await ran(it, ann, "echo one\necho two", "t4")
        assert preview(fourth).splitlines() == ["one", "two"]
        wrong = await ran(it, ann, "echo )", "t5")
        assert wrong["success"] is False
        fifth = await ran(it, ann, "exit 3", "t6")
        assert fifth["content"][0]["result"]["exitCode"] == 3
        sixth = await ran(it, ann, "pwd", "t7")
        assert uri_of(sixth) != uri_of(first)
        assert preview(sixth).splitlines() == [str(tmp_path)]
    assert children() <= before


@needs("less")
async def test_programs_that_want_a_person_neither_hold_the_turn_nor_eat_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hazard B58, each of its programs."""
    monkeypatch.setattr("actors.commanding.SCREEN_WITHIN", 0.5)
    monkeypatch.setattr("actors.commanding.TYPED_WITHIN", 1.0)
    (tmp_path / "big").write_text("".join(f"line {n}\n" for n in range(1000)))
    screen = "tput smcup; sleep 20; tput rmcup; echo OUT"
    editor = "git init -q . && git -c core.editor='less -R' -c user.name=a -c user.email=a@b "
    editor += "commit --allow-empty"
    async with real_host() as it:
        ann = await in_a_session(it, tmp_path)
        shells = []
        for number, command in enumerate(("bash --norc", screen, editor, "less big", "read x")):
            call = await ran(it, ann, command, f"t{number}")
            assert "goes on in its terminal" in call["pastTenseMessage"]
            shells.append(uri_of(call))
            channel = it.host.ledger.find(shells[-1])
            assert channel is not None
            assert channel.state.claim.wire() == {"kind": "session", "session": S, "chat": C}
        assert len(set(shells)) == 5
        # One that somebody leaves is free again: what was typed there was for its program alone.
        await ann.subscribe(shells[-2])
        await ann.dispatch(shells[-2], {"type": "terminal/input", "data": "q"})
        await ann.dispatch(shells[-1], {"type": "terminal/input", "data": "yes\r"})
        channel = it.host.ledger.find(shells[-1])
        assert channel is not None
        with trio.fail_after(WITHIN):
            while not channel.state.content[-2].wire().get("isComplete", False):
                await trio.sleep(0.05)
        call = await ran(it, ann, 'echo "x=$x"', "t9")
        assert uri_of(call) == shells[-1]
        assert preview(call) == "x=yes\n"
        server = await ran(it, ann, "sleep 300 & echo up", "t10")
        assert "up\n" in preview(server)
        assert server["content"][0]["result"]["exitCode"] == 0
        await ann.request("disposeSession", channel=S)
        with trio.fail_after(WITHIN):
            while it.host.ledger.state_of(ROOT, "root").terminals:
                await trio.sleep(0.05)


async def test_a_cancel_frees_the_shell(tmp_path: Path) -> None:
    async with real_host() as it:
        ann = await in_a_session(it, tmp_path)
        first = await ran(it, ann, "mine=1", "t0")
        for number in range(5):
            await ann.dispatch(C, started(f"t{number}x", "!sleep 60"))
            await ann.wait(lambda m: "Running sleep 60" in str(m))
            channel = it.host.ledger.find(uri_of(first))
            assert channel is not None
            with trio.fail_after(WITHIN):
                while not any(
                    part.wire().get("isComplete") is False for part in channel.state.content
                ):
                    await trio.sleep(0.02)
            await ann.dispatch(C, cancelled(f"t{number}x"))
            await ending(ann, f"t{number}x", WITHIN)
            call = await ran(it, ann, 'echo "mine=$mine"', f"t{number}y")
            assert uri_of(call) == uri_of(first)
            assert preview(call) == "mine=1\n"
