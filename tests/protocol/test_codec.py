"""Decode and encode, over every wire type: identity, what survives, what is refused and how."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpd.protocol import DecodeError, StateAction, Wire, decode, encode
from ahpd.protocol.chat import ChatState, Turn
from ahpd.protocol.chat_actions import ChatDeltaAction, ChatReasoningAction
from ahpd.protocol.codec import converter
from ahpd.protocol.common import ConfigPropertySchema, StringOrMarkdown
from ahpd.protocol.connection import ActionEnvelope, Snapshot
from ahpd.protocol.faults import faults
from ahpd.protocol.jsontext import ParseError, loads
from ahpd.protocol.model import Unknown, WireType
from ahpd.protocol.shapes import shape_of
from tests.protocol.strategies import (
    OPEN,
    mutated,
    newer,
    places,
    values,
    wire_aliases,
    wire_classes,
)

CLASSES = wire_classes()
ALIASES = wire_aliases()
HINTS = [pytest.param(cls, id=cls.__name__) for cls in CLASSES] + [
    pytest.param(hint, id=name) for name, hint in ALIASES.items()
]


def same(left: Any, right: Any) -> bool:
    """Equal as JSON: `True` is not 1, but 1.0 is."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def test_the_types_are_all_there() -> None:
    assert len(CLASSES) > 300
    assert {"StateAction", "ChannelState", "SessionStatus", "StringOrMarkdown"} <= ALIASES.keys()


@pytest.mark.parametrize("hint", HINTS)
@given(data=st.data())
def test_decode_then_encode_is_the_identity(hint: Any, data: st.DataObject) -> None:
    value = data.draw(values(hint))
    before = json.dumps(value)
    assert same(encode(hint, decode(hint, value)), value)
    assert json.dumps(value) == before, "decoding changed its input"
    assert not list(faults(shape_of(hint), value, strict=True))


@pytest.mark.parametrize("hint", HINTS)
@given(data=st.data())
def test_what_a_newer_peer_adds_survives_and_what_is_spoiled_is_told(
    hint: Any, data: st.DataObject
) -> None:
    value = data.draw(newer(hint))
    assert same(encode(hint, decode(hint, value)), value)
    spoiled = data.draw(mutated(st.just(value)))
    found = list(faults(shape_of(hint), spoiled))
    if found:
        with pytest.raises(DecodeError) as caught:
            decode(hint, spoiled)
        assert caught.value.fault == found[0]
    else:
        assert same(encode(hint, decode(hint, spoiled)), spoiled)


@given(value=OPEN)
@pytest.mark.parametrize("hint", [StateAction, ActionEnvelope, Snapshot, ChatState])
def test_any_json_is_decoded_or_refused(hint: Any, value: Any) -> None:
    with contextlib.suppress(DecodeError):
        decode(hint, value)


@given(raw=st.binary(max_size=40))
def test_decoding_a_text_of_noise_is_refused_in_one_of_two_ways(raw: bytes) -> None:
    with pytest.raises((ParseError, DecodeError)):
        decode(ActionEnvelope, loads(raw))


class Text(str):
    __slots__ = ()


ODD = [
    pytest.param(float("nan"), id="nan"),
    pytest.param(1e999, id="infinity"),
    pytest.param(True, id="true"),
    pytest.param(10**5000, id="huge"),
    pytest.param(b"bytes", id="bytes"),
    pytest.param(object(), id="object"),
    pytest.param({1: 2}, id="number-as-key"),
    pytest.param(Text("no plain string"), id="subclass"),
    pytest.param((), id="tuple"),
    pytest.param("\ud800", id="lone-surrogate"),
    pytest.param({"a"}, id="set"),
]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("hint", [StateAction, ActionEnvelope, Snapshot, ConfigPropertySchema, int])
def test_what_json_does_not_have_is_refused(hint: Any, odd: Any) -> None:
    if hint is int and odd == 10**5000:
        assert decode(int, odd) == odd
        return
    with pytest.raises(DecodeError):
        decode(hint, odd)


