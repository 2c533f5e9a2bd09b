"""What can be set in an agent's session: its modes and options, set by people and by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ahpd.agents.port import ConfigContext
from tests.actors.support import C, S
from tests.agents.acp.support import PATIENCE, at_work, rogue
from tests.agents.acp.test_on_a_host import session, state, texts, turn, until
from tests.harness import RawPeer, running_host

pytestmark = pytest.mark.real_time


async def again(ann: RawPeer, host: Any, folder: Path, **config: Any) -> tuple[str, str]:
    """Another session of the same agent, and its chat: the agent's settings are known now."""
    uri = S[:-1] + "9"
    given = {"config": config} if config else {}
    await ann.request("createSession", channel=uri, workingDirectories=[folder.as_uri()], **given)
    await ann.subscribe(uri)
    await until(lambda: state(host, uri)["lifecycle"] != "creating")
    return uri, state(host, uri)["defaultChat"]


async def test_options_are_learned_and_set(tmp_path: Path) -> None:
    agent = rogue(tmp_path, "options")
    nothing = await agent.config_schema(ConfigContext())
    assert nothing.schema.properties == {}
    async with at_work(agent, tmp_path) as at:
        found = await agent.config_schema(ConfigContext())
        schemas = {key: each.wire() for key, each in found.schema.properties.items()}
        assert schemas == {
            "model": {
                "type": "string",
                "title": "Model",
                "default": "small",
                "enum": ["small", "big"],
                "enumLabels": ["small", "big"],
                "sessionMutable": True,
            },
            "think": {
                "type": "boolean",
                "title": "Think",
                "default": False,
                "sessionMutable": True,
            },
        }
        at.backend.configure({"model": "big", "think": False, "other": 1})
        await at.turn("hello")
        at.backend.configure({"model": "big", "think": True})
        await at.turn("hello")
        assert [each["params"] for each in at.sent("session/set_config_option")] == [
            {"sessionId": "rogue-1", "configId": "model", "value": "big"},
            {"sessionId": "rogue-1", "configId": "think", "value": True, "type": "boolean"},
        ]
        assert at.beside.events == []


async def test_what_can_be_set_is_found_out_for_somebody_who_wants_to_choose(
    tmp_path: Path,
) -> None:
    agent = rogue(tmp_path, "options", name="puppet")
    async with running_host(agent) as host:
        ann = await host.peer("ann")
        await ann.hello()
        folder = tmp_path.as_uri()
        for _ in range(2):
            found = await ann.request("resolveSessionConfig", workingDirectory=folder)
            assert found["values"] == {"model": "small", "think": False}
        assert (tmp_path / "log").read_text().count('"session/new"') == 1
        await ann.request(
            "createSession", channel=S, workingDirectories=[folder], config={"model": "big"}
        )
        await ann.subscribe(S)
        await until(lambda: state(host, S)["lifecycle"] == "ready")
        assert state(host, S)["config"]["values"] == {"model": "big", "think": False}


@pytest.mark.parametrize("start", ["dies", "needs-auth"])
async def test_what_cannot_be_found_out_is_nothing_and_not_tried_again_at_once(
    start: str, tmp_path: Path
) -> None:
    agent = rogue(tmp_path, "options", start)
    for _ in range(2):
        found = await agent.config_schema(ConfigContext(may_wait=True))
        assert found.schema.properties == {}
    assert (tmp_path / "log").read_text().count('"initialize"') == 1


async def test_older_agents_have_models_and_modes(tmp_path: Path) -> None:
    agent = rogue(tmp_path, "modes", "models")
    async with at_work(agent, tmp_path) as at:
        found = await agent.config_schema(ConfigContext())
        assert found.schema.properties.keys() == {"mode", "model"}
        at.backend.configure({"mode": "ask", "model": "big"})
        await at.turn("hello")
        assert [each["params"] for each in at.sent("session/set_model")] == [
            {"sessionId": "rogue-1", "modelId": "big"}
        ]


async def test_a_session_begins_with_what_was_chosen(tmp_path: Path) -> None:
    async with session(rogue(tmp_path, "options", name="puppet"), tmp_path) as (host, ann):
        assert "config" not in state(host, S)
        uri, _ = await again(ann, host, tmp_path, model="big")
        assert state(host, uri)["config"]["values"] == {"model": "big", "think": False}
        assert '"value":"big"' in (tmp_path / "log").read_text()


@pytest.mark.parametrize(("start", "key"), [("options", "model"), ("modes", "mode")])
async def test_what_people_set_and_what_the_agent_sets(
    start: str, key: str, tmp_path: Path
) -> None:
    async with session(rogue(tmp_path, start, name="puppet"), tmp_path) as (host, ann):
        uri, chat = await again(ann, host, tmp_path)

        def value() -> Any:
            return state(host, uri)["config"]["values"][key]

        first = value()
        await ann.subscribe(chat)
        await turn(ann, host, "t1", "sets", chat)
        await until(lambda: value() in ("big", "code"))
        action = {"type": "session/configChanged", "config": {key: first}}
        await ann.answered(await ann.dispatch(uri, action), PATIENCE)
        await until(lambda: (tmp_path / "log").read_text().count("session/set_") == 1)
        assert texts(await turn(ann, host, "t2", "hello", chat)) == "Hello\u2028you\u0085."
        assert value() == first
        assert (tmp_path / "log").read_text().count('"session/new"') == 2, "none was opened again"


async def test_what_an_agent_does_not_take_is_said(tmp_path: Path) -> None:
    agent = rogue(tmp_path, "options")
    async with at_work(agent, tmp_path) as at:
        at.backend.configure({"model": "none"})
        await until(lambda: bool(at.beside.events))
        (event,) = at.beside.events
        assert getattr(event, "values", None) == {"model": "small"}
        _, screen = await at.turn("hello")
        said = [getattr(each, "content", "") for each in screen.events]
        assert "The agent does not take 'none' for Model: no such model" in said


async def test_nothing_is_set_in_a_session_that_cannot_be(tmp_path: Path) -> None:
    async with session(rogue(tmp_path, "options", name="puppet"), tmp_path) as (host, ann):
        await turn(ann, host, "t1", "sets", C)
        assert "config" not in state(host, S)
