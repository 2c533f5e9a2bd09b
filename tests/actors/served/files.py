"""Files: the host's own, and those of clients, asked for by one and told by another."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
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


#: method -> what it is asked for in a folder with the file ``a`` and the folder ``d``, and whether
#: that is then as it should be.
OWN: dict[str, tuple[dict[str, Any], Callable[[Any, Path], bool]]] = {
    "resourceRead": ({"uri": "a"}, lambda got, _: bool(got["data"] == "A")),
    "resourceWrite": (
        {"uri": "a", "data": "B", "encoding": "utf-8", "mode": "append"},
        lambda _, folder: (folder / "a").read_text() == "AB",
    ),
    "resourceList": (
        {"uri": "."},
        lambda got, _: [entry["name"] for entry in got["entries"]] == ["a", "d"],
    ),
    "resourceDelete": (
        {"uri": "d", "recursive": True},
        lambda _, folder: not (folder / "d").exists(),
    ),
    "resourceMkdir": ({"uri": "d/e/f"}, lambda _, folder: (folder / "d/e/f").is_dir()),
    "resourceResolve": ({"uri": "d"}, lambda got, _: bool(got["type"] == "directory")),
    "resourceRequest": ({"uri": "a", "write": True}, lambda got, _: bool(got == {})),
    "resourceCopy": (
        {"source": "a", "destination": "b"},
        lambda _, folder: (folder / "a").read_text() == (folder / "b").read_text(),
    ),
    "resourceMove": (
        {"source": "a", "destination": "d/b"},
        lambda _, folder: not (folder / "a").exists() and (folder / "d/b").exists(),
    ),
}


def of_anybody(method: str, params: dict[str, Any], result: dict[str, Any]) -> Scene:
    """The same; and the host does it for its own files, as far as they are served."""
    forward = forwarded(method, params, result)
    own, is_done = OWN[method]

    async def scene(it: Show) -> Outcome:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "a").write_text("A")
            (folder / "d").mkdir()
            asked = {
                key: at(folder, value) if key in ("uri", "source", "destination") else value
                for key, value in own.items()
            }
            with refused(-32009):
                await it.ann.request(method, **asked)
            it.host.tables.settings.served = (folder.as_uri(),)
            assert is_done(await it.ann.request(method, **asked), folder)
        return await forward(it)

    return scene


def at(folder: Path, name: str) -> str:
    return f"{folder.as_uri()}/{name}"


async def watched_here_and_there(it: Show) -> Outcome:
    await changes_here(it)
    return await watched(it)


async def changes_here(it: Show) -> None:
    """The host says what changes in a file of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with refused(-32009):
            await it.ann.request("createResourceWatch", uri=folder.as_uri())
        it.host.tables.settings.served = (folder.as_uri(),)
        own = (await it.ann.request("createResourceWatch", uri=folder.as_uri()))["channel"]
        assert (await it.ann.subscribe(own))["state"] == {
            "root": folder.as_uri(),
            "recursive": False,
        }
        (folder / "a").write_text("A")
        said = (await it.ann.expect_action("resourceWatch/changed", channel=own))["action"]
        assert said["changes"]["items"] == [{"uri": at(folder, "a"), "type": "added"}]
        assert "the host's to say" in str(await it.why(changed(), own))
        await it.ann.notify("unsubscribe", channel=own)
        await settled()
        assert it.host.ledger.find(own) is None


async def watched(it: Show) -> Outcome:
    await watch(it.ann, it.bob)
    assert (await it.ann.subscribe(W))["state"]["root"] == "virtual://bob/"
    return None


async def changes(it: Show) -> Outcome:
    await changes_here(it)
    await watch(it.ann, it.bob)
    await it.ann.subscribe(W)
    await it.bob.subscribe(W)
    return await it.why(changed(), W, it.bob)


REQUESTS: Scenes = {
    **{method: forwarded(method, params, result) for method, params, result in FORWARDED},
    "createResourceWatch": watched,
}

METHODS: Scenes = {
    **{method: of_anybody(method, params, result) for method, params, result in FORWARDED},
    "createResourceWatch": watched_here_and_there,
}

SCENES: Scenes = {"resourceWatch/changed": changes}
