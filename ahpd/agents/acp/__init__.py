"""Any agent that speaks the Agent Client Protocol (ACP, version 1) over its stdio, as a backend.

Read `agent` first, which is what the host has of an agent, then `backend`, a conversation with it;
each of the others is one idea that these two are made of.

| what | modules |
|---|---|
| the program, and messages to and from it | `process`, `rpc`, `runs`, `tolerant`, `leftovers` |
| how a conversation begins | `handshake`, `signin`, `servers`, `plugins` |
| what the agent says | `mapping`, `calls`, `contents`, `children`, `turns` |
| what it asks of people | `asks`, `permissions`, `elicitation` |
| what it has the host do | `services` |
| what it is told | `prompting`, `settings`, `tuning` |
| what is found out beside conversations | `learned`, `errands`, `known`, `probing`, `deaf` |
"""
