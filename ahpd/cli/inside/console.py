"""`Console`: the loop of somebody who is attached: a line, what is asked for it, the answer.

Whatever is typed wrong is told, and the loop goes on. It ends with `quit`, with the end of the
input, with Ctrl-C on an empty line, and when the daemon hangs up; then the daemon takes back all
that was done here, as it does when this process just vanishes.
"""

from __future__ import annotations

import ast
import codeop
from collections.abc import Callable, Sequence
from typing import Any

import click

from ahpd.cli import exits
from ahpd.cli.inside import answers
from ahpd.cli.inside.commands import Command, Wrong, find, helped
from ahpd.cli.inside.link import Gone, Link
from ahpd.cli.inside.typing import Typist, candidates_in
from ahpd.cli.looking import Look, NobodyThere, NotDone
from ahpd.inspection.names import ASKS, ATTACH

#: Characters of a name in a path that is not cut for the prompt.
NAME = 16


class Console:
    """See the module."""

    def __init__(self, look: Look, typist: Typist) -> None:
        self._typist = typist
        self._link = Link(look, self._noticed, typist.hang_up)
        self._path = ""
        self._actions: Sequence[str] = ()
        self._is_paused = False

    def run(self, name: str) -> int:
        """Attach to the actor that is meant, and stay until somebody leaves; the exit code.

        Raises `NotDone` and `NobodyThere` when that is not possible.
        """
        self._link.start()
        found = self._link.ask(ATTACH, {"path": name})
        self._path, self._actions = found["path"], found.pop("actions")
        self._is_paused = bool(found["heldBecause"])
        with self._typist.drawing():
            self._typist.show(answers.status(found))
            self._typist.show(["help shows what can be typed; quit leaves, and resumes"])
            return self._loop()

    def _loop(self) -> int:
        while True:
            try:
                text = self._typist.line(self._prompt, self._candidates)
                if text is None or not self._do(text.strip()):
                    return self._left()
            except KeyboardInterrupt:
                self._typist.show([f"left by Ctrl-C; {self._path} goes on"])
                return exits.INTERRUPTED
            except Gone:
                return self._left()

    def _left(self) -> int:
        if self._link.is_over:
            self._typist.show(["the daemon hung up"], wrong=True)
            return exits.NO_DAEMON
        return exits.OK

    def _prompt(self) -> str:
        return f"{short(self._path)}{' (paused)' if self._is_paused else ''}> "

    def _candidates(self, text: str) -> tuple[str, Sequence[str]]:
        return candidates_in(text, self._actions, self._keys)

    def _keys(self, path: str) -> Sequence[str]:
        try:
            found = self._link.take(self._link.call("keys", {"path": path}), 1.0)
        except (click.ClickException, KeyboardInterrupt):
            return []
        keys: Sequence[str] = found["keys"]
        return keys

    # ---- what is said ------------------------------------------------------------------------

    def _noticed(self, method: str, params: Any) -> None:
        """In the thread that reads."""
        if method == "held":
            self._is_paused = True
        elif method == "resumed":
            self._is_paused = False
        self._typist.show(answers.noticed(method, params))

    # ---- commands ----------------------------------------------------------------------------

    def _do(self, text: str) -> bool:
        """One line; False when it was the last."""
        name, _, rest = text.partition(" ")
        if not name:
            return True
        try:
            command = find(name)
            if command is None:
                raise Wrong(f"there is no command {name}; help shows all")
            if command.name == "quit":
                return False
            self._ask(command, rest.strip())
        except Wrong as error:
            self._typist.show([str(error)], wrong=True)
        except Gone:
            raise
        except (NotDone, NobodyThere) as error:
            self._typist.show([error.message], wrong=True)
        return True

    def _ask(self, command: Command, rest: str) -> None:
        match command.name:
            case "help":
                self._typist.show(helped(rest or None))
            case "pdb":
                command.asks(rest)
                self._debug(command)
            case "py" if not rest:
                self._python(command)
            case _:
                found = self._link.ask(command.method, dict(command.asks(rest)))
                if command.name == "pause":
                    self._is_paused = True
                self._typist.show(command.shows(found))

    # ---- Python and its debugger ---------------------------------------------------------------

    def _python(self, command: Command) -> None:
        """A prompt whose blocks run in the actor, until Ctrl-D or Ctrl-C."""
        self._typist.show(["Python, between two of its messages; Ctrl-D or exit() leaves"])
        lines: list[str] = []
        while True:
            prompt = "... " if lines else ">>> "
            try:
                text = self._typist.line(_fixed(prompt), None)
            except KeyboardInterrupt:
                text = None
            if text is None or (not lines and text.strip() in ("exit()", "quit()", "exit", "quit")):
                return
            lines.append(text)
            code = "\n".join(lines)
            try:
                whole = is_whole(code)
            except (SyntaxError, ValueError, OverflowError) as error:
                self._typist.show([f"{type(error).__name__}: {error}"], wrong=True)
                lines.clear()
                continue
            if not whole:
                continue
            lines.clear()
            if code.strip():
                self._run(command, code)

    def _run(self, command: Command, code: str) -> None:
        try:
            self._typist.show(command.shows(self._link.ask(command.method, {"code": code})))
        except NotDone as error:
            self._typist.show([error.message], wrong=True)

    def _debug(self, command: Command) -> None:
        """Lines for the debugger while it asks for some, until the handler is over."""
        call = self._link.call(command.method, {}, listens=True)
        self._typist.show(["waiting for its next message; Ctrl-C does not wait any longer"])
        inside = False
        try:
            while True:
                try:
                    came = self._link.take(call)
                except KeyboardInterrupt:
                    if inside:
                        self._link.ask_beside("interrupt", {})
                    else:
                        self._link.cancel(call)
                    continue
                if not isinstance(came, tuple):
                    self._typist.show(command.shows(came))
                    return
                method, params = came
                if method != ASKS:
                    self._noticed(method, params)
                    inside = inside or method == "debugged"
                    continue
                self._link.ask_beside("input", {"text": self._debugger_line(params["prompt"])})
        finally:
            self._link.listener = None

    def _debugger_line(self, prompt: str) -> str:
        """What is typed for it; the end of the input, and Ctrl-C on an empty line, leave it."""
        try:
            text = self._typist.line(_fixed(prompt), None)
        except KeyboardInterrupt:
            text = None
        return "quit" if text is None else text


def short(path: str) -> str:
    """A path with its long names cut: it stands before each line that is typed."""
    return "/".join(each if len(each) <= NAME else f"{each[:8]}…" for each in path.split("/"))


def _fixed(prompt: str) -> Callable[[], str]:
    return lambda: prompt


def is_whole(code: str) -> bool:
    """Whether these lines are all of a statement, as Python's own prompt has it.

    Raises SyntaxError, ValueError or OverflowError when they will never be one.
    """
    compiler = codeop.CommandCompiler()
    compiler.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    return compiler(code, "<py>", "single") is not None
