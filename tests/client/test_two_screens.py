"""Two screens act at the same time: what each shows, stage by stage."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from ahpd.client import Client, open_client
from ahpd.protocol.chat import tool_call_key
from ahpd.protocol.model import JSON
from tests.client.small_host import SmallHost
from tests.client.support import CHAT, action, complete, delta, part, started, turn_texts
from tests.wire import Wiretap

CALL: JSON = {"turnId": "phone-turn", "toolCallId": "c1"}
APPROVE: JSON = {
    "type": "chat/toolCallConfirmed",
    **CALL,
    "approved": True,
    "confirmed": "user-action",
}
DENY: JSON = {"type": "chat/toolCallConfirmed", **CALL, "approved": False, "reason": "denied"}


def texts(client: Client) -> list[str]:
    return turn_texts(client.store(CHAT).optimistic)


def waiting(client: Client) -> int:
    return len(client.store(CHAT).pending)


def call_status(client: Client) -> str:
    chat: Any = client.store(CHAT).optimistic
    parts = chat.active_turn.response_parts
    status: str = parts[parts.index_of(tool_call_key("c1"))].tool_call.status
    return status


@pytest.mark.parametrize("tell_all", [False, True], ids=["refusals to the sender", "to everybody"])
@pytest.mark.parametrize("log_limit", [1000, 2], ids=["replay", "snapshot"])
async def test_both_see_what_they_did_and_then_the_same(
    wire: Wiretap, tell_all: bool, log_limit: int
) -> None:
    host = SmallHost(wire, tell_all=tell_all, log_limit=log_limit)
    async with trio.open_nursery() as nursery:
        with host.running_in(nursery):
            async with (
                open_client(
                    host.connect_as("phone"),
                    client_id="phone",
                    subscriptions=[CHAT],
                    backoff=None,
                ) as phone,
                open_client(
                    host.connect_as("desktop"),
                    client_id="desktop",
                    subscriptions=[CHAT],
                    backoff=None,
                ) as desktop,
            ):
                await _story(host, phone, desktop)


async def _story(host: SmallHost, phone: Client, desktop: Client) -> None:
    # 1. Both start a turn: each shows its own.
    phones = phone.dispatch(CHAT, started("phone-turn", "fix the build"))
    await trio.testing.wait_all_tasks_blocked()  # the phone's is first
    host.transports["desktop"].inbound.hold()
    await trio.testing.wait_all_tasks_blocked()
    desktops = desktop.dispatch(CHAT, started("desktop-turn", "write tests"))
    assert (texts(phone)[-1], texts(desktop)[-1]) == ("fix the build", "write tests")

    # 2. The echoes: the host's order decides, and the desktop learns that it was too late.
    host.transports["desktop"].inbound.release()
    assert (await phones.wait()).kind == "accepted"
    outcome = await desktops.wait()
    assert (outcome.kind, outcome.reason) == ("refused", "a turn runs")
    assert texts(phone) == texts(desktop) == ["fix the build"]
    assert waiting(phone) == waiting(desktop) == 0

    # 3. A tool call waits for approval on both.
    host.emit(action({"type": "chat/toolCallStart", **CALL, "toolName": "sh", "displayName": "sh"}))
    host.emit(action({"type": "chat/toolCallReady", **CALL, "invocationMessage": "Runs make"}))
    for screen in (phone, desktop):
        await screen.until(CHAT, lambda chat: chat.status == 24)
        assert call_status(screen) == "pending-confirmation"

    # 4. The phone approves and the desktop denies: each shows its own decision.
    approved = phone.dispatch(CHAT, action(APPROVE))
    denied = desktop.dispatch(CHAT, action(DENY))
    assert (call_status(phone), call_status(desktop)) == ("running", "cancelled")

    # 5. The echoes: whoever was first, both show that.
    kinds = {(await approved.wait()).kind, (await denied.wait()).kind}
    await trio.testing.wait_all_tasks_blocked()
    assert kinds == {"accepted", "refused"}
    assert call_status(phone) == call_status(desktop)

    # The phone is away while the turn goes on and ends, and the desktop is refused once more.
    host.transports["phone"].cut()
    await phone.wait_status("offline")
    host.emit(part("phone-turn"))
    for text in ("It ", "builds ", "now."):
        host.emit(delta("phone-turn", text))
    host.emit(complete("phone-turn"))
    again = desktop.dispatch(CHAT, started("phone-turn", "again"))
    assert (await again.wait()).kind == "refused"
    await phone.reconnect_now()
    await trio.testing.wait_all_tasks_blocked()
    assert phone.open_operations == desktop.open_operations == ()
    assert phone.store(CHAT).optimistic == desktop.store(CHAT).optimistic == host.chat
    assert len(host.chat.turns) == 1
