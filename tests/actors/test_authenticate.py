"""Tokens: which are taken, whose agents work with, how long they last (RULES 19)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
import trio

from ahpd.agents.events import (
    CustomizationsChanged,
    Done,
    ToolFinished,
    ToolNeedsAuth,
    ToolReady,
    ToolStarted,
)
from ahpd.agents.port import Authorized, OpenRequest
from ahpd.protocol.common import ProtectedResourceMetadata
from ahpd.protocol.customizations import McpServerAuthRequiredState, McpServerCustomization
from ahpd.protocol.tools import McpAuthRequirement
from ahpd.protocol.uris import ROOT
from supervisors import sys
from tests.actors.support import (
    C2,
    S2,
    C,
    S,
    answer,
    at_work,
    ending,
    pending,
    refused,
    room,
    settled,
    started,
    types,
)
from tests.harness import Puppet, PuppetAgent, RawPeer, Refused, running_host
from tests.harness.replicas import state_of

API = "https://api.example"
EXTRA = "https://extra.example"
MCP = "https://mcp.example"
SECRET = "s3cr3t-of-ann"


class Guarded(PuppetAgent):
    """An agent that needs a token for one resource, and takes one for another."""

    def __init__(self, provider: str = "puppet") -> None:
        super().__init__(provider)
        self.info = self.info.evolve(
            protected_resources=(
                ProtectedResourceMetadata(resource=API, resource_name="The API"),
                ProtectedResourceMetadata(resource=EXTRA, required=False),
            )
        )

    def make(self, request: OpenRequest) -> Puppet:
        return Servant(self, request)


class Servant(Puppet):
    """A puppet that takes tokens for its servers."""

    def __init__(self, agent: PuppetAgent, request: OpenRequest) -> None:
        super().__init__(agent, request)
        self.servers: list[tuple[str, str]] = []

    def authorize_server(self, server_id: str, token: str) -> None:
        self.servers.append((server_id, token))


async def give(peer: RawPeer, token: str = SECRET, resource: str = API, **more: Any) -> None:
    assert await peer.request("authenticate", resource=resource, token=token, **more) == {}


async def guest(host: Any, name: str, token: str | None = None) -> RawPeer:
    """A peer in the session `S` with its token."""
    peer: RawPeer = await host.peer(name)
    await peer.hello()
    if token is not None:
        await give(peer, token)
    if host.ledger.find(S) is None:
        await peer.request("createSession", channel=S)
        await settled()
    for channel in (S, C):
        await peer.subscribe(channel)
    return peer


# ---- what is taken ------------------------------------------------------------------------------


async def test_r_19_5_only_tokens_for_what_the_host_has_announced_are_taken() -> None:
    async with running_host(Guarded()) as host:
        ann = await host.peer("ann")
        await ann.hello()
        await give(ann)
        await give(ann, "x", EXTRA, scopes=["a"])
        for resource in ("https://elsewhere.example", API + "/", "", MCP):
            for token in ("x", ""):
                with refused(-32602, "nothing here needs a token"):
                    await ann.request("authenticate", resource=resource, token=token)
        await give(ann, "")  # taken back
        await give(ann, "")  # and nothing to take back is no fault


@pytest.mark.parametrize("end", [0, -1, 1.5, True, "60"])
async def test_r_19_6_a_token_lasts_a_positive_whole_number_of_seconds(end: Any) -> None:
    async with running_host(Guarded(), provoked=["c2h"]) as host:
        ann = await host.peer("ann")
        await ann.hello()
        with refused(-32602, "expiresIn"):
            await ann.request("authenticate", resource=API, token=SECRET, expiresIn=end)
        with refused(-32007):
            await ann.request("createSession", channel=S)


async def test_r_8_3_a_session_of_an_agent_that_needs_a_token_needs_one() -> None:
    agent = Guarded()
    async with running_host(agent) as host:
        ann, bob = await host.peer("ann"), await host.peer("bob")
        await ann.hello()
        await bob.hello()
        await give(bob, "bobs")  # another's is of no use
        with pytest.raises(Refused) as caught:
            await ann.request("createSession", channel=S, progressToken="p")
        assert caught.value.code == -32007
        assert caught.value.data == {"resources": [{"resource": API, "resource_name": "The API"}]}
        assert "The API" in caught.value.message
        assert host.ledger.find(S) is None
        await give(ann)
        await ann.request("createSession", channel=S)
        await settled()
        assert dict(agent.of[C].request.tokens) == {API: SECRET}
        await give(ann, "")
        with refused(-32007):
            await ann.request("createSession", channel=S2)


async def test_tokens_are_of_one_connection_and_do_not_survive_it() -> None:
    async with running_host(Guarded()) as host:
        ann = await host.peer("ann")
        await ann.hello()
        await give(ann)
        again = await host.peer("ann")
        await again.hello()
        with refused(-32007):
            await again.request("createSession", channel=S)
        ann.cut()
        ann = await host.peer("ann")
        await ann.request("reconnect", clientId="ann", lastSeenServerSeq=0, subscriptions=[ROOT])
        with refused(-32007):
            await ann.request("createSession", channel=S)


# ---- how long they last -------------------------------------------------------------------------


async def test_r_19_8_at_its_end_a_token_is_gone_and_its_connection_alone_is_told() -> None:
    async with running_host(Guarded()) as host:
        ann, bob = await host.peer("ann"), await host.peer("bob")
        await ann.hello()
        await bob.hello()
        await give(ann, expiresIn=60)
        await give(bob, "bobs")
        await trio.sleep(59)
        assert not any(it.get("method") == "auth/required" for it in ann.inbox)
        await ann.request("createSession", channel=S)
        told = await ann.expect("auth/required", within=2)
        assert told["channel"] == ROOT
        assert told["reason"] == "expired"
        assert told["resource"] == {"resource": API, "resource_name": "The API"}
        with refused(-32007):
            await ann.request("createSession", channel=S2)
        assert not any(it.get("method") == "auth/required" for it in bob.inbox)


async def test_a_token_that_was_replaced_or_taken_back_does_not_expire() -> None:
    async with running_host(Guarded()) as host:
        ann = await host.peer("ann")
        await ann.hello()
        await give(ann, "one", expiresIn=10)
        await trio.sleep(5)
        await give(ann, "two", expiresIn=100)
        await trio.sleep(50)
        await give(ann, "")
        await trio.sleep(100)
        assert not any(it.get("method") == "auth/required" for it in ann.inbox)


# ---- whose agents work with ---------------------------------------------------------------------


async def test_a_turn_runs_on_the_tokens_of_who_started_it_and_a_message_on_its_senders() -> None:
    agent = Guarded()
    async with running_host(agent) as host:
        ann, bob = await guest(host, "ann", "anns"), await guest(host, "bob", "bobs")
        await ann.dispatch(C, started("t1"))
        first = await at_work(agent, "t1")
        assert first.request.tokens[API] == "anns"
        await answer(bob, await bob.dispatch(C, pending("q1")))
        await answer(ann, await ann.dispatch(C, pending("q2")))
        first.end(Done())
        await ending(ann, "t1")
        await settled()
        second = agent.of[C]
        assert second is not first
        assert first.closed
        assert second.request.tokens[API] == "bobs"
        assert second.prompted is not None
        second.end(Done())
        await settled()
        third = agent.of[C]
        assert third.request.tokens[API] == "anns"
        third.end(Done())
        await settled()
        # The same tokens again: no reason for another backend.
        await ann.dispatch(C, started("t2"))
        assert await at_work(agent, "t2") is third
        third.end(Done())
        await ending(ann, "t2")
        await give(ann, "newer")
        await ann.dispatch(C, started("t3"))
        fourth = await at_work(agent, "t3")
        assert fourth.request.tokens[API] == "newer"
        fourth.end(Done())


async def test_a_new_chats_agent_works_for_who_made_the_chat() -> None:
    agent = Guarded()
    async with running_host(agent) as host:
        ann, bob = await guest(host, "ann", "anns"), await guest(host, "bob", "bobs")
        message = {"text": "Begin", "origin": {"kind": "user"}}
        await bob.request("createChat", channel=S, chat=C2, initialMessage=message)
        await settled()
        assert agent.of[C2].request.tokens[API] == "bobs"
        agent.of[C2].end(Done())
        assert ann.closed is None


async def test_who_has_no_token_starts_no_turn_and_learns_why() -> None:
    agent = Guarded()
    async with running_host(agent) as host:
        ann, bob = await guest(host, "ann", "anns"), await guest(host, "bob")
        params = await answer(bob, await bob.dispatch(C, started("t1")))
        assert "needs a token for The API" in params["rejectionReason"]
        await give(bob, "bobs")
        params = await answer(bob, await bob.dispatch(C, started("t2")))
        assert "rejectionReason" not in params
        (await at_work(agent, "t2")).end(Done())
        await ending(ann, "t2")


async def test_a_message_whose_sender_has_no_token_any_more_ends_in_an_error_not_on_others() -> (
    None
):
    agent = Guarded()
    async with running_host(agent) as host:
        ann, bob = await guest(host, "ann", "anns"), await guest(host, "bob", "bobs")
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        await answer(bob, await bob.dispatch(C, pending("q1")))
        await bob.close()
        puppet.end(Done())
        error = await ann.expect_action("chat/error")
        assert "needs a token" in error["action"]["part"]["error"]["message"]
        assert len(agent.of[C].prompts) == 1
        assert agent.of[C].request.tokens[API] == "anns"


async def test_tokens_go_to_no_agent_that_did_not_ask_for_them() -> None:
    plain = PuppetAgent("plain")
    async with running_host(Guarded(), plain) as host:
        ann = await host.peer("ann")
        await ann.hello()
        await give(ann)
        await ann.request("createSession", channel="plain:/1", provider="plain")
        await settled()
        assert [dict(each.request.tokens) for each in plain.made] == [{}]


# ---- what waits for a token ---------------------------------------------------------------------


def challenge(*scopes: str) -> McpAuthRequirement:
    return McpAuthRequirement(
        reason="required",
        resource=ProtectedResourceMetadata(resource=MCP),
        required_scopes=scopes or None,
    )


async def paused(
    agent: PuppetAgent, ann: RawPeer, *scopes: str, turn: str = "t1", chat: str = C
) -> Puppet:
    """A puppet whose call `c1` waits for a token."""
    await ann.dispatch(chat, started(turn))
    puppet = await at_work(agent, turn, chat)
    puppet.say(
        ToolStarted("c1", "search", "Search", server="srv"),
        ToolReady("c1", "Search"),
        ToolNeedsAuth("c1", "srv", challenge(*scopes)),
    )
    await ann.expect_action("chat/toolCallAuthRequired", channel=chat)
    await settled()
    return puppet


async def test_a_token_that_satisfies_a_challenge_resumes_the_call() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob = await room(host), await room(host, "bob")
        with refused(-32602):
            await bob.request("authenticate", resource=MCP, token="x")
        puppet = await paused(agent, ann, "read", "write")
        assert state_of(host, S)["inputNeeded"][0]["kind"] == "toolAuthentication"
        await give(bob, "weak", MCP, scopes=["read"])
        await settled()
        assert "chat/toolCallAuthResolved" not in types(ann)
        assert not puppet.answers
        await give(bob, "strong", MCP, scopes=["write", "read", "more"])
        await ann.expect_action("chat/toolCallAuthResolved")
        await ann.expect_action("session/inputNeededRemoved")
        await settled()
        assert puppet.answers == [Authorized("c1", "strong")]
        assert "inputNeeded" not in state_of(host, S)
        puppet.say(ToolFinished("c1", True, "Found it"))
        puppet.end(Done())
        assert (await ending(ann, "t1"))["type"] == "chat/turnComplete"
        with refused(-32602):  # what nothing waits for any more is not announced either
            await ann.request("authenticate", resource=MCP, token="late")
        await give(bob, "", MCP)  # but what was handed over can be taken back


async def test_a_token_settles_all_calls_that_wait_for_it_and_no_other() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.request("createChat", channel=S, chat=C2)
        await ann.subscribe(C2)
        one = await paused(agent, ann, turn="t1")
        two = await paused(agent, ann, "admin", turn="t2", chat=C2)
        await give(ann, "x", MCP, scopes=[])
        await settled()
        assert (len(one.answers), len(two.answers)) == (1, 0)
        await give(ann, "y", MCP)  # its client does not say what it grants
        await settled()
        assert (len(one.answers), two.answers) == (1, [Authorized("c1", "y")])
        for each in (one, two):
            each.end(Done())


async def test_a_server_that_waits_for_a_token_is_given_it() -> None:
    agent = Guarded()
    async with running_host(agent) as host:
        ann = await guest(host, "ann", "anns")
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        server = McpServerCustomization(
            id="srv",
            uri="mcp:/srv",
            name="Server",
            state=McpServerAuthRequiredState(**_fields(challenge("read"))),
        )
        puppet.say(CustomizationsChanged((server,)))
        await ann.expect_action("session/customizationsChanged")
        await give(ann, "weak", MCP, scopes=["write"])
        await give(ann, "strong", MCP, scopes=["read"])
        await settled()
        assert isinstance(puppet, Servant)
        assert puppet.servers == [("srv", "strong")]
        puppet.end(Done())


def _fields(requirement: McpAuthRequirement) -> dict[str, Any]:
    return {name: getattr(requirement, name) for name in type(requirement).wire_names}


# ---- who sees them ------------------------------------------------------------------------------


def _shown(value: Any, depth: int = 0) -> Iterator[str]:
    yield repr(value)
    if isinstance(value, dict) and depth < 4:
        for each in value.values():
            yield from _shown(each, depth + 1)


async def test_r_19_16_tokens_are_in_no_log_no_state_and_no_inspection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    agent = Guarded()
    async with running_host(agent) as host:
        ann = await guest(host, "ann", SECRET)
        for uri in (C, S, ROOT):
            sys.keep(host.system.ref(host.ledger.channels[uri].path), 100)
        await ann.dispatch(C, started("t1"))
        (await at_work(agent, "t1")).say(
            ToolStarted("c1", "s", "s", server="srv"),
            ToolReady("c1", "s"),
            ToolNeedsAuth("c1", "srv", challenge()),
        )
        await ann.expect_action("chat/toolCallAuthRequired")
        connection = next(
            path for path in host.system.registry.under("") if path.startswith("connections/")
        )
        sys.keep(host.system.ref(connection), 100)
        sys.suspend(host.system.ref(connection))
        id = await ann.call("authenticate", resource=MCP, token=SECRET)
        await settled()
        waiting = sys.inspect(host.system.ref(connection)).waiting
        assert any("authenticate" in repr(each) for each in waiting)
        shown = [repr(each) for each in sys.inspect_all(host.system)]
        sys.resume(host.system.ref(connection))
        await ann.answer_to(id)
        await settled()
        for each in sys.inspect_all(host.system):
            shown += [repr(each), *_shown(each.state)]
        shown += [repr(each.state.wire()) for each in host.ledger.channels.values()]
        shown += [repr(entry.params) for entry in host.stream.entries]
        shown += [repr(agent.of[C].request), repr(agent.of[C].answers)]
        assert not [text for text in shown if SECRET in text]
        agent.of[C].end(Done())
        await ending(ann, "t1")
    assert not [record for record in caplog.records if SECRET in record.getMessage()]
    assert SECRET not in caplog.text
