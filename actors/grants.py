"""What is served beside the folders because somebody allowed it, and what was asked for (R-13.4).

A client that is refused a file outside is told which grant would help, and may ask for it. The
host's setting `grants` says what comes of that:

* ``ask``: a person decides. It is refused, and noted; whoever runs the host sees that and may give
  it (`ahpd grant`), after which the client need only ask again.
* ``allow``: it is given, and that is written to the log.
* ``deny``: it is refused, and no refusal names a grant any more, since none would help (R-13.2).

A grant is for all clients, as the folders are, for reading or for writing as it was asked for, and
of the place where the URI really led at that moment. It ends when it is taken back, or with the
host.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from msgspec import Struct, field

from ahpd.protocol.model import JSON
from ahpd.protocol.uris import URI
from ahpd.resources.port import Grant

#: What there is to be granted, as the protocol spells it.
USES: tuple[Grant, ...] = ("read", "write")
#: Requests that nobody has answered which are remembered; the oldest is forgotten first.
MOST_ASKED = 100
#: Grants that may be given at a time.
MOST_GIVEN = 1000


class Asked(Struct, frozen=True):
    """A request that was refused: by whom, and what for."""

    client_id: str
    uses: frozenset[Grant]


class Grants(Struct, eq=False):
    """See the module's docstring."""

    given: dict[URI, frozenset[Grant]] = field(default_factory=dict)
    asked: OrderedDict[URI, Asked] = field(default_factory=OrderedDict)

    def note(self, uri: URI, client_id: str, uses: Iterable[Grant]) -> None:
        """This was asked for in vain."""
        self.asked.pop(uri, None)
        self.asked[uri] = Asked(client_id, frozenset(uses))
        while len(self.asked) > MOST_ASKED:
            self.asked.popitem(last=False)

    def give(self, place: URI, uses: Iterable[Grant], *spelled: URI) -> bool:
        """Serve this place too, for these uses; `spelled` are other URIs of it that were asked for.

        False: there are `MOST_GIVEN` already.
        """
        if place not in self.given and len(self.given) >= MOST_GIVEN:
            return False
        self.given[place] = self.given.get(place, frozenset()) | frozenset(uses)
        for uri in (place, *spelled):
            self.asked.pop(uri, None)
        return True

    def take_back(self, *places: URI) -> bool:
        """Serve these no more; whether one of them was."""
        taken = [self.given.pop(place, None) for place in places]
        return any(taken)

    def for_use(self, use: Grant) -> tuple[URI, ...]:
        """The places that are served for this."""
        return tuple(place for place, uses in self.given.items() if use in uses)

    def told(self) -> dict[str, JSON]:
        """All of it, for people."""
        return {
            "given": [{"uri": place, **flags(uses)} for place, uses in self.given.items()],
            "asked": [
                {"uri": uri, "clientId": each.client_id, **flags(each.uses)}
                for uri, each in self.asked.items()
            ],
        }


def flags(uses: frozenset[Grant]) -> dict[str, JSON]:
    """Uses as the protocol spells them."""
    return {use: use in uses for use in USES}
