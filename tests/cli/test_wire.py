"""``ahpd wire check``: text, JSON and exit codes. What is a fault is tested with the checker."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ahpd.cli import exits
from ahpd.cli.group import run

PING = (
    '{"dir":"c2h","frame":{"jsonrpc":"2.0","id":1,"method":"ping",'
    '"params":{"channel":"ahp-root://"}},"at":17}'
)
PONG = '{"dir":"h2c","frame":{"jsonrpc":"2.0","id":1,"result":null}}'
WRONG = PONG.replace("null", "{}")
VENDOR = '{"dir":"c2h","frame":{"jsonrpc":"2.0","method":"x-own/note","params":7}}'


def capture(tmp_path: Path, *lines: str, name: str = "capture.jsonl") -> str:
    file = tmp_path / name
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(file)


def test_a_legal_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = capture(tmp_path, PING, "", PONG, VENDOR)
    assert run(["wire", "check", file]) == exits.OK
    assert capsys.readouterr().out == "3 frames, 0 faults, 1 of methods outside the protocol\n"


def test_a_fault_names_file_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = capture(tmp_path, PING, "", WRONG)
    assert run(["wire", "check", file]) == exits.FAULTS
    assert capsys.readouterr().out.splitlines() == [
        f"{file}:3: ping: result: expected null, got an object",
        "2 frames, 1 faults, 0 of methods outside the protocol",
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON"),
        ("[]", "expected an object with dir and frame, got an array"),
        ('{"frame":{}}', 'dir: expected "c2h" or "h2c", got nothing'),
        ('{"dir":null,"frame":{}}', 'dir: expected "c2h" or "h2c", got null'),
        ('{"dir":["c2h"],"frame":{}}', 'dir: expected "c2h" or "h2c", got an array'),
        ('{"dir":"up","frame":{}}', "dir: expected"),
        ('{"dir":"c2h"}', "frame: expected any value, got nothing"),
        ("[" * 100_000, "not JSON"),
        ('{"dir":"c2h","frame":NaN}', "not JSON"),
    ],
)
def test_a_line_that_holds_no_frame_is_a_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, message: str
) -> None:
    file = capture(tmp_path, line, PING)
    assert run(["wire", "check", file]) == exits.FAULTS
    fault, count = capsys.readouterr().out.splitlines()
    assert fault.startswith(f"{file}:1: {message}")
    assert count.startswith("2 frames, 1 faults")


def test_separators_inside_strings_do_not_break_lines(tmp_path: Path) -> None:
    odd = VENDOR.replace("7", '"a\u2028b\x85c"')
    assert run(["wire", "check", capture(tmp_path, odd)]) == exits.OK


def test_each_file_has_its_own_open_requests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = capture(tmp_path, PING, name="one")
    two = capture(tmp_path, WRONG, name="two")
    assert run(["wire", "check", one, two]) == exits.OK
    assert capsys.readouterr().out.startswith("2 frames")
    assert run(["wire", "check", "--whole", one, two]) == exits.FAULTS
    assert "1 is no open request of the client" in capsys.readouterr().out


def test_the_same_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = capture(tmp_path, PING, WRONG, VENDOR)
    assert run(["wire", "check", file, "--json"]) == exits.FAULTS
    assert json.loads(capsys.readouterr().out) == {
        "ok": False,
        "frames": 3,
        "passedOver": 1,
        "faults": [
            {
                "file": file,
                "line": 2,
                "method": "ping",
                "path": "result",
                "message": "expected null, got an object",
            }
        ],
    }


def test_an_unknown_action_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    action = {"channel": "ahp-root://", "clientSeq": 1, "action": {"type": "chat/tpyo"}}
    frame = {"jsonrpc": "2.0", "method": "dispatchAction", "params": action}
    line = json.dumps({"dir": "c2h", "frame": frame})
    file = capture(tmp_path, line)
    assert run(["wire", "check", file]) == exits.FAULTS
    (fault, _count) = capsys.readouterr().out.splitlines()
    assert fault == (
        f"{file}:1: dispatchAction: params/action/type: "
        "expected a type of StateAction, got 'chat/tpyo'"
    )


@pytest.mark.parametrize("content", [b"\x1f\x8b\x08\x00\x00\n\xff\n" * 5, PING.encode("utf-16")])
def test_a_file_that_is_no_text_is_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    file = tmp_path / "capture.gz"
    file.write_bytes(content)
    assert run(["wire", "check", str(file)]) == exits.USAGE
    taken = capsys.readouterr()
    assert (taken.out, taken.err) == ("", f"Error: {file}: is no text, and so no capture\n")


def test_a_capture_longer_than_what_is_looked_at_is_read_whole(tmp_path: Path) -> None:
    long = VENDOR.replace("7", json.dumps("x" * 5000))
    file = capture(tmp_path, *[long] * 10)
    assert run(["wire", "check", file]) == exits.OK
    assert run(["wire", "check", capture(tmp_path, *[long] * 10, WRONG, name="two")]) == exits.OK
    assert (
        run(["wire", "check", capture(tmp_path, *[long] * 10, "{", name="three")]) == exits.FAULTS
    )


def test_the_standard_input_can_be_read_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin = io.BytesIO(PING.encode())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stdin))
    assert run(["wire", "check", "-", "-"]) == exits.USAGE
    assert capsys.readouterr().err == "Error: -: the standard input can be read only once\n"
    assert run(["wire", "check", "-"]) == exits.OK
    assert not stdin.closed
    monkeypatch.setattr(sys, "stdin", None)
    assert run(["wire", "check", "-"]) == exits.USAGE


def test_the_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(PING.encode())))
    assert run(["wire", "check", "-"]) == exits.OK
    assert capsys.readouterr().out.startswith("1 frames")


def test_a_file_that_cannot_be_read_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["wire", "check", str(tmp_path / "nowhere")]) == exits.USAGE
    assert "No such file" in capsys.readouterr().err
    assert run(["wire", "check", str(tmp_path)]) == exits.USAGE
