from __future__ import annotations

from pathlib import Path

import attrs
import platformdirs
import pytest

from actors.host import LEAST_BYTES, MOST_BYTES
from ahpd.daemon.config import (
    AgentConfig,
    Config,
    JournalConfig,
    LimitsConfig,
    LogConfig,
    TelemetryConfig,
    WireConfig,
    is_agent_name,
)
from ahpd.daemon.config_file import read_config
from ahpd.daemon.errors import ConfigError
from ahpd.daemon.hosting import build_host
from ahpd.daemon.launching import Flags, default_file, load, make_launch
from ahpd.protocol.uris import ROOT


def never(sentence: str) -> None:
    raise AssertionError(sentence)


def written(folder: Path, text: str) -> Path:
    file = folder / "config.toml"
    file.write_text(text)
    return file


def test_every_key(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        """
        host = "::1"
        port = 0
        find_agents = false
        path = ["work", "/srv"]
        grants = "allow"
        allowed_hosts = "build.example"
        allowed_origins = ["https://example.org"]

        [agents.first]
        [agents.second]
        kind = "scripted"
        script = "second.json"
        [agents.third]
        kind = "acp"
        title = "The third"
        command = ["./bin/agent", "--acp"]
        env = { KEY = "value" }
        tokens = { TOKEN = "https://example.org" }
        auth_method = "web"
        terminals = false
        files = true
        conversations = false
        [agents.fourth]
        kind = "acp"
        command = "agent 'two words'"

        [mcp_servers.files]
        command = "files"

        [limits]
        client_queue_bytes = 1048576
        replay_bytes = 2097152
        replay_envelopes = 8
        message_bytes = 4096
        grace_seconds = 1
        cancel_seconds = 0.5
        silence_seconds = 0
        delta_window_ms = 75
        client_tool_seconds = 7
        client_answer_seconds = 8
        watch_seconds = 9
        watches = 6
        read_bytes = 1024
        list_entries = 5
        file_seconds = 0.5
        file_threads = 2
        request_seconds = 2.5
        open_requests = 3
        page_turns = 4
        draft_seconds = 3600
        terminals = 6
        terminal_scrollback = 2000
        terminal_input_bytes = 8192
        stop_seconds = 5
        unkept_bytes = 3145728
        wire_bytes = 1048576

        [journal]
        durability = "power"

        [log]
        level = "debug"
        levels = { agents = "error", "agents.acp" = "info" }
        format = "json"
        file = "logs/ahpd.log"
        max_bytes = 2048
        keep = 0
        crash_reports = 3

        [wire]
        format = "ahplog"
        max_bytes = 65536
        keep = 1

        [telemetry]
        endpoint = "http://127.0.0.1:4318"
        headers = { Authorization = "Bearer abc" }
        level = "warning"
        metrics_seconds = 5
        queue_bytes = 65536
        """,
    )
    assert read_config(file, never) == Config(
        host="::1",
        port=0,
        path=(str(tmp_path / "work"), "/srv"),
        grants="allow",
        allowed_hosts=("build.example",),
        allowed_origins=("https://example.org",),
        agents={
            "first": AgentConfig(),
            "second": AgentConfig(script=str(tmp_path / "second.json")),
            "third": AgentConfig(
                kind="acp",
                title="The third",
                command=(str(tmp_path / "bin/agent"), "--acp"),
                env={"KEY": "value"},
                tokens={"TOKEN": "https://example.org"},
                auth_method="web",
                terminals=False,
                files=True,
                conversations=False,
            ),
            "fourth": AgentConfig(kind="acp", command=("agent", "two words")),
        },
        find_agents=False,
        mcp_servers={"files": {"command": "files"}},
        limits=LimitsConfig(
            client_queue_bytes=1 << 20,
            replay_bytes=2 << 20,
            replay_envelopes=8,
            message_bytes=4096,
            grace_seconds=1.0,
            cancel_seconds=0.5,
            silence_seconds=0.0,
            delta_window_ms=75.0,
            client_tool_seconds=7.0,
            client_answer_seconds=8.0,
            watch_seconds=9.0,
            watches=6,
            read_bytes=1024,
            list_entries=5,
            file_seconds=0.5,
            file_threads=2,
            request_seconds=2.5,
            open_requests=3,
            page_turns=4,
            draft_seconds=3600.0,
            terminals=6,
            terminal_scrollback=2000,
            terminal_input_bytes=8192,
            stop_seconds=5.0,
            unkept_bytes=3 << 20,
            wire_bytes=1 << 20,
        ),
        journal=JournalConfig("power"),
        log=LogConfig(
            "debug",
            levels={"agents": "error", "agents.acp": "info"},
            format="json",
            file=str(tmp_path / "logs" / "ahpd.log"),
            max_bytes=2048,
            keep=0,
            crash_reports=3,
        ),
        wire=WireConfig("ahplog", max_bytes=65536, keep=1),
        telemetry=TelemetryConfig(
            "http://127.0.0.1:4318",
            headers={"Authorization": "Bearer abc"},
            level="warning",
            metrics_seconds=5.0,
            queue_bytes=65536,
        ),
    )
    mentioned = file.read_text()
    for cls in (
        Config,
        LimitsConfig,
        JournalConfig,
        LogConfig,
        TelemetryConfig,
        WireConfig,
        AgentConfig,
    ):
        assert all(field.name in mentioned for field in attrs.fields(cls))


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    assert read_config(written(tmp_path, ""), never) == Config()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("port = 70000", "port: expected a whole number of a TCP port from 0 to 65535, got 70000"),
        ('port = "9187"', "port: expected a whole number of a TCP port from 0 to 65535, got"),
        ("port = true", "port: expected a whole number of a TCP port from 0 to 65535, got true"),
        ("port = 1.0", "port: expected a whole number of a TCP port from 0 to 65535, got 1.0"),
        ("host = 1", "host: expected a host name or an address, got 1"),
        ('host = ""', 'host: expected a host name or an address, got ""'),
        ("path = 1", "path: expected a string or an array of strings, none empty, got 1"),
        ("path = [1]", "path: expected a string or an array of strings, none empty, got [1]"),
        ("limits = 1", "limits: expected a table, got 1"),
        (
            "[limits]\nclient_queue_bytes = 5",
            "limits.client_queue_bytes: expected a whole number of bytes from 1048576 to",
        ),
        (
            "[limits]\nsilence_seconds = -1",
            "limits.silence_seconds: expected a number of seconds from 0 (without a limit)",
        ),
        ("[limits]\nreplay_bytes = 1e9", "limits.replay_bytes: expected a whole number of bytes"),
        (
            "[limits]\ngrace_seconds = 0",
            "limits.grace_seconds: expected a number of seconds over 0, at most 86400, got 0",
        ),
        ("[limits]\ngrace_seconds = nan", "limits.grace_seconds: expected a number of seconds"),
        (
            '[limits]\ngrace_seconds = "long"',
            'limits.grace_seconds: expected a number of seconds over 0, at most 86400, got "long"',
        ),
        ('[log]\nlevel = "loud"', 'log.level: expected one of "debug", "info", "warning", "error"'),
        (
            '[telemetry]\nendpoint = "127.0.0.1:4318"',
            "telemetry.endpoint: expected the URL of a collector, as http://127.0.0.1:4318, got",
        ),
        *(
            (f'[telemetry]\nendpoint = "{url}"', "telemetry.endpoint: expected the URL of a coll")
            for url in (
                "http://",
                "http://h:99999",
                "http://h:x",
                "http://[::1",
                "http://a b:1",
                "http://h/a b",
                "http://h/?x=1",
                "http://user@h",
            )
        ),
        *(
            (
                f"[telemetry]\nheaders = {{ {header} }}",
                "telemetry.headers: expected names of headers, with values of printable ASCII",
            )
            for header in (r'a = "x\ny"', 'a = "schlüssel"', '"b ad" = "x"', '"a:" = "x"')
        ),
        ('[log]\nformat = "xml"', 'log.format: expected one of "text", "json", got "xml"'),
        ("[log]\nkeep = -1", "log.keep: expected a whole number of files from 0 to 1000, got -1"),
        ('[log]\nfile = ""', 'log.file: expected the name of a file, got ""'),
        (
            '[log.levels]\ntrees = "info"',
            "log.levels: expected levels (debug, info, warning, error) by subsystem (agents, ",
        ),
        (
            '[log.levels]\ntree = "loud"',
            "log.levels: expected levels (debug, info, warning, error)",
        ),
        ("find_agents = 1", "find_agents: expected true or false, got 1"),
        ("agents = 1", "agents: expected a table of agents by name, got 1"),
        ("[agents]\nx = 1", "agents.x: expected a table, got 1"),
        (
            '[agents.x]\nkind = "no"',
            'agents.x.kind: expected the kind of an agent: "scripted" or "acp"',
        ),
        ('[agents.x]\nkind = "acp"', "agents.x.command: expected the program to run"),
        ('[agents.x]\nkind = "acp"\ncommand = []', "agents.x.command: expected a program"),
        ('[agents.x]\nkind = "acp"\ncommand = "a \'b"', "agents.x.command: expected a command"),
        ('[agents.x]\nkind = "acp"\ncommand = "a"\nscript = "b"', "agents.x.script: expected"),
        ('[agents.x]\ncommand = "a"', "agents.x.command: expected a key that goes with the kind"),
        ('[agents.x]\nkind = "acp"\ncommand = "a"\nenv = {A = 1}', "agents.x.env.A: expected a s"),
        (
            '[agents.x]\nkind = "acp"\ncommand = "a"\nenv = {"=" = "1"}',
            "agents.x.env: expected the",
        ),
        ("[agents.x]\nfiles = 1", "agents.x.files: expected true or false, got 1"),
        ("[agents.x]\nfiles = true", "agents.x.files: expected a key that goes with the kind"),
        ("[agents.x]\nscript = 1", "agents.x.script: expected the name of a file, got 1"),
        ("[agents.Big]", "agents.Big: expected a name of lower-case letters"),
        ('[agents."a b"]', "agents.a b: expected a name of lower-case letters"),
        ("port = ", "this is not TOML: "),
        ("port = 1\nport = 2", "this is not TOML: "),
    ],
)
def test_what_does_not_fit_is_named_with_file_and_key(text: str, said: str, tmp_path: Path) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ConfigError) as refused:
        read_config(file, never)
    assert str(refused.value).startswith(f"{file}: {said}")


