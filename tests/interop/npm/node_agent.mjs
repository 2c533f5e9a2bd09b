// A scripted agent on the official npm SDK: no model, no network. It has all methods of ACP 1 but
// those for providers and MCP, and says updates of every kind.
//
// The words of a prompt say what happens, in the order of the table below; "plan perm usage" when
// there is none of them. With NODE_AGENT_HOME it keeps its sessions in that folder, so that another
// process can load them.

import { readFileSync, writeFileSync, existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/unstable";

const { session: toClient } = acp.methods.client;
const HOME = process.env.NODE_AGENT_HOME;
const WHEN = "2026-01-01T00:00:00Z";
const COMMANDS = [{ name: "early", description: "said before the session is", input: null }];

// ---- sessions -----------------------------------------------------------------------------------

const sessions = new Map();
let made = 0;

const file = (id) => join(HOME, `${id}.json`);

function find(id) {
  if (!sessions.has(id) && HOME && existsSync(file(id))) {
    sessions.set(id, JSON.parse(readFileSync(file(id), "utf8")));
  }
  const found = sessions.get(id);
  if (!found) throw new acp.RequestError(-32002, "Resource not found", { sessionId: id });
  return found;
}

function keep(id) {
  const { stop, ...kept } = sessions.get(id);
  if (HOME) writeFileSync(file(id), JSON.stringify(kept));
}

function make(cwd, from = {}) {
  const id = `node-${process.pid}-${++made}`;
  const fresh = { mode: "ask", model: "small", think: false, log: [], title: null };
  sessions.set(id, { ...fresh, ...structuredClone({ ...from, stop: undefined }), cwd });
  return id;
}

const state = (session) => ({
  modes: {
    currentModeId: session.mode,
    availableModes: [
      { id: "ask", name: "Ask" },
      { id: "code", name: "Code" },
    ],
  },
  configOptions: options(session),
});

const options = (session) => [
  {
    type: "select",
    id: "model",
    name: "Model",
    category: "model",
    currentValue: session.model,
    options: [
      {
        group: "g",
        name: "Group",
        options: [
          { value: "small", name: "Small" },
          { value: "big", name: "Big" },
        ],
      },
    ],
  },
  {
    type: "boolean",
    id: "think",
    name: "Think",
    category: "thought_level",
    currentValue: session.think,
  },
];

// ---- turns --------------------------------------------------------------------------------------

class Turn {
  constructor(sessionId, client, session, signal) {
    Object.assign(this, { sessionId, client, session, signal });
  }

  say(update, sessionId = this.sessionId) {
    return this.client.notify(toClient.update, { sessionId, update });
  }

  text(text, messageId = "m1") {
    const content = { type: "text", text };
    return this.say({ sessionUpdate: "agent_message_chunk", messageId, content });
  }

  ask(method, params) {
    return this.client.request(method, { sessionId: this.sessionId, ...params });
  }
}

// What each word does. What it returns, if anything, is the reason for which the turn stops.
const WORDS = {
  fail() {
    throw new Error("scripted failure");
  },

  async hello(turn) {
    await turn.say({
      sessionUpdate: "agent_thought_chunk",
      messageId: "t1",
      content: { type: "text", text: "thinking" },
    });
    await turn.text("Hello ");
    await turn.text("from node.");
  },

  async messages(turn) {
    await turn.text("One", "m2");
    await turn.text("Two", "m3");
  },

  big: (turn) => turn.text("x".repeat(3_000_000)),

  async many(turn) {
    for (let number = 0; number < 2000; number++) await turn.text(`${number} `);
  },

  async plan(turn) {
    const entries = [{ content: "a", priority: "high", status: "in_progress" }];
    await turn.say({ sessionUpdate: "plan", entries });
    const plan = { type: "markdown", planId: "p1", content: "# plan" };
    await turn.say({ sessionUpdate: "plan_update", plan });
    await turn.say({ sessionUpdate: "plan_removed", planId: "p1" });
  },

  notice: (turn) =>
    turn.say({ sessionUpdate: "notice", severity: "warning", title: "careful", description: "d" }),

  async compact(turn) {
    const compaction = { sessionUpdate: "compaction_update", compactionId: "c1" };
    await turn.say({ ...compaction, status: "in_progress" });
    await turn.say({
      sessionUpdate: "compaction_summary_chunk",
      compactionId: "c1",
      content: { type: "text", text: "sum" },
    });
    await turn.say({ ...compaction, status: "completed" });
  },

  async sub(turn) {
    const child = `${turn.sessionId}-sub`;
    const update = { sessionUpdate: "subagent_update", sessionId: child };
    await turn.say({ ...update, title: "child", state: { state: "running" } });
    const content = { type: "text", text: "from child" };
    await turn.say({ sessionUpdate: "agent_message_chunk", content }, child);
    await turn.say({
      sessionUpdate: "session_message",
      messageId: "sm1",
      senderSessionId: child,
      recipientSessionId: turn.sessionId,
      content: [{ type: "text", text: "report" }],
    });
    await turn.say({
      sessionUpdate: "session_message_chunk",
      messageId: "sm1",
      content: { type: "text", text: " more" },
    });
    await turn.say({ ...update, state: { state: "idle", stopReason: "end_turn" } });
  },

  async perm(turn) {
    const path = join(turn.session.cwd, "a.txt");
    const toolCall = {
      toolCallId: "c1",
      title: "Edit a.txt",
      name: "Edit",
      kind: "edit",
      status: "pending",
      rawInput: { a: 1 },
      locations: [{ path, line: 3 }],
      content: [{ type: "diff", path, oldText: null, newText: "hi\n" }],
    };
    await turn.say({ sessionUpdate: "tool_call", ...toolCall });
    const { outcome } = await turn.ask(toClient.requestPermission, {
      toolCall,
      options: [
        { optionId: "a", name: "Always", kind: "allow_always" },
        { optionId: "y", name: "Yes", kind: "allow_once" },
        { optionId: "n", name: "No", kind: "reject_once" },
      ],
    });
    const update = { sessionUpdate: "tool_call_update", toolCallId: "c1" };
    if (outcome.outcome === "cancelled") {
      await turn.say({ ...update, status: "failed" });
      return "cancelled";
    }
    const allowed = outcome.optionId !== "n";
    if (allowed) writeFileSync(path, "hi\n");
    const text = `picked ${outcome.optionId}`;
    await turn.say({
      ...update,
      status: allowed ? "completed" : "failed",
      content: [{ type: "content", content: { type: "text", text } }],
    });
  },

  async fs(turn) {
    const path = join(turn.session.cwd, "in.txt");
    const { content } = await turn.ask("fs/read_text_file", { path, line: 1, limit: 2 });
    await turn.ask("fs/write_text_file", {
      path: join(turn.session.cwd, "out.txt"),
      content: content.toUpperCase(),
    });
  },

  async term(turn) {
    const terminal = await turn.client.createTerminal({
      sessionId: turn.sessionId,
      command: "sh",
      args: ["-c", "echo hi $A"],
      env: [{ name: "A", value: "1" }],
      cwd: turn.session.cwd,
      outputByteLimit: 1000,
    });
    const call = { toolCallId: "t1", title: "sh", kind: "execute", status: "in_progress" };
    const content = [{ type: "terminal", terminalId: terminal.id }];
    await turn.say({ sessionUpdate: "tool_call", ...call, content });
    await terminal.waitForExit();
    const { output } = await terminal.currentOutput();
    await terminal.kill();
    await terminal.release();
    await turn.say({ sessionUpdate: "tool_call_update", toolCallId: "t1", status: "completed" });
    await turn.text(` ran: ${output.trim()}`);
  },

  async elicit(turn) {
    const answer = await turn.ask("elicitation/create", {
      mode: "form",
      message: "Who?",
      requestedSchema: {
        type: "object",
        properties: {
          name: { type: "string", title: "Name" },
          n: { type: "integer" },
          tags: { type: "array", items: { type: "string", enum: ["a", "b"] } },
        },
        required: ["name"],
      },
    });
    await turn.text(` ${JSON.stringify(answer)}`);
  },

  async url(turn) {
    await turn.ask("elicitation/create", {
      mode: "url",
      message: "Open",
      url: "https://example.invalid/x",
      elicitationId: "e1",
    });
    await turn.client.notify("elicitation/complete", { elicitationId: "e1" });
  },

  die() {
    process.stderr.write("dying\n");
    process.exit(3);
  },

  async wait(turn) {
    await new Promise((stopped) => turn.signal.addEventListener("abort", stopped));
    return "cancelled";
  },

  async usage(turn) {
    const cost = { amount: 0.1, currency: "USD" };
    await turn.say({ sessionUpdate: "usage_update", used: 10, size: 1000, cost });
    const title = turn.session.log[0][1].slice(0, 30);
    await turn.say({ sessionUpdate: "session_info_update", title, updatedAt: WHEN });
  },
};

async function prompt({ params: { sessionId, prompt: blocks }, client, signal }) {
  const session = find(sessionId);
  const text = blocks.map((each) => each.text ?? `<${each.type}>`).join(" ");
  session.log.push(["user_message_chunk", text]);
  const stop = (session.stop = new AbortController());
  signal.addEventListener("abort", () => stop.abort());
  const turn = new Turn(sessionId, client, session, stop.signal);
  const said = new Set(text.split(/\s+/));
  const known = Object.keys(WORDS).filter((word) => said.has(word));
  const wanted = new Set(known.length ? known : ["plan", "perm", "usage"]);
  let stopReason;
  for (const [word, act] of Object.entries(WORDS)) {
    if (word !== "hello" && !wanted.has(word)) continue;
    stopReason = await act(turn);
    if (stopReason) break;
  }
  session.log.push(["agent_message_chunk", "Hello from node."]);
  keep(sessionId);
  const usage = { totalTokens: 3, inputTokens: 1, outputTokens: 2 };
  return { stopReason: stopReason ?? "end_turn", usage };
}

// ---- the rest of the protocol -------------------------------------------------------------------

const ABLE = {
  loadSession: true,
  promptCapabilities: { image: true, audio: true, embeddedContext: true },
  mcpCapabilities: { http: true, sse: true },
  sessionCapabilities: {
    list: {}, delete: {}, resume: {}, close: {}, fork: {}, archive: {}, status: {}, title: {},
    additionalDirectories: {},
  },
  auth: { logout: {}, status: {} },
};

const REQUESTS = {
  initialize: () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentInfo: { name: "node-scripted", version: "1.0.0" },
    authMethods: [
      { id: "none", name: "None" },
      { type: "terminal", id: "login", name: "Login", args: ["--login"], env: {} },
    ],
    agentCapabilities: ABLE,
  }),

  authenticate({ params: { methodId } }) {
    if (methodId !== "none") throw acp.RequestError.invalidParams({ methodId });
    return {};
  },

  logout: () => ({}),
  "auth/status": () => ({ state: "not_required" }),

  async "session/new"({ params, client }) {
    const sessionId = make(params.cwd);
    const update = { sessionUpdate: "available_commands_update", availableCommands: COMMANDS };
    await client.notify(toClient.update, { sessionId, update }); // before the response
    return { sessionId, ...state(find(sessionId)) };
  },

  async "session/load"({ params: { sessionId }, client }) {
    for (const [sessionUpdate, text] of find(sessionId).log) {
      const update = { sessionUpdate, content: { type: "text", text } };
      await client.notify(toClient.update, { sessionId, update });
    }
    return state(find(sessionId));
  },

  "session/resume": ({ params }) => state(find(params.sessionId)),

  "session/fork"({ params }) {
    const sessionId = make(params.cwd, find(params.sessionId));
    return { sessionId, ...state(find(sessionId)) };
  },

  // Two of them on a page.
  "session/list"({ params }) {
    const kept = HOME ? readdirSync(HOME).filter((name) => name.endsWith(".json")) : [];
    for (const name of kept) find(name.slice(0, -".json".length));
    const all = [...sessions]
      .filter(([, session]) => params.cwd == null || session.cwd === params.cwd)
      .map(([sessionId, { cwd, title }]) => ({ sessionId, cwd, title, updatedAt: WHEN }));
    const at = Number(params.cursor ?? 0);
    const nextCursor = at + 2 < all.length ? String(at + 2) : null;
    return { sessions: all.slice(at, at + 2), nextCursor };
  },

  "session/delete"({ params: { sessionId } }) {
    sessions.delete(sessionId);
    if (HOME) rmSync(file(sessionId), { force: true });
    return {};
  },

  "session/close"({ params }) {
    find(params.sessionId).stop?.abort();
    return {};
  },

  async "session/set_mode"({ params: { sessionId, modeId }, client }) {
    find(sessionId).mode = modeId;
    const update = { sessionUpdate: "current_mode_update", currentModeId: modeId };
    await client.notify(toClient.update, { sessionId, update });
    return {};
  },

  async "session/set_config_option"({ params: { sessionId, configId, value }, client }) {
    const session = find(sessionId);
    session[configId] = value;
    const update = { sessionUpdate: "config_option_update", configOptions: options(session) };
    await client.notify(toClient.update, { sessionId, update });
    return { configOptions: options(session) };
  },

  "session/set_title"({ params: { sessionId, title } }) {
    find(sessionId).title = title;
    return { title };
  },

  "session/status": ({ params }) => ({ status: sessions.has(params.sessionId) ? "open" : "saved" }),
  "session/archive": () => ({}),
  "session/unarchive": () => ({}),
  "session/prompt": prompt,
};

const agent = acp.agent({ name: "node-scripted" });
for (const [method, answer] of Object.entries(REQUESTS)) agent.onRequest(method, answer);
agent
  .onNotification("session/cancel", ({ params }) => sessions.get(params.sessionId)?.stop?.abort())
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
