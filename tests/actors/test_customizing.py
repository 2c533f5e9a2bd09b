"""Slash commands, customizations, MCP servers and completions, from agent to screen and back."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors import customizing
from ahpd.agents import events as ev
from ahpd.protocol.customizations import (
    AgentCustomization,
    DirectoryCustomization,
    GlobalEnablement,
    McpServerCustomization,
    McpServerReadyState,
    McpServerStartingState,
    McpServerStoppedState,
    PluginCustomization,
    PromptCustomization,
    RuleCustomization,
    SessionEnablement,
    SkillCustomization,
    WorkspaceEnablement,
)
from ahpd.protocol.model import JSON, Unknown
from ahpd.protocol.uris import worker_chat
from ahpd.reducers.change import id_of
from supervisors import sys
from tests.actors.support import C2, C, S, at_work, message, refused, room, settled, started
from tests.actors.talk import Stage, stage
from tests.harness import PuppetAgent, running_host

COMMANDS = ev.CommandsChanged(
    (
        ev.Command("compact", "Make room"),
        ev.Command("review", "Review a file", argument_hint="<file>"),
        ev.Command("release", "Write notes", is_skill=True),
    )
)
LATER = "2026-09-21T15:00:00.000Z"
SERVER = McpServerCustomization(
    id="files", uri="mcp:files", name="Files", state=McpServerStoppedState()
)
PLUGIN = PluginCustomization(
    id="p",
    uri="file:///p",
    name="P",
    children=(
        PromptCustomization(id="p/tidy", uri="file:///p/tidy", name="tidy", description="Tidy"),
        SkillCustomization(
            id="p/own", uri="file:///p/own", name="own", disable_user_invocation=True
        ),
        SkillCustomization(id="p/off", uri="file:///p/off", name="off", enabled=False),
        RuleCustomization(id="p/rule", uri="file:///p/rule", name="rule"),
    ),
)
AGENTS = DirectoryCustomization(
    id="agents",
    uri="file:///agents",
    name="Agents",
    enabled=True,
    contents="agent",
    writable=False,
    children=(AgentCustomization(id="a", uri="file:///a", name="A"),),
)
ALL = ev.CustomizationsChanged((SERVER, PLUGIN, AGENTS))


def entry(it: Stage, wanted: str) -> Any:
    """An entry of the session, or a child."""
    for each in it.state(S).get("customizations", ()):
        for one in (each, *each.get("children", ())):
            if one["id"] == wanted:
                return one
    return None


def toggled(wanted: str, *decisions: JSON) -> dict[str, JSON]:
    return {"type": "session/customizationToggled", "id": wanted, "enablement": list(decisions)}


def here(enabled: bool) -> JSON:
    return {"kind": "session", "enabled": enabled}


def everywhere(enabled: bool) -> JSON:
    return {"kind": "global", "enabled": enabled}


def folder(enabled: bool, uri: str = "file:///w") -> JSON:
    return {"kind": "workspace", "uri": uri, "enabled": enabled}


# ---- the tree -----------------------------------------------------------------------------------


async def test_commands_become_children_of_one_container_for_each_kind() -> None:
    async with stage() as it:
        await it.mutters(COMMANDS)
        prompts, skills = it.state(S)["customizations"]
        assert [(c["type"], c["contents"], c["writable"]) for c in (prompts, skills)] == [
            ("directory", "prompt", False), ("directory", "skill", False),
        ]  # fmt: skip
        assert [c["name"] for c in prompts["children"]] == ["compact", "review"]
        assert prompts["children"][1]["_meta"] == {"ahpd.argumentHint": "<file>"}
        assert [c["name"] for c in skills["children"]] == ["release"]
        every = [each["id"] for c in (prompts, skills) for each in (c, *c["children"])]
        assert len(every) == len(set(every))
        await it.mutters(ev.CommandsChanged(()))
        assert it.state(S)["customizations"] == []


async def test_each_source_speaks_for_its_own_entries() -> None:
    async with stage() as it:
        await it.mutters(ev.CommandsChanged(()))
        assert "customizations" not in it.state(S), "nothing to tell"
        await it.says(COMMANDS, ALL)
        names = [each["id"] for each in it.state(S)["customizations"]]
        assert names == ["files", "p", "agents", "ahpd.commands/prompts", "ahpd.commands/skills"]
        await it.says(ev.CustomizationsChanged((AGENTS,)))
        names = [each["id"] for each in it.state(S)["customizations"]]
        assert names == ["agents", "ahpd.commands/prompts", "ahpd.commands/skills"]


def test_plugins_of_clients_stay_when_the_agent_names_its_own() -> None:
    theirs = PluginCustomization(id="c", uri="file:///c", name="C", client_id="ann")
    tree = customizing.with_agents((theirs, AGENTS), (PLUGIN, theirs.evolve(client_id=None)))
    assert tree == (PLUGIN, theirs)
    assert customizing.with_commands(tree, "x", ()) == tree


def test_an_entry_of_a_type_nobody_knows_is_kept_as_it_is() -> None:
    new = Unknown(raw={"type": "portal", "id": "n"})
    assert customizing.with_agents((), (new,)) == (new,)
    assert customizing.find((new,), "n") is new
    assert list(customizing.offered((new,))) == []


# ---- switching ----------------------------------------------------------------------------------


async def test_a_decision_is_kept_told_to_every_agent_and_survives_being_named_again() -> None:
    async with stage() as it:
        await it.mutters(COMMANDS, ALL)
        await it.ann.request("createChat", channel=S, chat=C2)
        assert await it.why(toggled("p", here(False), everywhere(True)), S) is None
        decisions = it.puppet.switched["p"]
        assert [each.wire() for each in decisions] == [here(False), everywhere(True)]
        assert await it.why(toggled("agents", everywhere(False)), S) is None
        assert await it.why(toggled("p/tidy", here(False)), S) is None
        await it.mutters(COMMANDS, ALL)
        assert entry(it, "p")["enablement"] == [here(False), everywhere(True)]
        assert entry(it, "agents")["enabled"] is False
        assert entry(it, "p/tidy")["enabled"] is False
        await it.ann.dispatch(C2, started("u1"))
        other = await at_work(it.agent, "u1", C2)
        told: Any = {id_of(each): each for each in other.request.customizations}
        assert told["p"].enablement is not None
        assert await it.why(toggled("p"), S) is None
        assert "enablement" not in entry(it, "p")
        assert other.switched["p"] == ()


BAD: list[tuple[str, tuple[JSON, ...], str]] = [
    ("never", (here(True),), "no customization never"),
    ("p", (everywhere(True), here(True)), "most specific scope to the least"),
    ("p", (folder(True), folder(False, "file:///v")), "one decision for each scope"),
    ("p", (here(True), here(True)), "one decision for each scope"),
]


@pytest.mark.parametrize(("wanted", "decisions", "reason"), BAD)
async def test_a_list_of_decisions_that_is_none_is_refused(
    wanted: str, decisions: tuple[JSON, ...], reason: str
) -> None:
    async with stage() as it:
        await it.mutters(ALL)
        assert reason in str(await it.why(toggled(wanted, *decisions), S))
        assert it.puppet.switched == {}


def test_scopes_from_newer_peers_may_stand_anywhere() -> None:
    new = Unknown(raw={"kind": "planet", "enabled": True})
    session, workspace = SessionEnablement(enabled=True), WorkspaceEnablement(uri="w", enabled=True)
    all_scopes = (session, workspace, GlobalEnablement(enabled=False))
    assert customizing.order_fault((new, *all_scopes)) is None
    assert customizing.order_fault(()) is None


async def test_an_agent_that_cannot_switch_says_so_and_the_entry_is_shown_again() -> None:
    """R-18.12: also a child's, whose container is shown, and to everybody who drew the switch."""
    agent = PuppetAgent()
    agent.can_switch = agent.can_control = False
    async with stage(agent) as it:
        bob = await room(it.host, "bob", subscribe=(S,))
        await it.mutters(ALL)
        for wanted, shown in (("p", "p"), ("p/tidy", "p")):
            why = await it.why(toggled(wanted, here(False)), S)
            assert why == "this agent cannot switch its customizations"
            for peer in (it.ann, bob):
                again = await peer.expect_action("session/customizationUpdated")
                assert again["action"]["customization"]["id"] == shown
        await it.why(toggled("never", here(False)), S)
        await settled()
        assert not [m for m in bob.inbox if "customizationUpdated" in str(m)]
        assert it.puppet.switched == {}


