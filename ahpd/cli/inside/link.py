"""`Link`: the connection of a console. One thread reads it, the others ask and wait.

The console's own thread waits for what is typed, which no event loop can do beside a terminal that
somebody else draws on; so this is plain threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from ahpd.cli.looking import Look, NobodyThere, result_of
from ahpd.inspection.names import CANCEL

#: Seconds between two moments in which Ctrl-C is heard while an answer is waited for.
HEAR_EVERY = 0.1
#: Seconds that the daemon may take to stop what was cancelled.
STOP_WITHIN = 10.0


class Gone(NobodyThere):
    """The daemon hung up."""


class Call:
    """A request under way; what comes for it, in order."""

    def __init__(self) -> None:
        self.id = 0
        self.queue: SimpleQueue[Any] = SimpleQueue()


class Link:
    """See the module. `on_notice` is called in the thread that reads, and must not fail."""

    def __init__(
        self, look: Look, on_notice: Callable[[str, Any], None], on_end: Callable[[], None]
    ) -> None:
        self._look = look
        self._on_notice = on_notice
        self._on_end = on_end
        self._calls: dict[int, Call] = {}
        self._lock = threading.Lock()
        #: Who else wants to see notifications: the call that a debugger runs in.
        self.listener: Call | None = None
        self.is_over = False
        self._thread = threading.Thread(target=self._read, name="link", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def call(self, method: str, params: Any, *, listens: bool = False) -> Call:
        """Send a request; one that `listens` gets the notifications from then on, every one of
        them. Raises `NobodyThere`.
        """
        call = Call()
        with self._lock:
            if self.is_over:
                raise Gone("the daemon hung up")
            if listens:  # before it is sent: what it brings may be here before we are
                self.listener = call
            call.id = self._look.send(method, params)
            self._calls[call.id] = call
        return call

    def ask(self, method: str, params: Any) -> Any:
        """The result of a request; Ctrl-C has the daemon stop what it does for it.

        Raises `NotDone`, `Gone`, and `KeyboardInterrupt` when the daemon does not stop either.
        """
        return self.wait(self.call(method, params))

    def wait(self, call: Call) -> Any:
        """The result of a request that is under way. As `ask`."""
        try:
            return self.take(call)
        except KeyboardInterrupt:
            self.cancel(call)
            return self.take(call, STOP_WITHIN)

    def cancel(self, call: Call) -> None:
        """Have the daemon stop what it does for a request."""
        with self._lock:
            self._look.send(CANCEL, {"id": call.id}, answered=False)

    def ask_beside(self, method: str, params: Any) -> None:
        """Ask for something whose answer nobody waits for: what comes of it is told."""
        with self._lock:
            if not self.is_over:
                self._look.send(method, params)

    def take(self, call: Call, within: float | None = None) -> Any:
        """The next that comes for a call: its result, or (for a listener) a notification.

        A notification is a pair. Raises as `ask`.
        """
        waited = 0.0
        while within is None or waited < within:
            try:
                found = call.queue.get(timeout=HEAR_EVERY)
            except Empty:
                waited += HEAR_EVERY
                continue
            if isinstance(found, tuple):
                return found
            if found is None:
                raise Gone("the daemon hung up")
            return result_of(found)
        raise KeyboardInterrupt

    def _read(self) -> None:
        for message in self._look.messages():
            id = message.get("id")
            if "method" in message:
                self._notice(message["method"], message.get("params") or {})
                continue
            with self._lock:
                call = self._calls.pop(id, None)
            if call is not None:
                call.queue.put(message)
        with self._lock:
            self.is_over = True
            left = list(self._calls.values())
        for call in left:
            call.queue.put(None)
        self._on_end()

    def _notice(self, method: str, params: Any) -> None:
        listener = self.listener
        if listener is not None:
            listener.queue.put((method, params))
        else:
            self._on_notice(method, params)
