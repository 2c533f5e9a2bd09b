"""Python code of somebody who looks inside, run in an actor's own task between two messages.

So nothing else of that actor happens meanwhile, and what the code sees is not in the middle of
anything. It may await. What it raises is its own affair: the traceback is what it gave.
"""

from __future__ import annotations

import ast
import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any, TypeAlias

import trio

from actors import messages
from ahpd.agents import events
from ahpd.inspection.shown import in_words
from ahpd.inspection.subjects import Subject
from ahpd.protocol.actions import StateAction
from ahpd.protocol.codec import decode
from ahpd.protocol.errors import ErrorCode, ProtocolError
from supervisors import Actor, sys

#: Code, and whether its value is to be shown.
Part: TypeAlias = tuple[CodeType, bool]

#: What is never a person's own, even when code of theirs raises it. A Ctrl-C comes here as a
#: signal, so a ``KeyboardInterrupt`` is what somebody typed.
NOT_THEIRS = (trio.Cancelled, trio.TrioInternalError)

#: Characters of one value, and of one traceback, that are shown.
VALUE = 20_000


class Python:
    """One person's namespace. `say` is given what is printed."""

    def __init__(self, subject: Subject, say: Callable[[str], None]) -> None:
        self._subject = subject
        self._say = say
        self._names: dict[str, Any] = {
            "__name__": "ahpd.inside",
            "print": self._print,
            "sys": sys,
            "trio": trio,
            "messages": messages,
            "events": events,
            "decode": decode,
            "StateAction": StateAction,
        }

    async def run(self, code: str) -> bool:
        """Run it in the actor's task; False when the actor ended first, or is not there.

        Cancelled: the code is cancelled too, if it awaits. Raises `ActorGone`, and `ProtocolError`
        for what is no Python.
        """
        try:
            parts = _compiled(code)
        except (SyntaxError, ValueError) as error:
            raise ProtocolError(ErrorCode.INVALID_PARAMS, f"no Python: {error}") from None
        scope = trio.CancelScope()

        async def errand(actor: Actor[Any]) -> None:
            try:
                with scope:
                    await self._run(parts, actor)
            except NOT_THEIRS:
                raise
            except BaseExceptionGroup as group:  # somebody's own
                passing, own = group.split(NOT_THEIRS)
                if own is not None:
                    self._say(_traceback(own))
                if passing is not None:
                    raise passing from None
            except BaseException as error:  # noqa: BLE001 somebody's own
                self._say(_traceback(error))

        try:
            return await sys.between(self._subject.ref, errand)
        finally:
            scope.cancel(reason="whoever asked for it does not want it any more")

    async def _run(self, parts: Sequence[Part], actor: Actor[Any]) -> None:
        names = self._names
        channel = self._subject.channel
        names.update(
            actor=actor,
            channel=channel,
            state=channel.state if channel is not None else None,
            host=self._subject.host,
            system=self._subject.system,
            ref=self._subject.ref,
        )
        for part, shows in parts:
            value = eval(part, names)
            if part.co_flags & inspect.CO_COROUTINE:
                value = await value
            if shows and value is not None:
                names["_"] = value
                self._say(in_words(value, VALUE) + "\n")

    def _print(self, *values: object, sep: str = " ", end: str = "\n", **_: object) -> None:
        self._say((sep or " ").join(map(str, values)) + end)


def _compiled(code: str) -> Sequence[Part]:
    """The parts of a text: all but a last expression, and that, whose value is to be shown."""
    module = ast.parse(code, "<py>")
    last = module.body.pop() if module.body and isinstance(module.body[-1], ast.Expr) else None
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    parts: list[Part] = []
    if module.body:
        parts.append((compile(module, "<py>", "exec", flags), False))
    if isinstance(last, ast.Expr):
        parts.append((compile(ast.Expression(last.value), "<py>", "eval", flags), True))
    return parts


def _traceback(error: BaseException) -> str:
    """Without the frames of this module."""
    shown = error.__traceback__
    while shown is not None and shown.tb_frame.f_code.co_filename == __file__:
        shown = shown.tb_next
    try:
        text = "".join(traceback.format_exception(type(error), error, shown))
    except Exception:  # noqa: BLE001 the exception is somebody's own, and may have no words
        text = f"{type(error).__name__}, which has no words\n"
    return text[-VALUE:]


class NoValue(Exception):
    """An expression raised what is no `Exception`, such as ``exit()`` does."""


def compiled(expression: str, name: str) -> CodeType:
    """An expression. Raises SyntaxError or ValueError."""
    return compile(expression.strip(), name, "eval")


def evaluated(code: CodeType, names: Mapping[str, Any]) -> Any:
    """The value of an expression. Raises the `Exception` that it raises, else `NoValue`. Sync.

    It runs in tasks of the host's, which must not end because somebody typed ``exit()``.
    """
    try:
        return eval(code, dict(names))
    except trio.Cancelled:
        raise
    except (Exception, *NOT_THEIRS):
        raise
    except BaseException as error:  # somebody's own
        raise NoValue(f"it raised {type(error).__name__}") from error
