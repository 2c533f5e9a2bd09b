"""The root channel: the host's own settings, which any client may push (RULES 7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from actors.root_config import SETTINGS, Scope
from ahpd.agents.events import Done, ToolAsks, ToolStarted
from ahpd.protocol.common import ConfigPropertySchema, ConfigSchema
from ahpd.protocol.root import SessionModelInfo
from ahpd.protocol.uris import ROOT
from supervisors import sys
from tests.actors.support import (
    S2,
    C,
    answer,
    at_work,
    readable,
    room,
    settled,
    started,
    types,
)
from tests.harness import PuppetAgent, running_host
from tests.harness.replicas import state_of

MIB = 1 << 20


def push(**config: Any) -> dict[str, Any]:
    return {"type": "root/configChanged", "config": config}


PUSHES: list[tuple[dict[str, Any], list[str], dict[str, Any]]] = [
    ({"clientQueueBytes": MIB}, [], {"clientQueueBytes": MIB}),
    ({"replayBytes": 5 * MIB}, [], {"replayBytes": 5 * MIB}),
    ({"clientQueueBytes": MIB - 1}, ["clientQueueBytes"], {}),
    ({"clientQueueBytes": -1}, ["clientQueueBytes"], {}),
    ({"clientQueueBytes": 2.5 * MIB + 0.5}, ["clientQueueBytes"], {}),
    *(
        ({key: wrong}, [key, f"from {MIB} to {1 << 40}", str(wrong)], {})
        for key in ("clientQueueBytes", "replayBytes")
        for wrong in (1e300, -1e300, 2.0 * MIB, 0, (1 << 40) + 1, 1 << 63, 1e19)
    ),
    ({"replayBytes": 1 << 40}, [], {"replayBytes": 1 << 40}),
    ({"clientToolTimeoutMs": 1e300}, ["clientToolTimeoutMs"], {}),
    ({"clientQueueBytes": "much"}, ["clientQueueBytes"], {}),
    ({"clientQueueBytes": True}, ["clientQueueBytes"], {}),
    ({"clientQueueBytes": None}, ["clientQueueBytes"], {}),
    ({"clientQueueBytes": [MIB]}, ["clientQueueBytes"], {}),
    ({"telemetryLevel": "off"}, [], {"telemetryLevel": "off"}),
    ({"telemetryLevel": "loud"}, ["telemetryLevel", "crash"], {}),
    ({"sessionSyncEnabled": 1}, ["sessionSyncEnabled"], {}),
    ({"http.noProxy": ["a", 5]}, ["http.noProxy", "string"], {}),
    ({"clientToolTimeoutMs": -1}, ["clientToolTimeoutMs"], {}),
    ({"deltaWindowMs": 1001}, ["deltaWindowMs"], {}),
    ({"deltaWindowMs": 75}, [], {"deltaWindowMs": 75}),
    ({"clientToolTimeoutMs": 0}, [], {"clientToolTimeoutMs": 0}),
    ({"replayBytes": 1, "clientQueueBytes": MIB}, ["replayBytes"], {"clientQueueBytes": MIB}),
    ({"zzz": 1, "replayBytes": 2 * MIB}, ["zzz"], {"replayBytes": 2 * MIB}),
    ({"zzz": 1, "replayBytes": 0}, ["zzz", "replayBytes"], {}),
]  # fmt: skip


@pytest.mark.parametrize(("config", "bad", "applied"), PUSHES, ids=repr)
async def test_r_7_6_good_settings_of_a_push_are_taken_and_bad_ones_refused_by_name(
    config: dict[str, Any], bad: list[str], applied: dict[str, Any]
) -> None:
    async with running_host() as host:
        ann, bob = await room(host), await room(host, "bob")
        before = state_of(host, ROOT)["config"]["values"]
        action = {"type": "root/configChanged", "config": config}
        params = await answer(ann, await ann.dispatch(ROOT, action))
        reason = params.get("rejectionReason", "")
        assert bool(reason) == bool(bad)
        assert all(key in reason for key in bad)
        assert not reason or readable(reason)
        await settled()
        now = state_of(host, ROOT)["config"]["values"]
        assert now == before | applied
        assert host.tables.settings.client_queue_bytes == now["clientQueueBytes"]
        assert host.tables.window.limit_bytes == now["replayBytes"]
        said = [
            it for it in bob.inbox if it["params"].get("action", {}).get("type") == action["type"]
        ]
        assert len(said) == (1 if applied else 0)


async def test_replacing_needs_every_setting_that_the_host_acts_on() -> None:
    async with running_host() as host:
        ann = await room(host)
        for config in ({}, {"replayBytes": MIB}):
            action = {"type": "root/configChanged", "config": config, "replace": True}
            params = await answer(ann, await ann.dispatch(ROOT, action))
            assert "replacing" in params["rejectionReason"]
        await ann.dispatch(ROOT, push(telemetryLevel="off"))
        whole = {
            "replayBytes": MIB,
            "clientQueueBytes": MIB,
            "clientToolTimeoutMs": 5,
            "deltaWindowMs": 75,
        }
        action = {"type": "root/configChanged", "config": whole, "replace": True}
        assert "rejectionReason" not in await answer(ann, await ann.dispatch(ROOT, action))
        assert state_of(host, ROOT)["config"]["values"] == whole


async def test_the_settings_and_the_count_survive_a_crash_of_the_root() -> None:
    async with running_host() as host:
        ann = await room(host)
        action = {"type": "root/configChanged", "config": {"replayBytes": 7 * MIB}}
        await answer(ann, await ann.dispatch(ROOT, action))
        sys.kill(host.system.ref("root"))
        await ann.request("createSession", channel=S2)
        await ann.expect_action("root/activeSessionsChanged")
        root = state_of(host, ROOT)
        assert root["config"]["values"]["replayBytes"] == 7 * MIB
        assert root["activeSessions"] == 2
        assert set(root["config"]["schema"]["properties"]) == set(SETTINGS)


async def test_less_to_replay_takes_effect_with_the_next_envelope() -> None:
    async with running_host() as host:
        ann = await room(host)
        draft = {"text": "x" * 400_000, "origin": {"kind": "user"}}
        for number in range(6):
            action = {"type": "chat/draftChanged", "draft": {**draft, "_meta": {"n": number}}}
            await answer(ann, await ann.dispatch(C, action))
        assert host.tables.window.size > 2 * MIB
        action = {"type": "root/configChanged", "config": {"replayBytes": MIB}}
        await answer(ann, await ann.dispatch(ROOT, action))
        await answer(ann, await ann.dispatch(C, {"type": "chat/isReadChanged", "isRead": False}))
        assert host.tables.window.size <= MIB


# ---- what windows push --------------------------------------------------------------------------

#: A value of each type.
VALUES: dict[str, Any] = {"string": "off", "boolean": True, "number": 5, "array": [], "object": {}}


@pytest.mark.parametrize(
    "key", [key for key, each in SETTINGS.items() if each.scope is Scope.WINDOW]
)
async def test_what_a_window_pushes_is_kept_and_read_back(key: str) -> None:
    async with running_host() as host:
        ann, bob = await room(host), await room(host, "bob")
        value = VALUES[SETTINGS[key].schema.type]
        params = await answer(ann, await ann.dispatch(ROOT, push(**{key: value})))
        assert "rejectionReason" not in params
        seen = await bob.expect_action("root/configChanged")
        assert seen["action"]["config"] == {key: value}
        again = await bob.subscribe(ROOT)
        assert again["state"]["config"]["values"][key] == value


def test_every_setting_has_a_title_and_only_the_hosts_own_have_values_at_first() -> None:
    for key, each in SETTINGS.items():
        assert each.schema.title.strip(), key
        assert (each.scope is Scope.OWN) == (each.read is not None) == (each.apply is not None)


async def test_settings_of_a_connection_are_shown_to_nobody_else() -> None:
    async with running_host() as host:
        ann, bob = await room(host), await room(host, "bob")
        config = {"defaultShell": "/bin/fish", "workspaceTrust": True, "sessionSyncEnabled": True}
        params = await answer(ann, await ann.dispatch(ROOT, push(**config)))
        assert params["action"]["config"] == config
        assert "rejectionReason" not in params
        seen = await bob.expect_action("root/configChanged")
        assert seen["action"]["config"] == {"sessionSyncEnabled": True}
        assert "origin" not in seen
        for peer, holds in ((ann, True), (bob, False)):
            values = (await peer.subscribe(ROOT))["state"]["config"]["values"]
            assert ("defaultShell" in values) is ("workspaceTrust" in values) is holds
            assert values["sessionSyncEnabled"] is True
        assert "defaultShell" not in state_of(host, ROOT)["config"]["values"]
        # Another connection of the same client is another window.
        again = await host.peer("ann")
        await again.hello(subscribe=())
        values = (await again.subscribe(ROOT))["state"]["config"]["values"]
        assert "defaultShell" not in values


async def test_settings_of_a_connection_are_checked_and_kept_beside_bad_ones() -> None:
    async with running_host() as host:
        ann, bob = await room(host), await room(host, "bob")
        params = await answer(ann, await ann.dispatch(ROOT, push(defaultShell=5)))
        assert "defaultShell" in params["rejectionReason"]
        params = await answer(ann, await ann.dispatch(ROOT, push(defaultShell="/bin/sh", zzz=1)))
        assert "zzz" in params["rejectionReason"]
        assert "defaultShell" not in params["rejectionReason"]
        values = (await ann.subscribe(ROOT))["state"]["config"]["values"]
        assert values["defaultShell"] == "/bin/sh"
        await settled()
        assert "root/configChanged" not in [
            it["params"].get("action", {}).get("type") for it in bob.inbox
        ]


async def test_a_window_that_approves_everything_approves_nothing_for_others() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob = await room(host), await room(host, "bob")
        await answer(ann, await ann.dispatch(ROOT, push(globalAutoApproveEnabled=True)))
        await bob.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        puppet.say(ToolStarted("c1", "rm", "rm"), ToolAsks("c1", "rm"))
        await trio.sleep(60)
        call = state_of(host, C)["activeTurn"]["responseParts"][0]["toolCall"]
        assert call["status"] == "pending-confirmation"
        assert not puppet.permissions
        puppet.end(Done())


async def test_how_long_a_client_may_keep_silent_can_be_set_while_the_host_runs() -> None:
    async with running_host() as host:
        ann = await room(host)
        values = state_of(host, ROOT)["config"]["values"]
        assert values["clientToolTimeoutMs"] == 600_000
        await answer(ann, await ann.dispatch(ROOT, push(clientToolTimeoutMs=1500)))
        assert host.tables.settings.client_tool_within == 1.5


# ---- agents -------------------------------------------------------------------------------------


class Learner(PuppetAgent):
    """An agent that learns of its models later."""

    def __init__(self) -> None:
        super().__init__()
        self.changed: Callable[[], None] = lambda: None

    def watch(self, changed: Callable[[], None]) -> None:
        self.changed = changed

    def learn(self, *names: str) -> None:
        models = tuple(
            SessionModelInfo(
                id=name,
                provider="puppet",
                name=name,
                config_schema=ConfigSchema(
                    properties={
                        "effort": ConfigPropertySchema(
                            type="string", title="Effort", enum=("low", "high")
                        )
                    }
                ),
            )
            for name in names
        )
        self.info = self.info.evolve(models=models)
        self.changed()


async def test_r_7_9_clients_are_told_when_an_agent_has_learned_of_its_models() -> None:
    agent = Learner()
    async with running_host(agent, crashes=["root"]) as host:
        ann = await room(host)
        assert state_of(host, ROOT)["agents"][0]["models"] == []
        agent.learn("large")
        told = (await ann.expect_action("root/agentsChanged"))["action"]["agents"][0]
        assert told == agent.info.wire()
        assert told["models"][0]["configSchema"]["properties"]["effort"]["enum"] == ["low", "high"]
        agent.changed()  # nothing is another
        sys.kill(host.system.ref("root"))
        await settled()
        assert "root/agentsChanged" not in types(ann)
        await trio.sleep(5)
        agent.learn("large", "small")
        told = (await ann.expect_action("root/agentsChanged"))["action"]["agents"][0]
        assert [model["id"] for model in told["models"]] == ["large", "small"]
