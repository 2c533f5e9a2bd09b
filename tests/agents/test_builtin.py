"""The scripts that are shipped: the built-in one, and the examples."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from ahpd.agents.builtin import BUILTIN
from ahpd.agents.events import (
    ActivityChanged,
    BackgroundSet,
    Done,
    Event,
    Failed,
    QuestionsAsked,
    TextChunk,
    ThoughtChunk,
    TitleProposed,
    ToolAsks,
    ToolFinished,
    ToolInputChunk,
    ToolNeedsAuth,
    ToolOutput,
    ToolReady,
    ToolStarted,
    UsageReport,
    WorkerEnded,
    WorkerSays,
)
from ahpd.agents.playing import ScriptedBackend
from ahpd.agents.plays import ScriptedCrash
from ahpd.agents.port import Answers, Authorized, Permission, Verdict
from ahpd.agents.script import load_script
from tests.agents.support import Screen, prompt

EXAMPLES = sorted((Path(__file__).parents[2] / "fixtures" / "scripts").glob("*.json"))


#: What every agent does.
PLAIN = {
    ActivityChanged,
    TextChunk,
    ThoughtChunk,
    TitleProposed,
    ToolAsks,
    ToolFinished,
    ToolInputChunk,
    ToolOutput,
    ToolReady,
    ToolStarted,
    UsageReport,
}


def approving(player: ScriptedBackend) -> Screen:
    """A screen that allows everything as soon as it is asked."""

    def answer(event: Event) -> None:
        match event:
            case WorkerSays():
                for each in event.events:
                    answer(each)
            case ToolAsks():
                player.answer(Permission(event.call_id, approved=True))
            case QuestionsAsked():
                player.answer(Answers(event.request.id, "accept"))
            case ToolFinished(asks_approval=True):
                player.answer(Verdict(event.call_id, approved=True))
            case ToolNeedsAuth():
                player.answer(Authorized(event.call_id, "token"))
            case _:
                pass

    return Screen(answer)


async def test_the_built_in_tour_shows_one_of_each_in_three_to_four_seconds() -> None:
    player = ScriptedBackend(BUILTIN)
    screen, start = approving(player), trio.current_time()
    assert await player.prompt(prompt("What can you do?"), screen) == Done()
    assert 3 <= trio.current_time() - start <= 4
    assert {type(each) for each in screen.events} == PLAIN
    assert screen.text.endswith("> What can you do?")
    asked = next(each for each in screen.events if isinstance(each, ToolAsks))
    assert {option.kind for option in asked.options} == {"approve", "deny"}
    assert max(screen.calls) == 1, "a person should see it stream"


async def test_the_built_in_tour_ends_as_well_when_its_question_is_denied() -> None:
    player = ScriptedBackend(BUILTIN)

    def deny(event: Event) -> None:
        if isinstance(event, ToolAsks):
            player.answer(Permission(event.call_id, approved=False, option_id="no"))

    screen = Screen(deny)
    assert await player.prompt(prompt("hi"), screen) == Done()
    assert len(screen.only(ToolFinished)) == 1


async def test_questions_workers_and_work_beside_turns_have_entries_of_their_own() -> None:
    player = ScriptedBackend(BUILTIN)

    def answer(event: Event) -> None:
        if isinstance(event, QuestionsAsked):
            player.answer(Answers(event.request.id, "decline"))

    screen = Screen(answer)
    for number, word in enumerate(("ask", "worker", "background")):
        assert await player.prompt(prompt(f"please {word}", f"t{number}"), screen) == Done()
    assert screen.only(QuestionsAsked)
    assert screen.only(WorkerEnded) == [WorkerEnded("t1-call-9", Done())]
    assert screen.only(BackgroundSet)


async def test_words_in_the_prompt_choose_the_short_entries_of_the_built_in_script() -> None:
    player, screen = ScriptedBackend(BUILTIN), Screen()
    with trio.move_on_after(3600):
        await player.prompt(prompt("please HANG", "t1"), screen)
    assert trio.current_time() >= 3600
    assert isinstance(await player.prompt(prompt("fail now", "t2"), screen), Failed)
    assert await player.prompt(prompt("fail now", "t2", resume=True), screen) == Done()
    with pytest.raises(ScriptedCrash):
        await player.prompt(prompt("crash", "t3"), screen)
    player, start = ScriptedBackend(BUILTIN), trio.current_time()
    assert await player.prompt(prompt("a long one", "t4"), screen) == Done()
    assert 9 <= trio.current_time() - start <= 12


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
async def test_the_examples_play_to_an_end(path: Path) -> None:
    script = load_script(path)
    for entry in script.turns:
        player = ScriptedBackend(script)
        screen = approving(player)
        word = "anything" if entry.when is None else entry.when.pattern.strip("^")
        with trio.move_on_after(3600):
            try:
                outcome = await player.prompt(prompt(word), screen)
            except ScriptedCrash:
                assert word == "crash"
            else:
                assert isinstance(outcome, Failed if word in {"fail", "refuse"} else Done)
