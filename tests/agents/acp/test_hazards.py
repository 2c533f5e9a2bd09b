"""What agents were seen to do, one by one, with an agent in memory: nothing of it does harm."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
import trio

from ahpd.agents import events as ev
from ahpd.agents.acp import asks as acp_asks
from ahpd.agents.acp import backend, early, permissions, rpc
from ahpd.agents.acp.handshake import Abilities, failed
from ahpd.agents.acp.process import AgentGone
from ahpd.agents.acp.rpc import RpcFault
from ahpd.agents.acp.signin import Method
from ahpd.agents.events import Done, Failed, Stopped
from ahpd.agents.port import AgentFailed, Permission, SignInNeeded
from ahpd.protocol.tools import ToolResultTextContent
from tests.agents.acp.memory import LAST, Say, Script, Talk, answering, frame, talk, text, update
from tests.agents.support import Screen, prompt

OPTIONS = [
    {"optionId": "a", "name": "Always", "kind": "allow_always"},
    {"optionId": "y", "name": "Yes", "kind": "allow_once"},
    {"optionId": "abort", "name": "No", "kind": "reject_once"},
]


def asks(request_id: Any, call_id: str, **more: Any) -> bytes:
    params = {
        "sessionId": "s1",
        "toolCall": {"toolCallId": call_id, **more},
        "options": OPTIONS,
    }
    return frame(id=request_id, method="session/request_permission", params=params)


# ---- lines and messages (ACP 7 to 9, 12; B23, B37, B67, B68) ------------------------------------


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ([text("a").replace(b"\n", b"\r\n"), b"\r\n \n\n", text("b")], "ab"),
        ([bytes((each,)) for each in text("ab\u2028c")], "ab\u2028c"),
        ([text("x\u2028y\u2029z\u0085").replace(b"\\u2028", "\u2028".encode())], None),
        ([b"Welcome!\n", b"{\n", b"[1,2]\n", b'"x"\n', b"7\n", b"null\n", text("a")], "a"),
        ([b"[" * 100_000 + b"\n", text("a")], "a"),
        ([b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n", text("a")], "a"),
        ([b'{"x":' + b"9" * 100_000 + b"}\n", text("a")], "a"),
        ([b"\xff\xfe{}\n", text("a")], "a"),
        ([text("a").replace(b'"a"', b'"caf\xe9"')], "caf\ufffd"),
        ([text("a").replace(b'"a"', b'"\\ud83d"')], "\ufffd"),
        ([text("a")[:-2] + b',"params":{}}\n', text("b")], "b"),
        ([frame(id=None, error={"code": -32700, "message": "parse"}), text("a")], "a"),
        ([frame(id="never", result=1), frame(id=10**30, result=1), text("a")], "a"),
        (
            [frame(id=True, result=1), frame(id=[], result={}), frame(id=1.5, error=7), text("a")],
            "a",
        ),
        ([frame(method=42), frame(method=42, id=1), frame(), b"[]\n", text("a")], "a"),
        (
            [frame(method="x/y", params=[1]), frame(method="session/update", params=7), text("a")],
            "a",
        ),
        ([b"[" + text("a")[:-1] + b"," + text("b")[:-1] + b"]\n"], "ab"),
        ([text("a").replace(b'{"json', b'{"zzz": NaN, "inf": -Infinity, "json')], "a"),
        ([text("a").replace(b'{"json', b'{"big": 1e999, "json')], "a"),
    ],
)
async def test_whatever_it_writes_the_turn_goes_on(said: list[Say], heard: str | None) -> None:
    async with talk(answering(*said)) as it:
        outcome, screen = await it.turn()
        assert outcome == Done()
        assert screen.text == (heard if heard is not None else "x\u2028y\u2029z\u0085")
        assert (await it.turn())[0] == Done(), "and so does the next one"


async def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    def script(message: dict[str, Any]) -> Iterable[Say]:
        first = b"\xef\xbb\xbf" if message.get("method") == "initialize" else b""
        for each in answering(text("a"))(message):
            yield first + each if isinstance(each, bytes) else each

    async with talk(script) as it:
        assert (await it.turn())[1].text == "a"


async def test_noise_without_end_is_no_agent() -> None:
    noise = b"this is not the protocol\n" * (rpc.NOISE_LIMIT + 1)
    async with talk(answering(noise)) as it:
        with pytest.raises(AgentGone, match="not the protocol"):
            await it.turn()


async def test_the_last_line_needs_no_newline() -> None:
    async with talk(answering(text("a")[:-1], None)) as it:
        screen = Screen()
        with pytest.raises(AgentGone, match="exit code 0"):
            await it.backend.prompt(prompt(), screen)
        assert screen.text == "a"


async def test_keys_come_in_any_order_and_ids_of_both_sides_may_be_the_same() -> None:
    """Its own requests have ids of any kind, given back as they came (ACP 9, B44)."""
    ids: list[Any] = [0, 2, "s-1", "s-1", 1.5, None, "\u00e4"]
    said = [frame(id=each, method="_vendor/x", params={}) for each in ids]
    async with talk(answering(*said, text("a"))) as it:
        outcome, screen = await it.turn()
        assert (outcome, screen.text) == (Done(), "a")
        assert [each["id"] for each in it.answers()] == ids
        assert {each["error"]["code"] for each in it.answers()} == {-32601}
        assert all(type(a["id"]) is type(b) for a, b in zip(it.answers(), ids, strict=True))


@pytest.mark.parametrize(
    "method",
    ["fs/read_text_file", "fs/write_text_file", "terminal/create", "zzz", "", "session/prompt"],
)
async def test_what_is_not_offered_is_refused(method: str) -> None:
    params = {"sessionId": "s1", "path": "/etc/passwd", "command": "id"}
    async with talk(answering(frame(id=7, method=method, params=params), text("a"))) as it:
        assert (await it.turn())[1].text == "a"
        (answer,) = it.answers()
        assert (answer["id"], answer["error"]["code"]) == (7, -32601)
        client = it.asked("initialize")[0]["params"]["clientCapabilities"]
        assert client["fs"] == {"readTextFile": False, "writeTextFile": False}
        assert client["terminal"] is False


async def test_a_response_with_both_a_result_and_an_error_is_an_error() -> None:
    def script(message: dict[str, Any]) -> Iterable[Say]:
        if message.get("method") != "session/prompt":
            yield from answering()(message)
        else:
            error = {"code": 1001, "message": "both"}
            yield frame(id=message["id"], result={"stopReason": "end_turn"}, error=error)

    async with talk(script) as it:
        assert (await it.turn())[0] == Failed("both")


# ---- errors and answers (ACP 10 to 12, 20, 21, 24) ----------------------------------------------


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (None, "no"),
        ("disk full", "no: disk full"),
        ({"details": "why"}, "no: why"),
        ({"message": "m"}, "no: m"),
        ({"reason": 7}, "no"),
        ([1], "no"),
    ],
)
def test_errors_are_told_whatever_their_data(data: Any, told: str) -> None:
    error = failed(RpcFault(-32603, "no", data), Abilities())
    assert (error.message, type(error)) == (told, AgentFailed)


def test_a_sign_in_is_known_by_its_code_and_not_by_its_words() -> None:
    able = Abilities("x", ("x",), methods=(Method("web", "Web"),))
    without = failed(RpcFault(-32000, "API key is missing"), Abilities())
    assert isinstance(without, SignInNeeded)
    assert without.message == "the agent wants you to sign in first (API key is missing)."
    assert without.resources == ()
    own = failed(RpcFault(-32000, "x", {"authMethods": [{"id": "own"}]}), able)
    assert isinstance(own, SignInNeeded)
    assert [each.resource for each in own.resources] == ["acp-agent://x/own"]
    assert not isinstance(failed(RpcFault(-32603, "please log in"), able), SignInNeeded)


@pytest.mark.parametrize("new", [{}, {"sessionId": ""}, {"sessionId": 7}, [], "s1"])
async def test_a_new_session_without_a_name_is_none(new: Any) -> None:
    with pytest.raises(AgentFailed, match="without a session"):
        async with talk(answering(new=new)):
            pass


@pytest.mark.parametrize("result", [None, {}, [], {"stopReason": None}, {"stopReason": "new"}])
async def test_odd_answers_to_a_prompt_end_it(result: Any) -> None:
    def script(message: dict[str, Any]) -> Iterable[Say]:
        if message.get("method") == "session/prompt":
            yield frame(id=message["id"], result=result)
        else:
            yield from answering()(message)

    async with talk(script) as it:
        assert (await it.turn())[0] == Done()


# ---- tool calls (ACP 15, 16; B47) ---------------------------------------------------------------


def rows(screen: Screen) -> dict[str, str]:
    """Each call's row, and how it was left."""
    found: dict[str, str] = {}
    for event in screen.events:
        match event:
            case ev.ToolStarted():
                assert event.call_id not in found, "one row each"
                found[event.call_id] = "started"
            case ev.ToolAsks():
                found[event.call_id] = "asked"
            case ev.ToolReady():
                found[event.call_id] = "ready"
            case ev.ToolFinished():
                found[event.call_id] = "done" if event.success else "failed"
            case _:
                pass
    return found


