"""Real processes on real pseudo-terminals: how they start, speak, are spoken to and end."""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from ahpd.terminals.port import Ended, Fault, Spawn, SpawnFailed, TerminalOver
from ahpd.terminals.pty import PtyTerminals
from tests.terminals.support import (
    ENVIRONMENT,
    WITHIN,
    children,
    descriptors,
    lives,
    output_of,
    talking,
)

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.skipif(sys.platform != "linux", reason="what is left is looked for in /proc"),
]


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    files, processes = descriptors(), children()
    yield
    assert children() <= processes, "a process was not waited for"
    assert descriptors() <= files + 3, "descriptors stayed open"  # trio's own come and go


# ---- B08: every byte, and then the end ----------------------------------------------------------


async def test_what_is_written_just_before_the_end_is_there() -> None:
    for _ in range(200):
        text, ended = await output_of("printf END; exit 7")
        assert (text, ended) == ("END", Ended(7))


async def test_five_megabytes_and_then_the_end() -> None:
    text, ended = await output_of("head -c 5000000 /dev/zero | tr '\\0' x; exit 0")
    assert text == "x" * 5_000_000
    assert ended == Ended(0)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
async def test_a_death_by_a_signal_is_no_exit_code(number: signal.Signals) -> None:
    _, ended = await output_of(f"ulimit -c 0; kill -{number.value} $$")
    assert ended == Ended(None, number.value)


async def test_a_character_cut_by_reads_is_whole() -> None:
    text, _ = await output_of(
        r"printf '\303'; sleep 0.05; printf '\244\360\237'; printf '\230\200'"
    )
    assert text == "ä😀"


async def test_a_lone_escape_does_not_wait_for_what_may_follow() -> None:
    async with talking(command=r"printf 'a\033'; sleep 60") as talk:
        await talk.until("a\x1b")


async def test_one_that_floods_is_closed_whatever_it_is_doing() -> None:
    """Its reads are a thread's: none of them is of a descriptor that is another file's by then."""
    for number in range(40):
        async with talking(command="yes") as talk:
            await talk.until("y\r\n", times=1 + 997 * (number % 5))
            await trio.sleep(0.0007 * (number % 7))
            with trio.move_on_after(0.001 * (number % 3)):
                await talk.terminal.close()
            opened = [os.open("/proc/self/stat", os.O_RDONLY) for _ in range(4)]
            await talk.terminal.close()
            for each in opened:
                assert os.read(each, 1 << 16), "somebody else has read it"
                os.close(each)
        assert set(talk.text) <= set("y\r\n")


async def test_a_flood_and_a_few_words_are_told_in_order() -> None:
    text, ended = await output_of(
        "seq 200000; sleep 0.02; echo few; sleep 0.02; seq 100000; echo words; exit 6"
    )
    numbers = "".join(f"{number}\r\n" for number in range(1, 200001))
    assert text == numbers + "few\r\n" + numbers[: numbers.index("100001\r\n")] + "words\r\n"
    assert ended == Ended(6)


# ---- B07: who is left behind --------------------------------------------------------------------


async def test_the_end_is_seen_though_a_job_holds_the_terminal_open() -> None:
    async with talking() as talk:
        await talk.say("sh -c 'trap \"\" HUP; echo pid=$$; sleep 45' & ")
        await talk.until("pid=", times=2)
        await talk.say("printf 'last%s' words; exit 3")
        assert await talk.ended() == Ended(3)
        assert "lastwords" in talk.text
        pid = int(re.findall(r"pid=(\d+)", talk.text)[-1])
        assert lives(pid), "it ignores the hang-up, and is left alone until the terminal is closed"
    assert not lives(pid)


async def test_one_that_floods_the_terminal_does_not_keep_it_from_ending() -> None:
    async with talking(command="yes & exit 4") as talk:
        assert await talk.ended() == Ended(4)


async def test_a_process_that_lets_go_of_the_terminal_is_still_waited_for() -> None:
    text, ended = await output_of("echo out; exec </dev/null >/dev/null 2>&1; sleep 0.2; exit 5")
    assert (text, ended) == ("out\r\n", Ended(5))


