"""The tables of methods, actions and errors, as the rules count them."""

from __future__ import annotations

import pytest

from ahpd.protocol import (
    ACTIONS,
    CLIENT_METHODS,
    HOST_NOTIFICATIONS,
    HOST_REQUESTS,
    METHODS,
    ErrorCode,
    ProtocolError,
    StateAction,
    Unknown,
    action_type,
    decode,
)
from ahpd.protocol.errors import ERROR_DATA, ERROR_DATA_REQUIRED
from ahpd.protocol.shapes import Tagged, fields_of, shape_of


def test_r_1_23_to_26_how_many_methods_each_side_sends() -> None:
    requests = [method for method in CLIENT_METHODS.values() if method.is_request]
    assert len(CLIENT_METHODS) == 33
    assert len(requests) == 31
    assert {name for name, method in CLIENT_METHODS.items() if not method.is_request} == {
        "unsubscribe", "dispatchAction",
    }  # fmt: skip
    assert len(HOST_REQUESTS) == 10
    assert len(HOST_NOTIFICATIONS) == 9
    assert HOST_REQUESTS.keys() <= CLIENT_METHODS.keys()
    assert CLIENT_METHODS.keys() | HOST_NOTIFICATIONS.keys() == METHODS.keys()


def test_r_1_14_all_params_name_a_channel() -> None:
    for method in METHODS.values():
        (channel,) = [field for field in fields_of(method.params) if field.key == "channel"]
        assert not channel.optional


def test_r_1_27_what_succeeds_with_null() -> None:
    requests = {name: method for name, method in METHODS.items() if method.is_request}
    assert {name for name, method in requests.items() if method.result is None} == {
        "ping", "createSession", "disposeSession", "createChat", "disposeChat", "createTerminal",
        "disposeTerminal",
    }  # fmt: skip


def test_r_1_15_and_16_fixed_channels() -> None:
    fixed = {name: method.fixed_channel for name, method in METHODS.items() if method.is_request}
    assert [name for name, uri in fixed.items() if uri == "ahp-automations://"] == [
        "runAutomation", "fetchAutomationRuns",
    ]  # fmt: skip
    assert sum(uri == "ahp-root://" for uri in fixed.values()) == 18
    assert METHODS["subscribe"].fixed_channel is None


def test_every_action_is_in_the_union_under_its_type() -> None:
    union = shape_of(StateAction)
    assert isinstance(union, Tagged)
    assert union.tag == "type"
    assert union.variants.keys() == ACTIONS.keys()
    assert len(ACTIONS) == 106
    for name, info in ACTIONS.items():
        assert name == info.type
        assert name.split("/")[0] == info.channel
        for cls in info.classes:
            assert cls.wire_defaults["type"] == name


def test_only_one_action_type_has_two_classes() -> None:
    assert [name for name, info in ACTIONS.items() if len(info.classes) > 1] == [
        "chat/toolCallConfirmed"
    ]


def test_the_type_of_an_action_known_or_not() -> None:
    assert action_type(decode(StateAction, {"type": "terminal/cleared"})) == "terminal/cleared"
    new = decode(StateAction, {"type": "terminal/rung"})
    assert isinstance(new, Unknown)
    assert action_type(new) == "terminal/rung"


def test_r_23_the_reserved_code_is_not_there() -> None:
    codes = {int(code) for code in ErrorCode}
    assert -32006 not in codes
    assert set(range(-32011, -32000)) - codes == {-32006}
    assert {-32700, -32600, -32601, -32602, -32603} <= codes


def test_r_23_1_which_errors_carry_data() -> None:
    assert ERROR_DATA.keys() >= ERROR_DATA_REQUIRED
    assert ERROR_DATA.keys() - ERROR_DATA_REQUIRED == {ErrorCode.PERMISSION_DENIED}


@pytest.mark.parametrize(("code", "name"), [(-32001, "SESSION_NOT_FOUND"), (-1, "-1")])
def test_an_error_shows_its_name(code: int, name: str) -> None:
    assert repr(ProtocolError(code, "m")) == f"ProtocolError({name}, 'm')"
    assert str(ProtocolError(code, "m")) == "m"