async def test_calls_are_told_in_every_way() -> None:
    said = (
        update("tool_call", toolCallId="skips", title="Skips in_progress", status="pending"),
        update("tool_call_update", toolCallId="skips", status="completed"),
        update("tool_call", toolCallId="meta", title="First", rawInput={}, status="pending"),
        update("tool_call_update", toolCallId="meta", _meta={"x": 1}),
        update("tool_call_update", toolCallId="meta", title="Then", rawInput={"a": 1}),
        update("tool_call_update", toolCallId="meta", status="in_progress", title=None),
        update("tool_call_update", toolCallId="never announced", status="in_progress"),
        update("tool_call", toolCallId="pending", title="Stays", status="pending"),
        update("tool_call", toolCallId="odd", kind="who_knows", status="who_knows", content=7),
        update("tool_call", title="no id"),
        update("tool_call_update", toolCallId=7, status="completed"),
        update("tool_call_update", toolCallId="skips", status="in_progress", title="too late"),
    )
    async with talk(answering(*said)) as it:
        _, screen = await it.turn()
        assert rows(screen) == {
            "skips": "done",
            "meta": "failed",
            "never announced": "failed",
            "pending": "started",
            "odd": "started",
        }
        (ready,) = [
            each
            for each in screen.events
            if isinstance(each, ev.ToolReady) and each.call_id == "meta"
        ]
        assert (ready.message, ready.input) == ("Then", '{"a":1}')


