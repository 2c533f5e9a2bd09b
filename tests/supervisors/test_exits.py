"""The restart decision is a table; these tests read it aloud."""

from __future__ import annotations

import pytest

from supervisors import Crash, Exit, ExitKind, Restart
from supervisors._exits import ORDERLY, VERDICTS, Verdict, leaves


def test_every_exit_and_restart_kind_has_a_verdict() -> None:
    assert {(kind, restart) for kind in VERDICTS for restart in VERDICTS[kind]} == {
        (kind, restart) for kind in ExitKind for restart in Restart
    }


@pytest.mark.parametrize("kind", [kind for kind in ExitKind if kind not in ORDERLY])
def test_an_abnormal_end_restarts_all_but_temporary_children(kind: ExitKind) -> None:
    assert VERDICTS[kind] == {
        Restart.PERMANENT: Verdict.RESTART,
        Restart.TRANSIENT: Verdict.RESTART,
        Restart.TEMPORARY: Verdict.FORGET,
    }
    assert Exit(kind).abnormal


def test_a_normal_end_restarts_only_permanent_children() -> None:
    assert VERDICTS[ExitKind.NORMAL] == {
        Restart.PERMANENT: Verdict.RESTART,
        Restart.TRANSIENT: Verdict.LEAVE_DOWN,
        Restart.TEMPORARY: Verdict.FORGET,
    }
    assert not Exit(ExitKind.NORMAL).abnormal


def test_nothing_that_was_stopped_comes_back() -> None:
    assert Verdict.RESTART not in VERDICTS[ExitKind.STOPPED].values()


def test_a_crash_speaks_for_all_exceptions_in_its_group() -> None:
    inner = ExceptionGroup("inner", [KeyError("b")])
    crash = Crash(ExceptionGroup("outer", [ValueError("a"), inner]))
    assert crash.type_name == "ValueError"
    assert crash.text == "ValueError: a; KeyError: 'b'"
    assert "inner" in crash.traceback
    assert [type(leaf) for leaf in leaves(crash.error)] == [ValueError, KeyError]


def test_the_crash_and_the_time_do_not_make_exits_different() -> None:
    crash = Crash(ValueError("x"))
    assert Exit(ExitKind.CRASHED, crash=crash, at=1.0) == Exit(ExitKind.CRASHED, at=2.0)
    assert str(Exit(ExitKind.CRASHED, crash=crash)) == "crashed: ValueError: x"
    assert str(Exit(ExitKind.NORMAL)) == "normal"
