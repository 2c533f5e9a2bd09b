"""Turns with an agent that misbehaves: what it says, and what it asks."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from ahpd.agents import events as ev
from ahpd.agents.acp.process import AgentGone
from ahpd.agents.events import Done, Failed, Stopped
from ahpd.protocol.tools import ToolResultFileEditContent, ToolResultTextContent
from tests.agents.acp.support import at_work, rogue
from tests.agents.support import Screen, prompt

pytestmark = pytest.mark.real_time


def names(screen: Screen) -> list[str]:
    return [type(event).__name__ for event in screen.events]


async def test_a_turn_says_its_text_and_what_it_used(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as agent:
        outcome, screen = await agent.turn("hello")
        assert outcome == Done()
        assert screen.events == [
            ev.ConversationNamed("rogue-1"),
            ev.TextChunk("Hello\u2028you\u0085."),
            ev.UsageReport(3, 4),
        ]
        _, screen = await agent.turn("hello")
        assert names(screen) == ["TextChunk", "UsageReport"], "it has a name already"


async def test_pieces_that_came_together_are_one(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as agent:
        _, screen = await agent.turn("burst")
        assert screen.only(ev.TextChunk) == [ev.TextChunk("abc")]


async def test_another_message_begins_a_paragraph(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as agent:
        _, screen = await agent.turn("messages")
        assert screen.text == "one\n\ntwo"


@pytest.mark.parametrize(
    ("order", "name", "kind"),
    [
        ("usual", "edit", None),
        ("first", "execute", "terminal"),
        ("updates", "edit", None),
        ("pending", "tool", None),
    ],
)
async def test_the_four_orders_of_asking_make_one_row_each(
    order: str, name: str, kind: str | None, tmp_path: Path
) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as agent:
        outcome, screen = await agent.turn(order, agent.decide("yes"))
        assert outcome == Done()
        (started,) = screen.only(ev.ToolStarted)
        assert isinstance(started, ev.ToolStarted)
        assert (started.name, started.kind) == (name, kind)
        (asks,) = screen.only(ev.ToolAsks)
        assert isinstance(asks, ev.ToolAsks)
        assert [(each.id, each.kind) for each in asks.options] == [
            ("always", "approve"),
            ("yes", "approve"),
            ("maybe", "deny"),
            ("no", "deny"),
        ]
        (finished,) = screen.only(ev.ToolFinished)
        assert isinstance(finished, ev.ToolFinished)
        assert finished.success
        assert finished.content
        assert {started.call_id} == {asks.call_id, finished.call_id}
        assert screen.text == "chose yes"


async def test_an_edit_is_shown_before_and_after_it_is_allowed(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as agent:
        _, screen = await agent.turn("usual", agent.decide("yes"))
        (asks,) = screen.only(ev.ToolAsks)
        (finished,) = screen.only(ev.ToolFinished)
        assert isinstance(asks, ev.ToolAsks)
        assert isinstance(finished, ev.ToolFinished)
        assert asks.message == "Edit a.txt"
        assert asks.input == '{"path":"a.txt"}'
        (edit,) = asks.edits
        assert edit.before is not None
        assert edit.after is not None
        assert edit.diff is not None
        assert edit.after.uri == (tmp_path / "a.txt").as_uri()
        assert edit.after.content.uri == "data:text/plain;charset=utf-8,new%0Asame%0A"
        assert (edit.diff.added, edit.diff.removed) == (1, 1)
        done, text = finished.content
        assert isinstance(done, ToolResultFileEditContent)
        assert (done.before, done.after) == (edit.before, edit.after)
        assert text == ToolResultTextContent(text="ok")


async def test_a_new_file_has_nothing_before(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as agent:
        _, screen = await agent.turn("updates", agent.decide())
        (asks,) = screen.only(ev.ToolAsks)
        assert isinstance(asks, ev.ToolAsks)
        assert asks.edits[0].before is None


@pytest.mark.parametrize(
    ("option", "approved", "chosen"),
    [
        (None, True, "yes"),  # once, though "always" comes first
        ("always", True, "always"),
        ("yes", False, "no"),  # an option that contradicts the decision does not count
        (None, False, "no"),
        ("gone", True, "yes"),
        ("maybe", False, "maybe"),
    ],
)
async def test_an_option_is_chosen_by_what_was_decided(
    option: str | None, approved: bool, chosen: str, tmp_path: Path
) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as agent:
        decide = agent.decide(option, approved=approved)
        outcome, screen = await agent.turn("usual", decide)
        assert outcome == Done()
        assert screen.text == f"chose {chosen}"
        if not approved:
            assert screen.only(ev.ToolFinished) == [], "a call that was denied just ends"


async def test_calls_that_are_left_open_end_with_the_turn(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as agent:
        _, screen = await agent.turn("open after")
        with trio.fail_after(60):  # or it might come in the next turn, which nobody could tell
            while not (screen.text or agent.backend._between):
                await trio.sleep(0.01)
        (finished,) = screen.only(ev.ToolFinished)
        assert isinstance(finished, ev.ToolFinished)
        assert (finished.call_id, finished.success) == ("running", False)
        _, screen = await agent.turn("hello")
        assert screen.text == "Hello\u2028you\u0085.", "nothing of the turn before"
        assert screen.only(ev.ToolStarted) == []


async def test_output_that_grows_is_said_less_often_than_it_comes(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as agent:
        _, screen = await agent.turn("grows")
        (finished,) = screen.only(ev.ToolFinished)
        assert isinstance(finished, ev.ToolFinished)
        assert finished.content == (ToolResultTextContent(text="x" * 199),)
        assert len(screen.only(ev.ToolOutput)) < 200


async def test_a_question_that_is_taken_back_ends_its_call(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as agent:
        outcome, screen = await agent.turn("back")
        assert outcome == Done()
        assert screen.text == "taken back"
        assert names(screen)[1:5] == ["ToolStarted", "ToolAsks", "ToolReady", "ToolFinished"]


async def test_what_was_not_offered_is_refused_under_its_own_id(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as agent:
        outcome, screen = await agent.turn("everything")
        assert outcome == Done()
        assert screen.text == "-32601" * 4
        answered = [each["id"] for each in agent.sent() if "error" in each]
        assert answered == [0, "s-1", 1.5, "s-1"]


async def test_kinds_that_nobody_knows_change_nothing(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as agent:
        outcome, screen = await agent.turn("odd hello")
        assert outcome == Done()
        assert screen.events[1:] == [
            ev.ActivityChanged("Look"),
            ev.MetaChanged({"ahpd.plan": [{"content": "Look", "status": "in_progress"}]}),
            ev.MetaChanged(
                {
                    "ahpd.plan": [{"content": "Look", "status": "in_progress"}],
                    "ahpd.mode": "code",
                }
            ),
            ev.TitleProposed("A title"),
            ev.UsageReport(cost=ev.Cost(0.5, "EUR"), context=ev.Context(5, 10)),
            ev.CommandsChanged((ev.Command("go"),)),
            ev.TextChunk("Hello\u2028you\u0085."),
            ev.UsageReport(3, 4, cost=ev.Cost(0.5, "EUR"), context=ev.Context(5, 10)),
        ]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("noise hello", "Hello\u2028you\u0085."),
        ("nan hello", "Hello\u2028you\u0085."),
        ("half", "half \ufffd"),
        ("huge", "x" * (5 << 20)),
    ],
)
async def test_odd_output_is_read_as_far_as_it_can_be(
    words: str, text: str, tmp_path: Path
) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as agent:
        outcome, screen = await agent.turn(words)
        assert outcome == Done()
        assert screen.text == text


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("cancelled", Stopped()),
        ("never_heard_of", Done()),
        ("refusal", Failed("the agent refuses to go on with this", "Refusal")),
        ("max_tokens", Failed("the answer reached the limit of the model's tokens", "MaxTokens")),
    ],
)
async def test_why_a_turn_ended(reason: str, outcome: ev.Outcome, tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as agent:
        assert (await agent.turn(f"hello stop={reason}"))[0] == outcome


async def test_an_error_ends_the_turn_and_not_the_agent(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as agent:
        assert (await agent.turn("fail"))[0] == Failed("Internal: disk full", "AgentError")
        assert (await agent.turn("hello"))[0] == Done()


# --- cancel --------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["wait late", "wait late lies", "usual late", "hello wait"])
async def test_a_cancelled_turn_is_over_when_the_agent_says_so(words: str, tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as agent:
        screen, outcomes = Screen(), []

        async def run() -> None:
            outcomes.append(await agent.backend.prompt(prompt(words), screen))

        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(run)
                while not agent.sent("session/prompt") or (
                    "usual" in words and not screen.only(ev.ToolAsks)
                ):
                    await trio.sleep(0.01)
                agent.backend.cancel()
                agent.backend.cancel()
        assert outcomes == [Stopped()]
        assert len(agent.sent("session/cancel")) == 1
        _, next_screen = await agent.turn("hello")
        assert next_screen.text == "Hello\u2028you\u0085."
        assert next_screen.only(ev.ToolStarted) == []
        order = [each.get("method") for each in agent.sent()]
        assert order.index("session/cancel") < len(order) - 1 - order[::-1].index("session/prompt")


async def test_a_cancel_between_turns_is_not_sent(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as agent:
        agent.backend.cancel()
        assert (await agent.turn("hello"))[0] == Done()
        assert agent.sent("session/cancel") == []


async def test_an_agent_that_does_not_stop_loses_its_process(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path, "parent"), tmp_path) as agent:
        with trio.fail_after(60), trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(agent.backend.prompt, prompt("hello hang"), Screen())
                while not agent.sent("session/prompt"):
                    await trio.sleep(0.01)
                agent.backend.cancel()
                scope.cancel("it does not stop")
        with trio.fail_after(60):
            while agent.gone is None:
                await trio.sleep(0.01)
        with pytest.raises(AgentGone, match="signal 9"):
            await agent.turn("hello")