def decides(it: Talk, *, approved: bool) -> Any:
    def then(event: ev.Event) -> None:
        if isinstance(event, ev.ToolAsks):
            it.backend.answer(Permission(event.call_id, approved=approved))
            it.process.say(*AFTER[approved])

    return then


#: What the agent says once somebody has decided; nothing at all when it was refused (ACP 16).
AFTER = {
    True: (update("tool_call_update", toolCallId="c", status="completed"),),
    False: (),
}


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("announced", [True, False])
async def test_a_call_that_is_asked_for_ends_whatever_is_decided(
    approved: bool, announced: bool
) -> None:
    """An error is never the answer (rule 6), and the option is chosen by its kind (ACP 17)."""

    def script(message: dict[str, Any]) -> Iterable[Say]:
        if message.get("method") == "session/prompt":
            if announced:
                yield update("tool_call", toolCallId="c", title="Write", status="pending")
            yield asks("q", "c", title="Write")
            yield 5.0
            yield frame(id=message["id"], result={"stopReason": "end_turn"})
        else:
            yield from answering()(message)

    async with talk(script) as it:
        outcome, screen = await it.turn(then=decides(it, approved=approved))
        assert outcome == Done()
        (answer,) = it.answers()
        chosen = "y" if approved else "abort"
        assert answer["result"] == {"outcome": {"outcome": "selected", "optionId": chosen}}
        assert rows(screen) == {"c": "failed" if approved else "asked"}


async def test_two_questions_about_one_call_are_two_rows() -> None:
    async with talk(answering(asks(1, "c"), asks(2, "c"), 1.0)) as it:
        _, screen = await it.turn(then=None)
        assert rows(screen) == {"c": "asked", "c#2": "asked"}
        cancelled = {"outcome": {"outcome": "cancelled"}}
        assert [(each["id"], each["result"]) for each in it.answers()] == [
            (1, cancelled),
            (2, cancelled),
        ], "nobody decided before the turn was over"


async def test_what_is_asked_between_turns_is_answered_at_once() -> None:
    async with talk(answering()) as it:
        await it.turn()
        it.process.say(asks("late", "c"))
        await trio.testing.wait_all_tasks_blocked()
        assert it.answers()[-1]["result"] == {"outcome": {"outcome": "cancelled"}}
        it.process.say(frame(id="e", method="elicitation/create", params={"mode": "form"}))
        await trio.testing.wait_all_tasks_blocked()
        assert it.answers()[-1]["result"] == {"action": "cancel"}


