"""The ways of an agent to sign in, and what of them a client can bring about. Pure.

ACP has its agents name their ways (`authMethods`); AHP has clients hand over tokens for resources.
So each way that the host can go is a resource of its own, ``acp-agent://NAME/METHOD``: a token for
a variable (``…/METHOD/VARIABLE``) is put into the environment of the agent's next process, and any
token for a way that the agent goes by itself has that process asked to go it (`authenticate`). A
way that needs a terminal is told to people, and never asked for.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote

from msgspec import Struct

from ahpd.agents.acp.tolerant import dicts_of, text_of
from ahpd.protocol.common import ProtectedResourceMetadata
from ahpd.protocol.discreet import Discreet
from ahpd.protocol.model import JSON


class Method(Struct, frozen=True):
    """One way to sign in. `variables` are those of the environment that it is signed in by."""

    id: str
    name: str
    description: str | None = None
    kind: Literal["agent", "terminal", "variables"] = "agent"
    variables: Sequence[str] = ()
    args: Sequence[str] = ()

    def told(self, command: Sequence[str]) -> str:
        """For people; `command` is how the agent is started."""
        text = self.name if self.description is None else f"{self.name} ({self.description})"
        if self.kind == "terminal":
            line = shlex.join([*command[:1], *self.args])
            return f"{text}, in a terminal: {line}"
        return text

    def wire(self) -> JSON:
        """For a client's eyes, in `_meta`."""
        found: dict[str, JSON] = {"id": self.id, "name": self.name, "type": self.kind}
        if self.description is not None:
            found["description"] = self.description
        if self.variables:
            found["variables"] = list(self.variables)
        return found


def methods_in(told: Any) -> Sequence[Method]:
    """The `authMethods` of an answer or of an error's data; what has no id is none."""
    return tuple(_methods(told))


def _methods(told: Any) -> Iterator[Method]:
    for each in dicts_of(told, "authMethods"):
        method_id = text_of(each, "id")
        if not method_id:
            continue
        name, description = text_of(each, "name") or method_id, text_of(each, "description")
        match text_of(each, "type"):
            case None | "agent":
                yield Method(method_id, name, description)
            case "env_var":
                named = (text_of(each, "varName"), *_names(each))
                variables = tuple(name for name in named if name)
                yield Method(method_id, name, description, "variables", variables)
            case "terminal":
                args = each.get("args")
                args = [arg for arg in args if isinstance(arg, str)] if args else []
                yield Method(method_id, name, description, "terminal", args=tuple(args))
            case _:
                yield Method(method_id, name, description, "terminal")


def _names(method: dict[str, Any]) -> Iterator[str | None]:
    for each in dicts_of(method, "vars"):
        yield text_of(each, "name")


# ---- as resources -------------------------------------------------------------------------------


def resource(agent: str, method: str, variable: str | None = None) -> str:
    """The name that a way to sign in, or a variable of one, has as a resource."""
    steps = [method] if variable is None else [method, variable]
    return f"acp-agent://{agent}/" + "/".join(quote(step, safe="") for step in steps)


def resources(agent: str, methods: Sequence[Method]) -> Sequence[ProtectedResourceMetadata]:
    """What clients may hand over tokens for. None is required: another way may do as well."""
    found = []
    for each in methods:
        if each.kind == "agent":
            named = [(resource(agent, each.id), each.name)]
        else:
            named = [(resource(agent, each.id, name), name) for name in each.variables]
        found += [
            ProtectedResourceMetadata(
                resource=uri, resource_name=f"{agent}: {name}", required=False
            )
            for uri, name in named
        ]
    return tuple(found)


class Grant(Discreet, frozen=True):
    """What tokens and configuration give an agent: variables, and the way that it is to go.

    `once`: what it does by itself lasts, so later processes need not do it again.
    """

    hidden = frozenset({"environment"})

    environment: Mapping[str, str] = {}
    method: str | None = None
    once: bool = False


def granted(
    agent: str,
    methods: Sequence[Method],
    tokens: Mapping[str, str],
    variables: Mapping[str, str],
    chosen: str | None,
) -> Grant:
    """What an agent's next process gets of these `tokens`, by resource.

    `variables` says in which variable the token of a resource goes, and `chosen` which way the
    agent goes in any case, both by configuration.
    """
    once = False
    found = {name: tokens[uri] for name, uri in variables.items() if uri in tokens}
    for each in methods:
        held = {
            name: tokens[uri]
            for name in each.variables
            if (uri := resource(agent, each.id, name)) in tokens
        }
        found.update(held)
        by_variables = bool(held) and len(held) == len(each.variables)
        by_itself = each.kind == "agent" and resource(agent, each.id) in tokens
        if chosen is None and (by_variables or by_itself):
            chosen, once = each.id, by_itself
    return Grant(found, chosen, once)
