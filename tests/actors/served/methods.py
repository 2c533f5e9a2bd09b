"""What clients send: a real call of each method, with a right result."""

from __future__ import annotations

from ahpd.agents import events as ev
from ahpd.protocol.uris import default_chat
from tests.actors.served.show import RESOURCE, ROOT, C, Outcome, S, Scenes, Show, settled
from tests.actors.support import C2, S2, at_work, started
from tests.actors.test_paging import ids, put_turns


async def initialize(it: Show) -> Outcome:
    result = await (await it.host.peer("eve")).hello(subscribe=(ROOT, S))
    assert result["protocolVersion"] == "1.0.0"
    assert [each["resource"] for each in result["snapshots"]] == [ROOT, S]
    for older in ("0.10.0", "0.9.0"):
        result = await (await it.host.peer(older)).hello(versions=(older,))
        assert result["protocolVersion"] == older
    return None


async def ping(it: Show) -> Outcome:
    for peer in (it.ann, await it.host.peer("eve")):
        assert await peer.request("ping") is None
    return None


async def reconnect(it: Show) -> Outcome:
    it.bob.cut()
    await settled()
    seen = it.host.ledger.seq
    await it.ann.dispatch(S, {"type": "session/titleChanged", "title": "Missed"})
    await it.ann.expect_action("session/titleChanged")
    again = await it.host.peer("bob")
    result = await again.request(
        "reconnect", clientId="bob", lastSeenServerSeq=seen, subscriptions=[ROOT, S]
    )
    assert result["type"] == "replay"
    assert result["actions"][0]["action"] == {"type": "session/titleChanged", "title": "Missed"}
    return None


async def subscribe(it: Show) -> Outcome:
    assert (await it.ann.subscribe(S))["state"] == it.state(S)
    return None


async def unsubscribe(it: Show) -> Outcome:
    await it.bob.notify("unsubscribe", channel=S)
    await settled()
    here = len(it.bob.inbox)
    await it.ann.dispatch(S, {"type": "session/titleChanged", "title": "Unheard"})
    await settled()
    heard = [each["method"] for each in it.bob.inbox[here:]]
    assert heard == ["root/sessionSummaryChanged"], "of the root only"
    return None


async def dispatch_action(it: Show) -> Outcome:
    reason = await it.why({"type": "session/titleChanged", "title": "New"}, S)
    assert it.state(S)["title"] == "New"
    return reason


async def list_sessions(it: Show) -> Outcome:
    (row,) = (await it.ann.request("listSessions"))["items"]
    assert row["resource"] == S
    return None


async def create_session(it: Show) -> Outcome:
    await it.ann.request("createSession", channel=S2)
    assert (await it.ann.subscribe(S2))["state"]["defaultChat"] == default_chat(S2)
    return None


async def dispose_session(it: Show) -> Outcome:
    await it.ann.request("disposeSession", channel=S)
    assert (await it.ann.request("listSessions"))["items"] == []
    return None


async def create_chat(it: Show) -> Outcome:
    await it.ann.request("createChat", channel=S, chat=C2)
    assert [row["resource"] for row in it.state(S)["chats"]] == [C, C2]
    await it.done("t1")
    for kind in ("fork", "sideChat"):
        source, made = {"kind": kind, "chat": C, "turnId": "t1"}, f"ahp-chat:/{kind}"
        await it.ann.request("createChat", channel=S, chat=made, source=source)
        assert it.state(made)["origin"] == source
    return None


async def dispose_chat(it: Show) -> Outcome:
    if it.is_able:
        await it.ann.request("createChat", channel=S, chat=C2)
    await it.ann.request("disposeChat", channel=C2 if it.is_able else C)
    assert [row["resource"] for row in it.state(S)["chats"]] == [C]
    return None


async def move_chat(it: Show) -> Outcome:
    if it.is_able:
        await it.ann.request("createChat", channel=S, chat=C2)
    await it.ann.request("createSession", channel=S2)
    await settled()
    to = {"kind": "session", "session": S2}
    moved = await it.ann.request("moveChat", channel=C2 if it.is_able else C, destination=to)
    assert moved == {"session": S2}
    assert C2 in [row["resource"] for row in it.state(S2)["chats"]]
    return None


async def fetch_turns(it: Show) -> Outcome:
    put_turns(it.host, 60)
    older = (await it.ann.subscribe(C, view={"turns": 5}))["state"]["turnsNextCursor"]
    assert await it.ann.request("fetchTurns", channel=C, cursor=older) == {}
    page = (await it.ann.expect_action("chat/turnsLoaded"))["action"]
    assert ids(page["turns"])[-1] == "t54"
    return None


async def completions(it: Show) -> Outcome:
    await it.mutters(ev.CommandsChanged((ev.Command("compact"),)))
    result = await it.ann.request(
        "completions", channel=C, kind="userMessage", text="/co", offset=3
    )
    assert [each["insertText"] for each in result["items"]] == ["/compact "]
    return None


async def authenticate(it: Show) -> Outcome:
    assert await it.ann.request("authenticate", resource=RESOURCE, token="t0ken") == {}
    await it.ann.request("createSession", channel=S2)
    await settled()
    await it.ann.dispatch(default_chat(S2), started("t1"))
    puppet = await at_work(it.agent, "t1", default_chat(S2))
    assert puppet.request.tokens == {RESOURCE: "t0ken"}
    return None


async def resolve_session_config(it: Show) -> Outcome:
    result = await it.ann.request("resolveSessionConfig", provider="puppet", config={})
    if not result["schema"]["properties"]:
        return "there is nothing to configure"
    assert result["values"] == {"mode": "plan"}
    return None


async def session_config_completions(it: Show) -> Outcome:
    result = await it.ann.request(
        "sessionConfigCompletions", provider="puppet", config={}, property="mode", query="a"
    )
    return None if result["items"] == [{"value": "act", "label": "Act"}] else "there is nothing"


SCENES: Scenes = {
    "initialize": initialize,
    "ping": ping,
    "reconnect": reconnect,
    "subscribe": subscribe,
    "unsubscribe": unsubscribe,
    "dispatchAction": dispatch_action,
    "listSessions": list_sessions,
    "createSession": create_session,
    "disposeSession": dispose_session,
    "createChat": create_chat,
    "disposeChat": dispose_chat,
    "moveChat": move_chat,
    "fetchTurns": fetch_turns,
    "completions": completions,
    "authenticate": authenticate,
    "resolveSessionConfig": resolve_session_config,
    "sessionConfigCompletions": session_config_completions,
}
