from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.labels import Labels
from actors.rules import chat as rules
from ahpd.daemon import logs
from ahpd.daemon.config import SUBSYSTEMS, AgentConfig, Config, LogConfig, TelemetryConfig
from ahpd.daemon.errors import ConfigError
from ahpd.daemon.observing import open_log
from ahpd.transports.redaction import Redactor
from supervisors import (
    Actor,
    ChildSpec,
    Crash,
    Exit,
    ExitKind,
    Note,
    Report,
    SupervisorSpec,
    running,
)
from supervisors.whereabouts import Whereabouts
from tests.actors.support import C, room, settled, started
from tests.daemon.support import SESSION, daemon, peer
from tests.harness import running_host
from tests.wire import Wiretap


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, raising = root.handlers[:], root.level, logging.raiseExceptions
    levels = {name: logging.getLogger("ahpd." + name).level for name in SUBSYSTEMS}
    yield
    for name, before in levels.items():
        logging.getLogger("ahpd." + name).setLevel(before)
    root.handlers[:], root.level, logging.raiseExceptions = handlers, level, raising


async def test_a_line_says_when_how_bad_and_which_task(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up(LogConfig(level="info"))
    trio.lowlevel.current_task().name = "session/x/chat/0"
    logging.getLogger("ahpd.agents").warning("it is %s", "late")
    logging.getLogger("ahpd.agents").debug("not said")
    [line] = capsys.readouterr().err.splitlines()
    moment, rest = line.split(" ", 1)
    assert moment.endswith("Z")
    assert rest == "WARNING session/x/chat/0: it is late"


def test_outside_of_tasks_the_logger_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up(LogConfig(level="debug"))
    logging.getLogger("ahpd.wire").debug("said")
    assert capsys.readouterr().err.endswith(" DEBUG ahpd.wire: said\n")


async def test_a_task_without_a_name_of_its_own_is_not_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.set_up(LogConfig(level="info"))

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


def test_secrets_of_the_file_are_in_no_line(capfd: pytest.CaptureFixture[str]) -> None:
    server = {"env": {"A_KEY": "server-key-1", "MODE": "production"}, "args": ["x"]}
    remote = {"url": "http://h", "headers": {"Authorization": "Basic remote-2"}, "env": 3}
    config = Config(
        agents={"x": AgentConfig(kind="acp", command=("x",), env={"A_TOKEN": "agent-token-3"})},
        mcp_servers={"a": server, "b": remote},
        telemetry=TelemetryConfig(
            headers={"authorization": "Bearer bearer-4", "x-key": "hunter-5"}
        ),
    )
    open_log(config, token="connection-6")
    logging.getLogger("ahpd").error(
        "server-key-1 remote-2 agent-token-3 bearer-4 hunter-5 connection-6 production"
    )
    assert capfd.readouterr().err.endswith(f"{'*** ' * 6}production\n")


def test_secrets_are_left_out_of_text_and_tracebacks(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up(LogConfig(), Redactor(["geheim"]))
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
    logs.set_up(LogConfig(level=level))
    logs.log_report(Report(0.0, note, "session/x/session", 1, "text", next="again in 1 s"))
    said = capsys.readouterr().err
    assert (f" session/x/session: {note.value}: text; again in 1 s" in said) is shown


def test_a_crash_is_logged_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up(LogConfig(level="error"))
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
        logs.set_up(LogConfig(level="info"))
        logging.getLogger("x").error("said to nobody")


class Ears(logging.Handler):
    """Whoever else wants records."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(record.getMessage())


def say_all(word: str) -> None:
    for name in ("journal", "agents", "agents.acp"):
        logger = logging.getLogger("ahpd." + name)
        logger.debug("%s %s debug", name, word)
        logger.warning("%s %s warning", name, word)


def test_each_subsystem_may_have_a_level_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    log = logs.set_up(LogConfig(level="error", levels={"agents": "debug"}))
    say_all("1")
    log.set_level("agents.acp", "warning")
    log.set_level("all", "warning")
    say_all("2")
    log.set_level("agents", "inherit")
    say_all("3")
    said = [line.rpartition(": ")[2] for line in capsys.readouterr().err.splitlines()]
    assert said == [
        *("agents 1 debug", "agents 1 warning", "agents.acp 1 debug", "agents.acp 1 warning"),
        *("journal 2 warning", "agents 2 debug", "agents 2 warning", "agents.acp 2 warning"),
        *("journal 3 warning", "agents 3 warning", "agents.acp 3 warning"),
    ]
    assert log.levels == dict.fromkeys(("all", *SUBSYSTEMS), "warning")


def test_who_else_wants_records_gets_more_and_the_log_does_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = logs.set_up(LogConfig(level="warning"))
    ears = Ears()
    log.listen(ears, logging.DEBUG)
    say_all("1")
    log.listen(ears, logging.WARNING)
    say_all("2")
    log.unlisten(ears)
    say_all("3")
    assert len(capsys.readouterr().err.splitlines()) == 9
    assert len(ears.heard) == 9
    assert not logging.getLogger("ahpd.journal").isEnabledFor(logging.INFO)


def test_every_logger_of_the_host_is_a_subsystem() -> None:
    root = Path(__file__).resolve().parents[2]
    named = set()
    for package in ("actors", "supervisors", "ahpd"):
        for file in (root / package).rglob("*.py"):
            named |= set(re.findall(r'getLogger\("ahpd\.([\w.]+)"\)', file.read_text()))
    assert named <= SUBSYSTEMS.keys()
    assert len(named) > 5


def test_a_line_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up(LogConfig(format="json"), Redactor(["geheim"]))
    logger = logging.getLogger("ahpd.agents.acp")
    logger.warning("tkn=%s\n\ud800", "abc", extra={"actor": "a/b", "turn": "geheim"})
    try:
        raise ValueError("geheim")
    except ValueError:
        logger.exception("late")
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert first.pop("time").endswith("Z")
    assert first == {
        "level": "warning",
        "subsystem": "agents.acp",
        "actor": "a/b",
        "turn": "***",
        "text": "tkn=***\n?",
    }
    assert second["traceback"].startswith("Traceback")
    assert second["traceback"].endswith("ValueError: ***")


def test_a_file_instead_of_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "log"
    log = logs.set_up(LogConfig(file=str(file), max_bytes=1024, keep=2))
    for number in range(100):
        logging.getLogger("ahpd.tree").error("line %d", number)
    log.close()
    assert capsys.readouterr().err == ""
    assert sorted(each.name for each in tmp_path.iterdir()) == ["log", "log.1", "log.2"]
    assert all(each.stat().st_size <= 1024 for each in tmp_path.iterdir())
    assert "line 99" in file.read_text()


def test_a_log_file_that_cannot_be_made_is_a_wrong_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"the log .*/none/log: No such file"):
        logs.set_up(LogConfig(file=str(tmp_path / "none" / "log")))


async def test_a_line_says_whose_message_is_in_hand(capsys: pytest.CaptureFixture[str]) -> None:
    """On a real host: what a chat logs while it handles a client's action."""
    log = logs.set_up(LogConfig())
    async with running_host() as host:
        logs.attach(log, host.system, Labels(host.tables))
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        await settled()
        chat = host.system.registry.get(host.tables.ledger.channels[C].path)
        assert chat is not None
        assert chat.life is not None
        judge = rules.judge

        def loud(*arguments: Any) -> Any:
            logging.getLogger("ahpd.agents").warning("judging")
            return judge(*arguments)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rules, "judge", loud)
            await ann.dispatch(C, {"type": "chat/isReadChanged", "isRead": True})
            await settled()
    [line] = [each for each in capsys.readouterr().err.splitlines() if "judging" in each]
    number = line.partition("number=")[2].partition(" ")[0]
    assert line.endswith(
        f"WARNING {chat.path}: judging  [channel={C} number={number} client=ann turn=t1]"
    )
    assert int(number) > 1


@pytest.mark.real_time
async def test_secrets_of_agents_are_in_nothing_that_is_written(
    tmp_path: Path, wire: Wiretap
) -> None:
    """An agent says all that it knows on standard error, and dies of it."""
    agent = tmp_path / "agent.py"
    agent.write_text(
        "import os, sys, time\n"
        "sys.stdin.readline()\n"
        "time.sleep(0.5)\n"
        'sys.exit(f\'my key is {os.environ["MY_KEY"]}, and {os.environ["OTHER_TOKEN"]}\')\n'
    )
    config = tmp_path / "config.toml"
    config.write_text(
        f'[agents.demo]\nkind = "acp"\ncommand = ["{sys.executable}", "{agent}"]\n'
        'env = { MY_KEY = "s3cr3t-of-the-file" }\n[log]\nlevel = "debug"\nformat = "json"\n'
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTHER_TOKEN", "s3cr3t-of-the-host")
        options = ("--config", str(config), "--wire", str(tmp_path / "wire"))
        with daemon(tmp_path, *options) as host:
            token = (host.state / "token").read_text().strip()
            async with peer(host.url, wire.connection()) as client:
                await client.hello()
                await client.request("createSession", channel=SESSION)
                await client.request("subscribe", channel=SESSION)
                await client.until_action("session/creationFailed")
            host.end()
    # Beside lines of the log there is the one for people, which has the URL.
    said = [json.loads(line) for line in host.said.decode().splitlines() if line[0] == "{"]
    assert any("my key is ***, and ***" in line["text"] for line in said)
    written = (tmp_path / "wire").read_bytes() + json.dumps(said).encode()
    assert b"my key is ***, and ***" in written
    assert b"s3cr3t" not in written
    assert token.encode() not in written
    joined = [line for line in said if "joined" in line["text"]]
    assert [(line["subsystem"], line["level"]) for line in joined] == [("connections", "debug")]


@pytest.mark.real_time
async def test_a_thread_of_an_actor_says_whose_it_is_and_looks_at_no_tables(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = logs.set_up(LogConfig())
    looked: list[object] = []

    class Worker(Actor[None]):
        async def handle(self, message: None) -> None:
            await trio.to_thread.run_sync(logging.getLogger("ahpd.journal").warning, "there")
            logging.getLogger("ahpd.journal").warning("here")

    def labels(where: Whereabouts) -> dict[str, str | int]:
        looked.append(where)
        return {"turn": "t"}

    async with running(SupervisorSpec([ChildSpec("worker", Worker)])) as system:
        logs.attach(log, system, labels)
        await (await system.wait_for("worker")).call(None, within=5)
    said = [line.partition("WARNING ")[2] for line in capsys.readouterr().err.splitlines()]
    assert said == ["worker: there", "worker: here  [turn=t]"]
    assert len(looked) == 1