def test_headers_that_do_not_fit_are_not_shown(tmp_path: Path) -> None:
    file = written(tmp_path, '[telemetry]\nheaders = { Authorization = "Bearer abc\\n" }')
    with pytest.raises(ConfigError) as refused:
        read_config(file, never)
    assert str(refused.value).endswith("ASCII characters, got something else")


def test_text_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="this is not TOML"):
        read_config(file, never)
    with pytest.raises(ConfigError, match="Is a directory"):
        read_config(tmp_path, never)


def test_keys_that_nobody_knows_are_warned_about_once_each(tmp_path: Path) -> None:
    file = written(tmp_path, "a = 1\n[limits]\nb = 2\n[agents.x]\nc = 3\n[d]\ne = 4\n")
    warnings: list[str] = []
    assert read_config(file, warnings.append) == Config(agents={"x": AgentConfig()})
    unknown = ["a", "limits.b", "agents.x.c", "d"]
    assert warnings == [
        f"{file}: {key}: there is no such key; it is passed over" for key in unknown
    ]


def test_flags_are_over_the_file(tmp_path: Path) -> None:
    text = 'host = "::1"\nport = 1\npath = "x"\n[agents.old]\n[log]\nlevel = "error"\n'
    file = written(tmp_path, text)
    launch = make_launch(
        Flags(
            config=str(file),
            port=2,
            agents=["new=scripted:a:b.json"],
            paths=["y"],
            log_level="debug",
        ),
        never,
    )
    assert launch.config == Config(
        host="::1",
        port=2,
        path=(str(tmp_path / "x"),),
        agents={"new": AgentConfig(script="a:b.json")},
        find_agents=False,
        log=LogConfig("debug"),
    )
    assert launch.paths == [Path("y")]


