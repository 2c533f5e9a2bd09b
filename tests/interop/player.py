"""Plays a recording of an agent: says what that said, when it is asked what that was asked.

``python player.py RECORDING``: lines of seconds, ``>`` (to the agent) or ``<``, and a frame. A
request is answered with what was recorded from the next request of its method on, up to the one
after it; where the recording has an answer to a request of the agent's, it waits for one. What was
not recorded is answered with -32601.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any


def frames(recording: Path) -> list[tuple[str, Any]]:
    """The frames of a recording, each with its way; what is no frame is left out."""
    found = []
    for line in recording.read_text("utf-8").splitlines():
        _, way, text = [*line.split(None, 2), "", "", ""][:3]
        try:
            found.append((way, json.loads(text)))
        except ValueError:
            if way == "<":
                found.append((way, _repaired(text)))
    return found


def _repaired(text: str) -> Any:
    """A frame that was recorded without its end: what tells a session's id is made whole."""
    number = re.match(r'\{"jsonrpc":"2.0","id":(\d+),"result":', text)
    session = re.search(r'"sessionId":"([^"]+)"', text)
    if number is None or session is None:
        return text
    return {"jsonrpc": "2.0", "id": int(number[1]), "result": {"sessionId": session[1]}}


class Player:
    """The recording, and the place in it."""

    def __init__(self, recorded: list[tuple[str, Any]]) -> None:
        self._recorded = recorded
        self._place = 0

    def run(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "method" in message and "id" in message:
                self._play(message)

    def _play(self, request: Any) -> None:
        for place in range(self._place, len(self._recorded)):
            way, frame = self._recorded[place]
            if way == ">" and _is_request(frame) and frame["method"] == request["method"]:
                break
        else:
            error = {"code": -32601, "message": "not recorded"}
            _write({"jsonrpc": "2.0", "id": request["id"], "error": error})
            return
        recorded_id = frame["id"]
        answered = False
        for number in range(place + 1, len(self._recorded)):
            self._place = number
            way, each = self._recorded[number]
            if way == ">" and _is_request(each) and answered:
                return
            if way != "<":
                continue
            if isinstance(each, dict) and "method" not in each and each.get("id") == recorded_id:
                each, answered = {**each, "id": request["id"]}, True
            _write(each)
            if _is_request(each) and self._was_answered(each["id"]):
                self._wait_for(each["id"])
        self._place = len(self._recorded)
        if not answered:
            sys.exit(0)  # as the one that was recorded did

    def _was_answered(self, request_id: Any) -> bool:
        return any(
            way == ">" and "method" not in each and each.get("id") == request_id
            for way, each in self._recorded[self._place :]
        )

    def _wait_for(self, request_id: Any) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message and message.get("id") == request_id:
                return


def _is_request(frame: Any) -> bool:
    return isinstance(frame, dict) and "method" in frame and "id" in frame


def _write(frame: Any) -> None:
    text = frame if isinstance(frame, str) else json.dumps(frame)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    Player(frames(Path(sys.argv[1]))).run()
