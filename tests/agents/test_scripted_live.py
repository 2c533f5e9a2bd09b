"""A scripted turn while others act on it: permissions, steering, cancel at every step, close."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest
import trio
import trio.testing

from ahpd.agents.events import (
    Done,
    Event,
    Outcome,
    Stopped,
    TextChunk,
    ToolAsks,
    ToolFinished,
)
from ahpd.agents.playing import CLOSE_WITHIN, ScriptedBackend
from ahpd.agents.port import AgentFailed, Permission
from ahpd.agents.script import parse_script
from ahpd.agents.scripted import ScriptedAgent
from ahpd.protocol.model import JSON
from ahpd.protocol.tools import ToolResultTextContent
from tests.agents.support import REQUEST, Running, Screen, backend, blocked, message, prompt

ASK: JSON = {
    "tool": {
        "name": "write",
        "input": "old",
        "confirm": True,
        "options": [
            {"id": "yes", "label": "Yes", "kind": "approve"},
            {"id": "no", "label": "No", "kind": "deny"},
        ],
        "output": "written",
        "takesMs": 1000,
    }
}
CALL = "t1-call-1"
STEER = "\n(steered: left)\n"


async def settled() -> None:
    await trio.testing.wait_all_tasks_blocked()


# --- permissions ---------------------------------------------------------------------------------


async def test_a_call_that_asks_says_all_that_a_person_must_know() -> None:
    turn = Running(backend(ASK))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn.run, prompt())
        await settled()
        (asked,) = turn.screen.only(ToolAsks)
        assert isinstance(asked, ToolAsks)
        assert (asked.call_id, asked.input, asked.editable) == (CALL, "old", True)
        assert [option.id for option in asked.options] == ["yes", "no"]
        await trio.sleep(3600)
        assert turn.outcome is None, "it waits as long as it takes"
        answered = trio.current_time()
        turn.backend.answer(Permission(CALL, approved=True, option_id="yes"))
    assert turn.outcome == Done()
    assert trio.current_time() == pytest.approx(answered + 1), "time runs from the answer"
    (finished,) = turn.screen.only(ToolFinished)
    assert isinstance(finished, ToolFinished)
    assert finished.success
    assert finished.content == (ToolResultTextContent(text="written"),)


async def test_a_call_without_input_cannot_be_edited() -> None:
    player = backend({"tool": {"name": "write", "confirm": True}})
    screen = Screen(lambda event: player.answer(Permission(CALL, approved=False)))
    await player.prompt(prompt(), screen)
    assert screen.events[-1] == ToolAsks(CALL, "write", title="Allow write?")


@pytest.mark.parametrize("edited", ["new", ""])
async def test_a_call_runs_with_the_input_somebody_edited(edited: str) -> None:
    player = backend(ASK)
    screen = Screen(lambda _: player.answer(Permission(CALL, approved=True, input=edited)))
    assert await player.prompt(prompt(), screen) == Done()
    finished = screen.events[-1]
    assert isinstance(finished, ToolFinished)
    said = [part.text for part in finished.content if isinstance(part, ToolResultTextContent)]
    assert said == ["written", f"(ran with the edited input: {edited})"]


async def test_input_sent_back_unchanged_is_not_an_edit() -> None:
    player = backend(ASK)
    screen = Screen(lambda _: player.answer(Permission(CALL, approved=True, input="old")))
    await player.prompt(prompt(), screen)
    finished = screen.events[-1]
    assert isinstance(finished, ToolFinished)
    assert len(finished.content) == 1


async def test_a_denied_call_does_not_run_and_the_script_goes_on() -> None:
    player = backend(ASK, {"text": "then"})
    start = trio.current_time()
    no = Permission(CALL, approved=False, option_id="no", reason="not now")
    screen = Screen(lambda _: player.answer(no))
    assert await player.prompt(prompt(), screen) == Done()
    assert screen.only(ToolFinished) == []
    assert screen.text == "then"
    assert trio.current_time() == start


async def test_the_first_answer_counts_and_unknown_calls_are_ignored() -> None:
    turn = Running(backend(ASK, {"text": "then"}))
    turn.backend.answer(Permission(CALL, approved=True))  # nothing runs yet
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn.run, prompt())
        await settled()
        turn.backend.answer(Permission("other", approved=True))
        await settled()
        assert turn.outcome is None
        turn.backend.answer(Permission(CALL, approved=False))
        turn.backend.answer(Permission(CALL, approved=True))
    assert turn.outcome == Done()
    assert turn.screen.only(ToolFinished) == []
    turn.backend.answer(Permission(CALL, approved=True))  # nor any more


async def test_an_answer_given_early_is_not_kept_for_a_call_that_has_not_asked() -> None:
    turn = Running(backend({"sleepMs": 10}, ASK))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn.run, prompt())
        await settled()
        turn.backend.answer(Permission("t1-call-2", approved=True))
        await trio.sleep(1)
        assert turn.outcome is None
        turn.backend.cancel()
    assert turn.outcome == Stopped()


# --- steering ------------------------------------------------------------------------------------


async def test_steering_is_said_at_the_next_boundary_of_steps() -> None:
    turn = Running(backend({"text": "a", "times": 5, "everyMs": 100}, {"text": "b"}))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn.run, prompt())
        await trio.sleep(0.15)
        assert turn.backend.steer(message("left"))
    assert turn.screen.text == "aaaaa" + STEER + "b"


@pytest.mark.parametrize(
    "step",
    [{"hang": True}, {"sleepMs": 3_600_000}, {"tool": {"name": "x", "takesMs": 3_600_000}}, ASK],
    ids=["hang", "sleep", "tool", "permission"],
)
async def test_steering_is_said_at_once_while_the_script_waits(step: JSON) -> None:
    turn = Running(backend(step))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn.run, prompt())
        await trio.sleep(1)
        for _ in range(2):
            assert turn.backend.steer(message("left"))
            await settled()
        assert turn.screen.text == STEER * 2
        assert turn.screen.times[-1] == 1
        turn.backend.cancel()
    assert turn.outcome == Stopped()


async def test_steering_does_not_lengthen_a_wait() -> None:
    turn = Running(backend({"sleepMs": 1000}))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn.run, prompt())
        await trio.sleep(0.9)
        turn.backend.steer(message("left"))
    assert turn.outcome == Done()
    assert trio.current_time() == pytest.approx(1)


async def test_steering_during_a_tools_events_is_said_while_the_tool_runs() -> None:
    player = backend({"tool": {"name": "x", "takesMs": 3_600_000}})
    steered: list[bool] = []

    def steer(event: Event) -> None:
        if not steered:
            steered.append(player.steer(message("left")))

    screen = Screen(steer)
    with trio.move_on_after(1):
        await player.prompt(prompt(), screen)
    assert screen.text == STEER


async def test_steering_during_the_last_event_is_still_said() -> None:
    player = backend({"text": "a"})
    left = ["left", "right"]
    screen = Screen(lambda _: left and player.steer(message(left.pop(0))))  # type: ignore[arg-type]
    assert await player.prompt(prompt(), screen) == Done()
    assert screen.text == "a" + STEER + STEER.replace("left", "right")


async def test_a_backend_at_rest_cannot_be_steered() -> None:
    player = backend({"text": "a"})
    assert not player.steer(message("left"))
    await player.prompt(prompt(), Screen())
    assert not player.steer(message("left"))


async def test_a_cancelled_turn_cannot_be_steered_any_more() -> None:
    turn = Running(backend({"hang": True}))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn.run, prompt())
        await settled()
        turn.backend.cancel()
        assert not turn.backend.steer(message("left"))


# --- cancel --------------------------------------------------------------------------------------

EVERY_STEP: JSON = [
    {"title": "a"},
    {"activity": "a"},
    {"thought": "a", "times": 3},
    {"text": "a", "times": 3},
    {"text": "a", "times": 3, "everyMs": 10},
    {"tool": {"name": "x", "input": {"a": 1}, "output": "ab", "takesMs": 10}},
    ASK,
    {"usage": {"inputTokens": 1}},
    {"sleepMs": 10},
    {"echo": True},
    {"activity": None},
]
ASKING = "t1-call-7"


@attrs.define(eq=False)
class CutAt(trio.abc.Instrument):
    """Cancels the turn when the task that plays it has taken `step` steps."""

    player: ScriptedBackend
    step: int
    task: trio.lowlevel.Task | None = None
    steps: int = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self.task:
            self.steps += 1
            if self.steps == self.step:
                self.player.cancel()


async def played(step: int) -> tuple[Outcome, CutAt, Screen, float]:
    """Play all kinds of steps and cancel at one step of the task; the time the end took."""
    player = backend(*EVERY_STEP)
    cut = CutAt(player, step)
    screen = Screen()
    screen.then = lambda _: player.answer(Permission(ASKING, approved=True))
    cut.task = trio.lowlevel.current_task()
    trio.lowlevel.add_instrument(cut)
    try:
        outcome = await player.prompt(prompt(), screen)
    finally:
        trio.lowlevel.remove_instrument(cut)
    return outcome, cut, screen, trio.current_time()


async def test_a_cancel_at_any_step_of_the_task_stops_the_turn() -> None:
    outcome, whole, full, _ = await played(0)
    assert outcome == Done()
    assert whole.steps > 20
    assert isinstance(full.events[-1], Event.__args__)
    for step in range(1, whole.steps + 1):
        outcome, cut, screen, _ = await played(step)
        assert outcome == Stopped(), step
        assert cut.steps <= step + 1, "one step to see the cancel, none to go on"
        assert screen.events == full.events[: len(screen.events)]


async def test_no_event_comes_after_a_cancel_given_at_any_event() -> None:
    whole = Screen()
    player = backend(*EVERY_STEP)
    whole.then = lambda _: player.answer(Permission(ASKING, approved=True))
    await player.prompt(prompt(), whole)
    for cut in range(len(whole.events)):
        player, screen, at = backend(*EVERY_STEP), Screen(), [0.0, 0.0]

        def stop(_: Event, cut: int = cut, player: ScriptedBackend = player) -> None:
            player.answer(Permission(ASKING, approved=True))
            if len(screen.events) == cut + 1:  # noqa: B023 - called in this round only
                at[:] = [trio.current_time(), len(screen.calls)]  # noqa: B023
                player.cancel()

        screen.then = stop
        assert await player.prompt(prompt(), screen) == Stopped()
        assert [trio.current_time(), len(screen.calls)] == at


@pytest.mark.parametrize(
    "step",
    [
        {"hang": True},
        {"sleepMs": 3_600_000},
        {"text": "a", "times": 1000, "everyMs": 10_000},
        {"tool": {"name": "x", "takesMs": 3_600_000}},
        ASK,
    ],
    ids=["hang", "sleep", "text", "tool", "permission"],
)
async def test_a_cancel_ends_every_wait_at_once(step: JSON) -> None:
    turn = Running(backend(step, {"text": "never"}))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn.run, prompt())
        await trio.sleep(5)
        turn.backend.cancel()
        turn.backend.cancel()  # twice is once
    assert turn.outcome == Stopped()
    assert trio.current_time() == 5
    assert "never" not in turn.screen.text


async def test_a_cancel_gets_through_a_blocked_sink() -> None:
    player, outcomes = backend({"text": "a"}), list[Outcome]()

    async def run() -> None:
        outcomes.append(await player.prompt(prompt(), blocked))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await trio.sleep(1)
        player.cancel()
    assert outcomes == [Stopped()]
    assert trio.current_time() == 1


async def test_a_cancel_during_the_very_last_event_counts() -> None:
    player = backend({"text": "a"})

    def act(event: Event) -> None:
        if event == TextChunk("a"):
            player.steer(message("left"))
        else:
            player.cancel()

    screen = Screen(act)
    assert await player.prompt(prompt(), screen) == Stopped()
    assert screen.text == "a" + STEER


async def test_a_cancel_without_a_turn_does_not_touch_the_next() -> None:
    player, screen = backend({"text": "a"}), Screen()
    player.cancel()
    assert await player.prompt(prompt(), screen) == Done()
    player.cancel()
    assert await player.prompt(prompt(turn_id="t2"), screen) == Done()


async def test_after_a_cancelled_turn_the_next_one_plays_and_asks_anew() -> None:
    turn = Running(backend(ASK))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn.run, prompt())
        await settled()
        turn.backend.cancel()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn.run, prompt(turn_id="t2"))
        await settled()
        turn.backend.answer(Permission(CALL, approved=True))  # of the turn that is over
        turn.backend.answer(Permission("t2-call-1", approved=False))
    assert turn.outcome == Done()


async def test_a_cancel_from_outside_is_not_taken_for_the_turns_own() -> None:
    player = backend({"hang": True})
    with trio.move_on_after(1) as scope:
        await player.prompt(prompt(), Screen())
    assert scope.cancelled_caught
    assert not player.steer(message("left")), "the turn is over"


# --- close ---------------------------------------------------------------------------------------


async def test_close_stops_a_running_turn_and_waits_for_its_end() -> None:
    turn = Running(backend({"hang": True}))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn.run, prompt())
        await settled()
        await turn.backend.close()
        assert not turn.backend.steer(message("left"))
    assert turn.outcome == Stopped()
    assert trio.current_time() == 0
    with pytest.raises(AgentFailed):
        await turn.backend.prompt(prompt(turn_id="t2"), Screen())


async def test_close_is_bounded_though_the_sink_shields_itself() -> None:
    player = backend({"text": "a"})

    async def stubborn(_: Sequence[Event]) -> None:
        with trio.move_on_after(60, shield=True):
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(player.prompt, prompt(), stubborn)
        await settled()
        await player.close()
        assert trio.current_time() == CLOSE_WITHIN


# --- several backends ----------------------------------------------------------------------------


async def test_backends_of_one_agent_do_not_know_of_each_other() -> None:
    agent = ScriptedAgent("x", parse_script({"turns": [{"steps": [ASK, {"echo": True}]}]}))
    first, second = [Running(await agent.open(REQUEST)) for _ in range(2)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(first.run, prompt("one"))
        nursery.start_soon(second.run, prompt("two"))
        await settled()
        first.backend.steer(message("left"))
        first.backend.answer(Permission(CALL, approved=True))
        await trio.sleep(5)
        assert first.outcome == Done()
        assert second.outcome is None
        assert first.screen.text == STEER + "one"
        second.backend.cancel()
    assert second.outcome == Stopped()
    assert second.screen.text == ""
    assert TextChunk("two") not in second.screen.events
