"""How a conversation with an agent begins: `initialize`, then a new session or an earlier one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct, structs

from ahpd.agents.acp.rpc import AUTH_REQUIRED, METHOD_NOT_FOUND, Link, RpcFault
from ahpd.agents.acp.servers import Server, for_agent
from ahpd.agents.acp.signin import Method, methods_in, resources
from ahpd.agents.acp.tolerant import dict_of, text_of
from ahpd.agents.port import AgentFailed, SignInNeeded
from ahpd.protocol.model import JSON

_log = logging.getLogger("ahpd.agents.acp")

#: The version of ACP that is spoken here.
VERSION = 1
#: Seconds that an agent may take to answer: they start programs, and look for updates (hazard 4).
INITIALIZE_WITHIN = 60.0
NEW_WITHIN = 60.0
LOAD_WITHIN = 120.0
#: And to be signed in: it may open a page and wait for somebody.
SIGN_IN_WITHIN = 180.0
SET_WITHIN = 20.0


class Abilities(Struct, frozen=True):
    """What is known of an agent, most of it because it said so. `name` is the host's for it."""

    name: str = "agent"
    command: Sequence[str] = ()
    loads: bool = False
    resumes: bool = False
    forks: bool = False
    lists: bool = False
    closes: bool = False
    deletes: bool = False
    signs_out: bool = False
    takes_folders: bool = False
    prompts: dict[str, Any] = {}
    servers: dict[str, Any] = {}
    methods: Sequence[Method] = ()
    #: Takes out of a text what is not to be shown.
    conceal: Callable[[str], str] = str


class Where(Struct, frozen=True):
    """Where a conversation is at work, and with which MCP servers."""

    cwd: str
    others: Sequence[str] = ()
    servers: Sequence[Server] = ()


class Begun(Struct, frozen=True):
    """A session of the agent's, and how it was answered.

    `replays`: what was said in it before may still be coming. `way`: how it was taken up.
    """

    session: str
    answer: JSON = None
    replays: bool = False
    way: str = "new"


async def initialize(
    link: Link, about: Abilities, version: str, capabilities: dict[str, JSON]
) -> Abilities:
    """Agree on the version, and say what is served. Raises `AgentFailed`.

    `about` is what is known before, `version` the host's own.
    """
    params = {
        "protocolVersion": VERSION,
        "clientCapabilities": capabilities,
        "clientInfo": {"name": "ahpd", "title": "ahpd", "version": version},
    }
    result = await asked(link, "initialize", params, INITIALIZE_WITHIN, about)
    spoken = dict_of(result).get("protocolVersion")
    if spoken != VERSION:
        raise AgentFailed(f"the agent speaks version {spoken} of ACP, and only {VERSION} is known")
    able = dict_of(result, "agentCapabilities")
    return structs.replace(
        about,
        loads=able.get("loadSession") is True,
        resumes=_has(able, "sessionCapabilities", "resume"),
        forks=_has(able, "sessionCapabilities", "fork"),
        lists=_has(able, "sessionCapabilities", "list"),
        closes=_has(able, "sessionCapabilities", "close"),
        deletes=_has(able, "sessionCapabilities", "delete"),
        signs_out=_has(able, "auth", "logout"),
        takes_folders=_has(able, "sessionCapabilities", "additionalDirectories"),
        prompts=dict_of(able, "promptCapabilities"),
        servers=dict_of(able, "mcpCapabilities"),
        methods=methods_in(result),
    )


async def sign_in(link: Link, able: Abilities, method: str) -> None:
    """Have the agent sign in by one of its ways; it may ask people for long. Raises `AgentFailed`.

    A way that needs a terminal is never asked for.
    """
    known = next((each for each in able.methods if each.id == method), None)
    if known is not None and known.kind == "terminal":
        return
    await asked(link, "authenticate", {"methodId": method}, SIGN_IN_WITHIN, able)


def _has(able: Any, group: str, name: str) -> bool:
    """Whether a capability is there: an object, even an empty one."""
    value = dict_of(able, group).get(name)
    return value is not None and value is not False