# ---- MCP servers --------------------------------------------------------------------------------


def server(request: str, wanted: str = "files") -> dict[str, JSON]:
    return {"type": f"session/mcpServer{request}Requested", "id": wanted}


async def test_what_people_want_of_a_server_goes_to_the_agents_and_its_state_comes_back() -> None:
    async with stage() as it:
        await it.mutters(ALL)
        assert await it.why(server("Start"), S) is None
        assert entry(it, "files")["state"] == {"kind": "starting"}
        assert it.puppet.controlled == [("files", "start")]
        await it.mutters(ev.ServerChanged("files", McpServerStartingState(blocking=True)))
        assert await it.why(server("Background"), S) is None
        assert entry(it, "files")["state"] == {"kind": "starting"}
        await it.mutters(ev.ServerChanged("files", McpServerReadyState(), "mcp://1"))
        assert (entry(it, "files")["state"], entry(it, "files")["channel"]) == (
            {"kind": "ready"}, "mcp://1",
        )  # fmt: skip
        assert await it.why(server("Stop"), S) is None
        assert entry(it, "files")["state"] == {"kind": "stopped"}
        assert [each for _, each in it.puppet.controlled] == ["start", "background", "stop"]
        await it.mutters(ev.ServerChanged("never", McpServerReadyState()))


