"""What a tree should be: frozen data, checked when it is built.

Pure: no trio, no clock. All times are seconds, all sizes bytes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

import attrs
from msgspec import Struct, field

from supervisors._exits import Restart
from supervisors.errors import SpecError

if TYPE_CHECKING:
    from supervisors._actor import Actor


class Strategy(Enum):
    """Which siblings are restarted with a child that failed."""

    ONE_FOR_ONE = "one_for_one"  #: none
    REST_FOR_ONE = "rest_for_one"  #: those started after it
    ONE_FOR_ALL = "one_for_all"  #: all


class Beyond(Enum):
    """What a supervisor does about a child that fails too often."""

    ESCALATE = "escalate"  #: stop all children and fail; intensity is counted for all together
    PARK = "park"  #: keep the child down, answering with its reason; counted for each child


class AutoShutdown(Enum):
    """Whether a supervisor ends when its significant children ended by themselves."""

    NEVER = "never"
    ANY = "any"
    ALL = "all"


class AtBound(Enum):
    """What happens to a sender at a full mailbox."""

    WAIT = "wait"  #: an async sender waits for room; a sync one is refused
    REFUSE = "refuse"  #: `MailboxFull`
    FAULT = "fault"  #: `MailboxOverrun`, naming both ends


class WhileDown(Enum):
    """What happens to messages for an actor that is between two incarnations."""

    KEEP = "keep"  #: they wait in the mailbox; the one in hand at the crash is never given again
    REFUSE = "refuse"  #: what waits is dropped, calls are answered, new ones are refused


def _check(condition: bool, text: str) -> None:
    if not condition:
        raise SpecError(text)


def _finite(value: float, name: str, *, least: float = 0.0) -> None:
    _check(math.isfinite(value) and value >= least, f"{name}: {value} is not a number >= {least}")


class Backoff(Struct, frozen=True):
    """How long to wait before a restart: ``first * factor**n`` up to `cap`, give or take `jitter`.

    `n` counts failures in a row; a child that was up for `reset_after` seconds starts at 0 again.
    `jitter` is a fraction: 0.2 means from 80 % to 120 %.
    """

    first: float = 0.1
    factor: float = 2.0
    cap: float = 30.0
    jitter: float = 0.2
    reset_after: float = 60.0

    def __post_init__(self) -> None:
        _finite(self.first, "backoff.first")
        _finite(self.factor, "backoff.factor", least=1.0)
        _finite(self.cap, "backoff.cap", least=self.first)
        _finite(self.reset_after, "backoff.reset_after")
        _check(0.0 <= self.jitter < 1.0, f"backoff.jitter: {self.jitter} is not in [0, 1)")

    def delay(self, failures: int, dice: float) -> float:
        """Seconds before the restart after `failures` earlier ones in a row; `dice` in [0, 1)."""
        try:
            grown = self.first * float(self.factor) ** failures
        except OverflowError:
            grown = self.cap if self.first else 0.0
        return min(self.cap, grown) * (1.0 + self.jitter * (2.0 * dice - 1.0))


class Intensity(Struct, frozen=True):
    """At most `restarts` within `period` seconds; a restart exactly `period` old still counts."""

    restarts: int = 5
    period: float = 60.0

    def __post_init__(self) -> None:
        _check(self.restarts >= 0, f"intensity.restarts: {self.restarts} is negative")
        _finite(self.period, "intensity.period")

    def reachable_with(self, backoff: Backoff) -> bool:
        """Whether a child that dies at once can ever pass it, given how long `backoff` waits.

        Delays never shrink, so the densest window is the first one.
        """
        longest = last = 0.0
        for n in range(self.restarts):
            delay = backoff.delay(n, 1.0)
            if n and delay == last:  # it has stopped growing
                return longest + delay * (self.restarts - n) <= self.period
            longest, last = longest + delay, delay
            if longest > self.period:
                return False
        return True


class Shutdown(Struct, frozen=True):
    """Ask; after `grace` seconds cancel; `stuck_after` seconds later report it as stuck.

    ``grace=0`` cancels at once. ``grace=None`` waits without end, for supervisors, whose own
    children have their own deadlines. `cleanup` bounds `Actor.on_crash`, which runs shielded.
    """

    grace: float | None = 5.0
    stuck_after: float = 5.0
    cleanup: float = 1.0

    def __post_init__(self) -> None:
        if self.grace is not None:
            _finite(self.grace, "shutdown.grace")
        _finite(self.stuck_after, "shutdown.stuck_after")
        _finite(self.cleanup, "shutdown.cleanup")


class MailboxSpec(Struct, frozen=True):
    """Bounds of a mailbox, and what each kind of sender meets there.

    `items` and `size` (bytes, as the senders declare them) bound the data lane, `urgent` bounds the
    priority lane by count. `at_bound` maps a sender's kind (`Actor.kind`, or ``"outside"`` for code
    that is no actor) to what happens; `otherwise` is for kinds not named. With `drain` a stop lets
    what already waits be handled first.
    """

    items: int = 1024
    size: int = 16 << 20
    urgent: int = 1024
    at_bound: Mapping[str, AtBound] = field(default_factory=lambda: {"outside": AtBound.WAIT})
    otherwise: AtBound = AtBound.FAULT
    while_down: WhileDown = WhileDown.KEEP
    drain: bool = False

    def __post_init__(self) -> None:
        for name in ("items", "size", "urgent"):
            _check(getattr(self, name) >= 1, f"mailbox.{name}: must be at least 1")


# Made once: specs are made by the thousand, and these are checked whenever they are made.
_MAILBOX = MailboxSpec()
_BOUNDED = Shutdown()
_UNBOUNDED = Shutdown(grace=None)


@attrs.frozen
class ChildSpec:
    """One child: an actor factory with its arguments, or a supervisor.

    `path` is where it is found; by default its supervisor's path and its `id`. `backoff` defaults
    to the supervisor's. `start_within` bounds the time from start to ready (30 s; none for a
    supervisor, whose children have their own). A `significant` child
    that ends by itself may end its supervisor (`SupervisorSpec.auto_shutdown`).

    Raises `SpecError` for values that make no sense.
    """

    id: str
    start: Callable[..., Actor[Any]] | SupervisorSpec
    args: tuple[object, ...] = ()
    restart: Restart = attrs.field(default=Restart.PERMANENT, kw_only=True)
    shutdown: Shutdown = attrs.field(kw_only=True)
    start_within: float = attrs.field(kw_only=True)
    backoff: Backoff | None = attrs.field(default=None, kw_only=True)
    mailbox: MailboxSpec = attrs.field(default=_MAILBOX, kw_only=True)
    significant: bool = attrs.field(default=False, kw_only=True)
    path: str | None = attrs.field(default=None, kw_only=True)

    @shutdown.default
    def _default_shutdown(self) -> Shutdown:
        return _UNBOUNDED if isinstance(self.start, SupervisorSpec) else _BOUNDED

    @start_within.default
    def _default_start_within(self) -> float:
        return math.inf if isinstance(self.start, SupervisorSpec) else 30.0

    def __attrs_post_init__(self) -> None:
        _check(bool(self.id), "child id: must not be empty")
        _check(self.start_within > 0, f"{self.id}: start_within must be over 0")
        _check(
            not (self.significant and self.restart is Restart.PERMANENT),
            f"{self.id}: a permanent child never ends by itself, so it cannot be significant",
        )
        if isinstance(self.start, SupervisorSpec):
            self._check_supervisor(self.start)

    @property
    def stop_time(self) -> float:
        """Seconds from the request to stop until it is cancelled; ``inf`` when never."""
        if self.shutdown.grace is not None:
            return self.shutdown.grace
        return self.start.stop_time if isinstance(self.start, SupervisorSpec) else math.inf

    def _check_supervisor(self, inner: SupervisorSpec) -> None:
        _check(not self.args, f"{self.id}: a supervisor takes no arguments")
        _check(
            inner.auto_shutdown is AutoShutdown.NEVER or self.restart is not Restart.PERMANENT,
            f"{self.id}: a supervisor that shuts itself down cannot be permanent",
        )
        grace = self.shutdown.grace
        _check(
            grace is None or grace >= inner.stop_time,
            f"{self.id}: grace {grace} is shorter than its children's together ({inner.stop_time})",
        )


def _in_order(children: Iterable[ChildSpec]) -> tuple[ChildSpec, ...]:
    return tuple(children)


@attrs.frozen
class SupervisorSpec:
    """Children in start order, and what to do when they fail.

    A `dynamic` supervisor has many independent children that come and go: strategy
    ``one_for_one``, all stopped together instead of one by one in reverse order, and a child that
    is not restarted is forgotten.

    Raises `SpecError` for duplicate ids, contradictions, and an intensity that the backoff makes
    unreachable (a crash loop that would go on for ever unseen).
    """

    children: tuple[ChildSpec, ...] = attrs.field(default=(), converter=_in_order)
    strategy: Strategy = attrs.field(default=Strategy.ONE_FOR_ONE, kw_only=True)
    intensity: Intensity = attrs.field(factory=Intensity, kw_only=True)
    beyond: Beyond = attrs.field(default=Beyond.ESCALATE, kw_only=True)
    backoff: Backoff = attrs.field(factory=Backoff, kw_only=True)
    auto_shutdown: AutoShutdown = attrs.field(default=AutoShutdown.NEVER, kw_only=True)
    dynamic: bool = attrs.field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        twice = sorted(k for k, n in Counter(c.id for c in self.children).items() if n > 1)
        _check(not twice, f"duplicate child ids: {', '.join(twice)}")
        _check(
            not self.dynamic or self.strategy is Strategy.ONE_FOR_ONE,
            "a dynamic supervisor's children are independent: only one_for_one fits",
        )
        self._check_backoff("default", self.backoff)
        for child in self.children:
            self.check_child(child)

    def check_child(self, child: ChildSpec) -> None:
        """Raise `SpecError` when `child` does not fit under this supervisor."""
        _check(
            not child.significant or self.auto_shutdown is not AutoShutdown.NEVER,
            f"{child.id}: significant, but its supervisor never shuts itself down",
        )
        if child.backoff is not None:
            self._check_backoff(child.id, child.backoff)

    def _check_backoff(self, whose: str, backoff: Backoff) -> None:
        _check(
            self.intensity.reachable_with(backoff),
            f"{whose}: with this backoff a crash loop never passes "
            f"{self.intensity.restarts} restarts in {self.intensity.period} s",
        )

    @property
    def stop_time(self) -> float:
        """Seconds its children may take to stop: the sum, or the longest when dynamic."""
        times = [child.stop_time for child in self.children]
        return max(times, default=0.0) if self.dynamic else sum(times)
