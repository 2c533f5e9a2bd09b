"""A model server on loopback, so that real agents run whole turns without credentials.

``python fake_model.py [PORT]`` prints its port. It speaks as much as agents need of Anthropic's
messages and of OpenAI's chat completions and responses. A word in the prompt says what the model
does: ``FAKE:write``, ``FAKE:shell`` and ``FAKE:edit`` call a tool, ``FAKE:slow`` talks for twenty
seconds, ``FAKE:fail`` is an error of the server's; anything else gets a short text, and so does the
result of a tool. ``CWD=/folder`` says where a tool writes ``a.txt``.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import attrs

GREETING = ("Hello ", "from ", "the ", "fake ", "model.")
AFTER_A_TOOL = ("Tool ", "finished. ", "Bye.")
#: What a shell tool is told to run.
COMMAND = "touch touched && echo hi-from-shell"
#: What a writing tool is told to write.
WRITTEN = "two\n"

#: What agents call their tools.
_TOOLS: Mapping[str, Sequence[str]] = {
    "write": ("Write", "write", "write_file", "WriteFile", "create_file"),
    "shell": ("Bash", "bash", "run_shell_command", "exec_command", "shell", "shell_command"),
    "edit": ("Edit", "edit", "replace", "edit_file", "search_replace"),
}

#: What an argument is, by its name.
_ARGUMENTS: Sequence[tuple[str, Callable[[str], str]]] = (
    ("path|file", lambda cwd: f"{cwd}/a.txt"),
    ("^(cmd|command)$", lambda _: COMMAND),
    ("old", lambda _: "one"),
    ("new|content|text|data", lambda _: WRITTEN),
    ("", lambda _: "test step"),
)
_OTHERS: Mapping[str, Any] = {"boolean": False, "integer": 1, "number": 1, "object": {}}


@attrs.frozen
class Says:
    """The model says this, piece by piece, with so many seconds after each."""

    pieces: Sequence[str]
    pause: float = 0.01


@attrs.frozen
class Calls:
    """The model calls a tool."""

    name: str
    arguments: Mapping[str, Any]

    @property
    def text(self) -> str:
        return json.dumps(self.arguments)


class Broken(Exception):
    """The server has an error of its own."""


def act(prompt: str, tools: Mapping[str, Any], *, is_answered: bool) -> Says | Calls:
    """What the model does; `tools` has their schemas. Raises `Broken`."""
    word = (re.findall(r"FAKE:(\w+)", prompt) or [""])[-1]
    if word == "fail":
        raise Broken
    if is_answered:
        return Says(AFTER_A_TOOL)
    if word == "slow":
        return Says([f"tick{number} " for number in range(200)], 0.1)
    if word not in _TOOLS:
        return Says(GREETING)
    name = next((each for each in _TOOLS[word] if each in tools), None)
    if name is None:
        return Says([f"no {word} tool among {sorted(tools)}"])
    cwd = (re.findall(r"CWD=(\S+)", prompt) or ["/tmp"])[-1]
    return Calls(name, _arguments(tools[name] or {}, cwd))


def _arguments(schema: Any, cwd: str) -> Mapping[str, Any]:
    properties = schema.get("properties", {})
    return {
        key: _argument(key, properties.get(key, {}), cwd)
        for key in schema.get("required", list(properties))
    }


def _argument(key: str, schema: Any, cwd: str) -> Any:
    kind = schema.get("type", "string")
    if "enum" in schema:
        return schema["enum"][0]
    if kind == "array":
        return ["bash", "-lc", COMMAND] if key == "command" else []
    if kind != "string":
        return _OTHERS.get(kind, "x")
    return next(make(cwd) for pattern, make in _ARGUMENTS if re.search(pattern, key, re.I))


def text_of(content: Any) -> str:
    """The text of a message's content."""
    if isinstance(content, str):
        return content
    return " ".join(each.get("text") or "" for each in content or () if isinstance(each, dict))


# ---- the three ways to talk ----------------------------------------------------------------------
#
# Each reads a request, and yields the events of the answer, as (event's name or None, data).

