"""What holds for every legal state and action, of this version and of newer ones."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpd.protocol import ACTIONS, StateAction, Unknown, decode
from ahpd.protocol.model import JSON
from ahpd.protocol.uris import ChannelKind
from ahpd.reducers import STATES, apply, reduce
from tests.protocol.strategies import newer, values

KINDS: tuple[ChannelKind, ...] = get_args(ChannelKind)

#: Keys of strings by which an action finds its target. Random strings would hardly ever meet.
_NAMES = frozenset({"id", "resource", "directory", "session", "chat", "clientId", "commandId"})


def _targets(state: JSON) -> Iterator[str]:
    """The ids and addresses in a state."""
    if isinstance(state, dict):
        for key, value in state.items():
            if isinstance(value, str) and (key in _NAMES or key.endswith("Id")):
                yield value
            elif key in ("workingDirectories", "sessions") and isinstance(value, list):
                yield from (each for each in value if isinstance(each, str))
            else:
                yield from _targets(value)
    elif isinstance(state, list):
        for each in state:
            yield from _targets(each)


def _aimed(draw: st.DrawFn, action: JSON, targets: list[str]) -> JSON:
    """The action with most of its names taken from the state, one level down too."""
    aimed = dict(action)
    for key, value in action.items():
        if isinstance(value, str) and (key in _NAMES or key.endswith("Id")):
            aimed[key] = draw(st.sampled_from([*targets, value]))
        elif isinstance(value, dict) and isinstance(value.get("id"), str):
            aimed[key] = {**value, "id": draw(st.sampled_from([*targets, value["id"]]))}
    return aimed


@st.composite
def steps(draw: st.DrawFn, kind: ChannelKind, make: Any) -> tuple[JSON, list[JSON]]:
    """A state of a channel and some actions for it."""
    state = draw(make(STATES[kind]))
    classes = [cls for info in ACTIONS.values() if info.channel == kind for cls in info.classes]
    targets = sorted(set(_targets(state)))
    actions = draw(st.lists(st.sampled_from(classes).flatmap(make), min_size=1, max_size=3))
    return state, [_aimed(draw, action, targets) for action in actions]


def _text(value: JSON) -> str:
    return json.dumps(value, sort_keys=True)


def _holds(kind: ChannelKind, state: JSON, actions: list[JSON]) -> None:
    held: Any = decode(STATES[kind], state)
    history = [(held, _text(held.wire()))]
    for action in actions:
        new = apply(kind, held, decode(StateAction, action))
        text = _text(new.wire())
        assert (new is held) == (text == history[-1][1])
        decode(STATES[kind], new.wire())
        held = new
        history.append((held, text))
    for old, text in history:
        assert _text(old.wire()) == text


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_legal_steps(kind: ChannelKind, data: st.DataObject) -> None:
    """No reducer raises; old states stay as they were; only a change makes a new object."""
    _holds(kind, *data.draw(steps(kind, values)))


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_newer_steps(kind: ChannelKind, data: st.DataObject) -> None:
    """The same with what a newer peer may send."""
    _holds(kind, *data.draw(steps(kind, newer)))


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_plain_values_stay(kind: ChannelKind, data: st.DataObject) -> None:
    """The entry for plain JSON changes neither of its arguments."""
    state, actions = data.draw(steps(kind, newer))
    given_both = copy.deepcopy((state, actions[0]))
    reduce(kind, state, actions[0])
    assert (state, actions[0]) == given_both


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_other_actions_change_nothing(kind: ChannelKind, data: st.DataObject) -> None:
    """An action of another channel, or of none that is known here, gives the state back."""
    state = decode(STATES[kind], data.draw(values(STATES[kind], 2)))
    others = [cls for info in ACTIONS.values() if info.channel != kind for cls in info.classes]
    action = decode(StateAction, data.draw(st.sampled_from(others).flatmap(lambda c: values(c, 2))))
    assert apply(kind, state, action) is state
    assert apply(kind, state, Unknown(raw={"type": f"{kind}/neverHeardOf"})) is state
