"""An agent that speaks ACP and misbehaves as it is told. Nothing but the standard library.

``python rogue.py [START…]``: words that say how it lives. The words of a prompt say what a turn
does (`TURNS`, in order; a turn then ends with ``end_turn``). What it was sent it writes to the file
that ``ROGUE_LOG`` names, a line each; what it remembers is in the folder ``ROGUE_HOME``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

START = set(sys.argv[1:])
HOME = Path(os.environ.get("ROGUE_HOME", "."))
SESSION = "rogue-1"
OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "maybe", "name": "Maybe", "kind": "who_knows"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
out = sys.stdout.buffer


def write(text: str, end: str = "\n") -> None:
    out.write((text + end).encode("utf-8", "surrogatepass"))
    out.flush()


def send(**message: Any) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}))


def goes_on_with(session: str) -> None:
    """The conversation that this process is about."""
    global SESSION
    SESSION = session


def update(kind: str, /, session: str = "", **fields: Any) -> dict[str, Any]:
    body = {"sessionUpdate": kind, **fields}
    params = {"sessionId": session or SESSION, "update": body}
    return {"method": "session/update", "params": params}


def say(text: str, session: str = "", **more: Any) -> None:
    content = {"type": "text", "text": text}
    send(**update("agent_message_chunk", session=session, content=content, **more))


def call(kind: str, call_id: str, /, **fields: Any) -> None:
    send(**update(kind, toolCallId=call_id, **fields))


def log(line: str) -> None:
    name = os.environ.get("ROGUE_LOG")
    if name:
        with Path(name).open("a") as file:
            file.write(line.strip() + "\n")


def read() -> dict[str, Any]:
    """The next message; ends the program with its input, if it cares for that."""
    line = sys.stdin.readline()
    if not line:
        if "deaf-to-eof" in START:
            time.sleep(3600)
        sys.exit(0)
    log(line)
    message: dict[str, Any] = json.loads(line)
    return message


class Cancelled(Exception):
    pass


def ask(call_id: str, /, request_id: Any = "ask-ü", **fields: Any) -> str:
    """Ask for permission and wait; what was chosen, or ``cancelled``."""
    params = {
        "sessionId": SESSION,
        "toolCall": {"toolCallId": call_id, **fields},
        "options": OPTIONS,
    }
    send(id=request_id, method="session/request_permission", params=params)
    return str(answer(request_id).get("outcome", {}).get("optionId", "cancelled"))


def answer(request_id: Any) -> dict[str, Any]:
    cancelled = False
    while True:
        message = read()
        if message.get("method") == "session/cancel":
            cancelled = True
        elif "method" not in message and message["id"] == request_id:
            if cancelled:
                raise Cancelled
            found: dict[str, Any] = message["result"] if "result" in message else message["error"]
            return found


def until_cancelled() -> None:
    while read().get("method") != "session/cancel":
        pass
    raise Cancelled


DIFF = {"type": "diff", "path": "a.txt", "oldText": "old\nsame\n", "newText": "new\nsame\n"}


def text_content(text: str) -> list[dict[str, Any]]:
    return [{"type": "content", "content": {"type": "text", "text": text}}]


def usual_order() -> None:
    call("tool_call", "c1", title="Preparing", kind="edit", status="pending", rawInput={})
    call("tool_call_update", "c1", title="Edit a.txt", rawInput={"path": "a.txt"}, content=[DIFF])
    chosen = ask("c1", title="Edit a.txt")
    if chosen in ("yes", "always"):
        call("tool_call_update", "c1", _meta={"x": 1})
        call("tool_call_update", "c1", status="completed", content=[DIFF, *text_content("ok")])
    else:
        call("tool_call_update", "c1", status="failed", content=text_content("rejected"))
    say(f"chose {chosen}")


def asks_first() -> None:
    chosen = ask("c2", title="Run it", kind="execute", rawInput={"command": "ls"})
    call("tool_call", "c2", title="Run it", kind="execute", status="in_progress")
    call("tool_call_update", "c2", status="completed", rawOutput={"output": "a.txt"})
    say(f"chose {chosen}")


def only_updates() -> None:
    chosen = ask("c3", title="Write b", kind="edit", content=[{**DIFF, "oldText": None}])
    if chosen != "no":
        call("tool_call_update", "c3", status="completed", content=text_content("done"))
    say(f"chose {chosen}")


def asks_as_pending() -> None:
    chosen = ask("pending", title="Run", rawInput={"command": "ls"})
    call("tool_call", "c4", title="Run ls", status="in_progress")
    call("tool_call_update", "c4", status="completed", content=text_content("listed"))
    say(f"chose {chosen}")


def left_open() -> None:
    call("tool_call", "running", title="Runs", status="in_progress")
    call("tool_call", "waiting", title="Waits", status="pending")


def grows() -> None:
    call("tool_call", "g", title="Grows", kind="execute", status="in_progress")
    for length in range(1, 200):
        call("tool_call_update", "g", content=text_content("x" * length))
    call("tool_call_update", "g", status="completed")


def takes_back() -> None:
    params = {"sessionId": SESSION, "toolCall": {"toolCallId": "b"}, "options": OPTIONS}
    send(id=0, method="session/request_permission", params=params)
    send(method="$/cancel_request", params={"requestId": 0})
    answer(0)
    say("taken back")


def asks_for_everything() -> None:
    for number, method in enumerate(("fs/read_text_file", "terminal/create", "_vendor/x", "zzz")):
        request_id: Any = (number, "s-1", 1.5, "s-1")[number]
        send(id=request_id, method=method, params={"path": "/etc/passwd"})
        say(str(answer(request_id).get("code")))
    send(method="_vendor/y", params=[1])
    send(method="zzz/note")
    send(id=12345, result={})
    send(id="never", error="text")


def odd_kinds() -> None:
    send(**update("never_heard_of", content={}))
    send(**update("agent_message_chunk", content={"type": "hologram"}))
    send(**update("agent_message_chunk"))
    send(**update("tool_call"))
    send(**update("plan", entries=[{"content": "Look", "status": "in_progress"}, 7]))
    send(**update("current_mode_update", currentModeId="code"))
    send(**update("session_info_update", updatedAt="2030-01-01"))
    send(**update("session_info_update", title="A title"))
    send(**update("usage_update", used=5, size=10, cost={"amount": 0.5, "currency": "EUR"}))
    send(**update("available_commands_update", availableCommands=[{"name": "go"}, {"no": 1}]))
    send(**update("available_commands_update", availableCommands=[{"name": "go"}]))
    send(method="session/update", params={"sessionId": SESSION})
    send(method="session/update")


def fails_at_once() -> None:
    time.sleep(0.05)
    sys.stderr.write("\x1b[31mout of luck\n")
    sys.stderr.flush()
    os._exit(3)


def killed_asking() -> None:
    params = {"sessionId": SESSION, "toolCall": {"toolCallId": "k"}, "options": OPTIONS}
    send(id="k", method="session/request_permission", params=params)
    send(id="e", method="elicitation/create", params={"mode": "form", "requestedSchema": FORM})
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGKILL)


def closes_its_output() -> None:
    os.close(1)
    time.sleep(3600)


def leaves_an_orphan() -> None:
    subprocess.Popen(["sleep", "3600"], stdin=subprocess.DEVNULL)
    say("last words")
    os._exit(1)


def ends_without_a_newline() -> None:
    content = {"type": "text", "text": "end"}
    write(json.dumps(update("agent_message_chunk", content=content)), end="")
    os._exit(0)


def two_messages() -> None:
    say("one", messageId="1")
    say("two", messageId="2")


def burst() -> None:
    messages = [
        {"jsonrpc": "2.0", **update("agent_message_chunk", content={"type": "text", "text": each})}
        for each in ("a", "b", "c")
    ]
    write("\n".join(json.dumps(each) for each in messages))


def child_says(text: str, child: str = "rogue-1-sub") -> None:
    say(text, session=child)


def child_told(state: str | None, child: str = "rogue-1-sub", **more: Any) -> None:
    fields = {} if state is None else {"state": {"state": state, **more}}
    body = {"sessionUpdate": "subagent_update", "sessionId": child, "title": "Look", **fields}
    params = {"sessionId": SESSION, "update": {"description": "around", **body}}
    send(method="session/update", params=params)


def sub_agent() -> None:
    child_told("running")
    child_says("Looked.")
    params = {"sessionId": "rogue-1-sub", "toolCall": {"toolCallId": "c1"}, "options": OPTIONS}
    send(id="sub", method="session/request_permission", params=params)
    chosen = answer("sub")["outcome"].get("optionId")
    send(**update("tool_call_update", "rogue-1-sub", toolCallId="c1", status="completed"))
    child_says(f" Chose {chosen}.")
    child_told("idle", stopReason="end_turn")
    child_told("running")
    child_told("idle", error={"message": "lost"})


def sub_agent_goes_on() -> None:
    child_told("running")
    child_says("Begun.")

    def ends() -> None:
        child_says(" Done.")
        child_told("idle")

    threading.Timer(0.2, ends).start()


FORM = {
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 1},
        "n": {"type": "integer", "minimum": 1, "default": 2},
        "sure": {"type": "boolean"},
        "size": {"type": "string", "enum": ["s", "m"], "default": "m"},
        "tags": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
        "odd": {"type": "hologram", "description": "What?"},
    },
    "required": ["name"],
}


def elicits(request_id: Any = "form", **params: Any) -> None:
    params = {"sessionId": SESSION, "message": "Who?", **params}
    send(id=request_id, method="elicitation/create", params=params)
    say(json.dumps(answer(request_id)))


def elicits_url() -> None:
    params = {"message": "Open", "mode": "url", "url": "https://example.org/x"}
    params.update(sessionId=SESSION, elicitationId="e1")
    send(id="url", method="elicitation/create", params=params)
    time.sleep(0.1)
    send(method="elicitation/complete", params={"elicitationId": "never"})
    send(method="elicitation/complete", params={"elicitationId": "e1"})
    say(json.dumps(answer("url")))


def elicits_and_takes_back() -> None:
    send(
        id="back",
        method="elicitation/create",
        params={"sessionId": SESSION, "mode": "form", "requestedSchema": FORM},
    )
    send(method="$/cancel_request", params={"requestId": "back"})
    say(json.dumps(answer("back")))


def plans() -> None:
    items = [{"content": "Look", "status": "in_progress"}]
    for plan in (
        {"type": "items", "planId": "1", "entries": items},
        {"type": "markdown", "planId": "2", "content": "# Plan"},
    ):
        send(**update("plan_update", plan=plan))
    send(**update("plan_removed", planId="1"))


def compacts() -> None:
    send(**update("compaction_update", compactionId="c", status="in_progress"))
    for text in ("Short", "er."):
        content = {"type": "text", "text": text}
        send(**update("compaction_summary_chunk", compactionId="c", content=content))
    send(**update("compaction_update", compactionId="c", status="completed"))
    send(**update("compaction_update", compactionId="d", status="failed", error={"message": "no"}))
    send(**update("notice", severity="warning", title="Careful", description="hot"))


def floods() -> None:
    for _ in range(5000):
        send(id=1, method="zzz")
    time.sleep(3600)


def lists(request_id: Any, cursor: str | None) -> None:
    """Two pages; the conversation that is going on is among them."""
    if "list-hangs" in START:
        time.sleep(3600)
    if "list-fails" in START or (HOME / "list-fails").exists():
        send(id=request_id, error={"code": -32000, "message": "Log in"})
        return
    old = {
        "sessionId": "old-1",
        "cwd": str(HOME),
        "title": "Old",
        "updatedAt": "2026-01-02T03:04:05Z",
    }
    new = {"sessionId": "rogue-1", "cwd": str(HOME)}
    pages: dict[str | None, Any] = {
        None: {"sessions": [old, 7, {"cwd": "/"}], "nextCursor": "2"},
        "2": {"sessions": [new], "nextCursor": None},
    }
    if (HOME / "deleted").exists():
        pages = {None: {"sessions": []}}
    send(id=request_id, result=pages[cursor])


def wants(method: str, **params: Any) -> Any:
    """Have the host do something; its result, or the error's code."""
    send(id=f"w-{method}", method=method, params={"sessionId": SESSION, **params})
    found = answer(f"w-{method}")
    return found.get("code", found)