_Events = Iterator[tuple[str | None, Any]]


def anthropic(request: Any, does: Says | Calls) -> _Events:
    """``/v1/messages``, streamed."""
    name = f"msg_{time.time_ns()}"
    usage = {"input_tokens": 20, "output_tokens": 1}
    message: dict[str, Any] = {"id": name, "type": "message", "role": "assistant", "content": []}
    message |= {"model": request.get("model", "fake"), "stop_reason": None, "usage": usage}

    def event(kind: str, **data: Any) -> tuple[str, Any]:
        return kind, {"type": kind, **data}

    yield event("message_start", message=message)
    if isinstance(does, Says):
        yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        for piece in does.pieces:
            delta = {"type": "text_delta", "text": piece}
            yield event("content_block_delta", index=0, delta=delta)
            time.sleep(does.pause)
    else:
        block = {"type": "tool_use", "id": f"toolu_{time.time_ns()}", "name": does.name}
        yield event("content_block_start", index=0, content_block={**block, "input": {}})
        delta = {"type": "input_json_delta", "partial_json": does.text}
        yield event("content_block_delta", index=0, delta=delta)
    yield event("content_block_stop", index=0)
    reason = "end_turn" if isinstance(does, Says) else "tool_use"
    yield event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 7})
    yield event("message_stop")


def anthropic_whole(request: Any, does: Says | Calls) -> Any:
    """The same in one piece."""
    block: Any = {"type": "text", "text": "".join(does.pieces)} if isinstance(does, Says) else {}
    if isinstance(does, Calls):
        block = {"type": "tool_use", "id": f"toolu_{time.time_ns()}"}
        block |= {"name": does.name, "input": does.arguments}
    return {
        "id": f"msg_{time.time_ns()}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", "fake"),
        "content": [block],
        "stop_reason": "end_turn" if isinstance(does, Says) else "tool_use",
        "usage": {"input_tokens": 20, "output_tokens": 7},
    }


def read_anthropic(request: Any) -> tuple[str, Mapping[str, Any], bool]:
    """The prompt, the tools, and whether the last thing was the result of one."""
    newest: list[Any] = []
    for message in reversed(request.get("messages") or []):
        if message.get("role") == "assistant":
            break
        content = message.get("content")
        text = [{"type": "text", "text": content}] if isinstance(content, str) else content
        newest = [*(text or []), *newest]
    is_answered = False
    for each in newest:  # agents add reminders of their own, before and after
        if each.get("type") == "tool_result":
            is_answered = True
        elif "FAKE:" in (each.get("text") or ""):
            is_answered = False
    tools = {each["name"]: each.get("input_schema") for each in request.get("tools") or ()}
    return text_of([each for each in newest if each.get("type") == "text"]), tools, is_answered


