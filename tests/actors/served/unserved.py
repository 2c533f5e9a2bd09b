"""What no scene is about: a call, a dispatch and a wait that show that it is not served."""

from __future__ import annotations

from typing import Any

import pytest

from ahpd.protocol import ACTIONS, CLIENT_METHODS
from ahpd.protocol.uris import AUTOMATIONS
from tests.actors.served.show import IGNORED, NOT_SAID, ROOT, C, Outcome, S, Scene, Show, settled
from tests.actors.support import least
from tests.harness import Refused

#: A channel of each kind; those that are not here do not exist.
CHANNELS = {"root": ROOT, "session": S, "chat": C}
#: URIs of channels that clients might know of otherwise.
ABSENT = {
    "terminal": "ahp-terminal:/1",
    "changeset": f"{S}/changeset",
    "automation": AUTOMATIONS,
    "automationRun": "ahp-automation-run:/1",
    "canvas": "ahp-canvas:/1",
    "annotations": f"{S}/annotations",
    "resourceWatch": "ahp-resource-watch:/1",
}


async def absent(it: Show, channel: str) -> None:
    """There is no such channel to subscribe to."""
    with pytest.raises(Refused) as caught:
        await it.ann.subscribe(channel)
    assert caught.value.code in (-32001, -32008), caught.value


def called(name: str) -> Scene:
    """The least that the method can be called with."""
    method = CLIENT_METHODS[name]

    async def scene(it: Show) -> Outcome:
        params: dict[str, Any] = least(method.params)
        if method.fixed_channel is None:
            params["channel"] = S
        await it.ann.request(name, **params)
        return None

    return scene


def not_told(name: str) -> Scene:
    """The host does not send it, whatever happens in a turn."""

    async def scene(it: Show) -> Outcome:
        await it.done()
        return None if any(each["method"] == name for each in it.ann.inbox) else NOT_SAID

    return scene


def tried(name: str) -> Scene:
    """A client dispatches it where it belongs, and where it does not; a turn goes by."""
    info = ACTIONS[name]

    async def scene(it: Show) -> Outcome:
        action: Any = least(info.classes[0])
        elsewhere = S if info.channel != "session" else C
        stray = await it.why(action, elsewhere)
        assert stray is not None
        assert "belongs on" in stray, stray
        channel = CHANNELS.get(info.channel)
        reason = await it.why(action, channel or ABSENT[info.channel])
        if channel is None:
            assert reason == IGNORED
            await absent(it, ABSENT[info.channel])
            return IGNORED
        if info.client_may_dispatch:
            return reason
        assert reason is not None
        assert "is the host's to say" in reason
        await it.done()
        await settled()
        return None if ("action", name) in it.heard() else NOT_SAID

    return scene
