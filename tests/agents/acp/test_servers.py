"""MCP servers that agents are given: of the configuration, of editors, of plugins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from ahpd.agents import events as ev
from ahpd.agents.acp.agent import Options
from ahpd.agents.acp.plugins import servers_of
from ahpd.agents.acp.servers import Server, for_agent, merged, read_servers
from ahpd.daemon.config import AgentConfig, Config
from ahpd.daemon.config_file import read_config
from ahpd.daemon.errors import ConfigError
from ahpd.daemon.hosting import build_host
from tests.actors.support import S
from tests.agents.acp.support import at_work, rogue
from tests.agents.acp.test_on_a_host import session, turn

pytestmark = pytest.mark.real_time

FILES = {"command": "files", "args": ["--root", "/"], "env": {"KEY": "s3cret", "N": 1}}
WEB = {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "s3cret"}}


def test_servers_are_read_as_editors_write_them() -> None:
    read = read_servers(
        {"files": FILES, "web": WEB, "old": {"type": "sse", "url": "https://example.org/sse"}}
    )
    given, told = for_agent(read.servers, {"http": True})
    assert given == [
        {
            "name": "files",
            "command": "files",
            "args": ["--root", "/"],
            "env": [{"name": "KEY", "value": "s3cret"}, {"name": "N", "value": "1"}],
        },
        {
            "type": "http",
            "name": "web",
            "url": "https://example.org/mcp",
            "headers": [{"name": "Authorization", "value": "s3cret"}],
        },
    ]
    assert told == ["The agent cannot use the MCP server old: it takes none by sse."]
    assert "s3cret" not in repr(read)
    assert read_servers({"x": {"command": ["a", "b"], "args": ["c"]}}).servers == (
        Server("x", "stdio", "a", ("b", "c")),
    )
    assert read_servers({"off": {**FILES, "disabled": True}}) == read_servers(None)


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ({}, "it has neither a command nor a url"),
        ({"command": ""}, "it has neither a command nor a url"),
        ({"command": "x", "args": [1]}, "its command and args are not all strings"),
        ({"command": "x", "args": "y"}, "its command and args are not all strings"),
        ({"command": "x", "env": ["s3cret"]}, "its env is no table of strings"),
        ({"url": "https://example.org", "headers": {"a": ["s3cret"]}}, "its headers are no table"),
        ({"type": "hologram"}, "its type 'hologram' is not known"),
        ("s3cret", "this is no table"),
    ],
)
def test_what_is_wrong_with_one_is_told_without_its_values(written: Any, why: str) -> None:
    read = read_servers({"bad": written, "good": FILES})
    assert [each.name for each in read.servers] == ["good"]
    (fault,) = read.faults
    assert fault.startswith(f"the MCP server bad: {why}")
    assert "s3cret" not in fault


def test_the_configuration_is_warned_about_when_the_host_starts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        """
        [agents.x]
        kind = "acp"
        command = "x"
        [mcp_servers.files]
        command = "files"
        env = { KEY = "s3cret" }
        [mcp_servers.bad]
        args = ["s3cret"]
        """
    )
    config = read_config(file, lambda what: pytest.fail(what))
    assert "s3cret" not in repr(config)
    host = build_host(config, seed=1, paths=())
    agent: Any = host.agents["x"]
    assert list(agent.options.servers) == ["files"]
    assert "s3cret" not in repr(agent)
    assert "the MCP server bad: it has neither a command nor a url" in caplog.text
    assert "s3cret" not in caplog.text
    file.write_text("[mcp_servers]\nx = 1")
    with pytest.raises(ConfigError, match=r"mcp_servers\.x: expected a table"):
        read_config(file, lambda _: None)
    assert Config(agents={"x": AgentConfig()}).mcp_servers == {}


async def test_plugins_on_this_machine_are_read(tmp_path: Path) -> None:
    for name, text in (
        ("a", json.dumps({"mcpServers": {"files": FILES}})),
        ("b", json.dumps({"web": WEB, "bad": {}})),
        ("broken", "{"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".mcp.json").write_text(text)
    (tmp_path / "none").mkdir()
    names = ("a", "b", "broken", "none", "gone")
    found = await servers_of([*((tmp_path / name).as_uri() for name in names), "vscode:/x"])
    assert [each.name for each in found] == ["files", "web"]
    (later,) = read_servers({"files": {"command": "other"}}).servers
    assert merged(found, [later])[0].command == "other"


async def test_an_agent_is_given_what_it_takes_and_the_chat_says_what_not(tmp_path: Path) -> None:
    options = Options(servers={"files": FILES, "web": WEB})
    agent = structs.replace(rogue(tmp_path), options=options)
    async with at_work(agent, tmp_path) as at:
        (new,) = at.sent("session/new")
        assert [each["name"] for each in new["params"]["mcpServers"]] == ["files"]
        _, screen = await at.turn("hello")
        assert (
            ev.SystemNotice("The agent cannot use the MCP server web: it takes none by http.")
            in screen.events
        )
        assert at.backend._process.concealed("a s3cret word") == "a *** word"


async def test_what_clients_have_lies_over_what_is_set_up(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    plugin.mkdir()
    (plugin / ".mcp.json").write_text(json.dumps({"mcpServers": {"two": {"command": "plugin"}}}))
    options = Options(servers={name: {"command": "config"} for name in ("one", "two", "three")})
    agent = structs.replace(rogue(tmp_path, name="puppet"), options=options)
    async with session(agent, tmp_path) as (host, ann):
        push = {"one": {"command": "editor"}, "two": {"command": "editor"}, "bad": 1}
        action = {"type": "root/configChanged", "config": {"mcpServers": push}}
        await ann.answered(await ann.dispatch("ahp-root://", action))
        custom = {"type": "plugin", "id": "p", "uri": plugin.as_uri(), "name": "P"}
        client = {
            "clientId": "ann",
            "tools": [],
            "customizations": [custom, {**custom, "id": "q", "uri": "vscode:/q"}],
        }
        action = {"type": "session/activeClientSet", "activeClient": client}
        await ann.answered(await ann.dispatch(S, action))
        await ann.request("createChat", channel=S, chat="ahp-chat:/second")
        await ann.subscribe("ahp-chat:/second")
        await turn(ann, host, "t1", "hello", "ahp-chat:/second")
        sent = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
        new = [each for each in sent if each.get("method") == "session/new"][-1]
        given = {each["name"]: each["command"] for each in new["params"]["mcpServers"]}
        assert given == {"one": "editor", "two": "plugin", "three": "config"}
