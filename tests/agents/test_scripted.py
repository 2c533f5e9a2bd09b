"""The scripted agent plays: every step, exact timing, fast streams, failure and resume."""

from __future__ import annotations

import json
import tracemalloc
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
import trio
import trio.testing

from ahpd.agents.builtin import BUILTIN
from ahpd.agents.events import (
    ActivityChanged,
    Done,
    Event,
    Failed,
    Outcome,
    Stopped,
    TextChunk,
    ThoughtChunk,
    TitleProposed,
    ToolFinished,
    ToolInputChunk,
    ToolOutput,
    ToolReady,
    ToolStarted,
    UsageReport,
    WorkerSays,
)
from ahpd.agents.playing import ScriptedBackend
from ahpd.agents.plays import BATCH, ScriptedCrash
from ahpd.agents.port import Agent, AgentFailed
from ahpd.agents.script import parse_script
from ahpd.agents.scripted import ScriptedAgent
from ahpd.protocol.faults import faults
from ahpd.protocol.model import JSON
from ahpd.protocol.root import AgentInfo
from ahpd.protocol.shapes import shape_of
from ahpd.protocol.tools import ToolResultContent, ToolResultTextContent
from tests.agents.support import REQUEST, Screen, backend, opened, prompt


def text(value: str) -> ToolResultContent:
    return ToolResultTextContent(text=value)


async def test_an_agent_describes_itself() -> None:
    agent: Agent = ScriptedAgent("robot", BUILTIN)
    info = agent.info
    assert info.provider == "robot"
    assert "robot" in info.display_name
    assert info.description
    assert [model.provider for model in info.models] == ["robot", "robot"]
    assert info.capabilities is not None
    assert info.capabilities.multiple_chats is not None
    assert not list(faults(shape_of(AgentInfo), info.wire(), strict=True))
    assert isinstance(await agent.open(REQUEST), ScriptedBackend)


CALL = "t1-call-1"
PLAYED: list[tuple[JSON, list[Event], Outcome]] = [
    ({"text": "a"}, [TextChunk("a")], Done()),
    ({"text": "a", "times": 3}, [TextChunk("a")] * 3, Done()),
    ({"thought": "a", "times": 2}, [ThoughtChunk("a")] * 2, Done()),
    ({"title": "a"}, [TitleProposed("a")], Done()),
    ({"activity": "a"}, [ActivityChanged("a")], Done()),
    ({"activity": None}, [ActivityChanged(None)], Done()),
    ({"sleepMs": 5}, [], Done()),
    ({"echo": True}, [TextChunk("hello")], Done()),
    ({"fail": "a"}, [], Failed("a")),
    ({"fail": "a", "resumable": True}, [], Failed("a", resumable=True)),
    ({"usage": {}}, [UsageReport()], Done()),
    (
        {
            "usage": {
                "inputTokens": 1,
                "outputTokens": 2,
                "cacheReadTokens": 3,
                "model": "m",
                "_meta": {"cost": 4},
            }
        },
        [UsageReport(1, 2, 3, "m", {"cost": 4})],
        Done(),
    ),
    (
        {"tool": {"name": "look"}},
        [
            ToolStarted(CALL, "look", "look"),
            ToolReady(CALL, "look"),
            ToolFinished(CALL, success=True, message="look: done"),
        ],
        Done(),
    ),
    (
        {
            "tool": {
                "name": "look",
                "title": "Look",
                "input": {"a": 1},
                "output": "1\n2\n3\n",
                "takesMs": 10,
            }
        },
        [
            ToolStarted(CALL, "look", "Look"),
            ToolInputChunk(CALL, '{"a":1}'),
            ToolReady(CALL, "Look", '{"a":1}'),
            ToolOutput(CALL, (text("1\n2\n"),)),
            ToolFinished(CALL, success=True, message="Look: done", content=(text("1\n2\n3\n"),)),
        ],
        Done(),
    ),
    (
        {"tool": {"name": "look", "input": "x" * 70, "output": "abc", "takesMs": 1, "fail": True}},
        [
            ToolStarted(CALL, "look", "look"),
            ToolInputChunk(CALL, "x" * 64),
            ToolInputChunk(CALL, "x" * 6),
            ToolReady(CALL, "look", "x" * 70),
            ToolOutput(CALL, (text("ab"),)),
            ToolFinished(
                CALL, success=False, message="look: failed", content=(text("abc"),), error="abc"
            ),
        ],
        Done(),
    ),
    (
        {"tool": {"name": "look", "input": {}, "takesMs": 1, "fail": True}},
        [
            ToolStarted(CALL, "look", "look"),
            ToolReady(CALL, "look", "{}"),
            ToolFinished(CALL, success=False, message="look: failed", error="look failed"),
        ],
        Done(),
    ),
]


