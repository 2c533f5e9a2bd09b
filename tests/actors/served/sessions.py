"""Actions of a session, of its working directories, and of what it is customized with."""

from __future__ import annotations

from typing import Any

import trio

from ahpd.agents import events as ev
from ahpd.protocol.customizations import (
    McpServerCustomization,
    McpServerReadyState,
    McpServerStartingState,
    McpServerState,
    McpServerStoppedState,
    PluginCustomization,
)
from ahpd.protocol.model import JSON
from tests.actors.served.show import C, Outcome, S, Scene, Scenes, Show, dispatched, settled, told
from tests.actors.support import C2, S2, approved
from tests.actors.test_client_tools import joined

CUSTOMIZATIONS = ev.CustomizationsChanged(
    (
        McpServerCustomization(
            id="files", uri="mcp:files", name="Files", state=McpServerStoppedState()
        ),
        PluginCustomization(id="p", uri="file:///p", name="P"),
    )
)
ASKS = (ev.ToolStarted("c", "rm", "Remove"), ev.ToolAsks("c", "Remove it?", "{}"))
D1, D2 = "file:///d1", "file:///d2"


def status(it: Show, bit: int, channel: str = S) -> bool:
    return bool(it.state(channel)["status"] & bit)


# ---- who takes part, and settings ----------------------------------------------------------------


async def leaves(it: Show) -> Outcome:
    assert await it.why(joined("ann", "open"), S) is None
    assert [each["clientId"] for each in it.state(S)["activeClients"]] == ["ann"]
    reason = await it.why({"type": "session/activeClientRemoved", "clientId": "ann"}, S)
    assert reason is not None or it.state(S)["activeClients"] == []
    return reason


# ---- directories ---------------------------------------------------------------------------------


def directory(kind: str, word: str, uri: str = D1, **more: JSON) -> Any:
    return {"type": f"{kind}/workingDirectory{word}", "directory": uri, **more}


def directories(channel: str, left: list[str], *steps: Any) -> Scene:
    """All the steps are taken, and then these directories are left; or one is refused."""

    async def scene(it: Show) -> Outcome:
        for step in steps:
            on = S if step["type"].startswith("session/") else C
            reason = await it.why(step, on)
            if reason is not None:
                return reason
        assert it.state(channel).get("workingDirectories", []) == left
        return None

    return scene


# ---- customizations ------------------------------------------------------------------------------


async def switched(it: Show) -> Outcome:
    await it.mutters(CUSTOMIZATIONS)
    decision = {"kind": "session", "enabled": False}
    reason = await it.why(
        {"type": "session/customizationToggled", "id": "p", "enablement": [decision]}, S
    )
    if reason is None:
        assert it.state(S)["customizations"][1]["enablement"] == [decision]
        assert [each.wire() for each in it.puppet.switched["p"]] == [decision]
    return reason


def server(word: str, before: McpServerState, request: str, state: str) -> Scene:
    """What somebody wants of a server reaches the agent."""

    async def scene(it: Show) -> Outcome:
        await it.mutters(CUSTOMIZATIONS)
        await it.mutters(ev.ServerChanged("files", before))
        reason = await it.why({"type": f"session/mcpServer{word}Requested", "id": "files"}, S)
        if reason is None:
            assert it.puppet.controlled == [("files", request)]
            assert it.state(S)["customizations"][0]["state"]["kind"] == state
        return reason

    return scene


async def named(it: Show) -> None:
    await it.can_beside(CUSTOMIZATIONS, ev.ServerChanged("files", McpServerReadyState()))


async def remarked(it: Show) -> None:
    await it.can_beside(ev.MetaChanged({"ahpd.model": "m"}))


async def shown_again(it: Show) -> None:
    await it.can_beside(CUSTOMIZATIONS)
    twice = [{"kind": "session", "enabled": False}] * 2
    await it.why({"type": "session/customizationToggled", "id": "p", "enablement": twice}, S)


