from __future__ import annotations

import enum
from collections import deque
from pathlib import Path
from typing import Any

import attrs
import pytest
from msgspec import Struct

from actors.credentials import Secret
from ahpd.daemon.launch import TokenChoice
from ahpd.daemon.outlines import Outliner
from ahpd.protocol.chat import Turns
from ahpd.transports.redaction import Redactor


class Colour(enum.Enum):
    RED = 1


class Pair(Struct):
    left: Any
    right: Any = None


@attrs.frozen
class Account:
    name: str
    password: str = "hunter2"
    hidden: str = attrs.field(default="x", repr=False)


class Hostile:
    def __repr__(self) -> str:
        raise SystemExit

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class Endless(dict[str, int]):
    def __iter__(self) -> Any:
        while True:
            yield "x"


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "None"),
        (1.5, "1.5"),
        (2**255, str(2**255)),
        (-(10**1000), "<int of 3322 bits>"),
        ("a\x1b", "'a\\x1b'"),
        ("x" * 200, repr("x" * 160) + "… (200)"),
        (b"\xff", "b'\\\\xff'"),
        ("is s3cr3t-value" * 1000, None),
        (Secret("hunter2"), "<Secret>"),
        (Path("/a"), "PosixPath('/a')"),
        (Colour.RED, "Colour.RED"),
        (ValueError("a", [1]), "ValueError('a', <list of 1>)"),
        (Pair(Pair(Pair(Pair(1)))), "Pair(left=Pair(left=Pair(left=Pair(…), right=None), right=None), right=None)"),  # noqa: E501
        (Account("ann"), "Account(name='ann', password=***)"),
        (TokenChoice("hunter2"), "TokenChoice(file=None, none=False)"),
        ({"api_key": "hunter2", "n": {1}}, "{'api_key': ***, 'n': set[1]}"),
        (deque(range(10)), "deque[0, 1, 2, 3, 4, 5, 6, 7, … 2 more]"),
        (CIRCLE, "list[list[list[<list of 1>]]]"),
        (Turns(), "<Turns of 0>"),
        (len, "<builtin_function_or_method len>"),
        (Hostile(), f"<{__name__}.Hostile>"),
        (Endless(x=1), "<Endless of 1>"),
    ],
)  # fmt: skip
def test_an_outline(value: Any, shown: str | None) -> None:
    text = Outliner(Redactor(["s3cr3t-value"]))(value)
    assert shown in (text, None)
    assert "s3cr3t" not in text
    assert len(text) < 500


def test_a_name_may_say_that_it_is_a_secret() -> None:
    outline = Outliner(Redactor())
    assert outline.named("api_key", "hunter2") == "api_key = ***"
    assert outline.named("key", "hunter2") == "key = 'hunter2'"
    assert outline.named("tokens", 3) == "tokens = 3"