def terminal(*args: str, limit: int | None = None, **more: Any) -> str:
    params = {"command": args[0], "args": list(args[1:]), **more}
    if limit is not None:
        params["outputByteLimit"] = limit
    return str(wants("terminal/create", **params)["terminalId"])


def runs_a_command() -> None:
    env = [{"name": "WHO", "value": "w\u00f6rld"}]
    one = terminal("sh", "-c", 'printf "hello $WHO\n"; exit 3', env=env, limit=5)
    call("tool_call", "t1", title="Say hello", kind="execute", status="in_progress")
    call("tool_call_update", "t1", content=[{"type": "terminal", "terminalId": one}])
    over = wants("terminal/wait_for_exit", terminalId=one)
    output = wants("terminal/output", terminalId=one)
    content = [{"type": "terminal", "terminalId": one}]
    wants("terminal/release", terminalId=one)
    call("tool_call_update", "t1", status="completed", content=content)
    gone = wants("terminal/output", terminalId=one)
    say(json.dumps([over, output, gone]))


def kills_a_command() -> None:
    one = terminal("echo started; sleep 3600")
    while "started" not in wants("terminal/output", terminalId=one)["output"]:
        time.sleep(0.01)
    send(id="long", method="terminal/wait_for_exit", params={"terminalId": one})
    send(method="$/cancel_request", params={"requestId": "long"})
    taken_back = answer("long")["code"]
    wants("terminal/kill", terminalId=one)
    over = wants("terminal/wait_for_exit", terminalId=one)
    say(json.dumps([taken_back, over["exitCode"], isinstance(over["signal"], str)]))