def chat(request: Any, does: Says | Calls) -> _Events:
    """``/v1/chat/completions``, streamed."""
    head = {"id": f"c{time.time_ns()}", "object": "chat.completion.chunk", "created": 1}
    head["model"] = request.get("model", "fake")

    def event(delta: Any, reason: str | None = None) -> tuple[None, Any]:
        return None, {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    yield event({"role": "assistant", "content": ""})
    if isinstance(does, Says):
        for piece in does.pieces:
            yield event({"content": piece})
            time.sleep(does.pause)
    else:
        function = {"name": does.name, "arguments": does.text}
        call = {"index": 0, "id": f"call_{time.time_ns()}", "type": "function"}
        yield event({"tool_calls": [{**call, "function": function}]})
    yield event({}, "stop" if isinstance(does, Says) else "tool_calls")
    usage = {"prompt_tokens": 20, "completion_tokens": 7, "total_tokens": 27}
    yield None, {**head, "choices": [], "usage": usage}
    yield None, "[DONE]"


def read_chat(request: Any) -> tuple[str, Mapping[str, Any], bool]:
    """The same as `read_anthropic`."""
    messages = request.get("messages") or [{}]
    said = [text_of(each["content"]) for each in messages if each.get("role") == "user"]
    tools = {
        each["function"]["name"]: each["function"].get("parameters")
        for each in request.get("tools") or ()
    }
    return (said or [""])[-1], tools, messages[-1].get("role") == "tool"


def responses(request: Any, does: Says | Calls) -> _Events:
    """``/v1/responses``, streamed."""
    name = f"resp_{time.time_ns()}"

    def event(kind: str, **data: Any) -> tuple[str, Any]:
        return kind, {"type": kind, **data}

    begun = {"id": name, "object": "response", "status": "in_progress", "output": []}
    yield event("response.created", response=begun)
    item: dict[str, Any]
    if isinstance(does, Says):
        item = {"type": "message", "id": f"msg_{name}", "role": "assistant", "content": []}
        yield event("response.output_item.added", output_index=0, item=item)
        for piece in does.pieces:
            place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
            yield event("response.output_text.delta", **place, delta=piece)
            time.sleep(does.pause)
        text = {"type": "output_text", "text": "".join(does.pieces), "annotations": []}
        item = {**item, "status": "completed", "content": [text]}
    else:
        item = {"type": "function_call", "id": f"fc_{name}", "call_id": f"call_{name}"}
        item |= {"name": does.name, "arguments": does.text, "status": "completed"}
    yield event("response.output_item.done", output_index=0, item=item)
    usage: dict[str, Any] = {"input_tokens": 20, "output_tokens": 7, "total_tokens": 27}
    usage["input_tokens_details"] = {"cached_tokens": 0}
    usage["output_tokens_details"] = {"reasoning_tokens": 0}
    done = {**begun, "status": "completed", "output": [item], "usage": usage}
    yield event("response.completed", response=done)


def read_responses(request: Any) -> tuple[str, Mapping[str, Any], bool]:
    """The same as `read_anthropic`."""
    given = request.get("input") or []
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    said = [
        text_of(each["content"])
        for each in items
        if each.get("type", "message") == "message" and each.get("role") == "user"
    ]
    tools = {
        each["name"]: each.get("parameters")
        for each in request.get("tools") or ()
        if each.get("type") == "function"
    }
    is_answered = bool(items) and str(items[-1].get("type", "")).endswith("_output")
    return (said or [""])[-1], tools, is_answered


_WAYS = {
    "/messages": (read_anthropic, anthropic),
    "/chat/completions": (read_chat, chat),
    "/responses": (read_responses, responses),
}


class FakeModel(ThreadingHTTPServer):
    """The server. `requests` are the bodies it got, as text."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.requests: list[str] = []

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeModel

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is written."""

    def do_HEAD(self) -> None:
        self._answer({})

    def do_GET(self) -> None:
        model = {"id": "fake-model", "object": "model", "type": "model", "display_name": "Fake"}
        self._answer({"object": "list", "data": [model], "models": [], "has_more": False})

    def do_POST(self) -> None:
        body = self._body()
        self.server.requests.append(body.decode(errors="replace"))
        path = self.path.split("?")[0]
        with suppress(BrokenPipeError, ConnectionResetError):
            if path.endswith("/count_tokens"):
                self._answer({"input_tokens": 10})
                return
            for end, (read, stream) in _WAYS.items():
                if path.endswith(end):
                    self._talk(json.loads(body), read, stream)
                    return
            self._answer({})

    def _talk(self, request: Any, read: Any, stream: Any) -> None:
        prompt, tools, is_answered = read(request)
        try:
            # Without tools it is a request for a title, or the like.
            does = act(prompt if tools else "", tools, is_answered=is_answered)
        except Broken:
            error = {"type": "api_error", "message": "scripted failure", "code": 500}
            self._answer({"type": "error", "error": error}, 500)
            return
        if stream is anthropic and not request.get("stream"):
            self._answer(anthropic_whole(request, does))
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for name, data in stream(request, does):
            head = "" if name is None else f"event: {name}\n"
            text = data if isinstance(data, str) else json.dumps(data)
            self._chunk(f"{head}data: {text}\n\n".encode())
        self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _answer(self, value: Any, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        found = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found


def main(port: int = 0) -> None:
    """Serve until it is ended."""
    with FakeModel(port) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
