"""What the host tells of itself: its notifications, and what it says on the root."""

from __future__ import annotations

import trio

from tests.actors.served.show import (
    RESOURCE,
    ROOT,
    Able,
    Scenes,
    Show,
    dispatched,
    settled,
    told,
)
from tests.actors.support import S2


async def a_session_comes_and_goes(it: Show) -> None:
    await it.ann.request("createSession", channel=S2, progressToken="p1")
    await settled()
    await it.ann.dispatch(S2, {"type": "session/titleChanged", "title": "Named"})
    await settled()
    await it.ann.request("disposeSession", channel=S2)


async def a_token_expires(it: Show) -> None:
    await it.ann.request("authenticate", resource=RESOURCE, token="t0ken", expiresIn=5)
    await trio.sleep(6)


async def an_agent_learns(it: Show) -> None:
    if isinstance(it.agent, Able):
        it.agent.learn("large")


async def telemetry_is_subscribed_to(it: Show) -> None:
    announced = (await (await it.host.peer("eve")).hello())["telemetry"]
    for uri in (announced["logs"].replace("{level}", "info"), announced["traces"]):
        assert await it.ann.request("subscribe", channel=uri) == {}
    assert await it.ann.request("subscribe", channel=announced["metrics"]) == {}
    it.logs.say("info", "something happened")
    await it.done()
    await trio.sleep(3)


NOTIFICATIONS: Scenes = {
    **told(
        telemetry_is_subscribed_to,
        "otlp/exportLogs",
        "otlp/exportMetrics",
        "otlp/exportTraces",
        kind="notification",
    ),
    **told(
        a_session_comes_and_goes,
        "action",
        "root/progress",
        "root/sessionAdded",
        "root/sessionRemoved",
        "root/sessionSummaryChanged",
        kind="notification",
    ),
    **told(a_token_expires, "auth/required", kind="notification"),
}

SCENES: Scenes = {
    **told(a_session_comes_and_goes, "root/activeSessionsChanged"),
    **told(an_agent_learns, "root/agentsChanged"),
    "root/configChanged": dispatched(
        {"type": "root/configChanged", "config": {"telemetryLevel": "off"}},
        ROOT,
        lambda it: it.state(ROOT)["config"]["values"]["telemetryLevel"] == "off",
    ),
}
