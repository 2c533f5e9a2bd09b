"""How text of a turn is gathered, on a clock that the test moves."""

from __future__ import annotations

import trio

from ahpd.agents.acp.turns import WAITING_BYTES, Turn
from ahpd.agents.events import Event, TextChunk, ToolReady


async def taken(window: float, *said: tuple[float, Event]) -> list[tuple[float, list[Event]]]:
    """What a turn's task takes, and when, of what is said at these times."""
    turn, begun, found = Turn(window), trio.current_time(), []

    async def take() -> None:
        while not turn.is_over or turn.events:
            if turn.events:
                await turn.gathered()
                found.append((round(trio.current_time() - begun, 6), [*turn.take()]))
            else:
                await turn.rung()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        for at, event in said:
            await trio.sleep_until(begun + at)
            turn.add([event])
        await trio.testing.wait_all_tasks_blocked()
        turn.is_over = True
        turn.ring()
    return found


def text(at: float, what: str) -> tuple[float, Event]:
    return at, TextChunk(what)


async def test_text_is_gathered_and_the_first_is_not() -> None:
    found = await taken(
        0.5, text(0, "a"), text(0.1, "b"), text(0.2, "c"), text(0.7, "d"), text(5, "e")
    )
    assert found == [
        (0.0, [TextChunk("a")]),
        (0.5, [TextChunk("bc")]),
        (1.0, [TextChunk("d")]),
        (5.0, [TextChunk("e")]),
    ]


async def test_anything_else_and_the_end_go_at_once() -> None:
    ready = ToolReady("c", "Runs")
    found = await taken(0.5, text(0, "a"), text(0.1, "b"), (0.2, ready), text(0.3, "c"))
    assert found == [
        (0.0, [TextChunk("a")]),
        (0.2, [TextChunk("b"), ready]),
        (0.3, [TextChunk("c")]),
    ]


async def test_too_much_is_not_gathered() -> None:
    much = "x" * (WAITING_BYTES + 1)
    found = await taken(0.5, text(0, "a"), text(0.1, much))
    assert found == [(0.0, [TextChunk("a")]), (0.1, [TextChunk(much)])]


async def test_without_a_window_nothing_is_held() -> None:
    found = await taken(0, text(0, "a"), text(0.1, "b"))
    assert found == [(0.0, [TextChunk("a")]), (0.1, [TextChunk("b")])]
