"""People attached to one actor of a host in the test's own process: looking and steering."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.connection import Connection
from actors.sentences import paused as sentence
from ahpd.agents.events import ActivityChanged, Done, TextChunk, ToolReady, ToolStarted
from ahpd.inspection import service, views
from ahpd.inspection.service import Inspector
from supervisors import sys
from tests.actors.support import (
    C,
    S,
    at_work,
    channel_of,
    ending,
    pending,
    room,
    settled,
    started,
    types,
)
from tests.harness import (
    FileMedium,
    Medium,
    Puppet,
    PuppetAgent,
    RawPeer,
    RunningHost,
    differences,
    running_host,
)
from tests.inspection.support import Looker, NotDone, inspector_of, looking


class Scene:
    """A turn that runs, and somebody attached to its chat."""

    def __init__(
        self, host: RunningHost, ann: RawPeer, puppet: Puppet, inspector: Inspector, looker: Looker
    ) -> None:
        self.host = host
        self.inspector = inspector
        self.ann = ann
        self.puppet = puppet
        self.me = looker
        self.path = channel_of(host, C).path

    @property
    def state(self) -> Any:
        return channel_of(self.host, C).state

    async def finish(self) -> None:
        """The turn ends, and all that was said is on every screen."""
        self.puppet.end(Done())
        await ending(self.ann, "t1")
        await settled()
        async with self.host.client("laptop", subscriptions=(S, C)) as laptop:
            assert differences(laptop, self.host) == []


@asynccontextmanager
async def staged(journal: Medium | None = None) -> AsyncIterator[Scene]:
    """A scene for the length of the block."""
    agent = PuppetAgent()
    async with running_host(agent, crashes=["session/"], journal=journal) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        inspector = inspector_of(host)
        async with looking(inspector) as looker:
            await looker.ask("attach", path=C)
            yield Scene(host, ann, puppet, inspector, looker)


async def test_a_paused_actor_says_so_and_is_stepped_and_goes_on_where_it_was() -> None:
    async with staged() as it:
        it.puppet.say(ActivityChanged("Reading"))
        await settled()
        paused = await it.me.ask("pause")
        assert paused["inHand"] is None
        assert "4096 more messages" in paused["notes"][0]
        assert "30 s" in paused["notes"][1]
        assert it.state.activity == sentence(it.path)
        for word in ["one", "two", "three", "four"]:
            it.puppet.say(TextChunk(word))
            await settled()
        before = len(types(it.ann, C))
        assert (await it.me.ask("mailbox"))["count"] == 4
        stepped = await it.me.ask("step", count=3)
        assert stepped["handled"] == 3
        assert [each["message"] for each in stepped["messages"]] == ["AgentSays TextChunk"] * 3
        assert stepped["messages"][0]["said"] == ["chat/responsePart"]
        await settled()
        assert len(types(it.ann, C)) == before + 3
        assert (await it.me.ask("step", count=5))["handled"] == 1
        assert (await it.me.ask("step"))["handled"] == 0
        assert it.state.activity == sentence(it.path)
        assert (await it.me.ask("continue"))["resumed"] is True
        assert (await it.me.heard("resumed"))["why"] == "resumed by console 1"
        assert it.state.activity == "Reading"
        assert (await it.me.ask("continue"))["resumed"] is False
        await it.finish()


async def test_leaving_in_any_way_resumes_what_was_paused() -> None:
    async with staged() as it:
        ref = it.host.system.ref(it.path)
        await it.me.ask("pause")
        assert sys.inspect(ref).suspended
        await it.me.close()
        await settled()
        assert not sys.inspect(ref).suspended
        assert it.state.activity is None
        assert ref.cell is not None
        assert ref.cell.probe is None  # nothing is left behind
        await it.finish()


async def test_one_of_two_who_leaves_takes_along_only_what_is_theirs() -> None:
    async with staged() as it:
        ref = it.host.system.ref(it.path)
        async with looking(it.inspector) as other:
            await other.ask("attach", path="chat/0")
            assert (await it.me.ask("status"))["attached"] == ["console 1", "console 2"]
            await it.me.ask("pause")
            assert (await other.heard("held"))["why"] == "paused by console 1"
            await other.ask("pause")
            assert (await it.me.heard("held"))["why"] == "paused by console 2"
            await other.ask("break", on="chat/delta")
        await settled()
        assert (await it.me.ask("status"))["heldBecause"] == ["paused by console 1"]
        assert (await it.me.ask("status"))["breaks"] == []
        async with looking(it.inspector) as other:
            await other.ask("attach", path=it.path)
            assert (await other.ask("continue"))["resumed"] is True
            assert (await it.me.heard("resumed"))["why"] == "resumed by console 3"
        assert not sys.inspect(ref).suspended
        await it.finish()


async def test_state_is_read_by_jsonpath() -> None:
    async with staged() as it:
        await it.ann.dispatch(C, pending("p1", text="later"))
        await settled()

        async def at(path: str) -> Any:
            return [each["value"] for each in (await it.me.ask("state", path=path))["matches"]]

        assert await at("activeTurn.id") == ["t1"]
        assert await at("$.queuedMessages[?@.id == 'p1'].message.text") == ["later"]
        assert set(await at("$..origin.kind")) == {"user"}
        [whole] = await at("$")
        assert whole["resource"] == C
        for path, why in (
            ("$.[", "is no JSONPath"),
            ("$.nothing", "there is nothing there"),
            ("$[?@.a ==]", "is no JSONPath"),
        ):
            with pytest.raises(NotDone, match=why):
                await it.me.ask("state", path=path)
        with pytest.raises(NotDone, match="path: expected a text"):
            await it.me.ask("state", path=7)
        await it.finish()


async def test_a_breakpoint_holds_before_the_message_that_brings_the_action() -> None:
    async with staged() as it:
        with pytest.raises(NotDone, match="did you mean chat/toolCallReady"):
            await it.me.ask("break", on="chat/toolCallRedy")
        with pytest.raises(NotDone, match="is no Python expression"):
            await it.me.ask("break", on="chat/toolCallReady", **{"if": "action."})
        wanted = {"on": "chat/toolCallReady", "if": "action.tool_call_id == 'b'"}
        assert (await it.me.ask("break", **wanted))["number"] == 1
        for call in "ab":
            it.puppet.say(ToolStarted(call, "dig", "Dig"), ToolReady(call, "Digging"))
        held = await it.me.heard("held")
        assert held["why"] == "breakpoint 1 of console 1: before chat/toolCallReady"
        assert it.state.activity == sentence(it.path)
        calls = [part.tool_call.tool_call_id for part in it.state.active_turn.response_parts]
        assert calls == ["a"]
        await it.me.ask("continue")
        await settled()
        calls = [part.tool_call.tool_call_id for part in it.state.active_turn.response_parts]
        assert calls == ["a", "b"]
        await it.finish()


async def test_a_breakpoint_on_what_nobody_could_foresee_holds_right_after() -> None:
    async with staged() as it:
        await it.me.ask("break", on="chat/pendingMessageRemoved")
        await it.ann.dispatch(C, pending("p1", "steering"))
        held = await it.me.heard("held")
        assert held["why"] == "breakpoint 1 of console 1: after chat/pendingMessageRemoved"
        assert (await it.me.ask("status"))["heldBecause"] == [held["why"]]
        await it.me.ask("unbreak", number=1)
        with pytest.raises(NotDone, match="you have no breakpoint 1"):
            await it.me.ask("unbreak", number=1)
        await it.me.ask("continue")
        await it.finish()


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("action.nonsense", "AttributeError"),
        ("exit()", "NoValue: NoValue('it raised SystemExit')"),
        ("(_ for _ in ()).throw(KeyboardInterrupt)", "NoValue('it raised KeyboardInterrupt')"),
    ],
)
async def test_a_condition_that_fails_holds_and_says_so(condition: str, why: str) -> None:
    async with staged() as it:
        await it.me.ask("break", on="chat/delta", **{"if": condition})
        it.puppet.say(TextChunk("a"))
        it.puppet.say(TextChunk("b"))
        held = await it.me.heard("held")
        assert f"{condition} failed: " in held["why"]
        assert why in held["why"]
        assert (await it.me.ask("status"))["lastExit"] is None
        await it.me.ask("unbreak")
        await it.me.ask("continue")
        await it.finish()


async def test_the_supervisors_restart_ends_the_pause_and_says_why() -> None:
    async with staged() as it:
        await it.me.ask("pause")
        assert (await it.me.ask("kill", reason="for the test"))["killed"] is True
        assert (await it.me.heard("ended"))["why"] == "killed: for the test"
        resumed = await it.me.heard("resumed")
        assert resumed["why"] == "the actor ended (killed: for the test), and the pause with it"
        await it.me.heard("started")
        await settled()
        assert (await it.me.ask("status"))["phase"] == "running"
        assert it.state.activity is None
        assert (await ending(it.ann, "t1"))["type"] == "chat/error"
        assert (await it.me.ask("restart"))["restarted"] is True


async def test_where_log_and_trace_show_what_it_did_and_does() -> None:
    async with staged() as it:
        where = await it.me.ask("where")
        assert where["tasks"][0]["task"] == it.path
        frames = [frame for task in where["tasks"] for frame in task["frames"]]
        assert any("await mailbox.wait()" in frame["text"] for frame in frames)
        assert any(frame["function"] == "Puppet.prompt" for frame in frames)
        await it.me.ask("trace", on=True)
        it.puppet.say(TextChunk("hm"))
        seen = await it.me.heard("trace", kind="handled")
        assert seen["message"] == "AgentSays TextChunk"
        assert seen["value"]["events"] == [{"$": "TextChunk", "text": "hm"}]
        assert seen["said"] == ["chat/responsePart"]
        await it.me.ask("trace", on=False)
        log = (await it.me.ask("log", count=1))["messages"]
        assert [each["message"] for each in log] == ["AgentSays TextChunk"]
        assert log[0]["at"].startswith("2026-")
        for wrong in ({"count": 0}, {"count": "x"}):
            with pytest.raises(NotDone, match="count: expected a number"):
                await it.me.ask("log", **wrong)
        await it.finish()


async def test_a_paused_session_says_so_too() -> None:
    async with staged() as it, looking(it.inspector) as other:
        found = await other.ask("attach", path=S)
        await other.ask("pause")
        session = channel_of(it.host, S)
        assert session.state.activity == sentence(found["path"])
        await other.ask("continue")
        assert session.state.activity is None
        await it.finish()


async def test_a_paused_actor_whose_mailbox_fills_is_told_of_and_nothing_is_lost() -> None:
    async with staged() as it:
        await it.me.ask("pause")
        cell = it.host.system.ref(it.path).cell
        assert cell is not None
        cell.mailbox.max_items = 20  # the spec's own bound takes four thousand messages
        words = [f"{number} " for number in range(60)]
        for word in words:
            it.puppet.say(TextChunk(word))
            await settled()
        note = await it.me.heard("note")
        assert note["text"].startswith("its mailbox fills: 20 messages")
        assert "1 senders wait for room" in note["text"]
        await it.me.ask("continue")
        await settled()
        assert str(it.state.active_turn.response_parts[-1].content) == "".join(words)
        await it.finish()


async def test_a_path_that_looks_at_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with staged() as it:
        it.puppet.say(TextChunk("x" * 500))
        await settled()
        for name in ("MOST_VALUES", "MOST_BYTES"):
            with monkeypatch.context() as patch:
                patch.setattr(views, name, 6)
                with pytest.raises(NotDone, match="is too much of it: name a part"):
                    await it.me.ask("state", path="$")
                assert (await it.me.ask("state", path="activeTurn.id"))["matches"]
        assert "resource" in (await it.me.ask("keys"))["keys"]
        assert (await it.me.ask("keys", path="activeTurn.nothing"))["keys"] == []
        await it.finish()


async def test_what_is_not_read_is_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    async with staged() as it:
        await it.me.ask("trace", on=True)
        monkeypatch.setattr(service, "MAX_WAITING_BYTES", 2000)
        for _ in range(40):
            it.puppet.say(TextChunk("x" * 300))
        await it.me.heard("lost")
        monkeypatch.undo()
        await it.finish()


async def test_too_many_requests_at_a_time_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "OPEN", 2)
    async with staged() as it:
        waiting = [await it.me.send("py", code="await trio.sleep(5)") for _ in range(2)]
        with pytest.raises(NotDone, match="2 requests are under way already"):
            await it.me.ask("status")
        for id in waiting:
            assert (await it.me.answer(id))["ran"] is True
        assert (await it.me.ask("status"))["you"] == "console 1"
        await it.finish()


async def test_what_is_watched_is_told_whenever_it_changes() -> None:
    async with staged() as it:
        first = await it.me.ask("watch", path="activity")
        assert first["matches"] == []
        it.puppet.say(ActivityChanged("Reading"))
        told = await it.me.heard("watched")
        assert told["matches"] == [{"at": "$['activity']", "value": "Reading"}]
        it.puppet.say(TextChunk("no change there"))
        await trio.sleep(1)
        assert [name for name, _ in it.me.told if name == "watched"] == []
        assert (await it.me.ask("unwatch", number=first["number"]))["ended"] == 1
        with pytest.raises(NotDone, match="there is no watch 99"):
            await it.me.ask("unwatch", number=99)
        await it.finish()


async def test_messages_are_injected_and_nonsense_is_not() -> None:
    async with staged() as it:
        action = '{"type": "chat/turnCancelled", "turnId": "zz", "duration": 1}'
        assert await it.me.ask("inject", message=action) == {
            "message": "Dispatch chat/turnCancelled"
        }
        note = await it.me.heard("note")
        assert note["text"].startswith("Dispatch chat/turnCancelled: refused: ")
        said = "AgentSays(1, (TextChunk('put in'),))"
        assert (await it.me.ask("inject", message=said))["message"] == "AgentSays TextChunk"
        await settled()
        assert str(it.state.active_turn.response_parts[-1].content) == "put in"
        for message, why in (
            ("Over(3)", "NameError"),
            ("1 +", "neither an action in JSON nor an expression"),
            ("{", "not JSON"),
            ('{"type": 3}', "no action"),
            ("DisposeSession('x')", "does not take"),
            ("", "expected an action"),
            ("exit()", "it raised SystemExit"),
            ("(_ for _ in ()).throw(KeyboardInterrupt)", "it raised KeyboardInterrupt"),
        ):
            with pytest.raises(NotDone, match=why):
                await it.me.ask("inject", message=message)
        await it.finish()


async def test_python_runs_between_two_messages_with_the_actor_bound() -> None:
    async with staged() as it:
        assert await it.me.ask("py", code="state.active_turn.id") == {"ran": True}
        assert (await it.me.heard("said"))["text"] == "'t1'\n"
        await it.me.ask("py", code="x = 2\nfor i in range(2):\n    print(i, x)")
        assert (await it.me.heard("said"))["text"] == "0 2\n"
        assert (await it.me.heard("said"))["text"] == "1 2\n"
        await it.me.ask("pause")
        await it.me.ask("py", code="await trio.sleep(1); (actor.path, x)")
        assert it.path in (await it.me.heard("said"))["text"]
        await it.me.ask("py", code="1 / 0")
        text = (await it.me.heard("said"))["text"]
        assert text.endswith("ZeroDivisionError: division by zero\n")
        assert "inspection" not in text
        for raised in (
            "SystemExit(3)",
            "KeyboardInterrupt",
            "BaseExceptionGroup('', [SystemExit()])",
        ):
            await it.me.ask("py", code=f"raise {raised}")
            assert raised.split("(")[0] in (await it.me.heard("said"))["text"]
        in_nursery = "async with trio.open_nursery() as n:\n    raise KeyboardInterrupt"
        await it.me.ask("py", code=in_nursery)
        assert "KeyboardInterrupt" in (await it.me.heard("said"))["text"]
        assert (await it.me.ask("status"))["lastExit"] is None
        with pytest.raises(NotDone, match="no Python"):
            await it.me.ask("py", code="for")
        id = await it.me.send("py", code="await trio.sleep_forever()")
        await trio.sleep(5)
        await it.me.notify("cancel", id=id)
        with pytest.raises(NotDone, match="py: stopped"):
            await it.me.answer(id)
        assert (await it.me.ask("status"))["phase"] == "suspended"
        await it.me.ask("continue")
        await it.finish()


async def test_a_connection_without_a_channel_is_looked_at_too() -> None:
    async with staged() as it, looking(inspector_of(it.host)) as other:
        [path] = [
            each
            for each in sys.paths(it.host.system)
            if isinstance(sys.actor_at(it.host.system, each), Connection)
        ]
        assert (await other.ask("attach", path=path))["channel"] is None
        state = await other.ask("state", path="client_id")
        assert state["matches"][0]["value"] == "ann"
        with pytest.raises(NotDone, match="nothing of it is numbered"):
            await other.ask("state", at=3)
        with pytest.raises(NotDone, match="attached already"):
            await other.ask("attach", path=path)
        seen = await other.ask("inspect", path=path)
        assert seen["state"]["client_id"] == "ann"
        assert seen["mailbox"]["count"] == 0
        await it.finish()


async def test_a_host_that_was_killed_meanwhile_takes_back_that_it_is_paused(
    tmp_path: Path,
) -> None:
    async with staged(FileMedium(tmp_path / "j.db")) as it:
        it.puppet.end(Done())
        await ending(it.ann, "t1")
        await it.me.ask("pause")
        await trio.sleep(1)  # it is kept, and said
        assert it.state.activity == sentence(it.path)
        await it.host.restart()
        await trio.sleep(5)
        assert it.state.activity is None
        assert channel_of(it.host, S).state.activity is None
        async with it.host.client("laptop", subscriptions=(S, C)) as laptop:
            assert differences(laptop, it.host) == []