async def test_questions_without_end_are_asked_up_to_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(acp_asks, "MOST", 3)
    flood = [asks(number, f"c{number}") for number in range(8)]
    async with talk(answering(*flood)) as it:
        for ends in ("t1", "t2"):
            _, screen = await it.turn(ends)
            assert len(screen.only(ev.ToolAsks)) == 3, "what was open went with the last turn"
            assert len(screen.only(ev.SystemNotice)) == 1, "people are told, and once"
        assert [each["id"] for each in it.answers()] == [3, 4, 5, 6, 7, 0, 1, 2] * 2
        assert all(each["result"] == permissions.CANCELLED for each in it.answers())


@pytest.mark.parametrize(("kind", "kept"), [("agent_message_chunk", 2), ("plan_update", 2)])
def test_what_is_said_before_the_conversation_is_kept_up_to_a_bound(
    kind: str, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early, "BYTES", 10_000)
    before = early.Early()
    for _ in range(9):
        before.keep({"update": {"sessionUpdate": kind, "content": "x" * 4000}})
    other = {"update": {"sessionUpdate": "current_mode_update"}}
    text = {"update": {"sessionUpdate": "user_message_chunk"}}
    for each in (other, text):
        before.keep(each)
    left = before.take()
    assert len(left) == kept + 2, "a flood of one sort costs nothing of the other"
    assert list(left[-2:]) == [other, text]
    assert not before


# ---- cancel (ACP 18, 25; B17, B44) --------------------------------------------------------------


def until_cancelled(*end: Any) -> Script:
    """Each turn asks something and waits for its cancel; then it says this and ends it so."""
    prompts: list[Any] = []

    def script(message: dict[str, Any]) -> Iterable[Say]:
        match message.get("method"):
            case "session/prompt" if not prompts:
                prompts.append(message["id"])
                yield text("first")
                yield asks("q", "c", title="Waits")
                yield update("tool_call", toolCallId="r", title="Runs", status="in_progress")
            case "session/cancel":
                for number in range(3):
                    yield text(f"late {number}")
                    yield 0.5
                yield update("tool_call", toolCallId="late", title="Late", status="in_progress")
                yield frame(id=prompts[0], **dict(end))
            case _:
                yield from answering(text("second"))(message)

    return script


@pytest.mark.parametrize(
    "end",
    [
        ("result", {"stopReason": "cancelled"}),
        ("result", {"stopReason": "end_turn"}),
        ("error", {"code": -32603, "message": "Request was aborted."}),
        ("result", None),
    ],
)
async def test_a_cancelled_turn_is_over_with_its_answer_whatever_that_is(end: Any) -> None:
    async with talk(until_cancelled(end)) as it:
        screen, outcomes = Screen(), []

        async def run() -> None:
            outcomes.append(await it.backend.prompt(prompt(), screen))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await trio.testing.wait_all_tasks_blocked()
            it.backend.cancel()
            it.backend.cancel()
        assert outcomes == [Stopped()]
        assert len(it.asked("session/cancel")) == 1
        assert it.answers()[0]["result"] == {"outcome": {"outcome": "cancelled"}}
        _, screen = await it.turn()
        assert (screen.text, rows(screen)) == ("second", {})


async def test_a_cancel_when_nothing_runs_is_not_sent() -> None:
    async with talk(answering(text("a"))) as it:
        it.backend.cancel()
        assert (await it.turn())[1].text == "a"
        assert it.asked("session/cancel") == []


# ---- conversations (ACP 11 to 13, 28; B31) ------------------------------------------------------


def loading(*before: Say, late: Iterable[Say] = (), fault: Any = None) -> Script:
    def script(message: dict[str, Any]) -> Iterable[Say]:
        if message.get("method") == "session/load":
            yield from before
            yield frame(id=message["id"], **({"error": fault} if fault else {"result": None}))
            yield from late
        else:
            yield from answering(text("new"), able={"agentCapabilities": {"loadSession": True}})(
                message
            )

    return script


REPLAY = [
    update("user_message_chunk", content={"type": "text", "text": "old"}),
    text("old answer"),
    update("tool_call", toolCallId="old", title="Old", status="in_progress"),
    update("available_commands_update", availableCommands=[{"name": "go"}]),
]


async def test_what_is_repeated_is_not_said_again() -> None:
    """Half before the answer, which is null, and half a tenth of a second after it."""
    script = loading(*REPLAY, late=[0.1, *REPLAY * 5])
    async with talk(script, "s1") as it:
        outcome, screen = await it.turn()
        assert outcome == Done()
        said = [each for each in screen.events if isinstance(each, ev.TextChunk | ev.ToolStarted)]
        assert said == [ev.TextChunk("new")]
        assert it.beside.events == [ev.CommandsChanged((ev.Command("go"),))], "once"


