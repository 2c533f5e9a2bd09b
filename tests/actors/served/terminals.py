"""Terminals: made, typed into, handed over and ended, with a process on strings."""

from __future__ import annotations

from typing import Any

from ahpd.terminals.port import CommandBegan, CommandEnded, Detected, Moved
from tests.actors.served.show import ROOT, C, Outcome, S, Scene, Scenes, Show, settled, told
from tests.actors.support import refused
from tests.actors.terminals import CLEARED, T, claim, claimed, of_session, resized, titled, typed


async def opened(it: Show) -> None:
    """Ann makes one, and both hear it."""
    await it.ann.request("createTerminal", channel=T, claim=claim())
    for peer in (it.ann, it.bob):
        await peer.subscribe(T)
    await settled()


async def made(it: Show) -> Outcome:
    await opened(it)
    assert it.state(ROOT)["terminals"][0]["resource"] == T
    with refused(-32010):
        await it.bob.request("createTerminal", channel=T, claim=claim("bob"))
    return None


async def disposed(it: Show) -> Outcome:
    await opened(it)
    assert await it.bob.request("disposeTerminal", channel=T) is None
    assert it.terminals.last.closed
    assert it.state(ROOT)["terminals"] == []
    return None


def wanted(action: Any) -> Scene:
    """Ann dispatches this to her terminal."""

    async def scene(it: Show) -> Outcome:
        await opened(it)
        it.terminals.last.say("out")
        await settled()
        return await it.why(action, T)

    return scene


async def life(it: Show) -> None:
    """One lives and ends."""
    await opened(it)
    it.terminals.last.say(
        Detected(), CommandBegan("ls"), "out", CommandEnded(0), Moved("file:///w")
    )
    await settled()
    it.terminals.last.end(0)


METHODS: Scenes = {"createTerminal": made, "disposeTerminal": disposed}

SCENES: Scenes = {
    "terminal/input": wanted(typed("ls\r")),
    "terminal/resized": wanted(resized(100, 30)),
    "terminal/titleChanged": wanted(titled("make")),
    "terminal/cleared": wanted(CLEARED),
    "terminal/claimed": wanted(claimed(of_session(S, C))),
    **told(
        life,
        "root/terminalsChanged",
        "terminal/data",
        "terminal/commandDetectionAvailable",
        "terminal/commandExecuted",
        "terminal/commandFinished",
        "terminal/cwdChanged",
        "terminal/exited",
    ),
}
