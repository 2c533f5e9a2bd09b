"""The messages between actors: each is sent by somebody and taken by somebody."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

from actors import messages

SOURCES = Path(messages.__file__).parent.parent


def declared() -> set[str]:
    """The classes of `actors.messages`, but for protocols, which others implement."""
    found = inspect.getmembers(messages, inspect.isclass)
    mine = {name: cls for name, cls in found if cls.__module__ == messages.__name__}
    return {name for name, cls in mine.items() if not getattr(cls, "_is_protocol", False)}


def used() -> Iterator[tuple[str, str]]:
    """Every ("made" or "matched", name) in the sources; a type that is tested counts as matched."""
    for folder in ("actors", "ahpd"):
        for path in (SOURCES / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                match node:
                    case ast.Call(func=ast.Name(id="isinstance"), args=[_, tested]):
                        names = (n.id for n in ast.walk(tested) if isinstance(n, ast.Name))
                        yield from (("matched", name) for name in names)
                    case ast.Call(func=ast.Name(id=name)):
                        yield "made", name
                    case ast.MatchClass(cls=ast.Name(id=name)):
                        yield "matched", name
                    case _:
                        pass


def test_every_message_is_sent_and_taken_by_somebody() -> None:
    found = set(used())
    sent = {name for what, name in found if what == "made"}
    taken = {name for what, name in found if what == "matched"}
    assert not declared() - sent
    # `Configured` is only a part of another one.
    assert not declared() - taken - {"Configured"}
