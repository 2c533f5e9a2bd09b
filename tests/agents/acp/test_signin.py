"""Agents that want somebody to sign in: what people hear, and what tokens do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from ahpd.agents.acp.agent import AcpAgent, Options
from ahpd.agents.acp.signin import Method, granted, methods_in, resources
from ahpd.agents.port import SignInNeeded
from tests.actors.support import C, S, ending, started
from tests.agents.acp.support import PATIENCE, at_work, request, rogue
from tests.agents.acp.test_on_a_host import session, state, texts, turn, until
from tests.harness import RawPeer, running_host

pytestmark = pytest.mark.real_time

WEB, KEY = "acp-agent://puppet/web", "acp-agent://puppet/key/ROGUE_KEY"


def log(folder: Path) -> list[str]:
    return [json.loads(line).get("method") for line in (folder / "log").read_text().splitlines()]


async def make(ann: RawPeer, host: Any, folder: Path, number: int) -> Any:
    """Another session; how it is once its agent is up, or not."""
    uri = f"{S[:-1]}{number}"
    await ann.request("createSession", channel=uri, workingDirectories=[folder.as_uri()])
    await ann.subscribe(uri)
    await until(lambda: state(host, uri)["lifecycle"] != "creating")
    return state(host, uri)


# ---- its ways -----------------------------------------------------------------------------------


def test_ways_to_sign_in_are_read_whatever_they_are() -> None:
    told = {
        "authMethods": [
            {"id": "web", "name": "Browser"},
            {"id": "keys", "type": "env_var", "vars": [{"name": "A"}, {"name": "B"}, {}]},
            {"id": "one", "type": "env_var", "varName": "C"},
            {"id": "tty", "name": "TTY", "type": "terminal", "args": ["log in", 7]},
            {"id": "new", "type": "hologram"},
            {"name": "nameless"},
            7,
        ]
    }
    found = methods_in(told)
    assert [(each.id, each.kind, each.variables) for each in found] == [
        ("web", "agent", ()),
        ("keys", "variables", ("A", "B")),
        ("one", "variables", ("C",)),
        ("tty", "terminal", ()),
        ("new", "terminal", ()),
    ]
    assert found[3].told(["agent", "--acp"]) == "TTY, in a terminal: agent 'log in'"
    assert [each.resource for each in resources("x", found)] == [
        "acp-agent://x/web",
        "acp-agent://x/keys/A",
        "acp-agent://x/keys/B",
        "acp-agent://x/one/C",
    ]
    assert methods_in(None) == methods_in({"authMethods": {}}) == ()


@pytest.mark.parametrize(
    ("tokens", "chosen", "environment", "method"),
    [
        ({}, None, {}, None),
        ({"acp-agent://x/web": "go"}, None, {}, "web"),
        ({"acp-agent://x/keys/A": "1"}, None, {"A": "1"}, None),
        (
            {"acp-agent://x/keys/A": "1", "acp-agent://x/keys/B": "2"},
            None,
            {"A": "1", "B": "2"},
            "keys",
        ),
        ({"https://example.org": "t"}, None, {"TOKEN": "t"}, None),
        ({"acp-agent://x/web": "go"}, "keys", {}, "keys"),
        ({"acp-agent://x/tty": "go"}, None, {}, None),
    ],
)
def test_what_tokens_give(
    tokens: dict[str, str], chosen: str | None, environment: dict[str, str], method: str | None
) -> None:
    methods = (
        Method("web", "Browser"),
        Method("keys", "Keys", None, "variables", ("A", "B")),
        Method("tty", "TTY", None, "terminal"),
    )
    grant = granted("x", methods, tokens, {"TOKEN": "https://example.org"}, chosen)
    assert (grant.environment, grant.method) == (environment, method)
    assert "1" not in repr(granted("x", methods, {"acp-agent://x/keys/A": "1"}, {}, None))


# ---- on a host ----------------------------------------------------------------------------------


async def test_a_session_that_needs_a_sign_in_says_so_and_a_token_brings_it(tmp_path: Path) -> None:
    agent = rogue(tmp_path, "needs-auth", "many-ways", "logs-out", name="puppet")
    async with session(agent, tmp_path) as (host, ann):
        failed = state(host, S)
        assert failed["lifecycle"] == "failed"
        assert failed["creationError"]["errorType"] == "AuthRequired"
        assert failed["creationError"]["_meta"]["ahpd.authMethods"] == [
            {"id": "web", "name": "Browser", "type": "agent", "description": "opens a page"},
            {"id": "key", "name": "Key", "type": "variables", "variables": ["ROGUE_KEY"]},
            {"id": "tty", "name": "Terminal", "type": "terminal"},
        ]
        (known,) = host.tables.agents.values()
        assert [
            (each.resource, each.required) for each in known.info.protected_resources or ()
        ] == [(WEB, False), (KEY, False)]
        assert log(tmp_path).count("session/new") == 1, "nothing is tried again by itself"

        await ann.request("authenticate", resource=WEB, token="please")
        assert (await make(ann, host, tmp_path, 8))["lifecycle"] == "ready"
        assert log(tmp_path)[-3:] == ["initialize", "authenticate", "session/new"]

        assert (await make(ann, host, tmp_path, 7))["lifecycle"] == "ready"
        assert log(tmp_path).count("authenticate") == 1, "it is signed in"

        await ann.request("authenticate", resource=WEB, token="")
        await until(lambda: "logout" in log(tmp_path))
        assert (await make(ann, host, tmp_path, 9))["lifecycle"] == "failed"


async def test_a_turn_that_needs_a_sign_in_is_told_to_all_and_goes_on_with_a_token(
    tmp_path: Path,
) -> None:
    agent = rogue(tmp_path, "many-ways", "loads", name="puppet")
    async with session(agent, tmp_path) as (host, ann):
        await turn(ann, host, "t0", "hello")
        await ann.dispatch(C, started("t1", "hello refuse"))
        ended = await ending(ann, "t1", PATIENCE)
        assert ended["part"]["error"]["errorType"] == "AuthRequired"
        told = await ann.expect("auth/required", PATIENCE)
        assert told == {
            "channel": S,
            "resource": {"resource": WEB, "resource_name": "puppet: web", "required": False},
            "reason": "required",
        }
        before = log(tmp_path).count("session/prompt")
        await ann.request("authenticate", resource=WEB, token="please")
        assert texts(await turn(ann, host, "t2", "hello refuse")) == "Hello\u2028you\u0085."
        assert log(tmp_path).count("session/prompt") == before + 1
        assert log(tmp_path)[-4:] == [
            "initialize",
            "authenticate",
            "session/load",
            "session/prompt",
        ]


async def test_a_token_reaches_the_environment_of_the_next_process(tmp_path: Path) -> None:
    options = Options(variables={"ROGUE_KEY": "https://example.org/api"})
    agent = structs.replace(rogue(tmp_path, "loads", name="puppet"), options=options)
    async with session(agent, tmp_path) as (host, ann):
        assert texts(await turn(ann, host, "t1", "env")) == "nothing"
        await ann.request("authenticate", resource="https://example.org/api", token="open sesame")
        assert texts(await turn(ann, host, "t2", "env")) == "open sesame"
        await ann.request("authenticate", resource="https://example.org/api", token="")
        assert texts(await turn(ann, host, "t3", "env")) == "nothing"
        assert "sesame" not in repr(agent)


# ---- alone --------------------------------------------------------------------------------------


async def test_a_way_that_is_set_up_is_gone_and_one_by_terminal_never(tmp_path: Path) -> None:
    for method, asked in (("web", 1), ("tty", 0)):
        folder = tmp_path / method
        folder.mkdir()
        agent: AcpAgent = structs.replace(
            rogue(folder, "many-ways"), options=Options(auth_method=method)
        )
        async with at_work(agent, folder) as at:
            await at.turn("hello")
            assert len(at.sent("authenticate")) == asked


async def test_who_is_to_sign_in_hears_how(tmp_path: Path) -> None:
    with pytest.raises(SignInNeeded) as needed:
        await rogue(tmp_path, "needs-auth", "many-ways").open(request(tmp_path))
    assert needed.value.message.startswith(
        "the agent wants you to sign in first (Authentication required)."
        " Its ways to sign in: Browser (opens a page); Key; Terminal, in a terminal: "
    )


async def test_signing_out_of_an_agent_that_cannot_starts_nothing(tmp_path: Path) -> None:
    async with running_host(rogue(tmp_path, name="puppet")):
        pass
    await rogue(tmp_path).sign_out(WEB)
    assert not (tmp_path / "log").exists()
