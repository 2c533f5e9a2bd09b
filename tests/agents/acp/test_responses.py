"""Responses as agents write them: whatever is one ends the wait for it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from ahpd.agents.acp.process import start_process
from ahpd.agents.acp.rpc import Asked, Link, RpcFault
from tests.agents.acp.support import PATIENCE

pytestmark = pytest.mark.real_time

#: What is written for each request, and what comes of it.
RESPONSES: list[tuple[str, Any]] = [
    ('{"id": 0}', None),  # a handler in JavaScript that returns nothing
    ('{"id": 1.0, "result": 1}', 1),
    ('{"id": "2", "result": 2, "error": null}', 2),
    ('{"id": 3, "error": "no"}', "no"),
    ('{"id": 4, "error": {"message": "why"}, "result": 4}', "why"),
    ('{"id": [5]}\n{"id": true, "result": 0}\n{"id": "x", "result": 0}\n{"id": 5, "result": 5}', 5),
    ('[{"id": 6, "result": 6}]', 6),
]  # fmt: skip
AGENT = "import sys\nfor each in sys.argv[1:]:\n    input(); print(each, flush=True)\ninput()"


class Nobody:
    """Hears nothing that counts."""

    def heard(self, method: str, params: dict[str, Any]) -> None:
        raise AssertionError(method)

    def asked(self, request: Asked) -> None:
        raise AssertionError(request)

    async def room(self) -> None:
        await trio.lowlevel.checkpoint()


async def test_every_response_is_one(tmp_path: Path) -> None:
    command = (sys.executable, "-S", "-c", AGENT, *(text for text, _ in RESPONSES))
    process = await start_process(command, {}, str(tmp_path))
    link = Link(process, Nobody())
    came = []
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.run)
            for _ in RESPONSES:
                try:
                    came.append(await link.request("anything", {}, PATIENCE))
                except RpcFault as fault:
                    came.append(fault.message)
            nursery.cancel_scope.cancel()
    finally:
        await process.end()
    assert came == [wanted for _, wanted in RESPONSES]
