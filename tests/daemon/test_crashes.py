"""Reports on crashes: of a real chat, on a real host, that failed over a client's message."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.rules import chat as rules
from ahpd.cli import status
from ahpd.daemon import crash_text, crashes
from ahpd.daemon.crashes import CrashReports
from ahpd.protocol.jsontext import dumps
from ahpd.transports.redaction import Redactor
from supervisors import Report
from tests.actors.support import C, room, settled, started
from tests.daemon.support import mode
from tests.harness import RunningHost, running_host

SECRET = "s3cr3t-of-the-test"


def texts(folder: Path) -> list[str]:
    return [each.read_text() for each in folder.glob("*.txt")]


@asynccontextmanager
async def crashed_chat(times: int = 1) -> AsyncIterator[tuple[RunningHost, list[Report]]]:
    """A host whose chat crashed so often over the second action of a client, while a turn ran."""
    judge = rules.judge

    def careless(case: Any, action: Any) -> Any:
        if action.type != "chat/isReadChanged":
            return judge(case, action)
        password, line, numbers = "hunter2", f"found {SECRET}", list(range(1000))
        raise ValueError(f"{line}: {len(password)} {len(numbers)}")

    async with running_host(crashes=["session/"]) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        await settled()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rules, "judge", careless)
            for _ in range(times):
                await ann.dispatch(C, {"type": "chat/isReadChanged", "isRead": True})
                await trio.sleep(20)  # it is started again
        yield host, [each for each in host.reports if each.exit and each.exit.crash]


async def test_a_report_tells_what_a_person_needs_and_no_secret(tmp_path: Path) -> None:
    async with crashed_chat() as (host, [report]):
        write = CrashReports(host.tables, tmp_path / "c", keep=3, redact=Redactor([SECRET]))
        write.attach(host.system)
        crashed = write(report)
        assert write(report) is None  # told again, of a supervisor that gives up for example
        channel = host.tables.ledger.channels[C]
        state = dumps(channel.state.wire())
    assert crashed is not None
    assert crashed.file is not None
    assert write.report_of(report.path) == crashed.file
    assert (mode(tmp_path / "c"), mode(Path(crashed.file))) == (0o700, 0o600)
    [text] = texts(tmp_path / "c")
    for part in (
        f"An actor crashed: {report.path}\n",
        "incarnation  1\n",
        "exception    ValueError: found ***: 7 1000\n",
        "Traceback (most recent call last):\n",
        "  crashed_chat.<locals>.careless (",
        "      password = ***\n",
        "      line = 'found ***'\n",
        "      numbers = list[0, 1, 2, 3, 4, 5, 6, 7, … 992 more]\n",
        "in hand  Dispatch(channel=Channel(",
        "client_id='ann'",
        "_runs = 1\n",
        f"--- channel {C}\n",
        f"number  {channel.seq}\n",
        f"sha256  {hashlib.sha256(state).hexdigest()}, of {len(state)} bytes\n",
        "  chat/turnStarted, ",
    ):
        assert part in text, part
    assert SECRET not in text
    assert "hunter2" not in text
    assert len(text) < 100_000


async def test_the_second_report_on_an_actor_has_its_last_messages(tmp_path: Path) -> None:
    async with crashed_chat() as (host, [first]):
        write = CrashReports(host.tables, tmp_path / "c", keep=9, redact=Redactor())
        write.attach(host.system)
        write(first)
        ann = host.peers[0]
        await ann.dispatch(C, {"type": "chat/isReadChanged", "isRead": False})
        await trio.sleep(3)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rules, "judge", lambda _case, _action: 1 / 0)
            await ann.dispatch(C, {"type": "chat/isReadChanged", "isRead": True})
            await trio.sleep(20)
        write(host.reports[-1] if host.reports[-1].exit else host.reports[-2])
    _, second = sorted(texts(tmp_path / "c"))
    assert "ZeroDivisionError" in second
    assert "   3.000 s before  Dispatch(" in second
    assert "   0.000 s before  Dispatch(" in second


async def test_there_are_never_more_than_so_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crashes, "MOST", 3)
    async with crashed_chat(times=4) as (host, reports):
        write = CrashReports(host.tables, tmp_path / "c", keep=2, redact=Redactor())
        write.attach(host.system)
        written = [write(report) for report in reports]
        none = CrashReports(host.tables, tmp_path / "none", keep=0, redact=Redactor())
        assert none(reports[0]) is not None
    assert not (tmp_path / "none").exists()
    assert len(reports) == 4
    assert [each is not None and each.file is not None for each in written] == [
        *(True, True, True),
        False,  # the fourth within a minute
    ]
    assert len(texts(tmp_path / "c")) == 2


async def test_a_folder_that_cannot_be_written_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "c").write_text("no folder")
    async with crashed_chat(times=2) as (host, reports):
        write = CrashReports(host.tables, tmp_path / "c", keep=2, redact=Redactor())
        assert [each and each.file for each in map(write, reports)] == [None, None]
    said = [each.getMessage() for each in caplog.records if "crash report" in each.getMessage()]
    assert len(said) == 1


def test_exceptions_that_go_round_in_circles_are_shown_once() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__context__, two.__cause__ = two, one
    group = ExceptionGroup("both", [one, two])
    assert {id(each) for each in crash_text._all_of(group)} == {id(group), id(one), id(two)}


def test_status_names_the_latest_first() -> None:
    at = "2031-01-01T00:00:00.000Z"
    crashes = [
        {"path": f"a/{number}", "at": at, "text": "Bad: \x1b[2J" + "x" * 200, "file": file}
        for number, file in enumerate(("/c/0", None, "/c/2", None, "/c/4"))
    ]
    rows = status._crashed(crashes)
    assert [(name, text.partition(",")[0]) for name, text in rows] == [
        ("crashed", "a/4"),
        ("", "/c/4"),
        ("crashed", "a/3"),
        ("crashed", "a/2"),
        ("", "/c/2"),
    ]
    assert r"Bad: \x1b[2Jxxx" in rows[0][1]
    assert rows[0][1].endswith("…")
