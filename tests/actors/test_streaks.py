"""Text that an agent says in many pieces at once: an envelope each, and one step of the state."""

from __future__ import annotations

from typing import Any

from actors.streaks import streaks
from ahpd.agents import events as ev
from tests.actors.support import C, at_work, room, settled, started
from tests.harness import PuppetAgent, RunningHost, running_host


def parts(host: RunningHost) -> list[tuple[str, str]]:
    found = host.ledger.find(C)
    assert found is not None
    chat = found.state.wire()
    turn = chat.get("activeTurn") or chat["turns"][-1]
    return [(each["kind"], each.get("content", "")) for each in turn["responseParts"]]


def said(peer: Any, *types: str) -> list[tuple[int, str, str]]:
    """The text of the envelopes that came, with their numbers and types."""
    return [
        (params["serverSeq"], params["action"]["type"], params["action"].get("content", ""))
        for _, message in peer.frames
        if isinstance(message, dict) and message.get("method") == "action"
        for params in (message["params"],)
        if params["action"]["type"] in types
    ]


def test_neighbours_of_one_kind_go_together_but_for_the_first() -> None:
    one, two, three = (ev.TextChunk(each) for each in "abc")
    thought = ev.ThoughtChunk("t")
    title = ev.TitleProposed("T")
    found = [list(each) for each in streaks([one, two, three, thought, thought, title, one])]
    assert found == [[one], [two, three], [thought], [thought], [title], [one]]


async def test_each_piece_is_an_envelope_and_the_state_is_the_same() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        puppet.say(
            *(ev.TextChunk(each) for each in ("a", "b", "", "c")),
            *(ev.ThoughtChunk(each) for each in "de"),
            *(ev.TextChunk(each) for each in "fg"),
        )
        await settled()
        assert parts(host) == [("markdown", "abc"), ("reasoning", "de"), ("markdown", "fg")]
        found = said(ann, "chat/delta", "chat/reasoning")
        assert [text for _, _, text in found] == ["b", "c", "e", "g"]
        numbers = [number for number, _, _ in found]
        assert numbers == sorted(set(numbers))


async def test_a_piece_that_no_json_can_hold_ends_the_turn_where_it_stands() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        puppet.say(*(ev.TextChunk(each) for each in ("a", "b", "\ud800", "c")))
        await settled()
        assert parts(host)[0] == ("markdown", "ab")
        assert parts(host)[-1][0] == "error"
