"""The answer to `reconnect`, and what becomes of operations, against a scripted host."""

from __future__ import annotations

import trio

from ahpd.client import Client
from ahpd.protocol import ROOT, ErrorCode
from ahpd.protocol.chat_actions import ChatToolCallApprovedAction
from ahpd.protocol.session_actions import SessionTitleChangedAction
from tests.client.stage import settle, staged, turn
from tests.client.support import (
    CHAT,
    CHAT_STATE,
    LOGS,
    ROOT_STATE,
    SESSION,
    SESSION_STATE,
    answer_text,
    delta,
    envelope,
    part,
    snapshot,
    started,
)
from tests.wire import Wiretap


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


async def test_a_state_that_comes_late_proves_no_more_than_a_snapshot(wire: Wiretap) -> None:
    async with staged(wire) as stage:
        operation = stage.client.dispatch(CHAT, started("t1"))
        await settle()
        await stage.lose()
        async with stage.back() as side:
            await side.refuse(await side.expect("reconnect"), ErrorCode.NOT_FOUND)
            await side.welcome(
                snapshot(ROOT_STATE, 3, ROOT), snapshot(SESSION_STATE, 3, SESSION), number=3
            )
            state = {**CHAT_STATE, "turnsNextCursor": "older"}
            await side.answer(
                await side.expect("subscribe"), {"snapshot": snapshot(state, 3).wire()}
            )
        await stage.side.nothing_more()
        assert operation.outcome is not None
        assert operation.outcome.reason == "it may have run: not all turns since then are loaded"


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
