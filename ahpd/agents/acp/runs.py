"""Reads an agent's lines, with a short way for what they mostly are: pieces of one text.

Once a chunk of text has been read, the next lines with the same bytes around their text need not be
read each: their texts, as they stand there, are put together and read once. That this comes to the
same is checked when a chunk is learned, by reading it with another text in its place. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ahpd.agents.acp.tolerant import dict_of, read_json
from ahpd.protocol.jsontext import ParseError, dumps, loads
from ahpd.protocol.model import JSON

#: The kinds of updates that are learned.
_KINDS = ("agent_message_chunk", "agent_thought_chunk")
#: Begins and ends no line.
_NEVER = b"\n"
_PROBE = "a probe"
#: After a chunk that was learned in vain so many are not learned; twice as many the next time.
_MOST_IN_VAIN = 64


class LineReader:
    """Makes messages of lines; chunks that follow one another become one."""

    def __init__(self) -> None:
        self._head = self._tail = _NEVER
        self._message: JSON = None
        #: Whether anything came of what was learned, and how many chunks are not learned now.
        self._was_of_use = True
        self._in_vain = 0
        self._let_pass = 0

    def messages(self, lines: Iterable[bytes]) -> Iterator[tuple[JSON, bytes]]:
        """What the lines say, in their order, each with its line; None for what is no JSON.

        With several chunks that became one comes the line of the last.
        """
        pieces: list[bytes] = []
        for line in lines:
            piece = self._piece(line)
            if piece is not None:
                pieces.append(piece)
                continue
            if pieces:
                yield from self._run(pieces)
                pieces = []
            yield self._read(line), line
        if pieces:
            yield from self._run(pieces)

    def _read(self, line: bytes) -> JSON:
        try:
            message = read_json(line)
        except ParseError:
            return None
        update = dict_of(message, "params", "update")
        # One with an id is a request, and each is to be answered.
        if update.get("sessionUpdate") in _KINDS and "id" not in dict_of(message):
            self._learn(line, message, dict_of(update, "content"))
        return message

    def _learn(self, line: bytes, message: JSON, content: dict[str, Any]) -> None:
        if self._let_pass:
            self._let_pass -= 1
            return
        text = content.get("text")
        if content.get("type") != "text" or not isinstance(text, str):
            return
        head, found, tail = line.partition(dumps(text))
        head, tail = head + b'"', b'"' + tail
        if not found or not _is_text_between(head, tail, message):
            return
        self._in_vain = 0 if self._was_of_use else min(2 * self._in_vain + 1, _MOST_IN_VAIN)
        self._let_pass, self._was_of_use = self._in_vain, False
        self._head, self._tail, self._message = head, tail, message

    def _piece(self, line: bytes) -> bytes | None:
        """The text in a line like the learned one, as it stands there; None: it is another."""
        head, tail = self._head, self._tail
        if not (line.startswith(head) and line.endswith(tail)):
            return None
        size = len(line) - len(tail)
        piece = line[len(head) : size]
        # No quote in it ends the text, and nothing takes from the one after it that it does.
        if size < len(head) or b'"' in piece or piece.endswith(b"\\"):
            return None
        return piece

    def _run(self, pieces: list[bytes]) -> Iterator[tuple[JSON, bytes]]:
        self._was_of_use = True
        head, tail = self._head, self._tail
        try:
            text = loads(b'"' + b"".join(pieces) + b'"')
        except ParseError:
            for piece in pieces:
                line = head + piece + tail
                yield self._read(line), line
        else:
            yield _with_text(self._message, text), head + pieces[-1] + tail


def _is_text_between(head: bytes, tail: bytes, message: JSON) -> bool:
    """Whether what stands between the two is the text of the chunk, and nothing else."""
    try:
        probed = loads(head + _PROBE.encode() + tail)
    except ParseError:
        return False
    return bool(probed == _with_text(message, _PROBE))


def _with_text(message: Any, text: JSON) -> JSON:
    """The same chunk with another text."""
    params = message["params"]
    content = {**params["update"]["content"], "text": text}
    update = {**params["update"], "content": content}
    return {**message, "params": {**params, "update": update}}