async def new(link: Link, able: Abilities, where: Where) -> Begun:
    """Begin a conversation. Raises `AgentFailed`."""
    result = await asked(link, "session/new", _where(able, where), NEW_WITHIN, able)
    session = text_of(result, "sessionId")
    if not session:
        raise AgentFailed("the agent answered session/new without a session")
    return Begun(session, result)


async def take_up(
    link: Link,
    able: Abilities,
    session: str,
    where: Where,
    ways: Sequence[str] = ("resume", "load"),
) -> Begun | None:
    """Go on with an earlier conversation; None when this agent cannot.

    Resumed rather than loaded, since then nothing is said again. Raises `AgentFailed` when it
    should be able to but cannot with this one.
    """
    params: dict[str, JSON] = {"sessionId": session, **_where(able, where)}
    can = {"resume": able.resumes, "load": able.loads}
    for way in (each for each in ways if can[each]):
        try:
            result = await link.request(f"session/{way}", params, LOAD_WITHIN)
        except RpcFault as fault:
            if fault.code == METHOD_NOT_FOUND:
                continue  # advertised is not implemented (hazard 20)
            if fault.code == AUTH_REQUIRED:
                raise failed(fault, able) from None
            raise NotTakenUp(
                f"the agent cannot go on with the conversation: {told(fault, able)}"
            ) from None
        return Begun(session, result, replays=True, way=way)
    return None


async def fork(link: Link, able: Abilities, parent: str, where: Where) -> Begun | None:
    """Begin a conversation as a copy of another; None when the agent did not do it.

    Raises `AgentFailed` when somebody has to sign in, or the agent is gone.
    """
    if not able.forks:
        return None
    params: dict[str, JSON] = {"sessionId": parent, **_where(able, where)}
    try:
        result = await link.request("session/fork", params, LOAD_WITHIN)
    except RpcFault as fault:
        if fault.code == AUTH_REQUIRED:
            raise failed(fault, able) from None
        _log.info("%s: it did not copy a conversation: %s", able.name, told(fault, able))
        return None
    session = text_of(result, "sessionId")
    return None if not session else Begun(session, result, replays=True, way="fork")


class NotTakenUp(AgentFailed):
    """The agent can take up conversations, but did not take up this one."""


def _where(able: Abilities, where: Where) -> dict[str, JSON]:
    servers, _ = for_agent(where.servers, able.servers)
    params: dict[str, JSON] = {"cwd": where.cwd, "mcpServers": servers}
    if where.others and able.takes_folders:
        params["additionalDirectories"] = list(where.others)
    return params


async def asked(link: Link, method: str, params: JSON, within: float, able: Abilities) -> JSON:
    """The result of a request; an error is told as people should read it. Raises `AgentFailed`."""
    try:
        return await link.request(method, params, within)
    except RpcFault as fault:
        raise failed(fault, able) from None


def failed(fault: RpcFault, able: Abilities) -> AgentFailed:
    """What an error of the agent's means to whoever wanted something of it."""
    if fault.code != AUTH_REQUIRED:
        return AgentFailed(told(fault, able))
    ways = methods_in(fault.data) or able.methods
    return SignInNeeded(
        told(fault, able), resources(able.name, ways), [each.wire() for each in ways]
    )


def told(fault: RpcFault, able: Abilities) -> str:
    """An error of the agent's for people; one that wants them to sign in, with the ways to."""
    if fault.code != AUTH_REQUIRED:
        return _with_details(fault, able)
    ways = [each.told(able.command) for each in methods_in(fault.data) or able.methods]
    how = f" Its ways to sign in: {'; '.join(ways)}." if ways else ""
    return able.conceal(
        f"the agent wants you to sign in first ({_with_details(fault, able)}).{how}"
    )


def _with_details(fault: RpcFault, able: Abilities) -> str:
    data = fault.data
    details = data if isinstance(data, str) else None
    for key in ("details", "message", "reason"):
        details = details or text_of(data, key)
    text = fault.message if details is None else f"{fault.message}: {details}"
    return able.conceal(text)[:2000]  # in this order: what is cut through is not known again
