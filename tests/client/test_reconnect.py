"""The way back after a lost connection, against a host whose every word is scripted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from ahpd.client import Backoff, Client, ConnectionLost, RequestTimeout, open_client
from ahpd.protocol import ROOT, ErrorCode, ProtocolError, jsonrpc
from ahpd.protocol.chat_actions import ChatToolCallApprovedAction
from ahpd.protocol.model import JSON
from ahpd.protocol.session_actions import SessionTitleChangedAction
from tests.client.support import (
    CHAT,
    CHAT_STATE,
    LOGS,
    ROOT_STATE,
    SESSION,
    SESSION_STATE,
    Diary,
    ScriptedHost,
    Side,
    answer_text,
    delta,
    envelope,
    part,
    snapshot,
    started,
    turn_texts,
)
from tests.wire import Wiretap


def turn(turn_id: str, text: str = "Fix the build") -> JSON:
    return {
        "id": turn_id,
        "startedAt": "x",
        "message": {"text": text, "origin": {"kind": "user"}},
        "responseParts": [],
    }


class Stage:
    """A client that shows a root, a session and a chat, and its host."""

    def __init__(self, client: Client, side: Side, host: ScriptedHost, diary: Diary) -> None:
        self.client = client
        self.side = side
        self.host = host
        self.diary = diary

    async def lose(self) -> None:
        """The connection breaks."""
        self.side.cut()
        await self.client.wait_status("offline")

    @asynccontextmanager
    async def back(self) -> AsyncIterator[Side]:
        """The client reconnects by hand while the test plays the host in the body."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.client.reconnect_now)
            self.side = await self.host.accept()
            yield self.side
        assert self.client.status == "connected"

    def texts(self) -> list[str]:
        return turn_texts(self.client.store(CHAT).optimistic)


@asynccontextmanager
async def staged(wire: Wiretap, **options: Any) -> AsyncIterator[Stage]:
    host = ScriptedHost(wire)
    diary = Diary()
    made: list[Side] = []

    async def welcome() -> None:
        made.append(await host.accept())
        await made[0].welcome(
            snapshot(ROOT_STATE, 10, ROOT),
            snapshot(SESSION_STATE, 10, SESSION),
            snapshot(CHAT_STATE, 10),
            number=10,
        )

    async with trio.open_nursery() as nursery:
        nursery.start_soon(welcome)
        async with open_client(
            host.connect,
            client_id="phone",
            subscriptions=(ROOT, SESSION, CHAT),
            observer=diary.observer(),
            **({"backoff": None} | options),
        ) as client:
            yield Stage(client, made[0], host, diary)


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


async def test_a_replay_fills_the_gap_and_matches_echoes(wire: Wiretap) -> None:
    async with staged(wire) as stage:
        client = stage.client
        await stage.side.tell(envelope(11, started("t1")), envelope(12, part("t1")))
        await client.until(CHAT, lambda chat: chat.active_turn)
        accepted = client.dispatch(SESSION, SessionTitleChangedAction(title="Mine"))
        refused = client.dispatch(CHAT, started("t2"))
        await settle()
        await stage.lose()
        async with stage.back() as side:
            request = await side.replay(
                envelope(13, delta("t1", "while ")),
                envelope(14, accepted.action, channel=SESSION, by=("phone", 1)),
                envelope(15, started("t2"), by=("phone", 2), refused="a turn runs"),
                envelope(16, delta("t1", "away")),
            )
        assert request.params == {
            "channel": ROOT,
            "clientId": "phone",
            "lastSeenServerSeq": 12,
            "subscriptions": [ROOT, SESSION, CHAT],
        }
        assert answer_text(client.store(CHAT).confirmed) == "while away"
        assert client.store(SESSION).confirmed.title == "Mine"
        assert (await accepted.wait()).kind == "accepted"
        outcome = await refused.wait()
        assert (outcome.kind, outcome.reason) == ("refused", "a turn runs")
        assert client.last_seen == 16
        await stage.side.nothing_more()