@pytest.mark.parametrize(
    "stubborn", ["", "trap '' HUP;", "trap '' HUP TERM INT;", "set -m; sleep 50 & kill -STOP $!;"]
)
async def test_closing_ends_all_that_was_started(stubborn: str) -> None:
    async with talking(
        command=f"{stubborn} sleep 60 & echo pid=$!. me=$$.; wait; sleep 60"
    ) as talk:
        await talk.until("me=")
        await talk.until(".\r\n")
    for pid in re.findall(r"=(\d+)\.", talk.text):
        assert not lives(int(pid))


async def test_an_interactive_shell_and_its_jobs_are_closed() -> None:
    async with talking() as talk:
        await talk.say("sleep 51 & sleep 52 | sleep 53 & jobs -p; echo 'rea'dy")
        await talk.until("ready\r\n")
        pids = re.findall(r"\n(\d{3,})\r", talk.text)
        assert len(pids) >= 2
        await talk.say("sleep 54")
    assert not any(lives(int(pid)) for pid in pids)


async def test_closing_again_and_after_the_end_is_harmless() -> None:
    async with talking(command="exit 0") as talk:
        await talk.ended()
        await talk.terminal.close()
        await talk.terminal.close()


# ---- B40: input ---------------------------------------------------------------------------------


async def test_a_megabyte_of_input_arrives_byte_for_byte(tmp_path: Path) -> None:
    lines = b"".join(b"%07d\n" % number for number in range(1 << 17))
    more = [bytes([65 + number % 26]) * 1023 + b"\n" for number in range(1000)]
    total = len(lines) + sum(map(len, more))
    command = f"stty raw -echo; echo ready; head -c {total} > o; echo done"
    async with talking(command=command, cwd=str(tmp_path)) as talk:
        await talk.until("ready")
        with trio.fail_after(WITHIN):
            for data in (lines, *more):
                await talk.terminal.write(data)
        await talk.until("done")
    assert (tmp_path / "o").read_bytes() == lines + b"".join(more)


async def test_a_program_that_never_reads_holds_up_its_writer_alone() -> None:
    async with talking(command="stty raw -echo; echo ready; sleep 60") as talk:
        await talk.until("ready")
        with trio.move_on_after(0.5) as scope:
            await talk.terminal.write(b"x" * (5 << 20))
        assert scope.cancelled_caught
        talk.terminal.resize(100, 30)


async def test_a_line_over_the_kernels_limit_loses_its_tail_and_nothing_else(
    tmp_path: Path,
) -> None:
    async with talking(command="stty -echo; echo ready; cat > o", cwd=str(tmp_path)) as talk:
        await talk.until("ready")
        await talk.terminal.write(b"y" * 6000 + b"\r")
        await talk.terminal.write(b"next\r\x04")
        assert await talk.ended() == Ended(0)
    first, second = (tmp_path / "o").read_bytes().splitlines()
    assert first == b"y" * 4095, "what the kernel takes of a line in cooked mode"
    assert second == b"next"


async def test_writing_to_one_that_ended_says_so() -> None:
    async with talking(command="exit 0") as talk:
        await talk.ended()
        with pytest.raises(TerminalOver):
            await talk.terminal.write(b"x")
    with pytest.raises(TerminalOver):
        await talk.terminal.write(b"x")


async def test_control_c_reaches_the_program_in_front() -> None:
    async with talking() as talk:
        await talk.say("sleep 60; echo code=$?")
        await talk.until("code=")
        await trio.sleep(0.1)
        await talk.terminal.write(b"\x03")
        await talk.say("echo 'al'ive")
        await talk.until("alive\r\n")


# ---- B61: sizes ---------------------------------------------------------------------------------


async def test_it_has_the_size_it_was_given_and_is_told_of_another() -> None:
    command = "trap 'stty size; exit 0' WINCH; stty size; while :; do sleep 0.05; done"
    async with talking(command=command, cols=101, rows=37) as talk:
        await talk.until("37 101\r\n")
        talk.terminal.resize(44, 11)
        assert await talk.ended() == Ended(0)
        assert "11 44\r\n" in talk.text


