"""pdb inside one actor's handler, while everybody else goes on."""

from __future__ import annotations

import sys as python
from collections.abc import Callable
from typing import Any

import pytest
import trio

from actors.sentences import paused as sentence
from ahpd.agents.events import ActivityChanged, Done, TextChunk
from supervisors import sys
from tests.actors.support import C, at_work, channel_of, ending, room, settled, started
from tests.harness import PuppetAgent, differences, running_host
from tests.inspection.support import Looker, NotDone, inspector_of, looking
from tests.inspection.test_attach import staged


class Pdb:
    """The debugger as somebody at a console uses it."""

    def __init__(self, looker: Looker) -> None:
        self.looker = looker

    async def asked(self) -> str:
        """What it said until it asked for a line."""
        await self.looker.until(lambda: any(name == "asks" for name, _ in self.looker.told))
        told, self.looker.told = self.looker.told, []
        assert [params["prompt"] for name, params in told if name == "asks"] == ["(Pdb) "]
        return "".join(params["text"] for name, params in told if name == "said")

    async def say(self, line: str) -> str:
        """Type a line; what it says to that."""
        await self.looker.ask("input", text=line)
        return await self.asked()


async def test_it_is_entered_reads_a_local_and_the_turn_goes_on_with_nothing_lost() -> None:
    async with staged() as it:
        pdb = Pdb(it.me)
        entered = await it.me.send("pdb")
        await settled()
        it.puppet.say(TextChunk("one"))
        assert "chat.py" in await pdb.asked()
        it.puppet.say(TextChunk("two"))
        assert it.state.activity == sentence(it.path)
        assert await pdb.say("p message.events[0].text") == "'one'\n"
        assert await pdb.say("p self.path") == f"{it.path!r}\n"
        # Everybody else goes on, and so does time.
        await trio.sleep(100)
        assert (await it.ann.request("ping", channel="ahp-root://")) is None
        assert (await it.me.ask("mailbox"))["count"] == 1
        assert "AgentSays TextChunk" in (await it.me.ask("status"))["inHand"]
        for line in ("n", "s", "w", "args", "l", "x = 3", "p x", "!x", "pp x"):
            await pdb.say(line)
        await it.me.ask("input", text="c")
        assert await it.me.answer(entered) == {"handled": "AgentSays TextChunk"}
        await settled()
        assert it.state.activity is None
        assert str(it.state.active_turn.response_parts[-1].content) == "onetwo"
        assert python.gettrace() is None
        await it.finish()


async def test_a_paused_actor_handles_that_one_message_and_stays_paused() -> None:
    async with staged() as it:
        await it.me.ask("pause")
        assert await it.me.ask("pdb") == {"handled": None}  # nothing waits
        it.puppet.say(TextChunk("one"))
        it.puppet.say(TextChunk("two"))
        await settled()
        pdb = Pdb(it.me)
        entered = await it.me.send("pdb")
        await pdb.asked()
        await it.me.ask("input", text="q")  # leaves it, and does not raise BdbQuit in the actor
        assert await it.me.answer(entered) == {"handled": "AgentSays TextChunk"}
        status = await it.me.ask("status")
        assert (status["phase"], status["waiting"]) == ("suspended", 1)
        assert it.state.activity == sentence(it.path)
        await it.me.ask("continue")
        await it.finish()


async def leaves_the_console(it: Any) -> None:
    await it.me.close()


async def kills_the_actor(it: Any) -> None:
    sys.kill(it.host.system.ref(it.path), "by the test")


@pytest.mark.parametrize("how", [leaves_the_console, kills_the_actor])
async def test_it_ends_with_whoever_uses_it_and_with_the_actor(how: Callable[..., Any]) -> None:
    async with staged() as it:
        pdb = Pdb(it.me)
        await it.me.send("pdb")
        await settled()
        it.puppet.say(TextChunk("one"))
        await pdb.asked()
        await pdb.say("b actors/hearing.py:60")
        await how(it)
        await settled()
        assert python.gettrace() is None
        async with looking(it.inspector) as other:
            await other.ask("attach", path=it.path)
            assert (await other.ask("status"))["heldBecause"] == []
            id = await other.send("pdb")  # it is free again
            await settled()
            await other.notify("cancel", id=id)
            with pytest.raises(NotDone, match="pdb: stopped"):
                await other.answer(id)
        if how is leaves_the_console:
            assert str(it.state.active_turn.response_parts[-1].content) == "one"
            await it.finish()
        else:
            assert (await ending(it.ann, "t1"))["type"] == "chat/error"


