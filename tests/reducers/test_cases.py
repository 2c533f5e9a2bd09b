"""The project's own cases, and the protocol's where they are at hand."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from ahpd.protocol import StateAction, decode
from ahpd.protocol.faults import faults
from ahpd.protocol.shapes import shape_of
from ahpd.reducers import STATES, apply, reduce
from tests.reducers.cases import OWN, PROTOCOL, Case, without_null

OWN_FILES = [pytest.param(file, id=file.stem) for file in sorted(OWN.glob("*.json"))]
PROTOCOL_FILES = [pytest.param(file, id=file.stem) for file in sorted(PROTOCOL.glob("*.json"))]


def text(value: Any) -> str:
    """JSON text by which values are compared: true is not 1 there, as it is in Python."""
    return json.dumps(value, sort_keys=True)


def check(case: Case) -> None:
    """Runs a case, one action after the other, and holds every step to the contract."""
    given = copy.deepcopy(case)
    state: Any = decode(STATES[case.reducer], case.initial)
    for action in case.actions:
        before = text(state.wire())
        after = apply(case.reducer, state, decode(StateAction, action))
        assert text(state.wire()) == before, "the old state changed"
        assert (after is state) == (text(after.wire()) == before), "changed is not told by identity"
        state = after
    assert text(without_null(state.wire())) == text(without_null(case.expected))
    assert case == given, "the case itself was changed"


@pytest.mark.parametrize("file", OWN_FILES)
def test_own_case(file: Path) -> None:
    check(Case.read(file))


@pytest.mark.parametrize("file", OWN_FILES)
def test_own_case_is_legal(file: Path) -> None:
    """States and actions are what a peer of this version may send, unless they are to be newer."""
    case = Case.read(file)
    strict = "newer" not in file.stem
    state = shape_of(STATES[case.reducer])
    found = [
        *faults(state, case.initial, strict=strict),
        *faults(state, case.expected, strict=strict),
        *(
            fault
            for each in case.actions
            for fault in faults(shape_of(StateAction), each, strict=strict)
        ),
    ]
    assert found == []


@pytest.mark.parametrize("file", OWN_FILES)
def test_plain_json(file: Path) -> None:
    """The entry for plain values gives the same, and the given value itself for no change."""
    case = Case.read(file)
    state = case.initial
    for action in case.actions:
        before = copy.deepcopy(state)
        after = reduce(case.reducer, state, action)
        assert state == before
        assert (after is state) == (text(after) == text(before))
        state = after
    assert text(without_null(state)) == text(without_null(case.expected))


def test_there_are_own_cases() -> None:
    assert len(OWN_FILES) > 300


@pytest.mark.skipif(not PROTOCOL_FILES, reason="the protocol's cases are not beside the project")
def test_protocol_cases() -> None:
    failed = []
    for parameter in PROTOCOL_FILES:
        (file,) = parameter.values
        assert isinstance(file, Path)
        try:
            check(Case.read(file))
        except AssertionError as error:
            failed.append(f"{file.name}: {error}")
    assert failed == []
