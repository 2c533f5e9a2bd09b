"""The restart decision is a table; these tests read it aloud."""

from __future__ import annotations

import pytest

from supervisors import Crash, Exit, ExitKind, Restart
from supervisors._exits import ORDERLY, VERDICTS, Verdict, leaves, said


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


class Mute(Exception):
    """One whose methods for people fail."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class Odd(Exception):
    """One whose text is none."""

    def __str__(self) -> str:
        return 5  # type: ignore[return-value]  # noqa: PLE0307 - the point of it


class Quitter(Exception):
    def __str__(self) -> str:
        raise SystemExit


class Trap(str):
    """A text that fails when it is formatted."""

    def __format__(self, spec: str) -> str:
        raise RuntimeError("not in a sentence")


class Trapped(Exception):
    def __str__(self) -> str:
        return Trap("a trap")


@pytest.mark.parametrize("error", [Mute(), Odd(), Quitter(), Trapped()])
def test_a_crash_has_words_whatever_its_exception_does(error: Exception) -> None:
    group = ExceptionGroup("all", [ValueError("before"), error, KeyError("after")])
    for crash in (Crash(error), Crash(group)):
        assert type(error).__name__ in crash.text
        assert type(error).__name__ in str(Exit(ExitKind.CRASHED, crash=crash))
        assert crash.traceback
    assert Crash(group).text.startswith("ValueError: before; ")
    assert Crash(group).text.endswith("; KeyError: 'after'")


def test_a_reason_that_is_no_text_becomes_one() -> None:
    assert str(Exit(ExitKind.STOPPED, 5)) == "stopped: 5"
    assert "Mute" in str(Exit(ExitKind.STOPPED, Mute()))
    assert said(7) == "7"
    assert said("x", repr) == "'x'"


def test_ctrl_c_is_heard_even_while_words_are_made() -> None:
    class Interrupted(Exception):
        def __str__(self) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        said(Interrupted())


def test_groups_in_groups_end_at_no_limit() -> None:
    error: Exception = ValueError("deep")
    for _ in range(5000):
        error = ExceptionGroup("in", [error])
    assert Crash(error).text == "ValueError: deep"
    while isinstance(error, ExceptionGroup):  # or its end would be too deep for the interpreter
        error = error.exceptions[0]


def test_an_exit_without_frames_says_the_same() -> None:
    exit = Exit(ExitKind.CRASHED, crash=Crash(ValueError("x")), at=3.0)
    assert exit.without_frames.crash is None
    assert str(exit.without_frames) == str(exit)
    assert exit.without_frames.at == 3.0
    plain = Exit(ExitKind.KILLED, "why")
    assert plain.without_frames is plain
