"""Every exception and failure value this package hands to its users, by who acts next.

Nothing here imports trio. Errors carry data; their text is made from it.
"""

from __future__ import annotations

from enum import Enum

import attrs

from supervisors._exits import Crash, Exit


class SupervisorsError(Exception):
    """Base of all errors of this package; never raised itself."""


class SpecError(SupervisorsError, ValueError):
    """A spec that cannot mean anything sensible. The author of the spec acts."""


class Bug(SupervisorsError):
    """This package broke its own rule. Never contained: the tree dies with it."""


class SendRefused(SupervisorsError):
    """A message was not accepted and will never be handled. The sender acts."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path
        self.why = why


class ActorGone(SendRefused):
    """No actor takes messages at this path: never started, ended, or restarting and refusing."""


class ActorParked(ActorGone):
    """The actor passed its restart intensity and waits to be restarted by hand."""


class MailboxFull(SendRefused):
    """The mailbox is at a bound and the sender's kind says refuse (or it cannot wait)."""


class MessageTooLarge(SendRefused):
    """The message alone is over the mailbox's byte bound, so no wait could help."""


class MailboxOverrun(SupervisorsError):
    """An actor ran into a full mailbox and its kind says that this is a fault: it should crash."""

    def __init__(self, sender: str, kind: str, receiver: str, depth: int, size: int) -> None:
        super().__init__(
            f"{sender} ({kind}) ran over the mailbox of {receiver}: "
            f"{depth} messages, {size} bytes waiting"
        )
        self.sender = sender
        self.kind = kind
        self.receiver = receiver
        self.depth = depth
        self.size = size


class WaitCycle(SupervisorsError):
    """Waiting for room in this mailbox would close a circle of actors waiting for each other."""

    def __init__(self, chain: tuple[str, ...]) -> None:
        super().__init__(" -> ".join(chain))
        self.chain = chain


class FailureKind(Enum):
    """Why a call has no reply."""

    REJECTED = "rejected"  #: the callee answered with `Reject`; it lives
    CRASHED = "crashed"  #: the callee ended abnormally with the call queued or in hand
    GONE = "gone"  #: nobody takes messages at that path
    PARKED = "parked"  #: the callee is parked; `reason` says why
    TIMEOUT = "timeout"  #: no reply within the deadline; a late one is dropped
    CYCLE = "cycle"  #: the callee waits, perhaps through others, for the caller
    FULL = "full"  #: the callee's mailbox is at a bound


@attrs.frozen
class Failure:
    """The callee's side of a failed call, as a value: the one type a caller has to know.

    `detail` is what a handler gave to `Reject`; `crash` the exception that ended the callee;
    `chain` the paths that wait for each other when the call was refused as a cycle.
    """

    kind: FailureKind
    path: str
    reason: str
    detail: object = None
    crash: Crash | None = attrs.field(default=None, eq=False)
    chain: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.path}: {self.kind.value}: {self.reason}"


class CallFailed(SupervisorsError):
    """A call without a reply; `failure` says why. The only exception a call raises on its own."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class Reject(SupervisorsError):
    """Raised in a handler to answer a call with a refusal; the actor lives on.

    Raised while handling a cast, or a send without `on_lost`, it has nobody to go to, and is a
    crash like any other.
    """

    def __init__(self, reason: str, detail: object = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


class NameTaken(SupervisorsError):
    """A live actor already has that path."""


class NoSuchChild(SupervisorsError):
    """The supervisor has no child of that id, or there is no supervisor at that path."""


class StartFailed(SupervisorsError):
    """A child did not become ready; `exit` says how it ended."""

    def __init__(self, path: str, exit: Exit) -> None:
        super().__init__(f"{path}: {exit}")
        self.path = path
        self.exit = exit


class GaveUp(SupervisorsError):
    """A supervisor passed its restart intensity, or failed to boot, and escalates."""

    def __init__(self, path: str, reason: str, exits: tuple[Exit, ...] = ()) -> None:
        super().__init__(f"{path or 'root'}: {reason}")
        self.path = path
        self.reason = reason
        self.exits = exits