async def test_a_server_that_is_none_and_an_agent_that_has_none_refuse() -> None:
    agent = PuppetAgent()
    async with stage(agent) as it:
        await it.mutters(ALL)
        assert "no MCP server p" in str(await it.why(server("Start", "p"), S))
        agent.can_control = False
        assert "cannot be told about its MCP servers" in str(await it.why(server("Stop"), S))
        assert it.puppet.controlled == []


async def test_an_agent_is_brought_up_for_a_server_and_one_that_will_not_come_up_is_told_of() -> (
    None
):
    agent = PuppetAgent()
    async with stage(agent) as it:
        await it.mutters(ALL)
        it.puppet.end(ev.Done())
        assert sys.kill(it.host.system.ref(it.host.ledger.channels[C].path))
        await trio.sleep(5)
        assert await it.why(server("Start"), S) is None
        assert agent.of[C] is not it.puppet
        assert agent.of[C].controlled == [("files", "start")]
        agent.of[C].mutter(ev.ServerChanged("files", McpServerStoppedState()))
        await settled()
        agent.of[C].collapse(RuntimeError("gone"))
        await settled()
        agent.broken = "no agent today"
        assert await it.why(server("Start"), S) is None
        state = entry(it, "files")["state"]
        assert (state["kind"], state["error"]["message"]) == ("error", "no agent today")


# ---- completions --------------------------------------------------------------------------------


async def complete(it: Stage, before: str, channel: str = C, after: str = "") -> list[Any]:
    result = await it.ann.request(
        "completions",
        channel=channel,
        kind="userMessage",
        text=before + after,
        offset=len(before.encode("utf-16-le")) // 2,
    )
    items: list[Any] = result["items"]
    return items


async def test_a_slash_offers_the_commands_of_the_session_in_the_form_that_clients_read() -> None:
    async with stage() as it:
        await it.mutters(COMMANDS, ALL)
        items = await complete(it, "/")
        assert [item["insertText"] for item in items] == [
            "/tidy ", "/compact ", "/review ", "/release ",
        ]  # fmt: skip
        review, release = items[2], items[3]
        assert review["attachment"] == {
            "type": "simple",
            "label": "/review",
            "_meta": {
                "command": "review", "description": "Review a file", "argumentHint": "<file>",
            },
        }  # fmt: skip
        assert (review["rangeStart"], review["rangeEnd"]) == (0, 1)
        assert release["attachment"]["_meta"]["isSkill"] is True
        assert [i["insertText"] for i in await complete(it, "  /RE")] == ["/review ", "/release "]
        assert (await complete(it, "  /RE"))[0]["rangeStart"] == 2
        assert await complete(it, "look /") == [], "a command is at the start"
        assert await complete(it, "/review ") == []
        sent = message("/review x", attachments=[review["attachment"]])
        it.puppet.end(ev.Done())
        await settled()
        assert await it.why({**started("t2"), "message": sent}) is None