@pytest.mark.parametrize("code", [-32002, -32602, -32603, 1001])
async def test_a_conversation_that_is_unknown_is_an_error(code: int) -> None:
    with pytest.raises(AgentFailed, match="cannot go on with the conversation: gone"):
        async with talk(loading(fault={"code": code, "message": "gone"}), "s1"):
            pass


async def test_what_comes_early_late_and_of_others_is_put_where_it_belongs() -> None:
    early = update("available_commands_update", availableCommands=[{"name": "early"}])

    def script(message: dict[str, Any]) -> Iterable[Say]:
        if message.get("method") == "session/new":
            yield early
        yield from answering(text("a"))(message)

    async with talk(script) as it:
        await trio.testing.wait_all_tasks_blocked()
        assert it.beside.events == [ev.CommandsChanged((ev.Command("early"),))]
        await it.turn()
        it.process.say(early, update("session_info_update", title="Named"), text("between"))
        it.process.say(update("session_info_update", updatedAt="2030"), update("never_heard_of"))
        await trio.testing.wait_all_tasks_blocked()
        assert it.beside.events[1:] == [ev.TitleProposed("Named")], "the same commands are no news"
        _, screen = await it.turn()
        assert ev.SystemNotice("Said between turns: between") in screen.events


# ---- what the host gives up, and puts away ------------------------------------------------------


async def test_a_request_that_is_given_up_is_taken_back() -> None:
    modes = {"currentModeId": "ask", "availableModes": [{"id": "ask"}, {"id": "code"}]}
    script = answering(new={"sessionId": "s1", "modes": modes})
    with pytest.raises(AgentFailed, match="did not answer session/set_mode in 20 s"):
        async with talk(script, config={"mode": "code"}) as it:
            pytest.fail(f"it has begun: {it}")
    sent = LAST[-1].sent
    (wanted,) = [each for each in sent if each.get("method") == "session/set_mode"]
    (back,) = [each for each in sent if each.get("method") == "$/cancel_request"]
    assert back["params"] == {"requestId": wanted["id"]}


@pytest.mark.parametrize("answers", [True, False])
async def test_a_conversation_is_closed_before_the_input_ends(answers: bool) -> None:
    able: Any = {"agentCapabilities": {"sessionCapabilities": {"close": {}}}}

    def script(message: dict[str, Any]) -> Iterable[Say]:
        if message.get("method") == "session/close" and answers:
            yield frame(id=message["id"], result={})
        else:
            yield from answering(able=able)(message)

    async with talk(script) as it:
        await it.turn()
        begun = trio.current_time()
    (close,) = it.asked("session/close")
    assert close["params"] == {"sessionId": "s1"}
    assert trio.current_time() - begun == (0.0 if answers else backend.CLOSE_WITHIN)


# ---- the end (ACP 3; B19) -----------------------------------------------------------------------


async def test_an_agent_that_goes_with_everything_open_leaves_nothing_open() -> None:
    said = [
        text("1"),
        update("tool_call", toolCallId="r", title="Runs", status="in_progress"),
        asks("q", "c", title="Asks"),
        None,
    ]
    async with talk(answering(*said)) as it:
        screen = Screen()
        with pytest.raises(AgentGone):
            await it.backend.prompt(prompt(), screen)
        assert rows(screen) == {"r": "ready", "c": "asked"}
        with pytest.raises(AgentGone):
            await it.turn()
        await trio.testing.wait_all_tasks_blocked()
        assert len(it.gone) == 1


async def test_cumulative_output_is_said_as_often_as_it_is_taken() -> None:
    """B46: what came in one go is one output, and it is the last."""
    content = [{"type": "content", "content": {"type": "text", "text": ""}}]
    grown = []
    for number in range(1, 801):
        content[0]["content"]["text"] = "x" * number  # type: ignore[index]
        grown.append(
            update("tool_call_update", toolCallId="g", status="in_progress", content=content)
        )
    async with talk(answering(b"".join(grown))) as it:
        _, screen = await it.turn()
        outputs = [each for each in screen.events if isinstance(each, ev.ToolOutput)]
        assert len(outputs) == 1
        assert outputs[0].content == (ToolResultTextContent(text="x" * 800),)
