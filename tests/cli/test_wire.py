"""``ahpd wire``: text, JSON and exit codes. What is a fault is tested with the checker."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ahpd.cli import exits
from ahpd.cli.group import run
from ahpd.cli.shown import width
from tests.cli.daemons import ended, spawn

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


def test_each_connection_has_its_own_open_requests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [line.replace("{", f'{{"conn":{conn},', 1) for line in (PING, PONG) for conn in (1, 2)]
    assert run(["wire", "check", "--whole", capture(tmp_path, *lines)]) == exits.OK
    assert (
        run(["wire", "check", "--whole", capture(tmp_path, *lines[:3], lines[2])]) == exits.FAULTS
    )
    assert "1 is no open request of the client" in capsys.readouterr().out


#: A question and its answer, as other hosts write them down.
AHPLOG = tuple(
    json.dumps({"jsonrpc": "2.0", "id": 1, **frame, "_ahpLog": {**about, "connectionId": "a"}})
    for frame, about in (
        (
            {"method": "ping", "params": {"channel": "ahp-root://"}},
            {"dir": "c2s", "ts": "2031-01-01T00:00:00.000Z"},
        ),
        ({"result": {}}, {"dir": "s2c", "ts": "2031-01-01T00:00:00.250Z"}),
    )
)


def test_captures_of_other_hosts_are_checked_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["wire", "check", capture(tmp_path, *AHPLOG)]) == exits.FAULTS
    first = capsys.readouterr().out.splitlines()[0]
    assert first.endswith(":2: ping: result: expected null, got an object")


def a_story(tmp_path: Path) -> str:
    """A capture with one of everything."""
    moments = iter(range(100))

    def frame(way: str, conn: int = 1, **frame: Any) -> str:
        at = f"2031-01-01T00:00:{next(moments):02}.500Z"
        return json.dumps({"dir": way, "conn": conn, "at": at, "frame": frame})

    def delta(text: str, seq: int) -> str:
        action = {"type": "chat/delta", "turnId": "t1", "partId": "p", "content": text}
        params = {"channel": "ahp-chat:/\x1b[2J", "action": action, "serverSeq": seq}
        return frame("h2c", method="action", params=params)

    refused = {
        "channel": "demo:/" + "x" * 60,
        "serverSeq": 9,
        "action": {"type": "session/titleChanged", "title": "New"},
        "rejectionReason": "no",
    }
    return capture(
        tmp_path,
        frame("c2h", id=1, method="subscribe", params={"channel": "demo:/1"}),
        frame("h2c", id=1, result={"snapshot": {"fromSeq": 4}}),
        *(delta(f"word{number}", number) for number in range(5, 9)),
        frame("h2c", method="action", params=refused),
        frame("c2h", 2, id="a", method="disposeSession", params={"channel": "demo:/2"}),
        frame("h2c", 2, id="a", error={"code": -32001, "message": "there is none"}),
        frame("c2h", 2, id="b", method="ping", params={"channel": "ahp-root://"}),
        '{"dir":"c2h","lost":7,"frame":"{oops"}',
        "no json",
    )


def test_a_timeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["wire", "show", a_story(tmp_path)]) == exits.OK
    shown = [re.sub(r"\d+ B\)", "n B)", line) for line in capsys.readouterr().out.splitlines()]
    assert shown == [
        "     0.000   1 → subscribe  demo:/1  #1  (n B)",
        "     1.000   1 ← = subscribe  demo:/1  #1 snapshot at 4  (1.0 s, n B)",
        "     2.000   1 ← chat/delta x4  ahp-chat:/\\x1b[2J  (over 3.0 s, n B)",
        "     6.000   1 ← session/titleChanged  demo:…xxxxxxxxxxxxxxxxxxxxxx  refused: no  (n B)",
        "     7.000   2 → disposeSession  demo:/2  #a  (n B)",
        "     8.000   2 ← ✗ disposeSession  demo:/2  #a -32001: there is none  (1.0 s, n B)",
        "     9.000   2 → ping  ahp-root://  #b  (n B)",
        "7 frames left out here",
        "             - → no message  {oops  (n B)",
        "line 12: not JSON: invalid literal, expected 'null': line 1 column 1 (char 0)",
        "11 frames of 3 connections, 1 request without an answer",
    ]


def test_a_part_of_a_timeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = a_story(tmp_path)
    assert run(["wire", "show", "--conn", "1", "--only", "DELTA", "--all", story]) == exits.OK
    shown = [line for line in capsys.readouterr().out.splitlines() if "chat/delta" in line]
    assert [line.rpartition("seq ")[2].split("  ")[0] for line in shown] == [
        "5 word5", "6 word6", "7 word7", "8 word8",
    ]  # fmt: skip
    assert run(["wire", "show", "--only", "ping", "--full", story]) == exits.OK
    said = capsys.readouterr().out
    assert '  "method": "ping",\n' in said
    assert "11 frames of 3 connections, 1 shown" in said


def test_a_timeline_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["wire", "show", "--json", capture(tmp_path, *AHPLOG)]) == exits.OK
    asked, answer = map(json.loads, capsys.readouterr().out.splitlines())
    assert (asked["what"], asked["dir"], asked["conn"]) == ("ping", "c2h", "a")
    assert answer["answeredAfter"] == pytest.approx(0.25)


@pytest.mark.real_time
def test_on_a_terminal_lines_fit(tmp_path: Path) -> None:
    story = a_story(tmp_path)
    child = spawn([sys.executable, "-m", "ahpd", "wire", "show", story], columns=60)
    assert ended(child) == exits.OK
    shown = [line for line in child.before.splitlines() if line]
    assert len(shown) == 11
    plain = [re.sub("\x1b\\[[0-9;]*m", "", line) for line in shown]
    assert all(width(line) <= 60 for line in plain), plain
    assert not any("\x1b" in line for line in plain)


def test_the_standard_input_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["wire", "show", "-", "-"]) == exits.USAGE
    assert run(["wire", "show", "/nowhere"]) == exits.USAGE
    assert "No such file" in capsys.readouterr().err
