"""Files of clients: asked for by one client, told by another, through the host."""

from __future__ import annotations

from typing import Any

from tests.actors.served.show import ROOT, Outcome, Scene, Scenes, Show, settled
from tests.actors.support import refused
from tests.actors.test_reverse import FORWARDED, W, answer, asked, changed, watch


def forwarded(method: str, params: dict[str, Any], result: dict[str, Any]) -> Scene:
    """Ann asks for what Bob has; he is asked, and she gets what he answers."""

    async def scene(it: Show) -> Outcome:
        id = await it.ann.call(method, **params)
        await settled()
        request = await asked(it.bob, method)
        assert request["params"] == {"channel": ROOT, **params}
        await answer(it.bob, request, result)
        assert await it.ann.answer_to(id) == result
        return None

    return scene


def of_clients(method: str, params: dict[str, Any], result: dict[str, Any]) -> Scene:
    """The same; and of the host's own files, which no client has, it says that they are not."""
    forward = forwarded(method, params, result)

    async def scene(it: Show) -> Outcome:
        own = {
            key: "file:///w/a" if key in ("uri", "source", "destination") else value
            for key, value in params.items()
        }
        with refused(-32601):
            await it.ann.request(method, **own)
        return await forward(it)

    return scene


async def may_be_asked_for(it: Show) -> Outcome:
    it.host.tables.settings.served = ("file:///w",)
    assert await it.ann.request("resourceRequest", uri="file:///w/a") == {}
    with refused(-32009):
        await it.ann.request("resourceRequest", uri="file:///v/a")
    return await REQUESTS["resourceRequest"](it)


async def watched_there_only(it: Show) -> Outcome:
    with refused(-32601):
        await it.ann.request("createResourceWatch", uri="file:///w")
    return await watched(it)


async def watched(it: Show) -> Outcome:
    await watch(it.ann, it.bob)
    assert (await it.ann.subscribe(W))["state"]["root"] == "virtual://bob/"
    return None


async def changes(it: Show) -> Outcome:
    await watch(it.ann, it.bob)
    await it.ann.subscribe(W)
    await it.bob.subscribe(W)
    return await it.why(changed(), W, it.bob)


REQUESTS: Scenes = {
    **{method: forwarded(method, params, result) for method, params, result in FORWARDED},
    "createResourceWatch": watched,
}

METHODS: Scenes = {
    **{method: of_clients(method, params, result) for method, params, result in FORWARDED},
    "resourceRequest": may_be_asked_for,
    "createResourceWatch": watched_there_only,
}

SCENES: Scenes = {"resourceWatch/changed": changes}