async def test_a_live_envelope_that_overtakes_the_answer_waits_for_it(wire: Wiretap) -> None:
    async with staged(wire) as stage:
        await stage.side.tell(envelope(11, started("t1")), envelope(12, part("t1")))
        await settle()
        await stage.lose()
        async with stage.back() as side:
            request = await side.expect("reconnect")
            await side.tell(envelope(13, delta("t1", "a")), envelope(15, delta("t1", "c")))
            await settle()
            assert answer_text(stage.client.store(CHAT).confirmed) == ""
            replay = [envelope(13, delta("t1", "a")), envelope(14, delta("t1", "b"))]
            await side.answer(
                request,
                {
                    "type": "replay",
                    "actions": [each.wire() for each in replay],
                    "missing": [],
                },
            )
        assert answer_text(stage.client.store(CHAT).confirmed) == "abc"
        assert stage.client.last_seen == 15


async def test_missing_channels_are_dropped_and_told(wire: Wiretap) -> None:
    async with staged(wire) as stage:
        operation = stage.client.dispatch(CHAT, started("t1"))
        await stage.lose()
        async with stage.back() as side:
            await side.replay(missing=[CHAT])
        assert CHAT not in stage.client.channels
        assert [channel for channel, _ in stage.diary.dropped] == [CHAT]
        outcome = await operation.wait()
        assert outcome.kind == "unanswered"
        assert outcome.reason is not None
        assert "does not have it" in outcome.reason
        await stage.lose()
        async with stage.back() as side:
            assert (await side.replay()).params["subscriptions"] == [ROOT, SESSION]


async def test_snapshots_replace_and_a_state_without_one_is_gone(wire: Wiretap) -> None:
    async with staged(wire) as stage:
        await stage.side.tell(envelope(50, started("t0", "old")))
        await settle()
        await stage.lose()
        async with stage.back() as side:
            await side.restore(
                snapshot(ROOT_STATE, 70, ROOT),
                snapshot({**CHAT_STATE, "activeTurn": turn("t1", "new")}, 70),
            )
            await side.tell(envelope(71, part("t1")), envelope(72, delta("t1", "on")))
        assert stage.texts() == ["new"]
        assert [channel for channel, _ in stage.diary.dropped] == [SESSION]
        await settle()
        assert answer_text(stage.client.store(CHAT).confirmed) == "on"
        assert stage.client.last_seen == 72


async def test_the_number_may_go_down(wire: Wiretap) -> None:
    async with staged(wire) as stage:
        await stage.lose()
        async with stage.back() as side:
            await side.restore(
                *(
                    snapshot(state, number, channel)
                    for state, number, channel in (
                        (ROOT_STATE, 2, ROOT),
                        (SESSION_STATE, 3, SESSION),
                        (CHAT_STATE, 2, CHAT),
                    )
                )
            )
            await side.tell(envelope(4, started("t1")))
        await settle()
        assert stage.texts() == ["Fix the build"]
        assert stage.client.last_seen == 4


async def test_snapshots_of_different_moments_leave_nothing_out(wire: Wiretap) -> None:
    async with staged(wire) as stage:
        await stage.lose()
        async with stage.back() as side:
            await side.restore(
                snapshot(ROOT_STATE, 20, ROOT),
                snapshot(SESSION_STATE, 22, SESSION),
                snapshot(CHAT_STATE, 20),
            )
        # Number 21 was the chat's, and is lost with the connection.
        await stage.lose()
        async with stage.back() as side:
            request = await side.replay(
                envelope(21, started("t1")),
                envelope(22, SessionTitleChangedAction(title="x"), channel=SESSION),
            )
        assert request.params["lastSeenServerSeq"] == 20
        assert stage.texts() == ["Fix the build"]
        assert stage.client.store(SESSION).confirmed.title == "A session"


async def test_a_host_that_does_not_know_the_client_is_met_anew(wire: Wiretap) -> None:
    async with staged(wire) as stage:
        took = stage.client.dispatch(CHAT, started("t1"))
        lost = stage.client.dispatch(SESSION, SessionTitleChangedAction(title="Mine"))
        await settle()
        await stage.lose()
        async with stage.back() as side:
            await side.refuse(await side.expect("reconnect"), ErrorCode.NOT_FOUND)
            request = await side.welcome(
                snapshot(ROOT_STATE, 3, ROOT),
                snapshot({**SESSION_STATE, "title": "Theirs"}, 3, SESSION),
                snapshot({**CHAT_STATE, "activeTurn": turn("t1")}, 3),
                number=3,
            )
        assert request.params["clientId"] == "phone"
        assert request.params["initialSubscriptions"] == [ROOT, SESSION, CHAT]
        assert stage.client.last_seen == 3
        assert (await took.wait()).kind == "accepted"
        outcome = await lost.wait()
        assert (outcome.kind, outcome.reason) == (
            "unanswered",
            "somebody else changed it meanwhile",
        )
        await stage.side.nothing_more()