def test_an_agent_that_is_a_program_is_given_by_its_command_line() -> None:
    given = ["a=acp:agent --acp 'two words'", "b=acp:./bin/agent"]
    agents = make_launch(Flags(agents=given), never).config.agents
    assert agents == {
        "a": AgentConfig(kind="acp", command=("agent", "--acp", "two words")),
        "b": AgentConfig(kind="acp", command=(str(Path("bin/agent").absolute()),)),
    }
    host = build_host(Config(agents=agents), seed=0, paths=[])
    assert [host.agent_of(name).info.description for name in agents] == ["Runs agent (ACP)"] * 2
    with pytest.raises(ConfigError, match="expected a command, got 'a: No closing quotation"):
        make_launch(Flags(agents=["a=acp:'a"]), never)


def test_what_an_agent_runs_with_is_not_shown() -> None:
    assert "secret" not in repr(AgentConfig(kind="acp", command=("a",), env={"KEY": "secret"}))


def test_the_usual_file_need_not_be_there_but_one_that_is_named_must(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert load(None, never) == Config()
    with pytest.raises(ConfigError, match="there is no such file"):
        load(str(tmp_path / "none.toml"), never)


@pytest.mark.parametrize("base", [None, "", "/somewhere"])
def test_the_usual_file_is_where_the_platform_has_it(
    base: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if base is None:
        monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CONFIG_HOME", base)
    assert default_file() == platformdirs.user_config_path("ahpd", False) / "config.toml"


@pytest.mark.skipif("sys.platform != 'linux'")
def test_the_usual_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "ahpd").mkdir()
    written(tmp_path / "ahpd", "port = 5\n")
    assert load(None, never).port == 5


def test_what_a_host_is_built_with(tmp_path: Path) -> None:
    limits = LimitsConfig(
        client_queue_bytes=1 << 20, replay_bytes=2 << 20, replay_envelopes=8, grace_seconds=1.0
    )
    folder = tmp_path / "a b"
    folder.mkdir()
    host = build_host(Config(limits=limits), seed=1, paths=[folder])
    assert host.settings.served == (folder.as_uri(),)
    assert next(iter(host.agents)) == "demo"  # and then what is found here
    assert (host.settings.grace, host.window.limit) == (1.0, 8)
    root = host.ledger.find(ROOT)
    assert root is not None
    shown = root.state.config.values
    assert (shown["clientQueueBytes"], shown["replayBytes"]) == (1 << 20, 2 << 20)
    assert host.window.limit_bytes == 2 << 20


@pytest.mark.parametrize("key", ["client_queue_bytes", "replay_bytes"])
def test_the_file_takes_what_clients_may_set_while_it_runs(tmp_path: Path, key: str) -> None:
    for value, fits in (
        (LEAST_BYTES - 1, False),
        (LEAST_BYTES, True),
        (MOST_BYTES, True),
        (MOST_BYTES + 1, False),
    ):
        file = written(tmp_path, f"[limits]\n{key} = {value}\n")
        if fits:
            assert getattr(load(str(file), never).limits, key) == value
        else:
            with pytest.raises(ConfigError, match=f"limits.{key}: expected a whole number"):
                load(str(file), never)


def test_a_folder_that_cannot_be_served_is_named(tmp_path: Path) -> None:
    file = written(tmp_path, "")
    with pytest.raises(ConfigError, match=r"config\.toml cannot be served: it is not a folder"):
        build_host(Config(), seed=1, paths=[file])


@pytest.mark.parametrize("name", ["file", "http", "ahp-chat", "ahp-root", "Upper", "1st", ""])
def test_no_agent_has_a_name_that_its_sessions_could_not_have(name: str) -> None:
    assert not is_agent_name(name)


@pytest.mark.parametrize("name", ["demo", "claude-code", "x+y.z", "ahp-session"])
def test_what_agents_may_be_called(name: str) -> None:
    assert is_agent_name(name)
