from __future__ import annotations

import logging
import sys
from collections.abc import Iterator

import pytest
import trio

from ahpd.daemon import logs
from supervisors import Crash, Exit, ExitKind, Note, Report


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, raising = root.handlers[:], root.level, logging.raiseExceptions
    yield
    root.handlers[:], root.level, logging.raiseExceptions = handlers, level, raising


async def test_a_line_says_when_how_bad_and_which_task(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("info")
    trio.lowlevel.current_task().name = "session/x/chat/0"
    logging.getLogger("ahpd.agents").warning("it is %s", "late")
    logging.getLogger("ahpd.agents").debug("not said")
    [line] = capsys.readouterr().err.splitlines()
    moment, rest = line.split(" ", 1)
    assert moment.endswith("Z")
    assert rest == "WARNING session/x/chat/0: it is late"


def test_outside_of_tasks_the_logger_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("debug")
    logging.getLogger("ahpd.wire").debug("said")
    assert capsys.readouterr().err.endswith(" DEBUG ahpd.wire: said\n")


async def test_a_task_without_a_name_of_its_own_is_not_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.set_up("info")

    async def serve() -> None:
        logging.getLogger("ahpd.transports").info("left")

    async def accept(listeners: trio.Nursery) -> None:
        listeners.start_soon(serve)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        nursery.start_soon(accept, nursery)
        nursery.start_soon(serve, name="connections/1: reader of a.b")
    found = sorted(line.split(" ", 2)[2] for line in capsys.readouterr().err.splitlines())
    assert found == ["ahpd.transports: left"] * 2 + ["connections/1: reader of a.b: left"]


def test_secrets_are_left_out_of_text_and_tracebacks(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("info", lambda text: text.replace("geheim", "***"))
    try:
        raise ValueError("geheim")
    except ValueError:
        logging.getLogger("x").exception("it was %s", "geheim")
    said = capsys.readouterr().err
    assert "geheim" not in said
    assert "it was ***" in said
    assert "ValueError: ***" in said


@pytest.mark.parametrize(
    ("level", "note", "shown"),
    [
        ("error", Note.PARKED, True),
        ("error", Note.RESTARTING, False),
        ("warning", Note.RESTARTING, True),
        ("info", Note.STARTED, False),
        ("debug", Note.STARTED, True),
    ],
)
def test_what_the_tree_reports_is_weighed(
    level: str, note: Note, shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.set_up(level)
    logs.log_report(Report(0.0, note, "session/x/session", 1, "text", next="again in 1 s"))
    said = capsys.readouterr().err
    assert (f" session/x/session: {note.value}: text; again in 1 s" in said) is shown


def test_a_crash_is_logged_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("error")
    try:
        raise ValueError("boom")
    except ValueError as error:
        exit = Exit(ExitKind.CRASHED, crash=Crash(error))
    logs.log_report(Report(0.0, Note.EXITED, "", 1, "crashed", exit=exit))
    said = capsys.readouterr().err
    assert " root: exited: crashed" in said
    assert "Traceback" in said
    assert "ValueError: boom" in said


def test_a_closed_standard_error_is_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(sys.executable, "rb") as unwritable:
        monkeypatch.setattr(sys, "stderr", unwritable)
        logs.set_up("info")
        logging.getLogger("x").error("said to nobody")