async def test_a_state_that_is_not_ready_is_subscribed_again(wire: Wiretap) -> None:
    async with staged(wire) as stage:
        operation = stage.client.dispatch(CHAT, started("t1"))
        await settle()
        await stage.lose()
        async with stage.back() as side:
            await side.refuse(await side.expect("reconnect"), ErrorCode.NOT_FOUND)
            await side.welcome(
                snapshot(ROOT_STATE, 3, ROOT), snapshot(SESSION_STATE, 3, SESSION), number=3
            )
            # The old process's number would make the store drop these; they wait.
            await side.tell(envelope(4, started("t0", "theirs")))
            request = await side.expect("subscribe")
            assert request.params["channel"] == CHAT
            await side.tell(envelope(5, started("t1"), by=("phone", 1), refused="a turn runs"))
            await side.answer(
                request,
                {"snapshot": snapshot({**CHAT_STATE, "activeTurn": turn("t0")}, 4).wire()},
            )
        assert stage.client.status == "connected"
        assert (await operation.wait()).kind == "refused"
        assert stage.client.store(CHAT).seen == 5
        await stage.side.nothing_more()


async def test_a_state_that_never_comes_is_dropped(wire: Wiretap) -> None:
    async with staged(wire) as stage:
        operation = stage.client.dispatch(CHAT, started("t1"))
        await stage.lose()
        async with stage.back() as side:
            await side.refuse(await side.expect("reconnect"), ErrorCode.NOT_FOUND)
            await side.welcome(
                snapshot(ROOT_STATE, 3, ROOT), snapshot(SESSION_STATE, 3, SESSION), number=3
            )
            await side.refuse(await side.expect("subscribe"), ErrorCode.NOT_FOUND, "no such chat")
        assert stage.diary.dropped == [(CHAT, "no such chat")]
        assert (await operation.wait()).reason == "no such chat"


async def test_a_channel_without_state_is_listed_and_subscribed_again(wire: Wiretap) -> None:
    async with staged(wire) as stage, trio.open_nursery() as nursery:
        nursery.start_soon(stage.client.subscribe, LOGS)
        await stage.side.answer(await stage.side.expect("subscribe"), {})
        await settle()
        await stage.lose()
        async with stage.back() as side:
            assert (await side.replay()).params["subscriptions"] == [ROOT, SESSION, CHAT, LOGS]
            await side.answer(await side.expect("subscribe"), {})
        await stage.lose()
        async with stage.back() as side:
            await side.restore(
                snapshot(ROOT_STATE, 10, ROOT),
                snapshot(SESSION_STATE, 10, SESSION),
                snapshot(CHAT_STATE, 10),
            )
            await side.answer(await side.expect("subscribe"), {})
        assert LOGS in stage.client.channels
        assert stage.diary.dropped == []


async def test_an_operation_without_an_echo_is_sent_again_under_its_number(wire: Wiretap) -> None:
    async with staged(wire) as stage:
        operation = stage.client.dispatch(CHAT, started("t1"))
        first = await stage.side.expect_dispatch()
        await stage.lose()
        assert stage.texts() == ["Fix the build"]
        async with stage.back() as side:
            await side.replay()
        assert await side.expect_dispatch() == first
        await side.tell(envelope(11, started("t1"), by=("phone", 1)))
        assert (await operation.wait()).kind == "accepted"
        assert stage.diary.settled == [operation]
        assert stage.texts() == ["Fix the build"]


