"""The short way for chunks of text comes to the same as reading every line."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ahpd.agents.acp.runs import LineReader
from ahpd.agents.acp.tolerant import read_json
from ahpd.protocol.jsontext import ParseError


def chunk(text: str, *, kind: str = "agent_message_chunk", **more: Any) -> dict[str, Any]:
    update = {"sessionUpdate": kind, **more, "content": {"type": "text", "text": text}}
    params = {"sessionId": "s", "update": update}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def line(message: Any, *, ascii_only: bool = False) -> bytes:
    return json.dumps(message, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")


def one_by_one(lines: Iterable[bytes]) -> Iterator[Any]:
    for each in lines:
        try:
            yield read_json(each)
        except ParseError:
            yield None


def put_together(messages: Iterable[Any]) -> list[Any]:
    """Chunks that differ in their text alone, and follow one another, are one."""
    found: list[Any] = []
    for each in messages:
        bare = _without_text(each)
        if found and bare is not None and bare == _without_text(found[-1]):
            text = _text(found[-1]) + _text(each)
            bare["params"]["update"]["content"]["text"] = text
            found[-1] = bare
        else:
            found.append(each)
    return found


def _text(message: Any) -> str:
    return str(message["params"]["update"]["content"]["text"])


def _without_text(message: Any) -> Any:
    """A copy of a chunk without its text; None for what is no chunk."""
    bare = copy.deepcopy(message)
    try:
        text = bare["params"]["update"]["content"].pop("text")
    except (TypeError, KeyError):
        return None
    return bare if isinstance(text, str) else None


def came(lines: list[bytes], sizes: list[int]) -> list[Any]:
    """What a reader makes of the lines, which come in reads of these sizes."""
    reader, found, at = LineReader(), [], 0
    for size in [*sizes, len(lines)]:
        found += [message for message, _ in reader.messages(lines[at : at + size])]
        at += size
    return found


#: Texts that look like what is around them, that end in half an escape, that are spelt in two ways.
TEXTS = st.one_of(
    st.sampled_from(
        ["", "s", "m1", '"', "\\", '\\"', 'a", "b": "', "é", "\u2028", "a probe", "😀"]
    ),
    st.text(max_size=5),
)
MESSAGES = st.builds(
    chunk,
    TEXTS,
    kind=st.sampled_from(["agent_message_chunk"] * 3 + ["agent_thought_chunk", "other"]),
    messageId=st.sampled_from(["m1", "m1", "m1", "m2", "é"]),
)
LINES = st.one_of(
    st.builds(lambda message, plain: line(message, ascii_only=plain), MESSAGES, st.booleans()),
    st.sampled_from([b"{}", b"noise", b'{"id": 1, "result": null}', b"null", b"[]"]),
)


@given(st.lists(LINES, max_size=30), st.lists(st.integers(0, 9), max_size=5))
def test_it_comes_to_the_same(lines: list[bytes], sizes: list[int]) -> None:
    assert put_together(came(lines, sizes)) == put_together(one_by_one(lines))


def test_what_came_together_is_one_message() -> None:
    lines = [line(chunk(f"{number} ")) for number in range(100)]
    first, rest = came(lines, [])
    assert _text(first) == "0 "
    assert _text(rest) == "".join(f"{number} " for number in range(1, 100))


def test_requests_stay_apart() -> None:
    """Nobody sends text by requests, but whoever does waits for each answer."""
    lines = [line({**chunk("a"), "id": 1})] * 3
    assert came(lines, []) == list(one_by_one(lines))


def test_what_cannot_be_read_together_is_read_alone() -> None:
    plain = line(chunk("a"))
    spoilt = [plain.replace(b'"a"', text) for text in (b'"\xff"', b'"\\x"', b'"\\ud83d"')]
    found = came([plain, plain, *spoilt, plain], [])
    assert found[1:] == list(one_by_one([plain, *spoilt, plain]))


def test_halves_of_a_character_find_each_other() -> None:
    plain = line(chunk("a"))
    halves = [plain.replace(b'"a"', text) for text in (b'"\\ud83d"', b'"\\ude00"')]
    assert _text(came([plain, *halves], [])[-1]) == "😀"


def test_chunks_that_are_never_alike_are_seldom_learned() -> None:
    """Each has an id of its own, so that learning it is of no use."""
    reader = LineReader()
    lines = [line(chunk("a", messageId=str(number))) for number in range(1000)]
    learned = 0
    for each in lines:
        before = reader._head
        assert [message for message, _ in reader.messages([each])] == [read_json(each)]
        learned += reader._head != before
    assert learned < 50
