"""Rules for sessions that depend on what the agent can do (RULES 8)."""

from __future__ import annotations

from typing import Any

import pytest

from actors.rules.session import RULES, Case, judge
from ahpd.protocol import session_actions as act
from ahpd.protocol.actions import ACTIONS
from ahpd.protocol.root import AgentCapabilities, MultipleWorkingDirectoriesCapability
from ahpd.protocol.session import (
    SessionConfigPropertySchema,
    SessionConfigSchema,
    SessionConfigState,
    SessionState,
)
from tests.actors.support import readable

HELD = ("file:///one", "file:///two")

NONE = AgentCapabilities()
SEVERAL = AgentCapabilities(multiple_working_directories=MultipleWorkingDirectoriesCapability())
FIXED = AgentCapabilities(
    multiple_working_directories=MultipleWorkingDirectoriesCapability(immutable_primary=True)
)
REPLACED = AgentCapabilities(
    multiple_working_directories=MultipleWorkingDirectoriesCapability(
        immutable_primary=True, primary_replacement=True
    )
)

ADD = act.SessionWorkingDirectorySetAction(directory="file:///three")
DROP_FIRST = act.SessionWorkingDirectoryRemovedAction(directory=HELD[0])
DROP_SECOND = act.SessionWorkingDirectoryRemovedAction(directory=HELD[1])
SWAP_FIRST = act.SessionWorkingDirectoryReplacedAction(
    directory=HELD[0], replacement="file:///three"
)
SWAP_SECOND = act.SessionWorkingDirectoryReplacedAction(
    directory=HELD[1], replacement="file:///three"
)

#: Capabilities -> what may be done to the directories: R-8.49 to R-8.55.
ALLOWED: list[tuple[AgentCapabilities | None, list[Any]]] = [
    (None, []),
    (NONE, []),
    (SEVERAL, [ADD, DROP_FIRST, DROP_SECOND, SWAP_FIRST, SWAP_SECOND]),
    (FIXED, [ADD, DROP_SECOND, SWAP_SECOND]),
    (REPLACED, [ADD, DROP_SECOND, SWAP_FIRST, SWAP_SECOND]),
]


def session(**more: Any) -> SessionState:
    return SessionState(
        provider="puppet",
        title="",
        status=1,
        lifecycle="ready",
        active_clients=(),
        chats=(),
        working_directories=HELD,
        **more,
    )


@pytest.mark.parametrize(("capabilities", "allowed"), ALLOWED)
def test_r_8_52_what_may_be_done_to_working_directories(
    capabilities: AgentCapabilities | None, allowed: list[Any]
) -> None:
    case = Case(session(), capabilities, "ann")
    for action in (ADD, DROP_FIRST, DROP_SECOND, SWAP_FIRST, SWAP_SECOND):
        reason = judge(case, action)
        assert (reason is None) == (action in allowed), (action, reason)
        assert reason is None or readable(reason)


CONFIG = SessionConfigState(
    schema=SessionConfigSchema(
        type="object",
        properties={
            "mode": SessionConfigPropertySchema(type="string", title="Mode", session_mutable=True),
            "fixed": SessionConfigPropertySchema(type="string", title="Fixed"),
            "shown": SessionConfigPropertySchema(
                type="string", title="Shown", session_mutable=True, read_only=True
            ),
        },
    ),
    values={"mode": "plan", "fixed": "x", "shown": "y"},
)


@pytest.mark.parametrize(
    ("key", "word"),
    [("mode", None), ("fixed", "cannot be changed"), ("shown", "cannot be changed"),
     ("zzz", "no setting")],
)  # fmt: skip
def test_r_8_41_only_what_is_marked_as_changeable_may_change(key: str, word: str | None) -> None:
    case = Case(session(config=CONFIG), None, "ann")
    reason = judge(case, act.SessionConfigChangedAction(config={key: "z"}))
    assert (reason is None) == (word is None)
    assert word is None or word in str(reason)


def test_there_is_a_rule_for_every_action_that_clients_may_send_to_a_session() -> None:
    wanted = {
        cls
        for info in ACTIONS.values()
        if info.channel == "session" and info.client_may_dispatch
        for cls in info.classes
    }
    assert set(RULES) == wanted
