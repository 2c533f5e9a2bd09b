"""An agent's permission options as a host's, and what was decided as the agent's outcome. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ahpd.agents.acp.tolerant import dicts_of, text_of
from ahpd.agents.port import Permission
from ahpd.protocol.model import JSON
from ahpd.protocol.tools import ConfirmationOption

#: The outcome when nobody decided, or there is no option for what was decided.
CANCELLED: JSON = {"outcome": {"outcome": "cancelled"}}

#: What is chosen when it was not said by which option: the least far-reaching first.
_APPROVING = ("allow_once", "allow_always")
_DENYING = ("reject_once", "reject_always")


def offered(params: Any) -> Sequence[ConfirmationOption]:
    """The options of a request, in its order; one of an unknown kind never approves."""
    return tuple(
        ConfirmationOption(
            id=option_id,
            label=text_of(each, "name") or option_id,
            kind="approve" if text_of(each, "kind") in _APPROVING else "deny",
        )
        for each in dicts_of(params, "options")
        if (option_id := text_of(each, "optionId")) is not None
    )


def outcome(params: Any, permission: Permission) -> JSON:
    """What to answer the request with.

    The order of the options is no recommendation (hazard 17), so one is chosen by its kind. A
    refusal is an outcome too, never an error.
    """
    options = dicts_of(params, "options")
    kinds = _APPROVING if permission.approved else _DENYING
    wanted = permission.option_id
    for each in options:
        approves = text_of(each, "kind") in _APPROVING
        if text_of(each, "optionId") == wanted is not None and approves == permission.approved:
            return _selected(wanted)
    for kind in kinds:
        for each in options:
            option_id = text_of(each, "optionId")
            if text_of(each, "kind") == kind and option_id is not None:
                return _selected(option_id)
    return CANCELLED


def _selected(option_id: str) -> JSON:
    return {"outcome": {"outcome": "selected", "optionId": option_id}}