async def test_what_the_old_connection_brought_in_late_is_not_sent_again(wire: Wiretap) -> None:
    joined = trio.Event()
    release = trio.Event()

    async def on_resumed(client: Client) -> None:
        if client.next_client_seq > 1:
            joined.set()
            await release.wait()

    async with staged(wire, on_resumed=on_resumed) as stage:
        operation = stage.client.dispatch(CHAT, started("t1"))
        await settle()
        await stage.lose()
        async with stage.back() as side:
            await side.replay()
            await joined.wait()
            assert stage.texts() == []  # taken out, and nothing new is sent yet
            await side.tell(envelope(11, started("t1"), by=("phone", 1)))
            assert (await operation.wait()).kind == "accepted"
            release.set()
        assert stage.texts() == ["Fix the build"]
        await side.nothing_more()


async def test_tokens_go_before_what_is_sent_again_and_that_before_what_is_new(
    wire: Wiretap,
) -> None:
    during = trio.Event()

    async def on_resumed(client: Client) -> None:
        if client.next_client_seq > 1:
            during.set()
            await client.authenticate("https://api", "secret")

    async with staged(wire, on_resumed=on_resumed) as stage:
        client = stage.client
        client.dispatch(CHAT, started("t1"))
        await stage.side.expect_dispatch()
        await stage.lose()
        client.dispatch(SESSION, SessionTitleChangedAction(title="offline"))
        async with stage.back() as side:
            await side.replay()
            request = await side.expect("authenticate")
            await during.wait()
            client.dispatch(SESSION, SessionTitleChangedAction(title="new"))
            await side.answer(request, {})
        sent = [await side.expect_dispatch() for _ in range(3)]
        assert [each["clientSeq"] for each in sent] == [1, 2, 3]
        assert stage.client.store(SESSION).optimistic.title == "new"
        await side.nothing_more()


async def test_what_is_dispatched_offline_is_shown_and_sent_later(wire: Wiretap) -> None:
    async with staged(wire) as stage:
        await stage.lose()
        title = stage.client.dispatch(SESSION, SessionTitleChangedAction(title="Mine"))
        decision = stage.client.dispatch(
            CHAT,
            ChatToolCallApprovedAction(turn_id="t1", tool_call_id="c1", confirmed="user-action"),
        )
        assert stage.client.store(SESSION).optimistic.title == "Mine"
        async with stage.back() as side:
            await side.replay(envelope(11, started("t0", "theirs")))
        assert (await side.expect_dispatch())["clientSeq"] == 1
        await side.tell(envelope(12, title.action, channel=SESSION, by=("phone", 1)))
        assert (await title.wait()).kind == "accepted"
        assert (await decision.wait()).kind == "unanswered"


async def test_a_turn_typed_offline_is_queued_behind_one_that_runs(wire: Wiretap) -> None:
    async with staged(wire) as stage:
        await stage.lose()
        operation = stage.client.dispatch(CHAT, started("t2", "and test it"))
        async with stage.back() as side:
            await side.replay(envelope(11, started("t1")))
        assert (await operation.wait()).kind == "unanswered"
        assert operation.replaced_by is not None
        sent = await side.expect_dispatch()
        assert (sent["clientSeq"], sent["action"]["type"]) == (2, "chat/pendingMessageSet")
        queued = stage.client.store(CHAT).optimistic.queued_messages
        assert [each.message.text for each in queued] == ["and test it"]
        await side.tell(envelope(12, operation.replaced_by.action, by=("phone", 2)))
        assert (await operation.replaced_by.wait()).kind == "accepted"


async def test_an_operation_survives_several_losses_and_ends_once(wire: Wiretap) -> None:
    async with staged(wire) as stage:
        operation = stage.client.dispatch(CHAT, started("t1"))
        for _ in range(3):
            await stage.lose()
            async with stage.back() as side:
                await side.replay()
        await stage.side.tell(
            envelope(11, started("t1"), by=("phone", 1)),
            envelope(12, started("t1"), by=("phone", 1), refused="used already"),
        )
        assert (await operation.wait()).kind == "accepted"
        await settle()
        assert stage.diary.settled == [operation]


