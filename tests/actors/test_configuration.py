"""Configuration of sessions: before there is one, at its creation, while it lives (RULES 22)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from ahpd.agents.events import Done
from ahpd.protocol.uris import ROOT
from supervisors import sys
from tests.actors.support import (
    C2,
    S2,
    C,
    S,
    actions,
    answer,
    at_work,
    ending,
    readable,
    refused,
    room,
    settled,
    started,
    types,
)
from tests.harness import PuppetAgent, running_host
from tests.harness.configured import SETTINGS, ConfiguredAgent, TunablePuppet
from tests.harness.replicas import state_of

DEFAULTS = {"isolation": "folder", "mode": "ask", "voice": "calm", "version": "7"}


def config(**values: Any) -> dict[str, Any]:
    return {"type": "session/configChanged", "config": values}


def tunable(agent: PuppetAgent, chat: str = C) -> TunablePuppet:
    puppet = agent.of[chat]
    assert isinstance(puppet, TunablePuppet)
    return puppet


# ---- before there is a session ------------------------------------------------------------------


async def test_r_22_8_the_schema_is_whole_and_the_defaults_are_filled_in() -> None:
    async with running_host(ConfiguredAgent()) as host:
        ann = await host.peer("ann")
        await ann.hello()
        result = await ann.request("resolveSessionConfig")
        assert result["schema"]["properties"].keys() == SETTINGS.keys()
        assert result["values"] == DEFAULTS
        chosen = {"isolation": "worktree", "mode": "plan"}
        result = await ann.request("resolveSessionConfig", config=chosen)
        assert "branch" in result["schema"]["properties"]
        assert result["values"] == {**DEFAULTS, **chosen, "branch": "main"}
        again = await ann.request("resolveSessionConfig", config=result["values"])
        assert again == result  # what was answered comes back as answered
        back = {**result["values"], "isolation": "folder", "branch": "fix"}
        result = await ann.request("resolveSessionConfig", config=back)
        assert "branch" not in result["values"]
        odd = {"mode": 5, "tags": [], "version": "8", "zzz": 1}
        assert (await ann.request("resolveSessionConfig", config=odd))["values"] == DEFAULTS


async def test_an_agent_without_settings_has_none_and_an_unknown_one_is_refused() -> None:
    async with running_host() as host:
        ann = await host.peer("ann")
        await ann.hello()
        result = await ann.request("resolveSessionConfig", provider="puppet")
        assert result == {"schema": {"type": "object", "properties": {}}, "values": {}}
        result = await ann.request("sessionConfigCompletions", property="branch")
        assert result == {"items": []}
        for method, more in (
            ("resolveSessionConfig", {}),
            ("sessionConfigCompletions", {"property": "x"}),
        ):
            with refused(-32002, "zzz", "puppet"):
                await ann.request(method, provider="zzz", **more)
        with refused(-32602, "no setting mode"):
            await ann.request("createSession", channel=S, config={"mode": "ask"})
        await ann.request("createSession", channel=S, config={})
        assert "config" not in state_of(host, S)


async def test_r_22_10_values_of_a_dynamic_setting_fit_the_query_and_the_context() -> None:
    async with running_host(ConfiguredAgent()) as host:
        ann = await host.peer("ann")
        await ann.hello()

        async def values(key: str, query: str | None = None, where: str = "worktree") -> list[str]:
            more = {} if query is None else {"query": query}
            result = await ann.request(
                "sessionConfigCompletions",
                property=key,
                workingDirectory="file:///home/ann/tree",
                config={"isolation": where},
                **more,
            )
            return [item["value"] for item in result["items"]]

        assert await values("branch") == ["main", "tree-next", "fix"]
        assert await values("branch", "x") == ["tree-next", "fix"]
        assert await values("branch", where="folder") == []
        assert await values("mode") == []
        assert await values("zzz") == []


async def test_a_slow_agent_holds_up_no_other_request_and_is_not_waited_for_without_end() -> None:
    agent = ConfiguredAgent()
    async with running_host(agent) as host:
        ann = await host.peer("ann")
        await ann.hello()
        agent.answers_in = 20
        id = await ann.call("resolveSessionConfig")
        assert (await ann.request("listSessions"))["items"] == []
        assert (await ann.answer_to(id))["values"] == DEFAULTS
        agent.answers_in = 1000
        with refused(-32603, "did not answer"):
            await ann.request("resolveSessionConfig")
        with refused(-32603, "did not answer"):
            await ann.request("createSession", channel=S)
        assert host.ledger.find(S) is None


# ---- at creation --------------------------------------------------------------------------------


async def test_a_session_begins_with_the_values_that_were_chosen() -> None:
    agent = ConfiguredAgent()
    async with running_host(agent) as host:
        ann = await host.peer("ann")
        await ann.hello()
        chosen = {
            "mode": "plan",
            "tags": ["a"],
            "version": "7",
            "isolation": "worktree",
            "branch": "zz",
        }
        await ann.request("createSession", channel=S, config=chosen)
        held = state_of(host, S)["config"]
        assert held["values"] == {**DEFAULTS, **chosen}
        assert held["schema"]["properties"]["branch"]["enumDynamic"] is True
        await settled()
        assert agent.of[C].request.config == held["values"]


#: What no session can begin with -> what the refusal says.
BAD: list[tuple[dict[str, Any], str]] = [
    ({"zzz": 1}, "no setting zzz"),
    ({"mode": "loud"}, "mode must be one of 'ask', 'plan'"),
    ({"mode": True}, "mode must be a string"),
    ({"tags": []}, "tags must have at least 1"),
    ({"tags": ["a", "b", "c"]}, "tags must have at most 2"),
    ({"tags": [1]}, "tags [0] must be a string"),
    ({"tags": "a"}, "tags must be an array"),
    ({"version": "8"}, "version is only shown"),
    ({"budget": True}, "budget must be a number"),
    ({"budget": None}, "budget must be a number"),
    ({"budget": 1000}, "nobody here has that much"),
    ({"branch": "main"}, "no setting branch"),
]


@pytest.mark.parametrize(("chosen", "words"), BAD, ids=repr)
async def test_r_8_13_values_that_do_not_fit_are_refused_before_there_is_a_session(
    chosen: dict[str, Any], words: str
) -> None:
    async with running_host(ConfiguredAgent()) as host:
        ann = await host.peer("ann")
        await ann.hello()
        with refused(-32602, words):
            await ann.request("createSession", channel=S, config=chosen)
        assert host.ledger.find(S) is None
        assert "root/sessionAdded" not in [it.get("method") for it in ann.inbox]
        await ann.request("createSession", channel=S)


# ---- while it lives -----------------------------------------------------------------------------


async def test_a_client_changes_what_may_change_and_the_agent_is_told_after_the_echo() -> None:
    agent = ConfiguredAgent()
    async with running_host(agent) as host:
        ann, bob = await room(host), await room(host, "bob")
        params = await answer(ann, await ann.dispatch(S, config(mode="plan", budget=5)))
        assert "rejectionReason" not in params
        seen = await bob.expect_action("session/configChanged")
        assert seen["action"]["config"] == {"mode": "plan", "budget": 5}
        assert seen["origin"]["clientId"] == "ann"
        wanted = {**DEFAULTS, "mode": "plan", "budget": 5}
        assert state_of(host, S)["config"]["values"] == wanted
        await settled()
        assert tunable(agent).configured == [wanted]
        # The schema stays as it was (quirk 30).
        assert state_of(host, S)["config"]["schema"]["properties"].keys() == SETTINGS.keys()


#: What no client may change -> what the refusal says.
FIXED: list[tuple[dict[str, Any], str]] = [
    ({"isolation": "worktree"}, "isolation cannot be changed"),
    ({"version": "8"}, "version cannot be changed"),
    ({"zzz": 1}, "no setting zzz"),
    ({"mode": "loud"}, "mode must be one of"),
    ({"mode": "plan", "tags": ["a", "b", "c"]}, "tags must have at most 2"),
    ({"budget": 101}, "nobody here has that much"),
]


@pytest.mark.parametrize(("values", "words"), FIXED, ids=repr)
async def test_what_may_not_change_is_refused_with_the_reason_and_nothing_changes(
    values: dict[str, Any], words: str
) -> None:
    agent = ConfiguredAgent()
    async with running_host(agent) as host:
        ann, bob = await room(host), await room(host, "bob")
        for channel in (S, C):
            params = await answer(ann, await ann.dispatch(channel, config(**values)))
            assert words in params["rejectionReason"]
            assert readable(params["rejectionReason"])
        await settled()
        assert state_of(host, S)["config"]["values"] == DEFAULTS
        assert not tunable(agent).configured
        assert "session/configChanged" not in types(bob)


async def test_what_is_said_again_without_a_change_is_no_refusal() -> None:
    async with running_host(ConfiguredAgent()) as host:
        ann = await room(host)
        for values in (DEFAULTS, {**DEFAULTS, "mode": "plan"}):
            params = await answer(ann, await ann.dispatch(S, config(**values)))
            assert "rejectionReason" not in params
        assert state_of(host, S)["config"]["values"] == {**DEFAULTS, "mode": "plan"}


async def test_replacing_everything_keeps_what_cannot_change() -> None:
    async with running_host(ConfiguredAgent()) as host:
        ann = await room(host)
        await answer(ann, await ann.dispatch(S, config(tags=["a"])))
        bad = {**config(mode="plan"), "replace": True}
        params = await answer(ann, await ann.dispatch(S, bad))
        assert "cannot be taken away" in params["rejectionReason"]
        params = await answer(ann, await ann.dispatch(C, bad))
        assert "session's channel" in params["rejectionReason"]
        good = {**config(isolation="folder", version="7", mode="plan"), "replace": True}
        assert "rejectionReason" not in await answer(ann, await ann.dispatch(S, good))
        assert state_of(host, S)["config"]["values"] == good["config"]


async def test_r_8_42_a_setting_of_chats_reaches_one_chat_and_any_other_all_of_them() -> None:
    agent = ConfiguredAgent()
    async with running_host(agent) as host:
        ann, bob = await room(host), await room(host, "bob")
        await ann.request("createChat", channel=S, chat=C2)
        await ann.dispatch(C2, started("t1"))
        await at_work(agent, "t1", C2)
        one, two = tunable(agent), tunable(agent, C2)
        params = await answer(ann, await ann.dispatch(S, config(voice="loud")))  # default chat
        assert "rejectionReason" not in params
        await settled()
        assert [each["voice"] for each in one.configured] == ["loud"]
        assert not two.configured
        await ann.subscribe(C2)
        params = await answer(ann, await ann.dispatch(C2, config(voice="soft", mode="plan")))
        assert "rejectionReason" not in params
        await settled()
        said = [it["config"] for it in actions(bob, S) if it["type"] == "session/configChanged"]
        assert said == [{"voice": "loud"}, {"voice": "soft", "mode": "plan"}]
        assert state_of(host, S)["config"]["values"]["voice"] == "soft"
        assert (one.configured[-1]["voice"], one.configured[-1]["mode"]) == ("loud", "plan")
        assert (two.configured[-1]["voice"], two.configured[-1]["mode"]) == ("soft", "plan")
        # A chat that is made now begins as the session did.
        third = "ahp-chat:/third"
        await ann.request("createChat", channel=S, chat=third)
        await ann.dispatch(third, started("t3"))
        puppet = await at_work(agent, "t3", third)
        assert puppet.request.config["voice"] == "calm"
        assert puppet.request.config["mode"] == "plan"
        for each in (two, puppet):
            each.end(Done())


async def test_other_settings_mean_another_backend_where_they_cannot_be_told() -> None:
    agent = ConfiguredAgent(tunable=False)
    async with running_host(agent) as host:
        ann = await room(host)
        await settled()
        first = agent.of[C]
        await answer(ann, await ann.dispatch(S, config(mode="plan")))
        await settled()
        assert agent.of[C] is first  # in its own time
        await ann.dispatch(C, started("t1"))
        second = await at_work(agent, "t1")
        assert second is not first
        assert first.closed
        assert second.request.config["mode"] == "plan"
        await answer(ann, await ann.dispatch(S, config(mode="ask")))
        await settled()
        assert not second.closed  # not under a turn
        second.end(Done())
        await ending(ann, "t1")
        await ann.dispatch(C, started("t2"))
        third = await at_work(agent, "t2")
        assert third.request.config["mode"] == "ask"
        third.end(Done())


async def test_settings_survive_crashes_of_the_session_and_of_the_chat() -> None:
    agent = ConfiguredAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await answer(ann, await ann.dispatch(S, config(voice="loud", mode="plan")))
        for uri in (S, C):
            sys.kill(host.system.ref(host.ledger.channels[uri].path))
            await trio.sleep(5)
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        assert puppet.request.config == {**DEFAULTS, "voice": "loud", "mode": "plan"}
        puppet.end(Done())


# ---- progress of a creation (R-7.47 to) --------------------------------------------------


def frames(peer: Any) -> list[tuple[float, float]]:
    """The progress frames in a peer's inbox."""
    told = [it["params"] for it in peer.inbox if it.get("method") == "root/progress"]
    assert all(each["channel"] == ROOT and each["progressToken"] == "p1" for each in told)
    assert all(each["message"] for each in told)
    return [(each["progress"], each["total"]) for each in told]