@pytest.mark.parametrize(("step", "events", "outcome"), PLAYED, ids=lambda v: str(v)[:40])
async def test_each_step_gives_its_events(
    step: JSON, events: list[Event], outcome: Outcome
) -> None:
    screen = Screen()
    assert await backend(step).prompt(prompt(), screen) == outcome
    assert screen.events == events


async def test_a_crash_raises() -> None:
    player, screen = backend({"text": "a"}, {"crash": "gone"}, {"text": "b"}), Screen()
    with pytest.raises(ScriptedCrash, match="gone"):
        await player.prompt(prompt(), screen)
    assert screen.text == "a"


async def test_an_echo_of_nothing_says_nothing() -> None:
    screen = Screen()
    assert await backend({"echo": True}).prompt(prompt(""), screen) == Done()
    assert screen.events == []


async def test_a_prompt_that_nothing_fits_is_said_back() -> None:
    player, screen = await opened({"turns": []}), Screen()
    assert await player.prompt(prompt("anybody there?"), screen) == Done()
    assert screen.text == "anybody there?"


async def test_call_ids_tell_calls_and_turns_apart_and_are_the_same_in_every_run() -> None:
    look: JSON = {"tool": {"name": "look"}}
    runs = []
    for _ in range(2):
        player, screen = backend(look, {"text": "a"}, look), Screen()
        for turn in ("t1", "t2"):
            await player.prompt(prompt(turn_id=turn), screen)
        runs.append([each.call_id for each in screen.events if isinstance(each, ToolStarted)])
    assert runs[0] == ["t1-call-1", "t1-call-3", "t2-call-1", "t2-call-3"] == runs[1]


# --- time ----------------------------------------------------------------------------------------


async def test_paced_text_comes_one_at_a_time_on_exact_ticks() -> None:
    player, screen = backend({"text": "a", "times": 1000, "everyMs": 7}), Screen()
    start = trio.current_time()
    assert await player.prompt(prompt(), screen) == Done()
    assert screen.calls == [1] * 1000
    assert screen.times == [start + tick * 7 / 1000 for tick in range(1000)]


@pytest.mark.parametrize("every_ms", [0, 20])
async def test_the_time_is_said_anew_each_time(every_ms: int) -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
    steps: JSON = {"turns": [{"steps": [{"now": True, "times": 3, "everyMs": every_ms}]}]}
    start = trio.current_time()
    player = ScriptedBackend(
        parse_script(steps), now=lambda: now + timedelta(seconds=trio.current_time() - start)
    )
    screen = Screen()
    assert await player.prompt(prompt(), screen) == Done()
    assert screen.calls == [1] * 3
    first = 1_767_323_045_678_901
    assert [int(said) for said in screen.text.split()] == [
        first + tick * every_ms * 1000 for tick in range(3)
    ]


async def test_a_worker_says_the_time_in_its_own_chat() -> None:
    screen = Screen()
    worker: JSON = {"worker": {"title": "clock", "steps": [{"now": True}]}}
    await backend(worker).prompt(prompt(), screen)
    (said,) = screen.only(WorkerSays)
    assert isinstance(said, WorkerSays)
    (chunk,) = said.events
    assert isinstance(chunk, TextChunk)
    assert len(chunk.text) == 17


async def test_a_slow_sink_does_not_make_paced_text_drift() -> None:
    times: list[float] = []

    async def slow(_: object) -> None:
        times.append(trio.current_time())
        # Once far longer than a tick, otherwise somewhat shorter.
        await trio.sleep(0.25 if len(times) == 3 else 0.09)

    start = trio.current_time()
    await backend({"text": "a", "times": 10, "everyMs": 100}).prompt(prompt(), slow)
    at = [round(time - start, 6) for time in times]
    assert at == [0, 0.1, 0.2, 0.45, 0.54, 0.63, 0.72, 0.81, 0.9, 0.99]


async def test_sleep_and_tools_take_the_time_they_say() -> None:
    player = backend(
        {"text": "a"},
        {"sleepMs": 1500},
        {"tool": {"name": "look", "output": "ab", "takesMs": 400}},
    )
    screen, start = Screen(), trio.current_time()
    await player.prompt(prompt(), screen)
    at = [(type(e).__name__, t - start) for e, t in zip(screen.events, screen.times, strict=True)]
    assert at == [
        ("TextChunk", 0),
        ("ToolStarted", 1.5),
        ("ToolReady", 1.5),
        ("ToolOutput", pytest.approx(1.7)),
        ("ToolFinished", pytest.approx(1.9)),
    ]


