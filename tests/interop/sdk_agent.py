"""ACP v1 test agent on PyPI `agent-client-protocol` 0.12.x. No model, no network, deterministic.

Start:  python sdk_agent.py                (stdio, newline-delimited JSON-RPC)
Prompt words pick what a turn does (default = the whole tour without fs/term/elicit):
  "hello"  text only      "tool"  tool call + permission + diff     "wait"  until session/cancel
  "fs"     fs/read_text_file + fs/write_text_file   "term"  terminal/*   "elicit"  elicitation/create
  "boom"   raises (JSON-RPC -32603)                  "die"   os._exit(3) in mid-turn

With SDK_AGENT_HOME it keeps its sessions in that folder, so that another process can load them.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from acp import (
    PROTOCOL_VERSION,
    Agent,
    RequestError,
    plan_entry,
    run_agent,
    start_tool_call,
    text_block,
    tool_content,
    tool_diff_content,
    tool_terminal_ref,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
    update_user_message_text,
)
from acp import schema as s
from acp.helpers import update_available_commands, update_current_mode

MODES = [
    s.SessionMode(id="ask", name="Ask"),
    s.SessionMode(id="code", name="Code", description="Edits files"),
]
OPTIONS = [
    s.PermissionOption(option_id="allow", name="Allow", kind="allow_once"),
    s.PermissionOption(option_id="always", name="Always allow", kind="allow_always"),
    s.PermissionOption(option_id="reject", name="Reject", kind="reject_once"),
]


class ScriptedAgent(Agent):
    def __init__(self):
        self.s, self.n, self.home = {}, 0, os.environ.get("SDK_AGENT_HOME")

    def _keep(self, sid):
        if self.home:
            kept = {k: v for k, v in self.s[sid].items() if k != "stop"}
            Path(self.home, f"{sid}.json").write_text(json.dumps(kept))

    def on_connect(self, conn):
        self.c = conn

    def _get(self, sid):
        if sid not in self.s and self.home and (file := Path(self.home, f"{sid}.json")).exists():
            self.s[sid] = {**json.loads(file.read_text()), "stop": asyncio.Event()}
        if sid not in self.s:
            raise RequestError(-32002, "Resource not found", {"sessionId": sid})
        return self.s[sid]

    def _modes(self, st):
        return s.SessionModeState(current_mode_id=st["mode"], available_modes=MODES)

    def _config(self, st):
        return [
            s.SessionConfigOptionSelect(
                type="select",
                id="model",
                name="Model",
                category="model",
                current_value=st["model"],
                options=[
                    s.SessionConfigSelectOption(value="small", name="Small"),
                    s.SessionConfigSelectOption(value="big", name="Big"),
                ],
            ),
            s.SessionConfigOptionBoolean(
                type="boolean",
                id="think",
                name="Think",
                category="thought_level",
                current_value=st["think"],
            ),
        ]

    async def _say(self, sid, update):
        await self.c.session_update(session_id=sid, update=update)

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **kw):
        caps = s.SessionCapabilities(
            list=s.SessionListCapabilities(),
            resume=s.SessionResumeCapabilities(),
            close=s.SessionCloseCapabilities(),
            fork=s.SessionForkCapabilities(),
        )
        return s.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            auth_methods=[],
            agent_info=s.Implementation(
                name="scripted-agent", title="Scripted agent", version="1.0.0"
            ),
            agent_capabilities=s.AgentCapabilities(
                load_session=True,
                session_capabilities=caps,
                prompt_capabilities=s.PromptCapabilities(
                    image=True, audio=False, embedded_context=True
                ),
            ),
        )

    async def new_session(self, cwd, additional_directories=None, mcp_servers=None, **kw):
        self.n += 1
        sid = f"sess-{os.getpid()}-{self.n}"
        st = self.s[sid] = dict(
            cwd=cwd, mode="ask", model="small", think=False, log=[], stop=asyncio.Event()
        )
        asyncio.get_running_loop().call_soon(
            lambda: asyncio.ensure_future(
                self._say(
                    sid,
                    update_available_commands(
                        [
                            s.AvailableCommand(name="plan", description="Make a plan"),
                            s.AvailableCommand(
                                name="web",
                                description="Search",
                                input=s.AvailableCommandInput(
                                    root=s.UnstructuredCommandInput(hint="query")
                                ),
                            ),
                        ]
                    ),
                )
            )
        )
        return s.NewSessionResponse(
            session_id=sid, modes=self._modes(st), config_options=self._config(st)
        )

    async def load_session(
        self, cwd, session_id, mcp_servers=None, additional_directories=None, **kw
    ):
        st = self._get(session_id)
        for who, text in st["log"]:
            await self._say(
                session_id,
                update_user_message_text(text)
                if who == "user"
                else update_agent_message_text(text),
            )
        return s.LoadSessionResponse(modes=self._modes(st), config_options=self._config(st))

    async def resume_session(
        self, session_id, cwd, additional_directories=None, mcp_servers=None, **kw
    ):
        st = self._get(session_id)
        return s.ResumeSessionResponse(modes=self._modes(st), config_options=self._config(st))

    async def fork_session(
        self, session_id, cwd, additional_directories=None, mcp_servers=None, **kw
    ):
        self.n += 1
        sid = f"sess-{os.getpid()}-{self.n}"
        st = self.s[sid] = {
            **self._get(session_id),
            "cwd": cwd,
            "log": list(self._get(session_id)["log"]),
            "stop": asyncio.Event(),
        }
        return s.ForkSessionResponse(
            session_id=sid, modes=self._modes(st), config_options=self._config(st)
        )

    async def list_sessions(self, cwd=None, cursor=None, **kw):
        return s.ListSessionsResponse(
            sessions=[
                s.SessionInfo(session_id=k, cwd=v["cwd"], title=(v["log"] or [("", None)])[0][1])
                for k, v in self.s.items()
                if cwd in (None, v["cwd"])
            ]
        )

    async def close_session(self, session_id, **kw):
        self._get(session_id)["stop"].set()
        self.s.pop(session_id)

    async def authenticate(self, method_id, **kw):
        return s.AuthenticateResponse()

    async def cancel(self, session_id, **kw):
        self.s.get(session_id, {"stop": asyncio.Event()})["stop"].set()

    async def set_session_mode(self, session_id, mode_id, **kw):
        if mode_id not in [m.id for m in MODES]:
            raise RequestError.invalid_params({"modeId": mode_id})
        self._get(session_id)["mode"] = mode_id
        await self._say(session_id, update_current_mode(mode_id))

    async def set_config_option(self, config_id, session_id, value, **kw):
        st = self._get(session_id)
        st[config_id] = value
        await self._say(
            session_id,
            s.ConfigOptionUpdate(
                session_update="config_option_update", config_options=self._config(st)
            ),
        )
        return s.SetSessionConfigOptionResponse(config_options=self._config(st))

    async def prompt(self, session_id, prompt, **kw):
        st, say = self._get(session_id), lambda u: self._say(session_id, u)
        text = " ".join(getattr(b, "text", f"<{b.type}>") for b in prompt)
        st["log"].append(("user", text))
        st["stop"].clear()
        self._keep(session_id)
        has = lambda w: w in text.split()
        tour = not any(map(has, "hello tool wait fs term elicit boom die".split()))
        if has("boom"):
            raise ValueError("boom")
        await say(update_agent_thought_text("Let me think. "))
        await say(update_agent_thought_text("Done thinking."))
        for part in ("Hello ", "from ", "ACP."):
            await say(update_agent_message_text(part))
        if has("die"):
            sys.stderr.write("dying\n")
            sys.stderr.flush()
            os._exit(3)
        if tour:
            await say(
                update_plan(
                    [
                        plan_entry("Read", status="completed", priority="high"),
                        plan_entry("Edit", status="in_progress"),
                    ]
                )
            )
        if tour or has("tool"):
            path = os.path.join(st["cwd"], "a.txt")
            diff = tool_diff_content(path, "new\n", "old\n")
            loc = [s.ToolCallLocation(path=path, line=1)]
            await say(
                start_tool_call(
                    "call_1",
                    "Edit a.txt",
                    kind="edit",
                    status="pending",
                    locations=loc,
                    raw_input={"path": path},
                )
            )
            r = await self.c.request_permission(
                session_id=session_id,
                options=OPTIONS,
                tool_call=s.ToolCallUpdate(
                    tool_call_id="call_1",
                    title="Edit a.txt",
                    kind="edit",
                    status="pending",
                    content=[diff],
                ),
            )
            if r.outcome.outcome == "cancelled":
                await say(update_tool_call("call_1", status="failed"))
                return s.PromptResponse(stop_reason="cancelled")
            if r.outcome.option_id == "reject":
                await say(
                    update_tool_call(
                        "call_1", status="failed", content=[tool_content(text_block("rejected"))]
                    )
                )
            else:
                await say(update_tool_call("call_1", status="in_progress"))
                await say(
                    update_tool_call(
                        "call_1",
                        status="completed",
                        content=[diff, tool_content(text_block("ok"))],
                        raw_output={"ok": True},
                    )
                )
        if has("fs"):
            got = await self.c.read_text_file(
                session_id=session_id, path=os.path.join(st["cwd"], "in.txt"), line=1, limit=10
            )
            await self.c.write_text_file(
                session_id=session_id,
                path=os.path.join(st["cwd"], "out.txt"),
                content=got.content.upper(),
            )
        if has("term"):
            t = (
                await self.c.create_terminal(
                    session_id=session_id,
                    command="echo",
                    args=["hi"],
                    cwd=st["cwd"],
                    output_byte_limit=1000,
                )
            ).terminal_id
            await say(
                start_tool_call(
                    "call_t",
                    "echo hi",
                    kind="execute",
                    status="in_progress",
                    content=[tool_terminal_ref(t)],
                )
            )
            w = await self.c.wait_for_terminal_exit(session_id=session_id, terminal_id=t)
            o = await self.c.terminal_output(session_id=session_id, terminal_id=t)
            await self.c.release_terminal(session_id=session_id, terminal_id=t)
            await say(
                update_tool_call(
                    "call_t",
                    status="completed",
                    raw_output={"exit": w.exit_code, "output": o.output},
                )
            )
        if has("elicit"):
            form = s.ElicitationSchema(
                type="object",
                required=["name"],
                properties={"name": s.ElicitationStringPropertySchema(type="string", title="Name")},
            )
            r = await self.c.create_elicitation(
                "Who?", s.ElicitationFormSessionMode(session_id=session_id, requested_schema=form)
            )
            await say(update_agent_message_text(f" elicited:{r.action}"))
        if has("wait"):
            await st["stop"].wait()
            return s.PromptResponse(stop_reason="cancelled")
        st["log"].append(("agent", "Hello from ACP."))
        await say(
            s.UsageUpdate(
                session_update="usage_update",
                used=1200,
                size=200000,
                cost=s.Cost(amount=0.01, currency="USD"),
            )
        )
        await say(s.SessionInfoUpdate(session_update="session_info_update", title=text[:40]))
        return s.PromptResponse(
            stop_reason="end_turn",
            usage=s.Usage(total_tokens=30, input_tokens=20, output_tokens=10),
        )


if __name__ == "__main__":
    asyncio.run(run_agent(ScriptedAgent(), use_unstable_protocol=True))