async def test_who_asked_gets_three_frames_of_progress_before_the_answer() -> None:
    async with running_host(ConfiguredAgent()) as host:
        ann, bob = await room(host), await room(host, "bob")
        id = await ann.call("createSession", channel=S2, progressToken="p1")
        await settled()
        place = [it.get("id") == id and "result" in it for it in ann.inbox].index(True)
        assert not any(it.get("method") == "root/progress" for it in ann.inbox[place:])
        assert await ann.answer_to(id) is None
        assert frames(ann) == [(0, 2), (1, 2), (2, 2)]
        assert frames(bob) == []


async def test_a_creation_that_fails_closes_its_progress_and_one_that_did_not_ask_has_none() -> (
    None
):
    async with running_host(ConfiguredAgent()) as host:
        ann = await room(host)
        with refused(-32003):
            await ann.request("createSession", channel=S, progressToken="p1")
        assert frames(ann) == [(0, 2), (1, 2), (2, 2)]
        ann.inbox.clear()
        with refused(-32602):
            await ann.request("createSession", channel=S2, progressToken="p1", config={"zzz": 1})
        assert frames(ann) == [(0, 2), (2, 2)]
        ann.inbox.clear()
        await ann.request("createSession", channel=S2)
        await settled()
        assert frames(ann) == []