def wrong_commands() -> None:
    tries = [
        wants("terminal/create", command="ls", cwd="/etc"),
        wants("terminal/create", command="ls", cwd="etc"),
        wants("terminal/create", command=""),
        wants("terminal/create", command="ls", outputByteLimit=-1),
        wants("terminal/output", terminalId="term-99"),
        wants("terminal/kill"),
    ]
    say(json.dumps(tries))


def leaves_a_command() -> None:
    say(terminal("sleep 3600"))


def files() -> None:
    here = os.getcwd()
    Path("out").symlink_to("/etc")
    wants("fs/write_text_file", path=f"{here}/new.txt", content="1\n2\u00e4\n3\n")
    tries = [
        wants("fs/read_text_file", path=f"{here}/new.txt"),
        wants("fs/read_text_file", path=f"{here}/new.txt", line=2, limit=1),
        wants("fs/read_text_file", path=f"{here}/gone"),
        wants("fs/read_text_file", path=f"{here}/out/hostname"),
        wants("fs/read_text_file", path="/etc/hostname"),
        wants("fs/read_text_file", path="new.txt"),
        wants("fs/write_text_file", path="/etc/x", content=""),
        wants("fs/write_text_file", path=f"{here}/x"),
    ]
    say(json.dumps(tries))


TURNS: dict[str, Callable[[], None]] = {
    "hello": lambda: say("Hello\u2028you\u0085."),
    "usual": usual_order,
    "first": asks_first,
    "updates": only_updates,
    "pending": asks_as_pending,
    "open": left_open,
    "grows": grows,
    "back": takes_back,
    "everything": asks_for_everything,
    "odd": odd_kinds,
    "burst": burst,
    "sets": lambda: sets_itself(),
    "noise": lambda: write('Welcome to the rogue!\n\n[1, 2]\n{\n{}\n"x"'),
    "nan": lambda: write(
        '{"method":"session/update","params":{"update":{"sessionUpdate":"usage_update",'
        '"used":NaN,"size":1e999}}}'
    ),
    "half": lambda: say("half \ud83d"),
    "huge": lambda: say("x" * (5 << 20)),
    "too-huge": lambda: say("x" * (300 << 10)),
    "messages": two_messages,
    "die": fails_at_once,
    "close": closes_its_output,
    "killed": killed_asking,
    "orphan": leaves_an_orphan,
    "wait": until_cancelled,
    "sub": sub_agent,
    "sub-on": sub_agent_goes_on,
    "child": lambda: child_says("Unheard of."),
    "form": lambda: elicits(mode="form", requestedSchema=FORM),
    "url": elicits_url,
    "form-back": elicits_and_takes_back,
    "mode-x": lambda: elicits(mode="telepathy"),
    "plans": plans,
    "floods": floods,
    "command": runs_a_command,
    "kill": kills_a_command,
    "wrong-commands": wrong_commands,
    "leave": leaves_a_command,
    "files": files,
    "compacts": compacts,
    "env": lambda: say(os.environ.get("ROGUE_KEY", "nothing")),
    "hang": lambda: time.sleep(3600),
    "no-newline": ends_without_a_newline,
}


