"""What is known of an agent only since it ran; forgotten with the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import trio

from ahpd.agents.port import SignInNeeded
from ahpd.protocol.common import ProtectedResourceMetadata

if TYPE_CHECKING:
    from ahpd.agents.acp.handshake import Abilities
    from ahpd.agents.acp.settings import Setting


class Learned:
    """See the module. `watch` is told when what clients see of the agent may be another."""

    def __init__(self) -> None:
        #: The settings that its last session had; None: it had none yet.
        self.settings: Mapping[str, Setting] | None = None
        #: Somebody finds them out, and when that may be tried again.
        self.finding = trio.Lock()
        self.find_after = float("-inf")
        #: What it says of itself; None: it was not asked yet.
        self.abilities: Abilities | None = None
        #: Conversations that could not be taken up, with how often that was tried.
        self.lost: dict[str, int] = {}
        #: Conversations that were begun here: some agents keep those in which nothing was said.
        self.begun: set[str] = set()
        #: It repeats a conversation before it says that it was taken up, and not after.
        self.repeats_at_once = False
        #: What tokens are taken for, since somebody had to sign in.
        self.resources: Sequence[ProtectedResourceMetadata] = ()
        #: It was signed in by itself, and nothing has been amiss since.
        self.is_signed_in = False
        self._changed: Callable[[], None] | None = None

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` from now on, and nobody else any more."""
        self._changed = changed

    def meet(self, abilities: Abilities) -> None:
        """It says this of itself."""
        before, self.abilities = self.abilities, abilities
        if before is None or before.forks != abilities.forks:
            self._tell()

    def note_sign_in(self, needed: SignInNeeded) -> None:
        """It wants somebody to sign in."""
        self.is_signed_in = False
        known = {each.resource for each in self.resources}
        new = [each for each in needed.resources if each.resource not in known]
        if new:
            self.resources = (*self.resources, *new)
            self._tell()

    def _tell(self) -> None:
        if self._changed is not None:
            self._changed()
