"""JSON-RPC messages: what each frame is, and what is no message (RULES 1)."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpd.protocol import jsonrpc
from ahpd.protocol.errors import ProtocolError
from ahpd.protocol.jsonrpc import BadFrame, Failure, Notification, Request, Success
from ahpd.protocol.jsontext import dumps
from tests.protocol.strategies import OPEN

IDS = [0, 1, -1, 1.5, "", "a-1", 2**53]


@pytest.mark.parametrize("id", IDS)
def test_r_1_11_and_12_a_request_keeps_its_id(id: Any) -> None:
    frame = jsonrpc.parse(dumps(jsonrpc.request(id, "ping", {"channel": "c"})))
    assert frame == Request(id, "ping", {"channel": "c"})
    assert isinstance(frame, Request)
    assert type(frame.id) is type(id)


LONG = [2**53 + 1, -(2**53) - 1, 2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**30 + 7, 10**308 + 1]


@pytest.mark.parametrize("id", LONG)
def test_r_1_12_a_whole_number_comes_back_with_all_its_digits(id: int) -> None:
    request = b'{"jsonrpc":"2.0","method":"ping","id":%d,"params":{"channel":"c"}}' % id
    for text in (request, request.decode()):
        frame = jsonrpc.parse(text)
        assert isinstance(frame, Request)
        assert (frame.id, type(frame.id)) == (id, int)
        for answer in (
            jsonrpc.success(frame.id, None),
            jsonrpc.failure(frame.id, ProtocolError(-32603, "m")),
        ):
            assert b'"id":%d,' % id in dumps(answer)
    broken = b'{"jsonrpc":"2.0","method":7,"id":%d}' % id
    with pytest.raises(BadFrame) as caught:
        jsonrpc.parse(broken)
    assert caught.value.id == id


def test_an_id_that_fits_no_number_is_no_json() -> None:
    with pytest.raises(BadFrame, match="not JSON") as caught:
        jsonrpc.parse(b'{"jsonrpc":"2.0","method":"ping","id":1%s}' % (b"0" * 5000))
    assert (caught.value.code, caught.value.id) == (-32700, None)


def test_r_1_11_the_other_shapes() -> None:
    assert jsonrpc.classify(jsonrpc.notification("n", {"a": 1})) == Notification("n", {"a": 1})
    assert jsonrpc.classify(jsonrpc.success(7, None)) == Success(7, None)
    failed = jsonrpc.classify(jsonrpc.failure("x", ProtocolError(-32001, "gone", {"a": [1]})))
    assert isinstance(failed, Failure)
    assert (failed.id, failed.error.code, failed.error.message, failed.error.data) == (
        "x", -32001, "gone", {"a": [1]},
    )  # fmt: skip


def test_an_error_without_an_id_is_taken() -> None:
    failed = jsonrpc.classify(jsonrpc.failure(None, ProtocolError(-32700, "what")))
    assert isinstance(failed, Failure)
    assert failed.id is None


def test_error_data_is_left_out_when_there_is_none() -> None:
    assert "data" not in jsonrpc.failure(1, ProtocolError(-32603, "m"))["error"]


def test_absent_params_are_none_at_all() -> None:
    assert jsonrpc.classify({"jsonrpc": "2.0", "method": "m"}) == Notification("m", {})
    assert jsonrpc.classify({"jsonrpc": "2.0", "method": "m", "params": None}) == Notification(
        "m", {}
    )


def bad(value: Any) -> BadFrame:
    with pytest.raises(BadFrame) as caught:
        jsonrpc.classify(value)
    return caught.value


@pytest.mark.parametrize("value", [[], [{"jsonrpc": "2.0", "id": 1, "method": "ping"}]])
def test_r_1_3_a_batch_is_an_invalid_request(value: Any) -> None:
    error = bad(value)
    assert (error.code, error.id, error.answerable) == (-32600, None, True)
    assert "batch" in error.message


@pytest.mark.parametrize("value", [None, True, 1, "x", {}, {"jsonrpc": "2.0"}])
def test_r_1_31_what_is_no_message_is_an_invalid_request(value: Any) -> None:
    assert bad(value).code == -32600


def test_r_1_31_what_is_not_json_is_a_parse_error() -> None:
    with pytest.raises(BadFrame) as caught:
        jsonrpc.parse(b"{")
    assert (caught.value.code, caught.value.id) == (-32700, None)


@pytest.mark.parametrize("id", [True, False, None, [], {}, [1]])
def test_an_id_that_cannot_be_one_is_refused_without_it(id: Any) -> None:
    error = bad({"jsonrpc": "2.0", "id": id, "method": "ping"})
    assert (error.code, error.id, error.answerable) == (-32600, None, True)


@pytest.mark.parametrize("version", [{}, {"jsonrpc": "1.0"}, {"jsonrpc": 2.0}, {"jsonrpc": None}])
def test_a_request_of_another_version_is_answered_by_its_id(version: dict[str, Any]) -> None:
    error = bad({**version, "id": 4, "method": "ping"})
    assert (error.code, error.id, error.answerable) == (-32600, 4, True)


@pytest.mark.parametrize("params", [[], [1], 1, "x", True])
def test_params_that_are_no_object_are_invalid_params(params: Any) -> None:
    error = bad({"jsonrpc": "2.0", "id": 4, "method": "ping", "params": params})
    assert (error.code, error.id, error.answerable) == (-32602, 4, True)


@pytest.mark.parametrize("params", [1, "x", []])
def test_r_1_10_a_broken_notification_must_not_be_answered(params: Any) -> None:
    assert not bad({"jsonrpc": "2.0", "method": "m", "params": params}).answerable


@pytest.mark.parametrize(
    "value",
    [
        {"method": 42},
        {"jsonrpc": "2.0", "method": 1, "params": "bar"},
        {"jsonrpc": "2.0", "method": None},
        {"method": "m"},
        {"jsonrpc": "1.0", "method": "m", "params": {}},
        {"jsonrpc": "2.0"},
        {},
    ],
)
def test_b68_what_has_not_the_shape_of_a_notification_is_answered_without_an_id(
    value: dict[str, Any],
) -> None:
    error = bad(value)
    assert (error.code, error.id, error.answerable) == (-32600, None, True)


@pytest.mark.parametrize(
    "answer",
    [
        {"result": 1, "error": {"code": 1, "message": "m"}, "id": 1},
        {"result": 1},
        {"result": 1, "id": None},
        {"error": 1, "id": 1},
        {"error": {"code": 1.5, "message": "m"}, "id": 1},
        {"error": {"code": True, "message": "m"}, "id": 1},
        {"error": {"code": 1}, "id": 1},
    ],
)
def test_a_broken_answer_must_not_be_answered(answer: dict[str, Any]) -> None:
    error = bad({"jsonrpc": "2.0", **answer})
    assert (error.code, error.answerable) == (-32600, False)


KEYS = st.sampled_from(("jsonrpc", "id", "method", "params", "result", "error"))
VALUES = OPEN | st.just("2.0") | st.fixed_dictionaries({"code": OPEN, "message": OPEN})


@given(value=st.dictionaries(KEYS, VALUES) | OPEN)
def test_any_value_is_a_message_or_a_bad_frame(value: Any) -> None:
    with contextlib.suppress(BadFrame):
        assert isinstance(jsonrpc.classify(value), (Request, Notification, Success, Failure))


@given(text=st.binary(max_size=60))
def test_any_text_is_a_message_or_a_bad_frame(text: bytes) -> None:
    with pytest.raises(BadFrame):
        jsonrpc.parse(text)