@pytest.mark.parametrize("odd", ODD)
def test_odd_values_in_every_place_are_refused_or_kept(odd: Any) -> None:
    def fresh() -> dict[str, Any]:
        return {
            "channel": "ahp-chat:/c",
            "action": {"type": "chat/delta", "turnId": "t", "partId": "p", "content": "x"},
            "serverSeq": 3,
            "origin": {"clientId": "c", "clientSeq": 1},
            "new": [1],
        }

    for path in places(fresh()):
        value: Any = fresh()
        holder: Any = value
        for step in path[:-1]:
            holder = holder[step]
        holder[path[-1]] = odd
        try:
            decode(ActionEnvelope, value).wire()
        except DecodeError as error:
            assert error.fault.path[: len(path)] == path  # noqa: PT017 - many are legal somewhere


@pytest.mark.parametrize("wrong", [True, "1", None, [], float("nan"), 1.5, -1])
def test_an_integer_is_a_whole_number_within_its_bound(wrong: Any) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(ConfigPropertySchema, {"type": "array", "title": "t", "minItems": wrong or "x"})
    assert caught.value.fault.path == ("minItems",)
    assert caught.value.fault.expected == "integer of at least 0"


def test_a_value_nested_without_end_is_refused() -> None:
    value: dict[str, Any] = {"type": "array", "title": "t"}
    for _ in range(100_000):
        value = {"type": "array", "title": "t", "items": value}
    with pytest.raises(DecodeError, match="nested without end"):
        decode(ConfigPropertySchema, value)


@pytest.mark.parametrize("depth", [180, 240, 320, 400, 480])
def test_a_fault_deep_down_is_refused_whatever_the_stack_allows(depth: int) -> None:
    value: dict[str, Any] = {"type": "array"}
    for _ in range(depth):
        value = {"type": "array", "title": "t", "items": value}
    with pytest.raises(DecodeError):
        decode(ConfigPropertySchema, value)


def test_an_error_says_where_what_and_instead_of_what() -> None:
    state = {
        "resource": "ahp-chat:/c",
        "title": "t",
        "status": 0,
        "modifiedAt": "2026-01-01T00:00:00Z",
        "turns": [{"id": 7}],
    }
    with pytest.raises(DecodeError) as caught:
        decode(ChatState, state)
    assert caught.value.type_name == "ChatState"
    assert caught.value.fault.path == ("turns", 0, "id")
    assert caught.value.fault.where == "turns/0/id"
    assert caught.value.fault.expected == "string"
    assert caught.value.fault.found == "7"
    assert str(caught.value) == "ChatState: turns/0/id: expected string, got 7"


def test_an_error_about_a_union_names_it_by_its_alias() -> None:
    with pytest.raises(DecodeError) as caught:
        decode(StateAction, {"type": "root/activeSessionsChanged", "activeSessions": True})
    assert caught.value.type_name == "StateAction"
    assert str(caught.value) == "StateAction: activeSessions: expected number, got true"
    with pytest.raises(DecodeError, match=r"^StringOrMarkdown: \.: expected string or Markdown"):
        decode(StringOrMarkdown, 1)
    with pytest.raises(DecodeError, match=r"^object with type of"):  # of nobody's name
        decode(ChatDeltaAction | ChatReasoningAction, 1)


def test_a_long_value_is_cut_in_the_report() -> None:
    with pytest.raises(DecodeError) as caught:
        decode(ChatDeltaAction, {"type": "x" * 1000, "turnId": "t", "partId": "p", "content": "c"})
    assert len(str(caught.value)) < 200


def test_unknown_variants_keep_their_order_and_content() -> None:
    raw = {"zebra": 1, "type": "future/action", "apple": None}
    action = decode(StateAction, raw)
    assert isinstance(action, Unknown)
    assert action.tag == "future/action"
    assert list(action.wire()) == list(raw)


def test_integers_beyond_a_32_bit_int_are_kept() -> None:
    assert encode(int, decode(int, 2**53)) == 2**53


@attrs.frozen
class Holder:
    """A class of our own that holds wire values, as configuration does."""

    turn: ChatDeltaAction
    names: list[str]


def test_the_cattrs_converter_takes_wire_values_inside_our_classes() -> None:
    raw = {
        "turn": {"type": "chat/delta", "turnId": "t", "partId": "p", "content": "c", "new": 1},
        "names": ["a"],
    }
    held = converter().structure(raw, Holder)
    assert held.turn.content == "c"
    assert converter().unstructure(held) == raw


def test_every_class_is_a_wire_type_with_a_docstring() -> None:
    for cls in CLASSES:
        assert isinstance(cls, WireType)
        assert issubclass(cls, Wire)
        assert cls.__doc__, cls.__name__
    assert Turn in CLASSES
