"""The fixture `wire` itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from ahpd.cli.group import run
from ahpd.protocol.jsontext import ParseError
from tests.wire import Wiretap

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"channel": "ahp-root://"}}
PONG = b'{"jsonrpc":"2.0","id":1,"result":null}'


def test_legal_frames_pass(wire: Wiretap) -> None:
    laptop = wire.connection("laptop")
    laptop.sent(PING)
    laptop.received(PONG)
    assert len(laptop.frames) == 2


def test_a_fault_fails_the_test_at_once_and_is_kept_for_its_end() -> None:
    tap = Wiretap()
    with pytest.raises(pytest.fail.Exception, match="h2c frame 1: ping: method: the host may not"):
        tap.connection("laptop").received(PING)
    assert len(tap.faults) == 1


def test_a_value_that_json_does_not_have_is_a_fault() -> None:
    with pytest.raises(ParseError):
        Wiretap().connection().sent({"jsonrpc": "2.0", "method": object()})


def test_a_rogue_client_is_not_judged_but_its_host_is() -> None:
    rogue = Wiretap().connection("rogue", legal="h2c")
    rogue.sent([1, 2, 3])
    rogue.sent({"jsonrpc": "2.0", "id": [], "method": "ping"})
    rogue.received({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no"}})
    with pytest.raises(pytest.fail.Exception):
        rogue.received({"jsonrpc": "2.0", "id": None, "error": {"code": "x", "message": "no"}})


def test_two_connections_have_ids_of_their_own(wire: Wiretap) -> None:
    for name in ("laptop", "phone"):
        connection = wire.connection(name)
        connection.sent(PING)
        connection.received(PONG)


def test_captures_are_written_for_the_command_line_to_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tap = Wiretap()
    tap.connection("laptop").sent(PING)
    tap.connections[0].received(PONG)
    (file,) = tap.write(tmp_path)
    assert run(["wire", "check", "--whole", str(file)]) == 0
    assert capsys.readouterr().out == "2 frames, 0 faults, 0 of methods outside the protocol\n"