async def test_a_fast_stream_comes_in_batches_and_leaves_nothing_behind() -> None:
    count, calls = 0, 0

    async def sink(events: object) -> None:
        nonlocal count, calls
        assert isinstance(events, tuple)
        assert len(events) <= BATCH
        count, calls = count + len(events), calls + 1

    player = backend({"text": "word ", "times": 100_000})
    tracemalloc.start()
    try:
        assert await player.prompt(prompt(), sink) == Done()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 100_000
    assert calls == -(-100_000 // BATCH)
    assert peak < 200_000


async def test_a_fast_stream_lets_others_run_though_its_sink_never_waits() -> None:
    player, screen = backend({"text": "a", "times": 10_000_000}), Screen()

    async def stop_soon() -> None:
        for _ in range(10):
            await trio.lowlevel.checkpoint()
        player.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(stop_soon)
        assert await player.prompt(prompt(), screen) == Stopped()
    assert len(screen.events) <= 20 * BATCH


async def test_a_large_tool_input_is_sent_in_bounded_calls() -> None:
    player, screen = backend({"tool": {"name": "w", "input": {"text": "x" * 100_000}}}), Screen()
    await player.prompt(prompt(), screen)
    assert max(screen.calls) == BATCH
    pieces = [each.text for each in screen.events if isinstance(each, ToolInputChunk)]
    assert json.loads("".join(pieces)) == {"text": "x" * 100_000}


# --- failure and resume --------------------------------------------------------------------------

FAILING: list[JSON] = [
    {"text": "a"},
    {"fail": "one", "resumable": True},
    {"tool": {"name": "look"}},
    {"fail": "two", "resumable": True},
    {"echo": True},
]


async def test_a_resumed_turn_goes_on_after_the_step_that_failed() -> None:
    player, screen = backend(*FAILING), Screen()
    assert await player.prompt(prompt(), screen) == Failed("one", resumable=True)
    assert await player.prompt(prompt(resume=True), screen) == Failed("two", resumable=True)
    assert await player.prompt(prompt(resume=True), screen) == Done()
    assert screen.text == "ahello"
    ids = [each.call_id for each in screen.events if isinstance(each, ToolStarted)]
    assert ids == ["t1-call-3"]


async def test_a_new_turn_after_a_failed_one_starts_from_the_beginning() -> None:
    player, screen = backend(*FAILING), Screen()
    await player.prompt(prompt(), screen)
    assert await player.prompt(prompt(turn_id="t2"), screen) == Failed("one", resumable=True)
    assert screen.text == "aa"


@pytest.mark.parametrize("end", [{"fail": "one", "resumable": True}, {"crash": "one"}])
async def test_a_new_backend_resumes_after_the_first_failure_of_the_entry(end: JSON) -> None:
    player, screen = backend({"text": "a"}, end, {"text": "b"}), Screen()
    assert await player.prompt(prompt(resume=True), screen) == Done()
    assert screen.text == "b"


async def test_calls_that_a_new_backend_repeats_have_ids_of_their_own() -> None:
    steps: JSON = [{"tool": {"name": "look"}}, {"sleepMs": 10}, {"tool": {"name": "look"}}]
    agent = ScriptedAgent("x", parse_script({"turns": [{"steps": steps}]}), Random(1))
    assert agent.can_resume
    ids = []
    for resume in (False, True, True):
        screen = Screen()
        player = await agent.open(REQUEST)
        with trio.move_on_after(0.005):  # killed between the two calls
            await player.prompt(prompt(resume=resume), screen)
        await player.prompt(prompt(resume=True), screen)
        ids += [each.call_id for each in screen.events if isinstance(each, ToolStarted)]
    assert ids[:2] == ["t1-call-1", "t1-call-3"]
    assert len(set(ids)) == len(ids) == 6
    assert [each[: len("t1-call-1")] for each in ids[2:]] == ids[:2] * 2


async def test_resuming_what_never_fails_plays_all_of_it() -> None:
    player, screen = backend({"text": "a"}, {"text": "b"}), Screen()
    assert await player.prompt(prompt(resume=True), screen) == Done()
    assert screen.text == "ab"


# --- life ----------------------------------------------------------------------------------------


async def test_one_turn_at_a_time() -> None:
    player = backend({"hang": True})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(player.prompt, prompt(), Screen())
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(AssertionError, match="one turn at a time"):
            await player.prompt(prompt(turn_id="t2"), Screen())
        player.cancel()


async def test_after_a_close_nothing_plays() -> None:
    player = backend({"text": "a"})
    await player.close()
    with pytest.raises(AgentFailed):
        await player.prompt(prompt(), Screen())


async def test_a_backend_can_be_closed_after_its_crash() -> None:
    player = backend({"crash": "gone"})
    with pytest.raises(ScriptedCrash):
        await player.prompt(prompt(), Screen())
    await player.close()


async def test_an_error_of_the_sink_comes_out_and_the_turn_is_over() -> None:
    async def broken(_: object) -> None:
        raise OSError("no")

    player, screen = backend({"text": "a"}), Screen()
    with pytest.raises(OSError, match="no"):
        await player.prompt(prompt(), broken)
    assert not player.steer(prompt().message)
    assert await player.prompt(prompt(turn_id="t2"), screen) == Done()