async def test_what_is_off_is_not_offered() -> None:
    async with stage() as it:
        await it.mutters(COMMANDS, ALL)
        assert await it.why(toggled("ahpd.commands/prompts", here(False)), S) is None
        assert await it.why(toggled("p", folder(False), everywhere(True)), S) is None
        assert [item["insertText"] for item in await complete(it, "/")] == ["/release "]


async def test_a_hash_offers_the_other_chats_newest_first_pinned_to_their_last_turn() -> None:
    async with stage() as it:
        it.puppet.end(ev.Done())
        for number in range(2, 25):
            await it.ann.request("createChat", channel=S, chat=f"ahp-chat:/{number}")
        await trio.sleep(5)
        await it.ann.subscribe("ahp-chat:/3")
        await it.ann.dispatch("ahp-chat:/3", {**started("u1"), "startedAt": LATER})
        (await at_work(it.agent, "u1", "ahp-chat:/3")).end(ev.Done())
        await trio.sleep(5)
        renamed = {"type": "session/titleChanged", "title": "Über Bäume"}
        assert await it.why(renamed, "ahp-chat:/3") is None
        items = await complete(it, "see #")
        assert len(items) == 20
        assert items[0]["attachment"] == {
            "type": "chat", "label": "Über Bäume", "resource": "ahp-chat:/3", "endTurn": "u1",
        }  # fmt: skip
        assert items[0]["insertText"] == "#chat:Über Bäume "
        assert "endTurn" not in items[1]["attachment"]
        named = {item["attachment"]["resource"] for item in items}
        assert C not in named, "not the one it is typed in"
        for typed in ("#ch", "#chat", "#chat:", "#chat:ÜBER", "#chat:bä"):
            (first, *_) = await complete(it, f"𐍈 {typed}", after=" please")
            assert first["attachment"]["resource"] == "ahp-chat:/3"
            assert (first["rangeStart"], first["rangeEnd"]) == (3, 3 + len(typed))
        assert await complete(it, "#chat:nothing like it") == []
        assert await complete(it, "#cheese") == []
        assert await complete(it, "a#chat:") == []
        other = await complete(it, "#chat:", "ahp-chat:/3")
        assert "ahp-chat:/3" not in {item["attachment"]["resource"] for item in other}
        for_session = await complete(it, "#chat:bä", S)
        assert [i["attachment"]["resource"] for i in for_session] == ["ahp-chat:/3"]


async def test_a_workers_chat_is_not_offered() -> None:
    async with stage() as it:
        await it.says(
            ev.ToolStarted("c", "task", "Look"),
            ev.ToolReady("c", "Looking"),
            ev.WorkerStarted("w", "c", "Look"),
        )
        assert it.host.ledger.find(worker_chat(S, "c")) is not None
        assert await complete(it, "#chat:") == []


async def test_offsets_and_kinds_that_make_no_sense() -> None:
    async with stage() as it:
        asked: dict[str, Any] = {"channel": C, "kind": "userMessage", "text": "𐍈", "offset": 2}
        assert await it.ann.request("completions", **asked) == {"items": []}
        asked["offset"] = 1  # within one character
        assert await it.ann.request("completions", **asked) == {"items": []}
        for offset in (3, -1, 0.5):
            with refused(-32602, "outside the text"):
                await it.ann.request("completions", **{**asked, "offset": offset})
        with refused(-32008, "no chat"):
            await it.ann.request("completions", **{**asked, "channel": "ahp-chat:/never"})
    async with running_host(provoked=["c2h"]) as host:
        ann = await room(host)
        asked = {"channel": C, "kind": "commitMessage", "text": "/", "offset": 1}
        assert await ann.request("completions", **asked) == {"items": []}


async def test_the_handshake_says_what_triggers_completions() -> None:
    async with running_host() as host:
        result = await (await host.peer("ann")).hello()
        assert result["completionTriggerCharacters"] == ["/", "#", "@"]