async def test_one_at_a_time() -> None:
    async with staged() as it, looking(it.inspector) as other:
        await it.me.send("pdb")
        await settled()
        await other.ask("attach", path=it.path)
        with pytest.raises(NotDone, match="one debugger at a time: console 1 uses it in session/"):
            await other.ask("pdb")
        with pytest.raises(NotDone, match="no debugger of yours"):
            await other.ask("input", text="c")
        with pytest.raises(NotDone, match="no debugger of yours"):
            await other.ask("interrupt")
        with pytest.raises(NotDone, match="text: expected a line"):
            await it.me.ask("input", text=3)
        await it.me.close()
        await settled()
        await it.finish()


async def test_nobody_stands_in_the_shared_tables() -> None:
    async with staged() as it:
        pdb = Pdb(it.me)
        entered = await it.me.send("pdb")
        await settled()
        it.puppet.say(TextChunk("one"))
        await pdb.asked()
        told = await pdb.say("b actors/ledger.py:290")
        assert "actors.ledger is one step for the whole host" in told
        seen = set()
        for _ in range(2000):  # every line of it, into whatever is called
            await it.me.ask("input", text="s")
            await it.me.until(
                lambda: entered in it.me.answers or any(name == "asks" for name, _ in it.me.told)
            )
            if entered in it.me.answers:
                break
            where = await pdb.asked()
            seen.add(where.partition("(")[0].strip("> \n"))
        files = {each.rpartition("/")[2] for each in seen}
        assert "conversation.py" in files
        assert not files & {"ledger.py", "desk.py", "_run.py", "_actor.py"}
        assert await it.me.answer(entered)
        await it.finish()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("interact", "not here"), ("run", "not here"), ("restart", "not here"),
        ("debug 1", "not here"), ("help pdb", "Debugger"), ("p nonsense", "NameError"),
        ("nonsense)", "SyntaxError"), ("1/0", "ZeroDivisionError"), ("print(1 + 1)", "2\n"),
    ],
)  # fmt: skip
async def test_what_is_typed_wrong_or_not_for_afar_is_told(line: str, said: str) -> None:
    async with staged() as it:
        pdb = Pdb(it.me)
        await it.me.send("pdb")
        await settled()
        it.puppet.say(TextChunk("one"))
        await pdb.asked()
        assert said in await pdb.say(line)
        await it.me.close()
        await settled()
        await it.finish()


async def test_it_can_be_stopped_again_in_a_handler_that_goes_on() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host, looking(inspector_of(host)) as me:
        await room(host)
        await me.ask("attach", path="catalogue")
        pdb = Pdb(me)
        id = await me.send("pdb")
        ann = await host.peer("ann2")
        await ann.hello(subscribe=())
        other = "puppet:/5e551000-0000-4000-8000-0000000000ee"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: ann.request("createSession", channel=other))
            await pdb.asked()
            assert "Breakpoint 1" in await pdb.say("b Catalogue._start")
            await me.ask("input", text="c")
            text = await pdb.asked()
            assert "_start()" in text
            # Over an await of its own, in which others run.
            while "start_child" not in text:
                text = await pdb.say("n")
                assert "catalogue.py" in text
            assert "catalogue.py" in await pdb.say("n")
            await me.ask("interrupt")
            await me.ask("input", text="c")
            assert (await me.answer(id))["handled"] == "CreateSession"
        assert channel_of(host, other).state.lifecycle == "ready"


async def test_a_wire_that_is_whole_after_all_of_it() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host, looking(inspector_of(host)) as me:
        ann = await room(host)
        await me.ask("attach", path=C)
        pdb = Pdb(me)
        id = await me.send("pdb")
        await settled()
        await ann.dispatch(C, started("t1"))
        await pdb.asked()
        await me.ask("input", text="c")
        assert (await me.answer(id))["handled"] == "Dispatch chat/turnStarted"
        (await at_work(agent, "t1")).end(Done())
        await ending(ann, "t1")
        async with host.client("laptop", subscriptions=(C,)) as laptop:
            assert differences(laptop, host) == []


async def test_who_pauses_it_meanwhile_leaves_its_state_to_the_handler() -> None:
    async with staged() as it, looking(it.inspector) as other:
        await other.ask("attach", path=it.path)
        pdb = Pdb(it.me)
        id = await it.me.send("pdb")
        await settled()
        it.puppet.say(ActivityChanged("Reading"))
        await pdb.asked()
        seq = it.host.ledger.seq
        await other.ask("pause")
        await other.ask("continue")
        await other.ask("pause")
        assert it.host.ledger.seq == seq  # nobody writes to a channel in the middle of a message
        await it.me.ask("input", text="c")
        await it.me.answer(id)
        await settled()
        assert (await other.ask("status"))["phase"] == "suspended"
        assert it.state.activity == sentence(it.path)
        await other.ask("continue")
        assert it.state.activity == "Reading"
        await it.finish()
