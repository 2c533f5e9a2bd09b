"""The whole of it: one chat is paused, stepped and debugged in mid-turn; 20 others stream on."""

from __future__ import annotations

from collections import defaultdict

import pytest
import trio

from actors.sentences import paused as sentence
from ahpd.agents.script import parse_script
from ahpd.agents.scripted import ScriptedAgent
from ahpd.protocol.jsontext import loads
from ahpd.protocol.uris import URI, default_chat
from ahpd.transports.port import TransportClosed
from tests.actors.support import channel_of, started
from tests.harness import RawPeer, RunningHost, differences, running_host
from tests.inspection.support import inspector_of, looking
from tests.inspection.test_debugger import Pdb

OTHERS = 20
#: Seconds for which their pace is measured each time.
WINDOW = 0.7
SCRIPT = {
    "turns": [
        {
            "when": "dig",
            "steps": [
                {"text": "a", "times": 12, "everyMs": 40},
                {
                    "tool": {
                        "name": "dig",
                        "title": "Dig",
                        "input": {"depth": 3},
                        "output": "A hole",
                    }
                },
                {"text": "b", "times": 3, "everyMs": 20},
            ],
        },
        {"steps": [{"text": "word ", "times": 10_000, "everyMs": 40}]},
    ]
}


class Clocked(RawPeer):
    """A peer that notes when each delta came, on which channel."""

    def __init__(self, host: RunningHost, name: str, transport: trio.abc.AsyncResource) -> None:
        super().__init__(name, host.wire(name), transport)  # type: ignore[arg-type]
        self.deltas: dict[URI, list[float]] = defaultdict(list)

    async def read(self) -> None:
        while self.closed is None:
            try:
                message = loads(await self._transport.receive())
            except TransportClosed as closed:
                self.closed = closed
                message = {}
            params = message.get("params", {})
            if params.get("action", {}).get("type") == "chat/delta":
                self.deltas[params["channel"]].append(trio.current_time())
            self.inbox.append(message)
            self._news.set()

    async def pace(self, chats: list[URI]) -> float:
        """Deltas a second of these chats together in a window from now on; each has some."""
        began = trio.current_time()
        await trio.sleep(WINDOW)
        ended = trio.current_time()
        counts = [sum(began < at <= ended for at in self.deltas[chat]) for chat in chats]
        assert all(counts), counts
        return sum(counts) / (ended - began)


def session(number: int) -> URI:
    return f"demo:/{number:08x}-0000-4000-8000-000000000000"


@pytest.mark.real_time
async def test_twenty_chats_keep_their_pace_while_one_is_paused_stepped_and_debugged() -> None:
    agent = ScriptedAgent("demo", parse_script(SCRIPT))
    async with running_host(agent) as host, trio.open_nursery() as nursery:
        peer = Clocked(host, "watcher", await host.wire("watcher").connect())  # type: ignore[arg-type]
        nursery.start_soon(peer.read)
        await peer.hello()
        chats = [default_chat(session(number)) for number in range(OTHERS + 1)]
        for number, chat in enumerate(chats):
            await peer.request("createSession", channel=session(number))
            await peer.subscribe(chat)
        mine, others = chats[0], chats[1:]
        for chat in others:
            await peer.dispatch(chat, started("t"))
        with trio.fail_after(60):
            while not all(peer.deltas[chat] for chat in others):
                await trio.sleep(0.01)
        alone = await peer.pace(others)

        async with looking(inspector_of(host)) as me:
            await me.ask("attach", path=mine)
            path = channel_of(host, mine).path
            await peer.dispatch(mine, started("t", "dig"))
            with trio.fail_after(60):
                while len(peer.deltas[mine]) < 2:
                    await trio.sleep(0.005)
            await me.ask("pause")
            said = len(channel_of(host, mine).state.active_turn.response_parts[0].content)
            paused = await peer.pace(others)
            assert len(channel_of(host, mine).state.active_turn.response_parts[0].content) == said
            assert channel_of(host, mine).state.activity == sentence(path)

            stepped = await me.ask("step", count=3)
            assert stepped["handled"] == 3
            assert all(each["said"] == ["chat/delta"] for each in stepped["messages"])
            [content] = (await me.ask("state", path="activeTurn.responseParts[0].content"))[
                "matches"
            ]
            assert content["value"] == "a" * (said + 3)
            await me.ask("py", code="len(str(state.active_turn.response_parts[0].content)) * 2")
            assert (await me.heard("said"))["text"] == f"{2 * (said + 3)}\n"

            await me.ask("break", on="chat/toolCallReady", **{"if": "action.tool_call_id"})
            await me.ask("continue")
            held = await me.heard("held")
            assert "before chat/toolCallReady" in held["why"]
            pdb = Pdb(me)
            me.told.clear()
            entered = await me.send("pdb")
            assert "chat.py" in await pdb.asked()
            debugged = await peer.pace(others)
            assert "Tool" in await pdb.say("p [type(each).__name__ for each in message.events]")
            assert await pdb.say("p self._run.turn_id") == "'t'\n"
            await me.ask("input", text="c")
            assert (await me.answer(entered))["handled"].startswith("AgentSays")
            assert (await me.ask("status"))["phase"] == "suspended"
            await me.ask("unbreak")
            await me.ask("continue")

        def is_over(message: object) -> bool:
            params = message.get("params", {}) if isinstance(message, dict) else {}
            over = params.get("action", {}).get("type") == "chat/turnComplete"
            return bool(over and params["channel"] == mine)

        await peer.wait(is_over, 60)
        [turn] = channel_of(host, mine).state.turns
        parts = [part.wire() for part in turn.response_parts]
        assert [part["kind"] for part in parts] == ["markdown", "toolCall", "markdown"]
        assert (parts[0]["content"], parts[2]["content"]) == ("a" * 12, "bbb")
        assert parts[1]["toolCall"]["status"] == "completed"
        # At their pace: what one machine does in three windows varies, but not by half.
        assert min(paused, debugged) > alone / 2, (alone, paused, debugged)

        for chat in others:
            await peer.dispatch(chat, {"type": "chat/turnCancelled", "turnId": "t", "duration": 5})
        with trio.fail_after(60):
            while any(channel_of(host, chat).state.active_turn for chat in others):
                await trio.sleep(0.01)
        async with host.client("laptop", subscriptions=(session(0), *chats)) as laptop:
            assert differences(laptop, host) == []
        await peer.close()