# ---- what it says of itself ----------------------------------------------------------------------


async def opens(it: Show) -> None:
    it.agent.opens_in = 1
    await it.ann.request("createSession", channel=S2)
    await it.ann.subscribe(S2)
    await trio.sleep(2)


async def does_not_open(it: Show) -> None:
    it.agent.broken = "no agent today"
    await opens(it)


async def asks(it: Show) -> None:
    await it.work()
    await it.says(ev.ActivityChanged("Reading"), *ASKS)
    assert it.state(S)["activity"] == "Reading"
    (entry,) = it.state(S)["inputNeeded"]
    assert entry["toolCall"]["toolCallId"] == "c"
    assert await it.why(approved("t1", "c")) is None
    assert "inputNeeded" not in it.state(S)


async def chats_come_and_go(it: Show) -> None:
    await it.ann.request("createChat", channel=S, chat=C2)
    await it.ann.request("disposeChat", channel=C)
    assert it.state(S)["defaultChat"] == C2


async def reordered(it: Show) -> None:
    if it.is_able:
        await it.ann.request("createChat", channel=S, chat=C2)
    await it.ann.request(
        "moveChat", channel=C2 if it.is_able else C, destination={"kind": "session", "session": S}
    )
    await settled()
    if it.is_able:
        assert [row["resource"] for row in it.state(S)["chats"]] == [C2, C]


SCENES: Scenes = {
    "session/activeClientSet": dispatched(
        joined("ann", "open"), S, lambda it: it.state(S)["activeClients"][0]["clientId"] == "ann"
    ),
    "session/activeClientRemoved": leaves,
    "session/configChanged": dispatched(
        {"type": "session/configChanged", "config": {"mode": "act"}},
        S,
        lambda it: it.state(S)["config"]["values"] == {"mode": "act"},
    ),
    "session/titleChanged": dispatched(
        {"type": "session/titleChanged", "title": "New"},
        S,
        lambda it: it.state(S)["title"] == "New",
    ),
    "session/isReadChanged": dispatched(
        {"type": "session/isReadChanged", "isRead": False}, S, lambda it: not status(it, 32)
    ),
    "session/isArchivedChanged": dispatched(
        {"type": "session/isArchivedChanged", "isArchived": True}, S, lambda it: status(it, 64)
    ),
    "session/workingDirectorySet": directories(S, [D1], directory("session", "Set")),
    "session/workingDirectoryRemoved": directories(
        S, [], directory("session", "Set"), directory("session", "Removed")
    ),
    "session/workingDirectoryReplaced": directories(
        S, [D2], directory("session", "Set"), directory("session", "Replaced", replacement=D2)
    ),
    "chat/workingDirectorySet": directories(
        C, [D1], directory("session", "Set"), directory("chat", "Set")
    ),
    "chat/workingDirectoryRemoved": directories(
        C, [], directory("session", "Set"), directory("chat", "Set"), directory("chat", "Removed")
    ),
    "session/customizationToggled": switched,
    "session/mcpServerStartRequested": server(
        "Start", McpServerStoppedState(), "start", "starting"
    ),
    "session/mcpServerBackgroundRequested": server(
        "Background", McpServerStartingState(blocking=True), "background", "starting"
    ),
    "session/mcpServerStopRequested": server("Stop", McpServerReadyState(), "stop", "stopped"),
    **told(named, "session/customizationsChanged", "session/mcpServerStateChanged"),
    **told(remarked, "session/metaChanged"),
    **told(shown_again, "session/customizationUpdated"),
    **told(opens, "session/ready"),
    **told(does_not_open, "session/creationFailed"),
    **told(
        asks,
        "session/activityChanged",
        "session/chatUpdated",
        "session/inputNeededSet",
        "session/inputNeededRemoved",
    ),
    **told(
        chats_come_and_go,
        "session/chatAdded",
        "session/chatRemoved",
        "session/defaultChatChanged",
    ),
    **told(reordered, "session/chatsReordered"),
}