async def test_losing_the_connection_during_the_handshake_loses_no_operation(
    wire: Wiretap,
) -> None:
    async with staged(wire) as stage, trio.open_nursery() as nursery:
        operation = stage.client.dispatch(CHAT, started("t1"))
        await settle()
        await stage.lose()

        async def cut_at_reconnect() -> None:
            side = await stage.host.accept()
            await side.expect("reconnect")
            side.cut()

        nursery.start_soon(cut_at_reconnect)
        with pytest.raises(ConnectionLost):
            await stage.client.reconnect_now()
        assert stage.client.status == "offline"
        assert stage.client.open_operations == (operation,)
        assert stage.texts() == ["Fix the build"]
        async with stage.back() as side:
            await side.replay(envelope(11, started("t1"), by=("phone", 1)))
        assert (await operation.wait()).kind == "accepted"


async def test_losing_it_after_the_operations_were_taken_out_loses_none(wire: Wiretap) -> None:
    async def on_resumed(client: Client) -> None:
        if client.next_client_seq > 1:
            await client.ping()

    async with staged(wire, on_resumed=on_resumed) as stage, trio.open_nursery() as nursery:
        operation = stage.client.dispatch(CHAT, started("t1"))
        await settle()
        await stage.lose()

        async def cut_at_ping() -> None:
            side = await stage.host.accept()
            await side.restore(
                snapshot(ROOT_STATE, 12, ROOT),
                snapshot(SESSION_STATE, 12, SESSION),
                snapshot({**CHAT_STATE, "turnsNextCursor": "older"}, 12),
            )
            await side.expect("ping")
            side.cut()

        nursery.start_soon(cut_at_ping)
        with pytest.raises(ConnectionLost):
            await stage.client.reconnect_now()
        assert stage.client.open_operations == (operation,)
        async with stage.back() as side:
            await side.replay()
            await side.answer(await side.expect("ping"), None)
        # That the replay lacks an echo proves nothing: a snapshot came before it.
        outcome = await operation.wait()
        assert outcome.reason == "it may have run: not all turns since then are loaded"


async def test_a_malformed_or_unknown_answer_means_starting_over(wire: Wiretap) -> None:
    async with staged(wire) as stage:
        for answer in ({"type": "replay", "actions": 3}, {"type": "mixed"}):
            await stage.lose()
            async with stage.back() as side:
                rogue = Side(side.transport, wire.connection("rogue", legal="c2h"))
                await rogue.answer(await rogue.expect("reconnect"), answer)
                await rogue.welcome(
                    snapshot(ROOT_STATE, 3, ROOT),
                    snapshot(SESSION_STATE, 3, SESSION),
                    snapshot(CHAT_STATE, 3),
                    number=3,
                )
            assert stage.client.last_seen == 3


async def test_an_open_request_fails_and_may_be_asked_again(wire: Wiretap) -> None:
    async with staged(wire) as stage, trio.open_nursery() as nursery:
        failed = trio.Event()

        async def create() -> None:
            with pytest.raises(ConnectionLost):
                await stage.client.create_session(SESSION)
            with pytest.raises(ConnectionLost, match="not connected"):
                await stage.client.create_session(SESSION)
            failed.set()
            await stage.client.wait_status("connected")
            with pytest.raises(ProtocolError) as caught:
                await stage.client.create_session(SESSION)
            assert caught.value.code == ErrorCode.SESSION_ALREADY_EXISTS

        nursery.start_soon(create)
        await stage.side.expect("createSession")
        await stage.lose()
        await failed.wait()
        async with stage.back() as side:
            await side.replay()
        await side.refuse(await side.expect("createSession"), ErrorCode.SESSION_ALREADY_EXISTS)


async def test_a_subscribe_cut_off_leaves_nothing(wire: Wiretap) -> None:
    other = "ahp-chat:/other"
    async with staged(wire) as stage, trio.open_nursery() as nursery:

        async def subscribe() -> None:
            with pytest.raises(ConnectionLost):
                await stage.client.subscribe(other)

        nursery.start_soon(subscribe)
        await stage.side.expect("subscribe")
        await stage.lose()
        async with stage.back() as side:
            assert other not in (await side.replay()).params["subscriptions"]
        await side.nothing_more()


async def test_a_host_that_does_not_answer_the_handshake_is_left(wire: Wiretap) -> None:
    async with staged(wire) as stage, trio.open_nursery() as nursery:
        await stage.lose()

        async def silent() -> None:
            side = await stage.host.accept()
            await side.expect("reconnect")
            await side.ended()

        nursery.start_soon(silent)
        with pytest.raises(RequestTimeout):
            await stage.client.reconnect_now()
        assert stage.client.status == "offline"
        assert isinstance(stage.client.error, RequestTimeout)


