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
from tests.reducers.cases import OWN, Case

KINDS: tuple[ChannelKind, ...] = get_args(ChannelKind)

#: Keys of strings by which an action finds its target. Random strings would hardly ever meet.
_NAMES = frozenset({"id", "resource", "directory", "session", "chat"})

#: States in which actions find targets; random ones seldom hold a running turn with open calls.
_CASES = [Case.read(file) for file in sorted(OWN.glob("*.json"))]
FAMILIAR = {kind: [case.initial for case in _CASES if case.reducer == kind] for kind in KINDS}


def _is_name(key: str, value: JSON) -> bool:
    return isinstance(value, str) and (key in _NAMES or key.endswith("Id"))


def _names(state: JSON, under: str = "") -> Iterator[tuple[str, str]]:
    """The ids and addresses in a state, each with the key it is under."""
    if isinstance(state, dict):
        for key, value in state.items():
            if _is_name(key, value):
                yield key, value
                yield f"{under}/{key}", value
            else:
                yield from _names(value, key)
    elif isinstance(state, list):
        for each in state:
            if isinstance(each, str):
                yield under, each
            else:
                yield from _names(each, under)


#: Where else the names of an action's target stand in a state.
_PLACES = {"turnId": "activeTurn/id", "partId": "responseParts/id", "requestId": "request/id"}


def _aimed(draw: st.DrawFn, action: JSON, state: JSON) -> JSON:
    """The action with most of its names taken from the state, one level down too."""
    names: dict[str, list[str]] = {}
    for key, name in sorted(set(_names(state))):
        names.setdefault(key, []).append(name)

    def aim(key: str, name: str) -> str:
        near = names.get(_PLACES.get(key, key)) or sorted({name for _, name in _names(state)})
        return draw(st.sampled_from([*near * 3, name]))

    aimed = dict(action)
    for key, value in action.items():
        if _is_name(key, value):
            aimed[key] = aim(key, value)
        elif isinstance(value, dict) and isinstance(value.get("id"), str):
            aimed[key] = {**value, "id": aim("id", value["id"])}
        elif isinstance(value, list) and value and all(isinstance(each, str) for each in value):
            every = sorted({name for _, name in _names(state)})
            aimed[key] = draw(st.permutations(every)) if every else value
    return aimed


@st.composite
def steps(draw: st.DrawFn, kind: ChannelKind, make: Any) -> tuple[JSON, list[JSON]]:
    """A state of a channel and some actions for it."""
    state = draw(st.sampled_from(FAMILIAR[kind]) | make(STATES[kind]))
    classes = [cls for info in ACTIONS.values() if info.channel == kind for cls in info.classes]
    actions = draw(st.lists(st.sampled_from(classes).flatmap(make), min_size=1, max_size=3))
    return state, [_aimed(draw, action, state) for action in actions]


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
