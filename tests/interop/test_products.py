"""Real products, with a model server on loopback, on a daemon that is killed.

They are looked for in the folder AHPD_TEST_PRODUCTS (where npm installed them) and in PATH.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from ahpd.protocol.uris import URI, default_chat
from tests.daemon.support import Peer, daemon, peer, until
from tests.interop.fake_model import AFTER_A_TOOL, GREETING, WRITTEN, FakeModel

pytestmark = [pytest.mark.real_time, pytest.mark.products]

SESSION = URI("product:/11111111-1111-4111-8111-111111111111")
CHAT = default_chat(SESSION)
HELLO = "".join(GREETING)
BYE = "".join(AFTER_A_TOOL)
#: Seconds that one step may take; the first turn of some takes ten on a busy machine.
STEP = 100


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def product(name: str) -> str:
    """Its program; skips the test when it is not there."""
    folder = os.environ.get("AHPD_TEST_PRODUCTS")
    places = [] if folder is None else [str(Path(folder, "node_modules", ".bin"))]
    found = shutil.which(name, path=os.pathsep.join([*places, os.environ.get("PATH", "")]))
    if found is None:
        pytest.skip(f"{name} is neither in AHPD_TEST_PRODUCTS nor in PATH")
    return found


@attrs.frozen
class Stage:
    """A product on a daemon, with a folder to work in."""

    folder: Path
    work: Path
    config: Path

    def daemon(self) -> Any:
        """A daemon on what the last one left."""
        return daemon(self.folder, "--config", str(self.config), "--path", str(self.work))


def stage(folder: Path, command: list[str], environment: Mapping[str, str]) -> Stage:
    work = folder / "work"
    work.mkdir()
    config = folder / "config.toml"
    home = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    env = "\n".join(f"{k} = {json.dumps(v)}" for k, v in {**home, **environment}.items())
    config.write_text(
        f'[agents.product]\nkind = "acp"\ncommand = {json.dumps(command)}\n'
        f"[agents.product.env]\n{env}\n"
    )
    return Stage(folder, work, config)


@attrs.define
class Screen:
    """Somebody in the chat: asks, decides, and says how it went."""

    peer: Peer
    work: Path
    seq: int = 0

    async def dispatch(self, action: Any) -> None:
        self.seq += 1
        params = {"channel": CHAT, "clientSeq": self.seq, "action": action}
        await self.peer.send("dispatchAction", params)

    async def join(self) -> Any:
        await self.peer.hello()
        return await self.peer.request("subscribe", channel=CHAT)

    async def turn(
        self, turn_id: str, word: str, then: Callable[[Any], Any] | None = None
    ) -> tuple[str, Any, list[Any]]:
        """A turn in which `then` may answer each action with one; what ended it, the turn as the
        chat has it, and what asked for permission."""
        text = f"FAKE:{word} CWD={self.work}"
        message = {"text": text, "origin": {"kind": "user"}}
        when = "2031-01-01T00:00:00.000Z"
        await self.dispatch(
            {"type": "chat/turnStarted", "turnId": turn_id, "startedAt": when, "message": message}
        )
        asked: list[Any] = []
        with trio.fail_after(STEP):
            while True:
                action = await self._next_action()
                kind = action["type"]
                if action.get("turnId") != turn_id:
                    continue
                if kind == "chat/toolCallReady" and "confirmed" not in action:
                    asked.append(action)
                    await self.dispatch(
                        {
                            "type": "chat/toolCallConfirmed",
                            "turnId": turn_id,
                            "toolCallId": action["toolCallId"],
                            "approved": True,
                            "confirmed": "user-action",
                        }
                    )
                if then is not None and (answer := then(action)) is not None:
                    await self.dispatch(answer)
                if kind in ("chat/turnComplete", "chat/turnCancelled", "chat/error"):
                    break
        snapshot = (await self.peer.request("subscribe", channel=CHAT))["snapshot"]
        return kind, snapshot["state"]["turns"][-1], asked

    async def _next_action(self) -> Any:
        while True:
            message = self.peer.heard.pop(0) if self.peer.heard else await self.peer.next()
            if message.get("method") == "action":
                return message["params"]["action"]


def said(turn: Any) -> str:
    return "".join(each["content"] for each in turn["responseParts"] if each["kind"] == "markdown")


def calls(turn: Any) -> list[Any]:
    return [each["toolCall"] for each in turn["responseParts"] if each["kind"] == "toolCall"]


async def test_opencode(tmp_path: Path, model: FakeModel, wire: Any) -> None:
    at = stage(tmp_path, [product("opencode"), "acp"], {})
    models = {"fake-model": {"name": "Fake", "tool_call": True}}
    options = {"baseURL": f"{model.url}/v1", "apiKey": "x"}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "Fake", "options": options}
    settings = {
        "model": "fake/fake-model",
        "small_model": "fake/fake-model",
        "autoupdate": False,
        "share": "disabled",
        "enabled_providers": ["fake"],
        "permission": {"edit": "ask", "bash": "ask"},
        "provider": {"fake": {**provider, "models": models}},
    }
    (at.work / "opencode.json").write_text(json.dumps(settings))
    await whole_story(at, model, wire)


async def test_claude_agent_acp(tmp_path: Path, model: FakeModel, wire: Any) -> None:
    environment = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "sk-fake"}
    environment["IS_SANDBOX"] = ""  # set, and for root, it asks for what its program refuses
    at = stage(tmp_path, [product("claude-agent-acp")], environment)
    await whole_story(at, model, wire)


async def test_qwen(tmp_path: Path, model: FakeModel, wire: Any) -> None:
    """It asks for permission before it tells of a call, and never tells of one that is denied."""
    key = {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_MODEL": "fake"}
    at = stage(tmp_path, [product("qwen"), "--acp", "--auth-type=openai"], key)
    await whole_story(at, model, wire)


async def test_codex_acp(tmp_path: Path, model: FakeModel, wire: Any) -> None:
    """It behaves badly: its wrapper leaks the program, which outlives the end of its input."""
    at = stage(tmp_path, [product("codex-acp")], {"FAKE_KEY": "x"})
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text(
        'model = "fake-model"\nmodel_provider = "fake"\napproval_policy = "untrusted"\n'
        'sandbox_mode = "danger-full-access"\n'
        '[model_providers.fake]\nname = "Fake"\nwire_api = "responses"\nenv_key = "FAKE_KEY"\n'
        f'base_url = "{model.url}/v1"\n'
    )
    with at.daemon() as host:
        async with peer(host.url, wire.connection()) as each:
            ann = Screen(each, at.work)
            await each.hello()
            await each.request(
                "createSession", channel=SESSION, workingDirectories=[at.work.as_uri()]
            )
            await each.request("subscribe", channel=CHAT)
            kind, turn, _ = await ann.turn("t1", "hello")
            assert (kind, said(turn)[-len(HELLO) :]) == ("chat/turnComplete", HELLO)
            await command(ann)
            await cancel_in_the_stream(ann)
        assert host.end(signal.SIGKILL) == -signal.SIGKILL
    assert len(at_work_in(at.work)) == 2, "it goes on without anybody"
    with at.daemon() as host:
        assert at_work_in(at.work) == []
        async with peer(host.url, wire.connection()) as each:
            ann = Screen(each, at.work)
            await ann.join()
            seen = len(model.requests)
            kind, turn, _ = await ann.turn("t5", "hello")
            assert (kind, said(turn)[-len(HELLO) :]) == ("chat/turnComplete", HELLO)
            state = (await each.request("subscribe", channel=CHAT))["snapshot"]["state"]
            assert [one["id"] for one in state["turns"]] == ["t1", "t3", "t4", "t5"]
        assert any("FAKE:shell" in one for one in model.requests[seen:])
        assert host.end() == 0
    assert at_work_in(at.work) == []


async def whole_story(at: Stage, model: FakeModel, wire: Any) -> None:
    with at.daemon() as host:
        async with peer(host.url, wire.connection()) as each:
            ann = Screen(each, at.work)
            await each.hello()
            await each.request(
                "createSession", channel=SESSION, workingDirectories=[at.work.as_uri()]
            )
            await each.request("subscribe", channel=CHAT)
            await text_file_and_command(ann)
            await cancel_in_the_stream(ann)
        assert host.end(signal.SIGKILL) == -signal.SIGKILL
    until(lambda: not at_work_in(at.work))
    with at.daemon() as host:
        async with peer(host.url, wire.connection()) as each:
            ann = Screen(each, at.work)
            before = (await ann.join())["snapshot"]["state"]["turns"]
            seen = len(model.requests)
            kind, turn, _ = await ann.turn("t5", "hello")
            assert (kind, said(turn)) == ("chat/turnComplete", HELLO)
            after = (await each.request("subscribe", channel=CHAT))["snapshot"]["state"]["turns"]
            assert [one["id"] for one in after] == ["t1", "t2", "t3", "t4", "t5"]
            assert [said(one) for one in after[:4]] == [said(one) for one in before]
        assert any("FAKE:write" in one for one in model.requests[seen:]), "it is the same one"
        assert host.end() == 0
    assert at_work_in(at.work) == []


async def text_file_and_command(ann: Screen) -> None:
    kind, turn, _ = await ann.turn("t1", "hello")
    assert (kind, said(turn)) == ("chat/turnComplete", HELLO), turn
    kind, turn, asked = await ann.turn("t2", "write")
    assert (kind, said(turn)) == ("chat/turnComplete", BYE)
    file = ann.work / "a.txt"
    (edit,) = asked[0]["edits"]["items"]
    assert edit["after"]["uri"] == file.as_uri()
    assert edit["diff"] == {"added": 1, "removed": 0}
    assert file.read_text() == WRITTEN
    assert [call["status"] for call in calls(turn)] == ["completed"]
    await command(ann)


async def command(ann: Screen) -> None:
    kind, turn, asked = await ann.turn("t3", "shell")
    assert (kind, said(turn)[-len(BYE) :], len(asked)) == ("chat/turnComplete", BYE, 1)
    (call,) = calls(turn)
    assert "hi-from-shell" in json.dumps(call["content"])


async def cancel_in_the_stream(ann: Screen) -> None:
    cancelled = False

    def then(action: Any) -> Any:
        nonlocal cancelled
        if action["type"] != "chat/delta" or cancelled:
            return None
        cancelled = True
        return {"type": "chat/turnCancelled", "turnId": "t4", "duration": 0}

    kind, turn, _ = await ann.turn("t4", "slow", then)
    assert kind == "chat/turnCancelled"
    assert "tick0 " in said(turn)
    assert "tick150 " not in said(turn)


def at_work_in(folder: Path) -> list[str]:
    """The processes that have the folder as theirs."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if Path(os.readlink(entry / "cwd")) == folder:
                found.append(entry.name)
        except OSError:
            continue
    return found
