"""The root channel: the host's own settings, which any client may push (RULES 7)."""

from __future__ import annotations

from typing import Any

import pytest

from ahpd.protocol.uris import ROOT
from supervisors import sys
from tests.actors.support import S2, C, answer, readable, room, settled
from tests.harness import running_host
from tests.harness.replicas import state_of

MIB = 1 << 20

PUSHES: list[tuple[dict[str, Any], list[str], dict[str, int]]] = [
    ({"clientQueueBytes": MIB}, [], {"clientQueueBytes": MIB}),
    ({"replayBytes": 5 * MIB}, [], {"replayBytes": 5 * MIB}),
    ({"clientQueueBytes": MIB - 1}, ["clientQueueBytes"], {}),
    ({"clientQueueBytes": -1}, ["clientQueueBytes"], {}),
    ({"clientQueueBytes": 2.5 * MIB + 0.5}, ["clientQueueBytes"], {}),
    ({"clientQueueBytes": "much"}, ["clientQueueBytes"], {}),
    ({"clientQueueBytes": True}, ["clientQueueBytes"], {}),
    ({"clientQueueBytes": None}, ["clientQueueBytes"], {}),
    ({"clientQueueBytes": [MIB]}, ["clientQueueBytes"], {}),
    ({"telemetryLevel": "off"}, ["telemetryLevel"], {}),
    ({"replayBytes": 1, "clientQueueBytes": MIB}, ["replayBytes"], {"clientQueueBytes": MIB}),
    ({"zzz": 1, "replayBytes": 2 * MIB}, ["zzz"], {"replayBytes": 2 * MIB}),
    ({"zzz": 1, "replayBytes": 0}, ["zzz", "replayBytes"], {}),
]  # fmt: skip


@pytest.mark.parametrize(("config", "bad", "applied"), PUSHES, ids=repr)
async def test_r_7_6_good_settings_of_a_push_are_taken_and_bad_ones_refused_by_name(
    config: dict[str, Any], bad: list[str], applied: dict[str, int]
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


async def test_replacing_needs_every_setting() -> None:
    async with running_host() as host:
        ann = await room(host)
        for config in ({}, {"replayBytes": MIB}):
            action = {"type": "root/configChanged", "config": config, "replace": True}
            params = await answer(ann, await ann.dispatch(ROOT, action))
            assert "replacing" in params["rejectionReason"]
        whole = {"replayBytes": MIB, "clientQueueBytes": MIB}
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
        assert set(root["config"]["schema"]["properties"]) == {"clientQueueBytes", "replayBytes"}


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