def turn(request: dict[str, Any]) -> None:
    request_id, blocks = request["id"], request["params"]["prompt"]
    words = blocks[0]["text"].split()
    with (HOME / "said").open("a") as file:
        file.write(blocks[0]["text"] + "\n")
    if "refuse" in words and not (HOME / "signed-in").exists():
        error = {"code": -32000, "message": "Log in", "data": {"authMethods": [{"id": "web"}]}}
        send(id=request_id, error=error)
        return
    if "fail" in words:
        send(id=request_id, error={"code": -32603, "message": "Internal", "data": "disk full"})
        return
    try:
        for word in words:
            if word in TURNS:
                TURNS[word]()
    except Cancelled:
        if "late" in words:
            for number in range(5):
                say(f"late {number} ")
                time.sleep(0.02)
            call("tool_call", "late", title="Late", status="in_progress")
        stop = "end_turn" if "lies" in words else "cancelled"
        send(id=request_id, result={"stopReason": stop})
        return
    reason = next((each[5:] for each in words if each.startswith("stop=")), "end_turn")
    usage = {"inputTokens": 3, "outputTokens": 4}
    send(result={"stopReason": reason, "usage": usage}, id=request_id)
    if "after" in words:
        say("after the end")
    if "later" in words:
        threading.Timer(0.1, lambda: say("later")).start()
        threading.Timer(0.1, lambda: send(**update("notice", title="Late"))).start()
        call("tool_call_update", "running", status="completed")


