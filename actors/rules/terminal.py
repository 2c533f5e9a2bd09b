"""Rules for what clients dispatch to a terminal (RULES 12).

Whoever hears a terminal may type into it, resize it, name it and clear it: to share one is what it
is for. Whose it is, is its owner's to say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from actors.rules.titles import title_fault
from ahpd.protocol import terminal as act
from ahpd.protocol.actions import StateAction
from ahpd.protocol.faults import shown
from ahpd.protocol.uris import URI

#: Most cells of one side, which is what the kernel can hold.
MOST_CELLS = 65_535


class Case(Struct, frozen=True):
    """What a rule may look at: the terminal, and who asks.

    `owner_of` gives the session of a chat that there is; `is_gone`, whether a client has been away
    for longer than it keeps its place; `hears`, whether who asks hears a channel. `room`: bytes of
    input that may still wait.
    """

    state: act.TerminalState
    client_id: str
    owner_of: Callable[[URI], URI | None]
    is_gone: Callable[[str], bool]
    hears: Callable[[URI], bool]
    room: int

    @property
    def has_exited(self) -> bool:
        """Whether its process is over."""
        return self.state.lifecycle.status != "running"  # type: ignore[union-attr]


def size_fault(cols: float, rows: float) -> str | None:
    """Why a terminal cannot have this size; None when it can (hazard B61)."""
    for name, value in (("cols", cols), ("rows", rows)):
        if not (math.isfinite(value) and value == int(value) and 1 <= value <= MOST_CELLS):
            return f"{name}: {value:g} is no whole number from 1 to {MOST_CELLS}"
    return None


def claim_fault(
    claim: act.TerminalClaim, client_id: str, owner_of: Callable[[URI], URI | None]
) -> str | None:
    """Why nobody could own a terminal by this claim of a client's; None: it is sound (R-12.8)."""
    match claim:
        case act.TerminalClientClaim():
            if claim.client_id != client_id:
                return f"claim: a client claims for itself, not for {shown(claim.client_id)}"
        case act.TerminalSessionClaim():
            owner = owner_of(claim.chat)
            if owner is None:
                return f"claim: there is no chat {shown(claim.chat)}"
            if owner != claim.session:
                return f"claim: the chat {shown(claim.chat)} is not of that session"
        case _:
            return "claim: an owner of a kind that is not known here"
    return None


def _claimed(case: Case, action: act.TerminalClaimedAction) -> str | None:
    if case.has_exited:
        return _OVER
    fault = claim_fault(action.claim, case.client_id, case.owner_of)
    if fault is not None:
        return fault
    held, wanted = case.state.claim, action.claim
    match held:
        case act.TerminalClientClaim():
            if held.client_id == case.client_id or case.is_gone(held.client_id):
                return None
            return "another client owns this terminal, and only it can hand it over"
        case act.TerminalSessionClaim():
            # nobody takes it away, but a client of the session may let a call be done.
            if isinstance(wanted, act.TerminalSessionClaim) and _narrows(held, wanted):
                if case.hears(held.session) or case.hears(held.chat):
                    return None
                return "only a client that takes part in the session may do that"
            return "a session owns this terminal, and only it can hand it over"
        case _:
            return "this terminal has an owner of a kind that is not known here"


def _narrows(held: act.TerminalSessionClaim, wanted: act.TerminalSessionClaim) -> bool:
    same = held.session == wanted.session and held.chat == wanted.chat
    return same and wanted.turn_id is None and wanted.tool_call_id is None


def _input(case: Case, action: act.TerminalInputAction) -> str | None:
    if case.has_exited:
        return _OVER
    length = len(action.data.encode())
    if length > case.room:
        return f"{length} bytes of input are too much: the program does not read what waits already"
    return None


def _resized(case: Case, action: act.TerminalResizedAction) -> str | None:
    return _OVER if case.has_exited else size_fault(action.cols, action.rows)


def _title(case: Case, action: act.TerminalTitleChangedAction) -> str | None:
    return title_fault(action.title)


def _anything(case: Case, action: StateAction) -> str | None:
    return None


_OVER = "the process of this terminal has ended"

#: Every action that a client may dispatch to a terminal. What is not here is refused by the desk.
RULES: Mapping[type, Callable[[Case, Any], str | None]] = {
    act.TerminalClaimedAction: _claimed,
    act.TerminalInputAction: _input,
    act.TerminalResizedAction: _resized,
    act.TerminalTitleChangedAction: _title,
    act.TerminalClearedAction: _anything,
}


def judge(case: Case, action: StateAction) -> str | None:
    """Why this action is refused; None when it is not."""
    return RULES[type(action)](case, action)
