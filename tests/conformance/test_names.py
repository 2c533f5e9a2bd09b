"""The types that round-trip cases can name."""

from __future__ import annotations

from typing import Any

import pytest

from ahpd.conformance.names import round_trip_of, type_named
from ahpd.protocol.methods import METHODS
from tests.protocol.strategies import wire_aliases, wire_classes

NAMES = [cls.__name__ for cls in wire_classes()] + list(wire_aliases())


def test_every_class_and_alias_is_known_by_its_name() -> None:
    assert [name for name in NAMES if type_named(name) is None] == []
    assert {cls.__name__: cls for cls in wire_classes()} == {
        cls.__name__: type_named(cls.__name__) for cls in wire_classes()
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("URI", "ahp-root://"),
        ("AhpErrorCode", -32001),
        ("JsonRpcErrorCode", -32700),
        ("ChatAction", {"type": "chat/delta", "turnId": "t", "partId": "p", "content": ""}),
        ("RootAction", {"type": "root/activeSessionsChanged", "activeSessions": 2}),
        ("AutomationRunAction", {"type": "automationRun/cancelRequested"}),
        ("ChatAction", {"type": "chat/new"}),
        ("ProtocolNotification", {"channel": "ahp-root://", "session": "ahp-session:/s"}),
        ("JsonRpcMessage", {"jsonrpc": "2.0", "method": "m"}),
        ("JsonRpcMessage", {"jsonrpc": "2.0", "method": "m", "params": {}}),
        ("JsonRpcMessage", {"jsonrpc": "2.0", "id": 1, "result": {"a": None}}),
        ("JsonRpcRequest", {"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"a": 1}}),
        ("JsonRpcErrorResponse", {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": ""}}),
    ],
)
def test_names_that_stand_for_something_put_together(name: str, value: Any) -> None:
    again = round_trip_of(name)
    assert again is not None
    assert again(value) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("JsonRpcMessage", []),
        ("JsonRpcMessage", {"jsonrpc": "2.0"}),
        ("JsonRpcRequest", {"jsonrpc": "2.0", "method": "m", "params": {}}),
        ("ChatAction", {"type": "chat/delta"}),
        ("SessionStatus", "1"),
    ],
)
def test_what_does_not_fit_is_a_value_error(name: str, value: Any) -> None:
    again = round_trip_of(name)
    assert again is not None
    with pytest.raises(ValueError, match=name):
        again(value)


@pytest.mark.parametrize("name", ["NoSuchType", "", "Wire.wire", "loads", "ABC", "json"])
def test_there_are_names_of_no_type(name: str) -> None:
    assert round_trip_of(name) is None


def test_the_params_of_every_method_have_a_name() -> None:
    for method in METHODS.values():
        assert type_named(method.params.__name__) is method.params