def replay() -> None:
    said = HOME / "said"
    for line in said.read_text().splitlines() if said.exists() else ():
        for piece in (line[:2], line[2:]):
            content = {"type": "text", "text": piece}
            send(**update("user_message_chunk", SESSION, content=content))
        say("REPLAYED ", SESSION)
        if "calls" in line:
            call("tool_call", "r1", title="Did it", status="completed")


VALUES: dict[str, Any] = {"mode": "ask", "model": "small", "think": False}
MODES = [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]
MODELS = [{"group": "g", "name": "G", "options": [{"value": each} for each in ("small", "big")]}]


def settings() -> dict[str, Any]:
    """What can be set, in an answer."""
    if "modes" in START:
        found: dict[str, Any] = {"currentModeId": VALUES["mode"], "availableModes": MODES}
        if "models" not in START:
            return {"modes": found}
        models = [{"modelId": each, "name": each} for each in ("small", "big")]
        return {"modes": found, "models": {"currentModelId": "small", "availableModels": models}}
    if "options" not in START:
        return {}
    model = {"id": "model", "name": "Model", "type": "select", "options": MODELS}
    think = {"id": "think", "name": "Think", "type": "boolean"}
    odd = {"id": "odd", "name": "Odd", "type": "slider", "currentValue": 3}
    options = [{**each, "currentValue": VALUES.get(str(each["id"]))} for each in (model, think)]
    return {"configOptions": [*options, odd]}


def sets_itself() -> None:
    VALUES.update(mode="code", model="big")
    if "modes" in START:
        send(**update("current_mode_update", currentModeId="code"))
    else:
        send(**update("config_option_update", **settings()))