async def test_a_resize_never_touches_another_file() -> None:
    async with talking(command="exit 0") as talk:
        await talk.ended()
        opened = [os.open("/dev/null", os.O_RDONLY) for _ in range(8)]  # one may have its number
        for cols in range(1, 1000):
            talk.terminal.resize(cols, 24)
        for descriptor in opened:
            os.close(descriptor)
    talk.terminal.resize(80, 24)


async def test_resizes_that_race_with_the_end() -> None:
    for _ in range(50):
        async with talking(command="exit 0") as talk:
            while not talk.over.is_set():
                talk.terminal.resize(90, 30)
                await trio.lowlevel.checkpoint()


# ---- B62: starting ------------------------------------------------------------------------------


async def test_many_start_while_threads_are_busy_and_have_nothing_of_ours_open() -> None:
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            Path("/proc/self/status").read_bytes()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    terminals = PtyTerminals(ENVIRONMENT)
    outputs: list[str] = []

    async def one() -> None:
        async with limit, talking(terminals, command="printf 'PROMPT '; ls /proc/self/fd") as talk:
            await talk.ended()
            outputs.append(talk.text)

    limit = trio.CapacityLimiter(20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        async with trio.open_nursery() as nursery:
            for _ in range(500):
                nursery.start_soon(one)
    stop.set()
    for thread in threads:
        thread.join()
    assert len(outputs) == 500
    for text in outputs:
        assert text.startswith("PROMPT ")
        assert set(text.removeprefix("PROMPT ").split()) <= {"0", "1", "2", "3"}, text  # 3: of ls


@pytest.mark.parametrize(
    ("cwd", "shell", "fault", "words"),
    [
        ("/nonexistent", "/bin/bash", Fault.NOT_FOUND, "no folder /nonexistent"),
        ("/etc/passwd", "/bin/bash", Fault.NOT_FOUND, "is no folder"),
        ("/bad\0name", "/bin/bash", Fault.FAILED, "folder"),
        ("/", "/nonexistent", Fault.FAILED, "cannot be run"),
        ("/", "/etc/passwd", Fault.FAILED, "cannot be run"),
    ],
)
async def test_what_cannot_be_started_is_told_and_leaves_nothing(
    cwd: str, shell: str, fault: Fault, words: str
) -> None:
    with pytest.raises(SpawnFailed) as caught:
        await PtyTerminals({**ENVIRONMENT, "SHELL": shell}).spawn(Spawn(cwd=cwd))
    assert caught.value.fault is fault
    assert words in caught.value.message


async def test_without_descriptors_nothing_is_started_and_nothing_leaks() -> None:
    await output_of("true")  # whatever is opened once is open now
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before, refusals = descriptors(), 0
    lowest = os.open("/dev/null", os.O_RDONLY)
    os.close(lowest)
    for room in range(8):
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + room, hard))
        try:
            terminal = await PtyTerminals(ENVIRONMENT).spawn(Spawn(cwd="/", command="sleep 60"))
        except SpawnFailed:
            refusals += 1
        else:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            await terminal.close()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert descriptors() == before
    assert 0 < refusals < 8


async def test_thousands_of_open_files_are_not_handed_on() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 5000:
        pytest.skip(f"the system allows {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 5000), hard))
    opened = []
    try:
        for _ in range(4096):
            opened.append(os.open("/dev/null", os.O_RDONLY))
            os.set_inheritable(opened[-1], True)
        for _ in range(10):
            text, ended = await output_of("ls /proc/self/fd")
            assert ended == Ended(0)
            assert set(text.split()) <= {"0", "1", "2", "3"}  # 3: of ls
    finally:
        for each in opened:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_the_process_leads_a_session_on_this_terminal() -> None:
    text, _ = await output_of("ps -o pid=,sid=,tpgid= -p $$; tty; echo $TERM")
    ids, tty, term = text.splitlines()
    pid, session, _ = ids.split()
    assert pid == session
    assert tty.startswith("/dev/pts/")
    assert term == "xterm-256color"


async def test_a_cancel_while_it_starts_leaves_nothing() -> None:
    terminals = PtyTerminals(ENVIRONMENT)
    for _ in range(30):
        with trio.CancelScope() as scope:
            scope.cancel(reason="the test wants to know")
            terminal = await terminals.spawn(Spawn(cwd="/", command="sleep 60"))
            await terminal.close()
