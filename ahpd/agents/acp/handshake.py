"""How a conversation with an agent begins: `initialize`, then a new session or an earlier one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from ahpd.agents.acp.rpc import AUTH_REQUIRED, METHOD_NOT_FOUND, Link, RpcFault
from ahpd.agents.acp.tolerant import dict_of, dicts_of, text_of
from ahpd.agents.port import AgentFailed
from ahpd.protocol.model import JSON

#: The version of ACP that is spoken here.
VERSION = 1
#: Seconds that an agent may take to answer: they start programs, and look for updates (hazard 4).
INITIALIZE_WITHIN = 60.0
NEW_WITHIN = 60.0
LOAD_WITHIN = 120.0
SET_WITHIN = 20.0


class Abilities(Struct, frozen=True):
    """What an agent said of itself."""

    loads: bool = False
    resumes: bool = False
    takes_folders: bool = False
    prompts: dict[str, Any] = {}
    sign_in: Sequence[str] = ()


class Begun(Struct, frozen=True):
    """A session of the agent's, and how it was answered.

    `replays`: what was said in it before may still be coming.
    """

    session: str
    answer: JSON = None
    replays: bool = False


async def initialize(link: Link, version: str) -> Abilities:
    """Agree on the version; `version` is the host's own. Raises `AgentFailed`."""
    params = {
        "protocolVersion": VERSION,
        # Files and commands are the agent's own business: it works on the same machine.
        "clientCapabilities": {
            "fs": {"readTextFile": False, "writeTextFile": False},
            "terminal": False,
            "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
        },
        "clientInfo": {"name": "ahpd", "title": "ahpd", "version": version},
    }
    result = await asked(link, "initialize", params, INITIALIZE_WITHIN, Abilities())
    spoken = dict_of(result).get("protocolVersion")
    if spoken != VERSION:
        raise AgentFailed(f"the agent speaks version {spoken} of ACP, and only {VERSION} is known")
    able = dict_of(result, "agentCapabilities")
    return Abilities(
        loads=able.get("loadSession") is True,
        resumes=_has(able, "resume"),
        takes_folders=_has(able, "additionalDirectories"),
        prompts=dict_of(able, "promptCapabilities"),
        sign_in=_methods(result),
    )


def _has(able: Any, name: str) -> bool:
    """Whether a capability of sessions is there: an object, even an empty one."""
    value = dict_of(able, "sessionCapabilities").get(name)
    return value is not None and value is not False


async def new(link: Link, able: Abilities, cwd: str, others: Sequence[str]) -> Begun:
    """Begin a conversation. Raises `AgentFailed`."""
    result = await asked(link, "session/new", _where(able, cwd, others), NEW_WITHIN, able)
    session = text_of(result, "sessionId")
    if not session:
        raise AgentFailed("the agent answered session/new without a session")
    return Begun(session, result)


async def take_up(
    link: Link, able: Abilities, session: str, cwd: str, others: Sequence[str]
) -> Begun | None:
    """Go on with an earlier conversation; None when this agent cannot.

    Raises `AgentFailed` when it should be able to but cannot with this one.
    """
    params: dict[str, JSON] = {"sessionId": session, **_where(able, cwd, others)}
    ways = [name for name, can in (("resume", able.resumes), ("load", able.loads)) if can]
    for way in ways:
        try:
            result = await link.request(f"session/{way}", params, LOAD_WITHIN)
        except RpcFault as fault:
            if fault.code == METHOD_NOT_FOUND:
                continue  # advertised is not implemented (hazard 20)
            why = told(fault, able)
            raise AgentFailed(f"the agent cannot go on with the conversation: {why}") from None
        return Begun(session, result, replays=True)
    return None


def _where(able: Abilities, cwd: str, others: Sequence[str]) -> dict[str, JSON]:
    where: dict[str, JSON] = {"cwd": cwd, "mcpServers": []}
    if others and able.takes_folders:
        where["additionalDirectories"] = list(others)
    return where


async def asked(link: Link, method: str, params: JSON, within: float, able: Abilities) -> JSON:
    """The result of a request; an error is told as people should read it. Raises `AgentFailed`."""
    try:
        return await link.request(method, params, within)
    except RpcFault as fault:
        raise AgentFailed(told(fault, able)) from None


def told(fault: RpcFault, able: Abilities) -> str:
    """An error of the agent's for people; one that wants them to sign in, with the ways to."""
    if fault.code != AUTH_REQUIRED:
        return _with_details(fault)
    ways = _methods(fault.data) or able.sign_in
    how = f" Its ways to sign in: {'; '.join(ways)}." if ways else ""
    return f"the agent wants you to sign in first ({_with_details(fault)}).{how}"


def _with_details(fault: RpcFault) -> str:
    data = fault.data
    details = data if isinstance(data, str) else None
    for key in ("details", "message", "reason"):
        details = details or text_of(data, key)
    text = fault.message if details is None else f"{fault.message}: {details}"
    return text[:2000]


def _methods(result: Any) -> Sequence[str]:
    """The agent's `authMethods`, by name and what they say of themselves."""
    found = []
    for each in dicts_of(result, "authMethods"):
        name = text_of(each, "name") or text_of(each, "id")
        description = text_of(each, "description")
        if name is not None:
            found.append(name if description is None else f"{name} ({description})")
    return tuple(found)
