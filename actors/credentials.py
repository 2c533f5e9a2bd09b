"""Tokens that a client hands over for one connection (RULES 19).

They are for what agents do towards other services and prove nothing about the client (R-19.1). They
live here, in the memory of that connection, and nowhere else: not in states, journals, logs or what
an inspection shows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import trio
from msgspec import structs

from ahpd.protocol.common import ProtectedResourceMetadata
from ahpd.protocol.discreet import Discreet
from ahpd.protocol.jsonrpc import Request
from ahpd.protocol.model import Object


class Secret(str):
    """A text that shows nobody what it is who looks at what holds it."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Not the text."""
        return "<secret>"


def concealed(request: Request) -> Request:
    """The request, with its token as a secret: it may lie in a mailbox, and be seen there."""
    token = request.params.get("token")
    if not isinstance(token, str):
        return request
    return structs.replace(request, params={**request.params, "token": Secret(token)})


def revealed(params: Object) -> Object:
    """The same params, with every text as it was."""
    return {
        key: "".join(value) if isinstance(value, Secret) else value for key, value in params.items()
    }


class Token(Discreet, frozen=True, eq=False):
    """One token. `scopes` are what it grants, None when its client did not say."""

    hidden = frozenset({"value"})

    resource: ProtectedResourceMetadata
    value: str
    scopes: Sequence[str] | None = None
    #: On trio's clock.
    expires: float = math.inf

    def grants(self, wanted: Collection[str] | None) -> bool:
        """Whether it grants these scopes, as far as anybody said (R-19.14)."""
        return self.scopes is None or set(wanted or ()) <= set(self.scopes)


class Credentials:
    """The tokens of one connection, by resource."""

    def __init__(self) -> None:
        self._tokens: dict[str, Token] = {}

    def keep(self, token: Token) -> None:
        """Use this one from now on, in place of any before it (R-19.10)."""
        self._tokens[token.resource.resource] = token

    def drop(self, resource: str, token: Token | None = None) -> bool:
        """Forget the token of a resource, if it (still) is that one; False: there is none."""
        held = self._tokens.get(resource)
        if held is None or token not in (None, held):
            return False
        del self._tokens[resource]
        return True

    def find(self, resource: str) -> Token | None:
        """The token of a resource, while it lasts."""
        token = self._tokens.get(resource)
        return token if token is not None and trio.current_time() < token.expires else None

    def __repr__(self) -> str:
        """How many there are, and no more."""
        return f"<Credentials: {len(self._tokens)}>"


def tokens_for(
    resources: Sequence[ProtectedResourceMetadata], held: Sequence[Credentials]
) -> Mapping[str, str]:
    """The tokens for these resources, resource -> value; of two the later holder's."""
    found = {}
    for each in resources:
        for credentials in held:
            token = credentials.find(each.resource)
            if token is not None:
                found[each.resource] = token.value
    return found


def missing(
    resources: Sequence[ProtectedResourceMetadata], tokens: Collection[str]
) -> Sequence[ProtectedResourceMetadata]:
    """The resources that cannot be done without and have no token (R-19.2)."""
    return [
        each for each in resources if each.required is not False and each.resource not in tokens
    ]
