"""Actors, mailboxes and supervision on trio, in the manner of OTP.

An *actor* handles typed messages one at a time; a *supervisor* starts actors, and starts them again
when they fail; a *ref* names an actor by its path and keeps working over restarts. `sys` looks and
steers, `faults` breaks things on purpose, `watchdog` finds what blocks, `testing` helps with tests.

Times are seconds of trio's clock, sizes bytes. What is async is a checkpoint, what is sync is not.
"""

from supervisors._actor import Actor, Helper
from supervisors._calls import Reply, Request
from supervisors._driver import ChildInfo, SupervisorStats
from supervisors._events import Note
from supervisors._exits import Crash, Exit, ExitKind, Restart
from supervisors._links import Broken, Down, Monitor
from supervisors._mailbox import MailboxStats
from supervisors._ref import Ref
from supervisors._registry import Registry
from supervisors._run import run_tree, running
from supervisors._spec import (
    AtBound,
    AutoShutdown,
    Backoff,
    Beyond,
    ChildSpec,
    Intensity,
    MailboxSpec,
    Shutdown,
    Strategy,
    SupervisorSpec,
    WhileDown,
)
from supervisors._system import Report, SupervisorRef, System
from supervisors.errors import (
    ActorGone,
    ActorParked,
    Bug,
    CallFailed,
    Failure,
    FailureKind,
    GaveUp,
    MailboxFull,
    MailboxOverrun,
    MessageTooLarge,
    NameTaken,
    NoSuchChild,
    Reject,
    SendRefused,
    SpecError,
    StartFailed,
    SupervisorsError,
    WaitCycle,
)

__all__ = [
    "Actor",
    "ActorGone",
    "ActorParked",
    "AtBound",
    "AutoShutdown",
    "Backoff",
    "Beyond",
    "Broken",
    "Bug",
    "CallFailed",
    "ChildInfo",
    "ChildSpec",
    "Crash",
    "Down",
    "Exit",
    "ExitKind",
    "Failure",
    "FailureKind",
    "GaveUp",
    "Helper",
    "Intensity",
    "MailboxFull",
    "MailboxOverrun",
    "MailboxSpec",
    "MailboxStats",
    "MessageTooLarge",
    "Monitor",
    "NameTaken",
    "NoSuchChild",
    "Note",
    "Ref",
    "Registry",
    "Reject",
    "Reply",
    "Report",
    "Request",
    "Restart",
    "SendRefused",
    "Shutdown",
    "SpecError",
    "StartFailed",
    "Strategy",
    "SupervisorRef",
    "SupervisorSpec",
    "SupervisorStats",
    "SupervisorsError",
    "System",
    "WaitCycle",
    "WhileDown",
    "run_tree",
    "running",
]
