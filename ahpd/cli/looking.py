"""`Look`: the command line's side of the socket on which a daemon lets itself be looked into.

Made of the standard library alone: ``ahpd ps`` has answered before trio would be imported.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import click

from ahpd.cli import exits
from ahpd.cli.shown import line

if TYPE_CHECKING:
    from ahpd.daemon.state import StateFolder

#: Seconds that the daemon may take for one answer, where nobody can stop waiting.
ANSWER_WITHIN = 30.0
#: Seconds that connecting may take.
CONNECT_WITHIN = 5.0

#: Codes of what was asked for in a way that cannot be understood, or is not there.
_NAMES_NOTHING = frozenset({-32602, -32008})


class NobodyThere(click.ClickException):
    """There is no daemon to look into, or it does not answer."""

    exit_code = exits.NO_DAEMON


class NotDone(click.ClickException):
    """The daemon does not do what it was asked to; the message is its own."""

    exit_code = exits.REFUSED

    def __init__(self, code: int, message: str) -> None:
        super().__init__(line(message))
        self.code = code


class NothingThere(NotDone):
    """What was asked for is not there, or not to be understood."""

    exit_code = exits.USAGE


class Look:
    """A connection, for the length of a block. For one thread; `send` may be used by any.

    `on_notice` is called with each notification (its method and params) that comes while an answer
    is waited for.
    """

    def __init__(
        self, folder: StateFolder, on_notice: Callable[[str, Any], None] = lambda _, __: None
    ) -> None:
        self._folder = folder
        self._on_notice = on_notice
        self._ids = 0
        self._rest = bytearray()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def __enter__(self) -> Self:
        """Connect. Raises `NobodyThere`."""
        self._socket.settimeout(CONNECT_WITHIN)
        try:
            self._socket.connect(str(self._folder.look))
        except OSError as error:
            self._socket.close()
            raise NobodyThere(self._absent(error)) from None
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hang up; whoever waits for something gets `NobodyThere`."""
        with suppress(OSError):  # it is over already
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _absent(self, error: OSError) -> str:
        pid = self._folder.holder()
        if pid is None:
            return f"no daemon is running on {self._folder.path}; start one with: ahpd start"
        reason = error.strerror or error
        return f"the daemon (pid {pid or '?'}) lets nobody look inside just now: {reason}"

    # ---- messages ------------------------------------------------------------------------------

    def send(self, method: str, params: Any, *, answered: bool = True) -> int:
        """Send a request and return its id, or (when it is not to be `answered`) a notification."""
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if answered:
            self._ids += 1
            message["id"] = self._ids
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise NobodyThere(f"the daemon is gone: {error.strerror or error}") from None
        return self._ids

    def ask(self, method: str, params: Any, *, within: float | None = ANSWER_WITHIN) -> Any:
        """The result of a request. Raises `NotDone`, and `NobodyThere` after `within` seconds."""
        id = self.send(method, params)
        for message in self.messages(within):
            if message.get("id") == id:
                return result_of(message)
            if "method" in message:
                self._on_notice(message["method"], message.get("params"))
        raise NobodyThere("the daemon hung up before it answered")

    def ask_text(self, method: str, params: Any) -> bytes:
        """The result of a request as the JSON text that it came as. Raises as `ask`."""
        id = self.send(method, params)
        head = b'{"jsonrpc":"2.0","id":%d,"result":' % id
        for text in self._lines(ANSWER_WITHIN):
            if text.startswith(head):
                return text[len(head) : -1]
            message = json.loads(text)
            if message.get("id") == id:
                return json.dumps(result_of(message)).encode()
        raise NobodyThere("the daemon hung up before it answered")

    def messages(self, within: float | None = None) -> Iterator[Any]:
        """Messages as they come, until the daemon hangs up.

        Raises `NobodyThere` when none comes for `within` seconds (None: waits for ever).
        """
        return map(json.loads, self._lines(within))

    def _lines(self, within: float | None) -> Iterator[bytes]:
        self._socket.settimeout(within)
        while True:
            end = self._rest.find(b"\n")
            while end < 0:
                start = len(self._rest)
                try:
                    data = self._socket.recv(1 << 18)
                except TimeoutError:
                    raise NobodyThere(f"the daemon says nothing for {within:g} s") from None
                except OSError:
                    return
                if not data:
                    return
                self._rest += data
                end = self._rest.find(b"\n", start)
            text = bytes(self._rest[:end])
            del self._rest[: end + 1]
            yield text


def result_of(message: Any) -> Any:
    """What an answer holds. Raises `NotDone` when that is an error."""
    error = message.get("error")
    if error is not None:
        code = error.get("code", 0)
        raise (NothingThere if code in _NAMES_NOTHING else NotDone)(code, str(error["message"]))
    return message.get("result")