def begin(message: dict[str, Any]) -> None:
    method, request_id = message["method"], message["id"]
    if method == "initialize":
        if "dies" in START:
            sys.stderr.write("no key\n" * 20_000)
            sys.exit(1)
        if "chatty" in START:
            write("this program is no longer maintained")
            sys.exit(0)
        if "silent" in START:
            time.sleep(3600)
        version = 2 if "new-version" in START else 1
        able: dict[str, Any] = {"promptCapabilities": {"image": True}}
        if "resumes" in START or "really-resumes" in START:
            able["sessionCapabilities"] = {"resume": {}}
        if "lists" in START:
            able["sessionCapabilities"] = {"list": {}, "delete": {}}
        if "forks" in START:
            able["sessionCapabilities"] = {"fork": {}}
        if "loads" in START:
            able["loadSession"] = True
        if "logs-out" in START:
            able["auth"] = {"logout": {}}
        methods: list[Any] = [{"id": "web", "name": "Browser", "description": "opens a page"}]
        if "many-ways" in START:
            methods += [
                {"id": "key", "name": "Key", "type": "env_var", "vars": [{"name": "ROGUE_KEY"}]},
                {"id": "tty", "name": "Terminal", "type": "terminal", "args": ["login"]},
                {"name": "no id"},
            ]
        result = {
            "protocolVersion": version,
            "agentCapabilities": able,
            "authMethods": methods,
        }
        send(id=request_id, result=result)
    elif method == "session/new":
        if "needs-auth" in START and not (HOME / "signed-in").exists():
            send(id=request_id, error={"code": -32000, "message": "Authentication required"})
            return
        if "early" in START:
            send(**update("available_commands_update", availableCommands=[{"name": "early"}]))
        send(id=request_id, result={"sessionId": SESSION, **settings()})
    elif method == "session/set_model":
        send(id=request_id, result={})
    elif method == "session/set_mode":
        VALUES["mode"] = message["params"]["modeId"]
        send(**update("current_mode_update", currentModeId=VALUES["mode"]))
        send(id=request_id, result=None)
    elif method == "session/set_config_option":
        if message["params"]["value"] == "none":
            send(id=request_id, error={"code": -32602, "message": "no such model"})
            return
        VALUES[message["params"]["configId"]] = message["params"]["value"]
        send(**update("config_option_update", **settings()))
        send(id=request_id, result=settings())
    elif method == "session/fork":
        if (HOME / "fork-fails").exists():
            send(id=request_id, error={"code": -32603, "message": "no"})
            return
        goes_on_with("forked-" + message["params"]["sessionId"])
        replay()
        send(id=request_id, result={"sessionId": SESSION})
    elif method == "session/list":
        lists(request_id, message["params"].get("cursor"))
    elif method == "session/delete":
        (HOME / "deleted").write_text(message["params"]["sessionId"])
        send(id=request_id, result={})
    elif method == "session/load":
        if "load-kills" in START:
            sys.exit(9)
        if "load-fails" in START and method == "session/load":
            send(id=request_id, error={"code": -32002, "message": "Resource not found"})
            return
        goes_on_with(message["params"]["sessionId"])
        replay()
        send(id=request_id, result=None)
        if "at-once" not in START:
            threading.Timer(0.1, replay).start()
    elif method == "session/resume" and "really-resumes" in START:
        if "repeats" in START:
            replay()
        send(id=request_id, result={})
    elif method == "session/prompt":
        turn(message)
    elif method == "authenticate":
        (HOME / "signed-in").touch()
        send(id=request_id, result={})
    elif method == "logout":
        (HOME / "signed-in").unlink(missing_ok=True)
        send(id=request_id, result={})
    else:
        send(id=request_id, error={"code": -32601, "message": "Method not found"})


def main() -> None:
    if "deaf-to-term" in START:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "parent" in START:
        subprocess.Popen(["sleep", "3600"], stdin=subprocess.DEVNULL)
    while True:
        message = read()
        if "method" in message and "id" in message:
            begin(message)


if __name__ == "__main__":
    main()
