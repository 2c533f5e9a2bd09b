"""Real shells and full screens on a host: what each of several viewers sees, and how they end."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
import trio

from actors.host import Settings
from ahpd.protocol.uris import ROOT
from tests.harness import FileMedium
from tests.terminals.hosts import T, Viewer, real_host
from tests.terminals.support import children, lives

pytestmark = pytest.mark.real_time

PS1 = {"PS1": "$ "}


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"there is no {program} here")


async def same(*viewers: Viewer) -> None:
    """Wait until all have heard the same."""
    await viewers[0].until(lambda _: len({len(each.text) for each in viewers}) == 1)
    assert len({each.text for each in viewers}) == 1


# ---- several viewers ----------------------------------------------------------------------------


async def test_two_see_the_same_bytes_and_a_third_joins_late_to_the_same_screen() -> None:
    async with real_host() as it:
        ann = await it.opened()
        bob = await it.view("bob")
        await ann.type("printf '\\033[2J\\033[12;10H\\033[31mred\\033[0m ä€😀'; echo; seq 1 5\r")
        await bob.until("5\r\n")
        await bob.type("for i in 1 2 3; do printf \"\\033[$i;40Hat $i\"; done; echo; echo do''ne\r")
        await ann.until("done\r\n")
        await ann.until(lambda v: v.text.rstrip().endswith(("#", "$")))
        await same(ann, bob)
        eve = await it.view("eve")
        assert eve.screen() == ann.screen() == bob.screen()
        assert "at 2" in eve.screen()[1]
        assert any("red ä€😀" in line for line in eve.screen()), eve.screen()
        assert "]633;" not in ann.text
        await eve.type("exit 3\r")
        for viewer in (ann, bob, eve):
            assert (await viewer.exited())["exitCode"] == 3


@pytest.mark.parametrize(
    ("program", "keys", "shows", "leave"),
    [
        pytest.param(
            "vim -u NONE -N f", "ihello\x1b:set number\r", "  1 hello", ":q!\r", marks=needs("vim")
        ),
        pytest.param("less f", "/line 50\r", "line 50", "q", marks=needs("less")),
        pytest.param("htop", "", "PID", "q", marks=needs("htop")),
    ],
    ids=["vim", "less", "htop"],
)
async def test_full_screens_are_typed_into_resized_and_left(
    program: str, keys: str, shows: str, leave: str, tmp_path: Path
) -> None:
    (tmp_path / "f").write_text(
        "".join(f"line {n}\n" for n in range(200)) if "less" in program else ""
    )
    async with real_host() as it:
        ann = await it.opened(cwd=tmp_path.as_uri(), size=(80, 24))
        bob = await it.view("bob")
        await ann.type(f"{program}; echo le''ft\r")
        await ann.until("\x1b[?1049h")
        await ann.type(keys)
        await ann.until(lambda v: any(shows in line for line in v.screen()))
        await same(ann, bob)
        late = await it.view("late")
        assert late.screen() == ann.screen()
        await bob.peer.dispatch(T, {"type": "terminal/resized", "cols": 60, "rows": 12})
        mark = len(ann.text)
        await ann.until(lambda v: len(v.text) > mark)
        await ann.type(leave)
        await ann.until("left\r\n")
        await ann.type("stty size\r")
        await ann.until("12 60\r\n")


@needs("vim")
async def test_a_full_screen_that_is_killed_leaves_nothing() -> None:
    before = children()
    async with real_host() as it:
        ann = await it.opened()
        await ann.type("vim -u NONE\r")
        await ann.until("\x1b[?1049h")
        await ann.peer.request("disposeTerminal", channel=T)
    assert children() <= before


# ---- commands -----------------------------------------------------------------------------------


async def test_commands_their_output_and_their_codes_are_told() -> None:
    async with real_host() as it:
        ann = await it.opened()
        await ann.until(lambda v: any("commandDetection" in a["type"] for a in v.actions))
        await ann.type("echo out; (exit 4)\r")
        await ann.until(lambda v: any(a["type"] == "terminal/commandFinished" for a in v.actions))
        state = (await ann.peer.subscribe(T))["state"]
        (command,) = [part for part in state["content"] if part["type"] == "command"]
        assert command["commandLine"] == "echo out; (exit 4)"
        assert command["output"] == "out\r\n"
        assert command["exitCode"] == 4
        assert command["durationMs"] >= 0
        assert state["supportsCommandDetection"] is True
        await ann.type("cd /usr\r")
        await ann.until(
            lambda v: {"type": "terminal/cwdChanged", "cwd": "file:///usr"} in v.actions
        )


# ---- B07, B08: the end --------------------------------------------------------------------------


async def test_a_job_that_holds_the_terminal_open_does_not_hold_back_the_end() -> None:
    async with real_host() as it:
        ann = await it.opened()
        await ann.type("sh -c 'trap \"\" HUP; echo p''id=$$; sleep 45' &\r")
        await ann.until(lambda v: re.search(r"pid=\d+\r", v.text))
        await ann.type("exit 3\r")
        assert (await ann.exited())["exitCode"] == 3
        root = await ann.peer.subscribe(ROOT)
        (row,) = root["state"]["terminals"]
        assert row["lifecycle"] == {"status": "exited", "exitCode": 3}
        pid = int(re.search(r"pid=(\d+)\r", ann.text)[1])  # type: ignore[index]
        assert lives(pid)
        await ann.peer.request("disposeTerminal", channel=T)
        assert not lives(pid)


@pytest.mark.parametrize(
    ("line", "code"), [("printf EN''D; exit 7", 7), ("kill -9 $$", None), ("exec false", 1)]
)
async def test_every_byte_comes_before_the_end(line: str, code: int | None) -> None:
    async with real_host() as it:
        for number in range(10):
            ann = await it.opened(f"ann{number}", uri=f"ahp-terminal:/{number}")
            await ann.type(f"{line}\r")
            assert (await ann.exited()).get("exitCode") == code
            assert ("END" in ann.text) == ("EN" in line)
            await ann.peer.close()


async def test_five_megabytes_before_the_end_are_all_there() -> None:
    async with real_host(settings=Settings(served=("file:///",), scrollback=100_000)) as it:
        ann = await it.opened()
        await ann.type("head -c 5000000 /dev/zero | tr '\\0' x; exit 0\r")
        assert (await ann.exited())["exitCode"] == 0
        assert "x" * 5_000_000 in ann.text
        channel = it.host.ledger.find(T)
        assert channel is not None
        assert len(channel.state.wire()["content"][-1]["output"]) <= 125_000


# ---- B40, B61: input and sizes ------------------------------------------------------------------


async def test_input_of_two_clients_arrives_whole(tmp_path: Path) -> None:
    lines = "".join(f"{number:07}\n" for number in range(1 << 17))
    total = len(lines) + 1000 * 1024
    async with real_host() as it:
        ann = await it.opened(cwd=tmp_path.as_uri())
        bob = await it.view("bob")
        await ann.type(f"stty raw -echo; echo rea''dy; head -c {total} > o; echo do''ne\r")
        await ann.until("ready")
        await ann.type(lines)
        for number in range(500):
            for viewer in (ann, bob):
                await viewer.type(f"{viewer.peer.name}{number:03}".ljust(1023, ".") + "\n")
        await ann.until("done")
    found = (tmp_path / "o").read_text()
    assert len(found) == total
    assert lines in found
    rest = found.replace(lines, "").splitlines()
    assert all(len(line) == 1023 for line in rest)
    for name in ("ann", "bob"):
        mine = [line.rstrip(".") for line in rest if line.startswith(name)]
        assert mine == [f"{name}{number:03}" for number in range(500)]


async def test_a_program_that_never_reads_does_not_stop_the_host() -> None:
    async with real_host() as it:
        ann = await it.opened()
        await ann.type("stty raw -echo; echo rea''dy; sleep 60\r")
        await ann.until("ready")
        seqs = [
            await ann.peer.dispatch(T, {"type": "terminal/input", "data": "x" * (1 << 20)})
            for _ in range(5)
        ]
        answers = [await ann.peer.answered(seq) for seq in seqs]
        refusals = [a["params"].get("rejectionReason") for a in answers]
        assert refusals[0] is None
        assert "does not read" in str(refusals[-1])
        assert await ann.peer.request("ping") is None
        await ann.peer.dispatch(T, {"type": "terminal/resized", "cols": 90, "rows": 30})
        await ann.peer.request("disposeTerminal", channel=T)


async def test_a_resize_just_before_the_end() -> None:
    async with real_host() as it:
        for number in range(10):
            ann = await it.opened(f"a{number}", uri=f"ahp-terminal:/{number}")
            await ann.type("exit\r")
            for cols in range(80, 100):
                action = {"type": "terminal/resized", "cols": cols, "rows": 30}
                await ann.peer.dispatch(ann.uri, action)
            await ann.exited()
            await ann.peer.close()


# ---- B62: many ----------------------------------------------------------------------------------


async def test_many_terminals_print_a_prompt_and_leave_nothing() -> None:
    before, open_before = children(), len(os.listdir("/proc/self/fd"))
    async with real_host(environment=PS1) as it:
        ann = await it.peer("ann")

        async def one(number: int) -> None:
            uri = f"ahp-terminal:/{number}"
            viewer = await it.opened(f"v{number}", uri=uri)
            await viewer.until(lambda v: v.text.rstrip().endswith(("#", "$")))

        async with trio.open_nursery() as nursery:
            for number in range(40):
                nursery.start_soon(one, number)
        for number in range(40):
            await ann.request("disposeTerminal", channel=f"ahp-terminal:/{number}")
    assert children() <= before
    assert len(os.listdir("/proc/self/fd")) <= open_before + 3


# ---- what outlives what -------------------------------------------------------------------------


async def test_a_host_that_is_left_ends_its_shells_and_shows_what_they_showed(
    tmp_path: Path,
) -> None:
    before = children()
    async with real_host(journal=FileMedium(tmp_path / "j.db")) as it:
        ann = await it.opened()
        await ann.type("echo ke''pt\r")
        await ann.until("kept\r\n")
        await it.host.stop()
        assert children() <= before
        await it.host.start()
        bob = await it.view("bob")
        assert "kept\r\n" in bob.text
        assert bob.snapshot["state"]["lifecycle"] == {"status": "exited"}
