"""A terminal on a host: making and ending it, owners, input, output, and what outlives what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from actors import scrollback
from actors.host import Settings
from ahpd.protocol.uris import ROOT
from ahpd.terminals.port import (
    CommandBegan,
    CommandEnded,
    Detected,
    Fault,
    Moved,
    Output,
    SpawnFailed,
)
from supervisors import sys as actor_sys
from tests.actors.support import C, S, actions, answer, refused, room, settled, types
from tests.actors.terminals import (
    CLEARED,
    T2,
    T,
    bench,
    claim,
    claimed,
    of_session,
    resized,
    titled,
    typed,
)
from tests.harness import FileMedium, running_host


def row(**more: Any) -> dict[str, Any]:
    lifecycle = more.pop("lifecycle", {"status": "running"})
    return {"resource": T, "title": "puppet", "claim": claim(), "lifecycle": lifecycle, **more}


# ---- making and ending --------------------------------------------------------------------------


async def test_one_is_made_listed_and_named_after_what_runs_in_it() -> None:
    async with bench() as it:
        assert it.listed() == [row()]
        assert it.state() == {
            "title": "puppet", "cols": 80, "rows": 24, "content": [],
            "lifecycle": {"status": "running"}, "claim": claim(), "isPty": True,
        }  # fmt: skip
        assert [a["terminals"] for a in actions(it.bob, ROOT) if "terminals" in a] == [[row()]]


async def test_its_size_folder_and_name_are_those_asked_for() -> None:
    async with bench(Settings(served=("file:///w",))) as it:
        await it.ann.request(
            "createTerminal", channel=T2, claim=claim(), cols=101, rows=7, name="build",
            cwd="file:///w/a%20b",
        )  # fmt: skip
        spawn = it.process.spawn
        assert (spawn.cols, spawn.rows, spawn.cwd) == (101, 7, "/w/a b")
        assert it.state(T2)["cwd"] == "file:///w/a%20b"
        assert it.state(T2)["title"] == "build"


async def test_without_a_folder_it_is_the_first_that_is_served() -> None:
    async with bench(Settings(served=("file:///w", "file:///v"))) as it:
        assert it.process.spawn.cwd == "/w"


@pytest.mark.parametrize(
    ("params", "code", "words"),
    [
        ({"channel": T}, -32010, "exists already"),
        ({"channel": "ahp-chat:/x"}, -32602, "channel"),
        ({"channel": "file:///w"}, -32602, "channel"),
        ({"cols": 0, "rows": 0}, -32602, "cols: 0"),
        ({"cols": -1}, -32602, "cols: -1"),
        ({"cols": 1.5}, -32602, "cols: 1.5"),
        ({"rows": 65536}, -32602, "rows: 65536"),
        ({"rows": 1e9}, -32602, "rows: 1e+09"),
        ({"cols": "80"}, -32602, "cols"),
        ({"claim": claim("bob")}, -32602, "for itself"),
        ({"claim": of_session(S, "ahp-chat:/none")}, -32602, "no chat"),
        ({"claim": of_session("puppet:/other", C)}, -32602, "not of that session"),
        ({"claim": {"kind": "moon"}}, -32602, "not known here"),
        ({"name": " "}, -32602, "blank"),
        ({"cwd": "http://h/w"}, -32602, "no folder of this machine"),
        ({"cwd": "file:///v"}, -32009, "not served"),
        ({"cwd": "file:///w/../v"}, -32009, "not served"),
    ],
)
async def test_what_cannot_be_made_is_refused_and_leaves_nothing(
    params: dict[str, Any], code: int, words: str
) -> None:
    provoked = ("params/cols: expected number", "params/claim/kind: expected")
    async with bench(Settings(served=("file:///w",)), provoked=provoked) as it:
        with refused(code, words):
            await it.ann.request("createTerminal", **{"channel": T2, "claim": claim(), **params})
        assert it.listed() == [row()]
        assert len(it.terminals.started) == 1
        assert it.state(T2) is None


@pytest.mark.parametrize(
    ("fault", "code"),
    [(Fault.NOT_FOUND, -32008), (Fault.NOT_ALLOWED, -32009), (Fault.FAILED, -32603)],
)
async def test_a_process_that_cannot_be_started_is_told(fault: Fault, code: int) -> None:
    async with bench() as it:
        it.terminals.fails = SpawnFailed("there is no such thing", fault)
        with refused(code, "no such thing"):
            await it.ann.request("createTerminal", channel=T2, claim=claim())
        assert it.state(T2) is None
        it.terminals.fails = None
        await it.ann.request("createTerminal", channel=T2, claim=claim())


async def test_of_two_that_want_the_same_name_at_once_one_gets_it() -> None:
    async with bench() as it:
        it.terminals.takes = 1.0
        ids = [
            await peer.call("createTerminal", channel=T2, claim=claim(peer.name))
            for peer in (it.ann, it.bob)
        ]
        await it.ann.answer_to(ids[0])
        with refused(-32010):
            await it.bob.answer_to(ids[1])
        assert len(it.terminals.started) == 2


async def test_a_client_that_goes_while_one_is_made_leaves_nothing() -> None:
    async with bench() as it:
        it.terminals.takes = 5.0
        eve = await room(it.host, "eve")
        await eve.call("createTerminal", channel=T2, claim=claim("eve"))
        await settled()
        await eve.close()
        await trio.sleep(20)
        assert it.state(T2) is None or it.state(T2)["lifecycle"] == {"status": "running"}
        assert (it.state(T2) is None) == all(each.closed for each in it.terminals.started[1:])


async def test_a_host_without_terminals_says_so() -> None:
    async with running_host() as host:
        ann = await room(host)
        with refused(-32601, "no terminals"):
            await ann.request("createTerminal", channel=T, claim=claim())
        with refused(-32008):
            await ann.request("disposeTerminal", channel=T)


async def test_at_the_bound_what_has_ended_makes_room_and_else_nothing_does() -> None:
    async with bench(Settings(terminals=2)) as it:
        first = it.process
        await it.ann.request("createTerminal", channel=T2, claim=claim())
        with refused(-32011, "2 terminals"):
            await it.ann.request("createTerminal", channel="ahp-terminal:/t3", claim=claim())
        first.end(0)
        await settled()
        await it.ann.request("createTerminal", channel="ahp-terminal:/t3", claim=claim())
        assert [each["resource"] for each in it.listed()] == [T2, "ahp-terminal:/t3"]


async def test_disposing_ends_the_process_the_row_and_the_channel() -> None:
    async with bench() as it:
        assert await it.bob.request("disposeTerminal", channel=T) is None
        assert it.process.closed
        assert it.listed() == []
        with refused(-32008):
            await it.ann.subscribe(T)
        with refused(-32008):
            await it.ann.request("disposeTerminal", channel=T)
        assert "terminal/exited" not in types(it.ann, T)
        await it.ann.request("createTerminal", channel=T, claim=claim())


async def test_the_end_of_the_process_is_said_once_after_all_its_output() -> None:
    async with bench() as it:
        await it.shows("out")
        it.process.say("last")
        it.process.end(3)
        await settled()
        assert [a["type"] for a in actions(it.bob, T)] == [
            "terminal/data", "terminal/data", "terminal/exited",
        ]  # fmt: skip
        exited = {"status": "exited", "exitCode": 3}
        assert it.state()["lifecycle"] == exited
        assert it.listed() == [row(lifecycle=exited)]
        assert (await it.ann.subscribe(T))["state"]["lifecycle"] == exited


async def test_an_end_by_a_signal_has_no_code() -> None:
    async with bench() as it:
        it.process.end(None, 9)
        await settled()
        assert it.state()["lifecycle"] == {"status": "exited"}


async def test_one_that_ended_takes_no_input_size_or_owner_and_one_that_is_gone_no_answer() -> None:
    async with bench() as it:
        it.process.end(0)
        await settled()
        for action in (typed("x"), resized(90), claimed(claim())):
            reason = await it.why(action)
            assert reason is not None
            assert "ended" in reason
        assert await it.why(titled("old")) is None
        assert await it.why(CLEARED) is None
        await it.ann.request("disposeTerminal", channel=T)
        before = len(it.ann.inbox)
        await it.ann.dispatch(T, typed("x"))
        await settled()
        assert len(it.ann.inbox) == before


# ---- owners -------------------------------------------------------------------------------------


async def test_only_its_owner_hands_it_over() -> None:
    async with bench() as it:
        reason = await it.why(claimed(claim("bob")), who=it.bob)
        assert reason is not None
        assert "another client owns" in reason
        assert await it.why(claimed(claim("bob")), who=it.ann) is not None, "R-12.8"
        assert await it.why(claimed(of_session(S, C)), who=it.ann) is None
        assert it.listed() == [row(claim=of_session(S, C))]
        assert await it.why(claimed(claim())) is not None, "a session owns it now"


async def test_a_client_of_the_session_lets_a_call_be_done_and_takes_nothing() -> None:
    async with bench() as it:
        busy = of_session(S, C, turnId="t1", toolCallId="c1")
        assert await it.why(claimed(busy)) is None
        eve = await it.host.peer("eve")
        await eve.hello()
        await eve.subscribe(T)
        assert await it.why(claimed(of_session(S, C)), who=eve) is not None
        assert await it.why(claimed(of_session(S, C, turnId="t2")), who=it.bob) is not None
        assert await it.why(claimed(of_session(S, C)), who=it.bob) is None
        assert it.state()["claim"] == of_session(S, C)


async def test_what_a_client_left_for_good_goes_to_the_first_who_claims_it() -> None:
    async with bench() as it:
        await it.ann.close()
        await settled()
        assert await it.why(claimed(claim("bob")), who=it.bob) is not None
        await trio.sleep(it.host.tables.settings.grace + 1)
        eve = await room(it.host, "eve")
        await eve.subscribe(T)
        seqs = [(peer, await peer.dispatch(T, claimed(claim(peer.name)))) for peer in (it.bob, eve)]
        answers = []
        for peer, seq in seqs:
            answers.append((await answer(peer, seq)).get("rejectionReason"))
        assert answers[0] is None
        assert "another client owns" in answers[1]
        assert it.listed() == [row(claim=claim("bob"))]


async def test_a_session_takes_the_terminals_it_owns_with_it_and_no_others() -> None:
    async with bench() as it:
        owned = it.process
        assert await it.why(claimed(of_session(S, C))) is None
        await it.ann.request("createTerminal", channel=T2, claim=claim())
        await it.ann.request("disposeSession", channel=S)
        await settled()
        assert owned.closed
        assert [each["resource"] for each in it.listed()] == [T2]
        assert not it.process.closed


# ---- input --------------------------------------------------------------------------------------


async def test_what_is_typed_is_echoed_to_all_and_written_once() -> None:
    async with bench() as it:
        assert await it.why(typed("ls\r")) is None
        assert await it.why(typed("ä\x03"), who=it.bob) is None
        assert it.process.typed == "ls\rä\x03".encode()
        assert types(it.bob, T).count("terminal/input") == 1, "his own answer was taken out"


async def test_inputs_of_two_do_not_mix_within_themselves() -> None:
    async with bench() as it:
        for number in range(500):
            await it.ann.dispatch(T, typed(f"<a{number:04}>"))
            await it.bob.dispatch(T, typed(f"<b{number:04}>"))
        await settled()
        parts = it.process.typed.decode().removeprefix("<").removesuffix(">").split("><")
        for name in "ab":
            mine = [part for part in parts if part[0] == name]
            assert mine == [f"{name}{number:04}" for number in range(500)]
        assert len(parts) == 1000


async def test_what_is_too_much_is_refused_and_nobody_else_waits() -> None:
    async with bench(Settings(terminal_input_bytes=1000)) as it:
        it.process.is_deaf = True
        assert await it.why(typed("x" * 900)) is None
        reason = await it.why(typed("é" * 51))
        assert reason is not None
        assert "102 bytes" in reason
        assert await it.why(typed("y" * 100)) is None
        assert await it.ann.request("ping") is None
        assert await it.why(resized(90, 30)) is None
        it.process.hear()
        await settled()
        assert it.process.typed == b"x" * 900 + b"y" * 100
        assert await it.why(typed("z" * 1000)) is None
        it.process.is_deaf = True
        await it.ann.request("disposeTerminal", channel=T)


# ---- sizes, titles, clearing --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cols", "rows"), [(0, 0), (-1, 24), (1.5, 24), (65536, 24), (80, 1e9), ("80", 24), (80, None)]
)
async def test_a_size_that_cannot_be_is_refused(cols: Any, rows: Any) -> None:
    async with bench(provoked=("expected number",)) as it:
        assert await it.why(resized(cols, rows)) is not None
        assert (it.state()["cols"], it.state()["rows"]) == (80, 24)
        assert it.process.sizes == []


async def test_of_many_sizes_the_last_counts() -> None:
    async with bench() as it:
        for cols in range(1, 1001):
            await (it.ann, it.bob)[cols % 2].dispatch(T, resized(cols, 30))
        await settled()
        cols = it.state()["cols"]
        assert it.process.sizes[-1] == (cols, 30)
        assert await it.why(resized(1, 1)) is None


async def test_a_title_is_told_in_the_list_and_a_blank_one_refused() -> None:
    async with bench() as it:
        assert await it.why(titled(""), who=it.bob) is not None
        assert await it.why(titled("make"), who=it.bob) is None
        assert it.listed() == [row(title="make")]


async def test_clearing_empties_the_content_alone() -> None:
    async with bench() as it:
        await it.shows("out")
        before = it.state()
        assert await it.why(CLEARED, who=it.bob) is None
        assert it.state() == {**before, "content": []}
        await it.shows("more")
        assert it.text() == "more"


async def test_what_is_the_hosts_to_say_is_refused() -> None:
    async with bench() as it:
        for action in (
            {"type": "terminal/data", "data": "x"},
            {"type": "terminal/exited"},
            {"type": "terminal/cwdChanged", "cwd": "file:///"},
            {"type": "terminal/commandDetectionAvailable"},
        ):
            reason = await it.why(action)
            assert reason is not None
            assert "host's to say" in reason


# ---- output -------------------------------------------------------------------------------------


async def test_commands_are_told_apart_with_code_and_duration() -> None:
    async with bench() as it:
        await it.shows("$ ", Detected(), Detected(), CommandBegan("make"), "out")
        await trio.sleep(1.5)
        await it.shows(CommandEnded(2), "$ ", Moved("file:///w"), CommandEnded(0))
        state = it.state()
        assert state["supportsCommandDetection"] is True
        assert state["cwd"] == "file:///w"
        before, command, after = state["content"]
        assert (before["value"], after["value"]) == ("$ ", "$ ")
        id, stamp = command.pop("commandId"), command.pop("timestamp")
        assert id
        assert stamp > 1e12
        assert command == {
            "type": "command", "commandLine": "make", "output": "out", "isComplete": True,
            "exitCode": 2, "durationMs": 1500,
        }  # fmt: skip
        assert types(it.bob, T).count("terminal/commandDetectionAvailable") == 1


async def test_a_command_that_ran_when_the_process_ended_is_over_too() -> None:
    async with bench() as it:
        await it.shows(CommandBegan("exit"))
        it.process.end(0)
        await settled()
        (part,) = it.state()["content"]
        assert part["isComplete"] is True
        assert "exitCode" not in part
        assert types(it.bob, T)[-2:] == ["terminal/commandFinished", "terminal/exited"]


async def test_old_output_is_forgotten_and_a_late_comer_sees_the_newest() -> None:
    async with bench(Settings(scrollback=10_000)) as it:
        for number in range(3000):
            it.process.say(f"line {number:05}\n")
            if number % 100 == 0:
                await settled()
        await settled()
        text = it.text()
        assert 10_000 - 200 <= len(text) <= 12_500 + 100
        assert text.endswith("line 02999\n")
        assert text.startswith("line ")
        heard = [a["data"] for a in actions(it.bob, T) if a["type"] == "terminal/data"]
        assert "".join(heard) == "".join(f"line {number:05}\n" for number in range(3000))


async def test_a_flood_is_read_no_faster_than_it_goes_out() -> None:
    async with bench() as it:
        it.host.journal.longest = 5.0  # type: ignore[attr-defined]
        taken = 0
        original = it.process.read

        async def read() -> Any:
            nonlocal taken
            it.process.say("x" * (64 << 10))
            pieces = await original()
            taken += sum(len(piece.text) for piece in pieces if isinstance(piece, Output))
            return pieces

        it.process.read = read  # type: ignore[method-assign]
        it.process.say("go")
        for _ in range(100):
            await trio.sleep(0.5)
            assert it.host.tables.ledger.room.taken <= 512 << 10
        assert taken > 512 << 10, "it goes on"
        it.process.read = original  # type: ignore[method-assign]
        it.host.journal.longest = 0.0  # type: ignore[attr-defined]


async def test_one_who_reads_nothing_holds_the_others_up_once_and_is_cut_off() -> None:
    settings = Settings(client_queue_bytes=2 << 20)
    async with bench(settings, capacity=2) as it:
        it.bob.stall()
        for _ in range(100):
            it.process.say("x" * (64 << 10))
            await trio.sleep(0.5)
        await settled()
        heard = sum(len(a["data"]) for a in actions(it.ann, T) if a["type"] == "terminal/data")
        assert heard == 100 * (64 << 10)
        it.bob.resume()
        await it.bob.ended()


# ---- what outlives what -------------------------------------------------------------------------


async def test_an_actor_that_is_killed_ends_the_process_and_keeps_the_record() -> None:
    async with bench() as it:
        await it.shows("kept")
        channel = it.host.ledger.find(T)
        assert channel is not None
        actor_sys.kill(it.host.system.ref(channel.path))
        await trio.sleep(5)
        assert it.process.closed
        assert types(it.bob, T)[-1] == "terminal/exited"
        assert types(it.bob, T).count("terminal/exited") == 1
        assert it.listed() == [row(lifecycle={"status": "exited"})]
        assert it.text() == "kept"
        assert await it.why(titled("was")) is None, "what is left is served"
        await it.ann.request("disposeTerminal", channel=T)


@pytest.mark.parametrize("how", ["kill", "stop"])
async def test_after_a_restart_it_has_exited_and_can_be_read(how: str, tmp_path: Path) -> None:
    async with bench(journal=FileMedium(tmp_path / "j.db")) as it:
        await it.shows("kept", CommandBegan("sleep"))
        if how == "kill":
            await it.host.restart()
        else:
            await it.host.stop()
            await it.host.start()
        ann = await it.host.peer("ann")
        await ann.hello()
        await settled()
        state = (await ann.subscribe(T))["state"]
        assert state["lifecycle"] == {"status": "exited"}
        shown = [part.get("isComplete", part.get("value")) for part in state["content"]]
        assert shown == [
            "kept", True,
        ]  # fmt: skip
        assert it.listed() == [row(lifecycle={"status": "exited"})]
        await ann.request("disposeTerminal", channel=T)
        await it.host.restart()
        assert it.listed() in ([], None)
        assert it.state() is None


async def test_what_it_counts_is_what_there_is() -> None:
    async with bench(Settings(scrollback=3000)) as it:
        channel = it.host.ledger.find(T)
        assert channel is not None
        for number in range(200):
            await it.shows("$ ", CommandBegan(f"c{number}"), "out" * (number % 9), CommandEnded(0))
            held: Any = actor_sys.inspect(it.host.system.ref(channel.path))
            assert held.state["_size"] == scrollback.size(channel.state)
            assert held.state["_size"] <= 3750 + 300