async def test_cancelled_it_is_offline_and_can_come_back(wire: Wiretap) -> None:
    async with staged(wire) as stage:
        await stage.lose()
        with trio.move_on_after(1):
            await stage.client.reconnect_now()
        assert stage.client.status == "offline"
        side = await stage.host.accept()
        await side.expect("reconnect")
        await side.ended()
        async with stage.back() as side:
            await side.replay()


async def test_reconnecting_by_hand_ends_the_old_connection_first(wire: Wiretap) -> None:
    async with staged(wire) as stage:
        old = stage.side
        async with stage.back() as side:
            await old.ended()
            await side.replay()
        await stage.client.disconnect()
        assert stage.client.status == "offline"
        await side.ended()


async def test_it_comes_back_by_itself_with_growing_waits(wire: Wiretap) -> None:
    backoff = Backoff(first=1, factor=2, most=8, jitter=0.5)
    async with staged(wire, backoff=backoff, seed=3) as stage:
        stage.host.down = True
        stage.host.attempts = 0
        began = trio.current_time()
        await stage.lose()
        await trio.sleep(60)
        # Waits of 1, 2, 4, 8, 8 ... seconds, each shortened by up to half.
        assert 8 <= stage.host.attempts <= 17
        assert isinstance(stage.client.error, ConnectionLost)
        stage.host.down = False
        side = await stage.host.accept()
        await side.replay(envelope(11, started("t1")))
        await stage.client.wait_status("connected")
        assert trio.current_time() - began <= 60 + 8
        assert stage.texts() == ["Fix the build"]
        stage.side = side
        await stage.lose()
        lost = trio.current_time()
        side = await stage.host.accept()
        assert trio.current_time() - lost <= 1  # the waits begin anew
        await side.replay()


async def test_by_hand_it_need_not_wait(wire: Wiretap) -> None:
    async with staged(wire, backoff=Backoff(first=100)) as stage:
        await stage.lose()
        lost = trio.current_time()
        async with stage.back() as side:
            await side.replay()
        assert trio.current_time() == lost
        await trio.sleep(2000)
        assert stage.host.attempts == 2
        await stage.lose()
        side = await stage.host.accept()
        await side.replay()
        await stage.client.wait_status("connected")


async def test_a_version_that_fits_no_more_ends_the_automatic_attempts(wire: Wiretap) -> None:
    async with staged(wire, backoff=Backoff(first=1)) as stage:
        await stage.lose()
        side = await stage.host.accept()
        await side.refuse(await side.expect("reconnect"), ErrorCode.NOT_FOUND)
        error = ProtocolError(-32005, "no", {"supportedVersions": ["^2.0.0"]})
        await side.send(jsonrpc.failure((await side.expect("initialize")).id, error))
        await trio.sleep(1000)
        assert stage.host.attempts == 2
        assert isinstance(stage.client.error, ProtocolError)
        async with stage.back() as side:
            await side.replay()
        await stage.lose()
        side = await stage.host.accept()  # and go on after one that worked
        await side.replay()


async def test_any_other_refusal_is_tried_again(wire: Wiretap) -> None:
    async with staged(wire, backoff=Backoff(first=1)) as stage:
        await stage.lose()
        for _ in range(3):
            side = await stage.host.accept()
            await side.refuse(await side.expect("reconnect"), ErrorCode.NOT_FOUND)
            await side.refuse(await side.expect("initialize"), ErrorCode.INTERNAL_ERROR)
            await side.ended()
        side = await stage.host.accept()
        await side.replay()
        await stage.client.wait_status("connected")


async def test_closed_while_it_waits_it_is_gone_at_once(wire: Wiretap) -> None:
    began = trio.current_time()
    async with staged(wire, backoff=Backoff(first=1000)) as stage:
        operation = stage.client.dispatch(CHAT, started("t1"))
        await stage.lose()
    assert trio.current_time() == began
    assert operation.outcome is not None
    assert operation.outcome.reason == "the client was closed"
    assert stage.diary.statuses[-1] == "closed"
