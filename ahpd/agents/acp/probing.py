"""What an agent's program says of itself when it is started: that it answers, and who may use it.

It is started in an empty folder, and ended again in any case.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import trio
from msgspec import Struct, structs

from ahpd.agents.acp.agent import secrets_in
from ahpd.agents.acp.deaf import Deaf
from ahpd.agents.acp.process import AgentProcess, start_process
from ahpd.agents.acp.rpc import AUTH_REQUIRED, Link, RpcFault
from ahpd.agents.acp.tolerant import dict_of, dicts_of, text_of
from ahpd.agents.port import AgentFailed

#: The version of ACP that is offered.
_VERSION = 1
#: Seconds that it may take to delete or close the conversation that was begun.
_REMOVED_WITHIN = 5.0


class Answer(Struct, frozen=True):
    """What came of it.

    `problem` is why it does not answer, `trouble` why it answers and begins no conversation, other
    than for a sign-in. `needs_sign_in` is None where that is not known; `sign_in` are the names of
    the ways that it offers.
    """

    problem: str | None = None
    trouble: str | None = None
    version: str | None = None
    title: str | None = None
    needs_sign_in: bool | None = None
    sign_in: Sequence[str] = ()


async def probe(
    command: Sequence[str],
    environment: Mapping[str, str],
    version: str,
    *,
    within: float,
    handshake_only: bool = False,
) -> Answer:
    """Start a program, and ask it who it is within so many seconds; `version` is the host's own.

    Unless it is for the `handshake_only`, a conversation is begun, and deleted or closed where the
    agent can, since many say that they want a sign-in only then. Never raises for what the program
    does. However it ends, no process is left.
    """
    with tempfile.TemporaryDirectory(prefix="ahpd-agent-") as folder:
        try:
            secrets = secrets_in(environment)
            process = await start_process(command, environment, folder, secrets=secrets)
        except AgentFailed as error:
            return Answer(str(error))
        try:
            answer = await _ask(process, folder, version, within, handshake_only)
            return _fit_to_be_shown(answer, process)
        finally:
            with trio.CancelScope(shield=True):  # which takes some seconds at most: see `end`
                await process.end()


async def _ask(
    process: AgentProcess, folder: str, version: str, within: float, handshake_only: bool
) -> Answer:
    deaf = Deaf()
    deaf.link = link = Link(process, deaf)
    answer = Answer(f"it did not answer within {within:g} s")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(link.run)
        with trio.move_on_after(within):
            answer, able = await _initialized(link, version, within)
            if answer.problem is None and not handshake_only:
                answer = await _begun(answer, link, able, folder, within)
        nursery.cancel_scope.cancel("it was asked")
    return answer


def _fit_to_be_shown(answer: Answer, process: AgentProcess) -> Answer:
    """The answer without the secrets that the agent was given: it may say them anywhere."""
    texts = {name: getattr(answer, name) for name in ("problem", "trouble", "version", "title")}
    shown = {name: text and process.concealed(text) for name, text in texts.items()}
    ways = tuple(map(process.concealed, answer.sign_in))
    return structs.replace(answer, sign_in=ways, **shown)


async def _initialized(link: Link, version: str, within: float) -> tuple[Answer, dict[str, Any]]:
    about = {"name": "ahpd", "title": "ahpd", "version": version}
    params = {"protocolVersion": _VERSION, "clientCapabilities": {}, "clientInfo": about}
    try:
        result = await link.request("initialize", params, within)
    except RpcFault as fault:
        return Answer(f"it refuses: {fault.message}"), {}
    except AgentFailed as error:
        return Answer(str(error)), {}
    spoken = dict_of(result).get("protocolVersion")
    ways = [
        text_of(each, "name") or text_of(each, "id") for each in dicts_of(result, "authMethods")
    ]
    answer = Answer(
        None if spoken == _VERSION else f"it speaks version {spoken} of ACP only",
        version=text_of(result, "agentInfo", "version"),
        title=text_of(result, "agentInfo", "title") or text_of(result, "agentInfo", "name"),
        sign_in=tuple(each for each in ways if each is not None),
    )
    return answer, dict_of(result, "agentCapabilities")


async def _begun(
    answer: Answer, link: Link, able: dict[str, Any], folder: str, within: float
) -> Answer:
    """The answer with what comes of beginning a conversation."""
    try:
        begun = await link.request("session/new", {"cwd": folder, "mcpServers": []}, within)
    except RpcFault as fault:
        if fault.code == AUTH_REQUIRED:
            return structs.replace(answer, needs_sign_in=True)
        details = text_of(fault.data, "details") or ""
        return structs.replace(answer, trouble=f"{fault.message} {details}".strip())
    except AgentFailed as error:
        return structs.replace(answer, trouble=str(error))
    offered = dict_of(able, "sessionCapabilities")
    way = next((each for each in ("delete", "close") if offered.get(each) is not None), None)
    if way is not None:
        with suppress(RpcFault, AgentFailed):
            params = {"sessionId": text_of(begun, "sessionId")}
            await link.request(f"session/{way}", params, _REMOVED_WITHIN)
    return structs.replace(answer, needs_sign_in=False)
