"""The frame checker: what it remembers, what is a fault, and beyond what the schema says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpd.protocol.capture import Way
from ahpd.protocol.methods import METHODS, Method
from ahpd.protocol.strict import FrameChecker, check_frames
from tests.protocol.strategies import OPEN, values

DELTA = {"type": "chat/delta", "turnId": "t", "partId": "p", "content": "x"}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"channel": "ahp-root://"}}


def call(method: str, params: Any, id: Any = None) -> dict[str, Any]:
    frame = {"jsonrpc": "2.0", "method": method, "params": params}
    return frame if id is None else {**frame, "id": id}


def answer(id: Any, **body: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, **body}


def told(*frames: tuple[Way, Any], whole: bool = False) -> list[str]:
    return [str(fault) for fault in check_frames(frames, whole=whole)]


def sender(method: Method) -> Way:
    return "c2h" if method.sent_by("client") else "h2c"


@pytest.mark.parametrize("name", METHODS)
@given(data=st.data())
def test_a_legal_call_and_its_answer_are_no_faults(name: str, data: st.DataObject) -> None:
    method = METHODS[name]
    params = data.draw(values(method.params))
    frames = [(sender(method), call(name, params, 1 if method.is_request else None))]
    if method.is_request:
        result = None if method.result is None else data.draw(values(method.result))
        back: Way = "h2c" if sender(method) == "c2h" else "c2h"
        frames.append((back, answer(1, result=result)))
    assert told(*frames, whole=True) == []


@pytest.mark.parametrize(
    ("frame", "fault"),
    [
        (
            call("action", {"channel": "c", "serverSeq": 1, "action": {**DELTA, "content": 7}}),
            "1: action: params/action/content: expected string, got 7",
        ),
        (
            call("action", {"channel": "c", "serverSeq": 1, "action": {**DELTA, "more": 7}}),
            "1: action: params/action/more: expected no such key in ChatDeltaAction, got 7",
        ),
        (
            call("action", {"serverSeq": 1, "action": DELTA}),
            "1: action: params/channel: expected string, got nothing",
        ),
        (
            call("action", {"channel": "c", "serverSeq": None, "action": DELTA}),
            "1: action: params/serverSeq: expected number, got null",
        ),
        (
            call("ping", {"channel": "ahp-root://"}, 1),
            "1: ping: method: the host may not send ping",
        ),
        (
            call("root/progress", None),
            "1: root/progress: params: expected ProgressParams, got null",
        ),
        ({"method": "x-own/thing"}, '1: x-own/thing: jsonrpc: expected "2.0", got nothing'),
        (answer(1, error=7), "1: frame: error: expected object, got 7"),
        (
            answer(1, error={"code": True, "message": "m"}),
            "1: frame: error/code: expected integer, got true",
        ),
        (
            answer(1, error={"code": -32603}),
            "1: frame: error/message: expected string, got nothing",
        ),
        (
            answer(1, error={"code": -1, "message": "m", "why": 1}),
            "1: frame: error/why: no such key in an error, got 1",
        ),
        (
            answer(1, error={"code": -32005, "message": "m"}),
            "1: frame: error/data: expected UnsupportedProtocolVersionErrorData, got null",
        ),
        (
            answer(1, error={"code": -32007, "message": "m", "data": {"resources": 1}}),
            "1: frame: error/data/resources: expected array of ProtectedResourceMetadata, got 1",
        ),
        (
            answer(1, result=1, error={"code": 1, "message": "m"}),
            "1: frame: both a result and an error",
        ),
        (answer(None, result=1), "1: frame: id: expected a number or a string, got null"),
        (answer([], result=1), "1: frame: id: expected a number or a string, got an array"),
        ({**answer(1, result=1), "x": 2}, "1: frame: x: no such key in a message, got 2"),
        ({"jsonrpc": "2.0", "id": 1}, "1: frame: neither a call, a result nor an error"),
        ({"jsonrpc": "2.0", "method": 7}, "1: frame: method: expected string, got 7"),
        ([PING], "1: frame: expected one message object, got an array"),
        (None, "1: frame: expected one message object, got null"),
    ],
)  # fmt: skip
def test_a_fault_names_frame_method_place_and_what_was_expected(frame: Any, fault: str) -> None:
    assert told(("h2c", frame)) == [fault]


@pytest.mark.parametrize("id", [True, None, [], {}, {"a": []}])
def test_an_id_that_is_none_is_a_fault_and_no_crash(id: Any) -> None:
    (fault,) = told(("c2h", {**PING, "id": id}))
    assert fault.startswith("1: ping: id: expected a number or a string")


def test_a_request_needs_an_id_and_a_notification_has_none() -> None:
    assert told(("c2h", call("ping", {"channel": "ahp-root://"}))) == [
        "1: ping: id: a request needs one"
    ]
    assert told(("c2h", call("unsubscribe", {"channel": "c"}, 1))) == [
        "1: unsubscribe: id: a notification"
    ]


def test_an_error_for_a_request_that_could_not_be_read_may_have_no_id() -> None:
    assert told(("h2c", answer(None, error={"code": -32700, "message": "m"})), whole=True) == []


def test_permission_denied_may_carry_data_or_none() -> None:
    denied = {"code": -32009, "message": "m"}
    assert told(("h2c", answer(1, error=denied))) == []
    assert told(("h2c", answer(1, error={**denied, "data": {}}))) == []
    assert told(("h2c", answer(1, error={**denied, "data": {"x": 1}})))


def test_a_result_is_held_against_the_method_that_asked() -> None:
    assert told(("c2h", PING), ("h2c", answer(1, result={}))) == [
        "2: ping: result: expected null, got an object"
    ]


def test_the_envelopes_of_a_replay_are_checked() -> None:
    params = {
        "channel": "ahp-root://",
        "clientId": "c",
        "lastSeenServerSeq": 0,
        "subscriptions": [],
    }
    envelope = {"channel": "c", "serverSeq": 1, "action": {"type": "chat/nonsense"}}
    result = {"type": "replay", "actions": [envelope], "missing": []}
    (fault,) = check_frames(
        [("c2h", call("reconnect", params, "a")), ("h2c", answer("a", result=result))]
    )
    assert fault.path == "result/actions/0/action/type"
    assert fault.method == "reconnect"


def test_the_directions_have_id_spaces_of_their_own() -> None:
    asked = call("resourceRead", {"channel": "ahp-root://", "uri": "file:///a"}, 1)
    checker = FrameChecker(whole=True)
    assert checker.check("c2h", PING) == []
    assert checker.check("h2c", asked) == []
    assert checker.open_requests("c2h") == {1: "ping"}
    assert checker.open_requests("h2c") == {1: "resourceRead"}
    assert checker.check("h2c", answer(1, result=None)) == []
    assert [fault.method for fault in checker.check("c2h", answer(1, result=None))] == [
        "resourceRead"
    ]
    assert not checker.open_requests("h2c")


def test_on_a_whole_connection_every_answer_has_its_request() -> None:
    lone: tuple[Way, Any] = ("h2c", answer(1, result=None))
    assert told(("c2h", PING), lone, whole=True) == []
    assert told(("c2h", PING), lone, lone, whole=True) == [
        "3: frame: id: 1 is no open request of the client"
    ]
    assert told(("c2h", PING), lone, lone) == []
    assert told(("c2h", PING), ("c2h", PING), whole=True) == [
        "2: ping: id: 1 is still open, for ping"
    ]
    assert told(("c2h", PING), ("c2h", PING)) == []


def test_methods_outside_the_protocol_are_counted_and_passed_over_with_their_answers() -> None:
    checker = FrameChecker(whole=True)
    frames: list[tuple[Way, Any]] = [
        ("c2h", call("x-own/thing", [1], 1)),
        ("h2c", answer(1, result={"anything": None})),
        ("c2h", call("tools/list", {}, 2)),
        ("h2c", answer(2, error={"code": -32005, "message": "another meaning"})),
        ("h2c", call("vscode/notice", None)),
    ]
    assert [fault for way, frame in frames for fault in checker.check(way, frame)] == []
    assert checker.passed_over == 5
    assert checker.frames == 5


def test_a_host_subscribes_to_the_watch_it_made_on_a_client() -> None:
    frames: list[tuple[Way, Any]] = [
        ("h2c", call("subscribe", {"channel": "ahp-resource-watch:/w"}, 1)),
        ("c2h", answer(1, result={})),
        ("h2c", call("unsubscribe", {"channel": "ahp-resource-watch:/w"})),
    ]
    assert told(*frames, whole=True) == []


def test_a_fault_carries_the_number_it_was_given() -> None:
    (fault,) = FrameChecker().check("h2c", [], 41)
    assert fault.number == 41


@given(frame=OPEN | st.dictionaries(st.sampled_from(("id", "method", "result", "error")), OPEN))
def test_whatever_comes_is_judged(frame: Any) -> None:
    checker = FrameChecker(whole=True)
    for way in ("c2h", "h2c"):
        assert all(str(fault) for fault in checker.check(way, frame))
