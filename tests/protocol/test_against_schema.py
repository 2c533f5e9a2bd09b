"""`ahpd.protocol` against the published tables and the independent checker, where they are at hand.

They are looked for in a folder ``shared`` beside the repository and are no part of it.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from ahpd.protocol.actions import ACTIONS
from ahpd.protocol.capture import Way, line_of
from ahpd.protocol.methods import METHODS
from ahpd.protocol.shapes import fields_of
from ahpd.protocol.strict import FrameChecker
from tests.protocol.strategies import examples, mutated, newer, values, wire_aliases, wire_classes

SHARED = Path(__file__).resolve().parents[3] / "shared" / "protocol"

pytestmark = pytest.mark.skipif(
    not (SHARED / "schema.json").exists() or importlib.util.find_spec("jsonschema") is None,
    reason="needs ../shared/protocol beside the repository, and jsonschema",
)

CLASSES = {cls.__name__: cls for cls in wire_classes()}

#: Definitions without a class or an alias, for nothing on the wire is of their type alone.
#: `ahpd.conformance.names` knows what they stand for.
NOT_ON_THE_WIRE = {
    "AhpErrorCode",
    "AhpErrorDetailsMap",
    "ChatAction",
    "JsonRpcErrorCode",
    "ProtocolNotification",
    "URI",
}


def table(name: str) -> Any:
    return json.loads((SHARED / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def oracle() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_frames", SHARED / "check_frames.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def judge(oracle: ModuleType) -> Any:
    """A function from frames to whether the independent checker finds fault with them."""
    checker = oracle.Checker()

    def judged(frames: list[tuple[Way, Any]]) -> bool:
        try:
            lines = [line_of(way, frame).decode() for way, frame in frames]
            return any(True for _ in checker.lines(lines))
        except (AttributeError, TypeError):
            return True  # it stumbles over params and errors that are no objects

    return judged


def test_every_definition_has_its_class_or_alias() -> None:
    missing = table("schema")["$defs"].keys() - CLASSES.keys() - wire_aliases().keys()
    assert missing == NOT_ON_THE_WIRE


def objects() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, definition in table("schema")["$defs"].items() if SHARED.exists() else ():
        if definition.get("type") == "object" and name not in NOT_ON_THE_WIRE:
            yield name, definition


@pytest.mark.parametrize(
    ("name", "definition"), [pytest.param(*row, id=row[0]) for row in objects()]
)
def test_a_class_has_the_keys_of_its_definition(name: str, definition: dict[str, Any]) -> None:
    fields = fields_of(CLASSES[name])
    assert {field.key for field in fields} == definition.get("properties", {}).keys()
    assert {field.key for field in fields if not field.optional} == set(
        definition.get("required", [])
    )


def test_the_methods_are_the_published_ones() -> None:
    published = table("methods")
    assert METHODS.keys() == {row["method"] for rows in published.values() for row in rows}
    for kind, rows in published.items():
        for row in rows:
            method = METHODS[row["method"]]
            assert method.is_request == (kind == "commands")
            assert method.params is CLASSES[row["params"]]
            assert method.direction == row["direction"]
            fixed = row["channel"] if "://" in row["channel"] else None
            assert method.fixed_channel == fixed
            assert fixed is not None or method.target == row["channel"]
            if row.get("result") is None:
                assert method.result is None
            else:
                assert method.result == CLASSES.get(
                    row["result"], wire_aliases().get(row["result"])
                )


def test_the_actions_are_the_published_ones() -> None:
    published = table("actions")
    assert ACTIONS.keys() == published.keys()
    for name, row in published.items():
        info = ACTIONS[name]
        definitions = row["definition"]
        wanted = definitions if isinstance(definitions, list) else [definitions]
        assert {cls.__name__ for cls in info.classes} == set(wanted)
        assert info.client_may_dispatch == row["clientMayDispatch"]
        assert info.since == row["since"]


# Where the project's checker is the stricter one on purpose: see `ahpd.protocol.strict`. The
# frames made here keep out of it: legal directions, ids and envelopes, null where null is due,
# error data that fits. What is spoiled is what stands inside params and results.


def frames_of(name: str, params: Any, result: Any) -> list[tuple[Way, Any]]:
    method = METHODS[name]
    way: Way = "c2h" if method.sent_by("client") else "h2c"
    frame = {"jsonrpc": "2.0", "method": name, "params": params}
    if not method.is_request:
        return [(way, frame)]
    back: Way = "h2c" if way == "c2h" else "c2h"
    return [(way, {**frame, "id": 1}), (back, {"jsonrpc": "2.0", "id": 1, "result": result})]


def ours(frames: list[tuple[Way, Any]]) -> list[str]:
    checker = FrameChecker()
    return [str(fault) for way, frame in frames for fault in checker.check(way, frame)]


def result_of(name: str) -> st.SearchStrategy[Any]:
    hint = METHODS[name].result
    return st.none() if hint is None else values(hint)


@pytest.mark.parametrize("name", METHODS)
@given(data=st.data())
@examples(1)
def test_both_checkers_accept_what_is_legal(name: str, data: st.DataObject, judge: Any) -> None:
    frames = frames_of(name, data.draw(values(METHODS[name].params)), data.draw(result_of(name)))
    assert ours(frames) == []
    assert not judge(frames)


@pytest.mark.parametrize("name", METHODS)
@given(data=st.data())
@examples(2)
def test_both_checkers_agree_about_params(name: str, data: st.DataObject, judge: Any) -> None:
    base = values(METHODS[name].params) | newer(METHODS[name].params)
    frames = frames_of(name, data.draw(mutated(base)), None)[:1]
    found = ours(frames)
    assert bool(found) == judge(frames), (found, frames)


@pytest.mark.parametrize(
    "name", [name for name, method in METHODS.items() if method.result is not None]
)
@given(data=st.data())
@examples(2)
def test_both_checkers_agree_about_results(name: str, data: st.DataObject, judge: Any) -> None:
    base = values(METHODS[name].result) | newer(METHODS[name].result)
    result = data.draw(mutated(base))
    if name == "reconnect":  # the other checker puts an empty list where `actions` should be
        assume(
            not isinstance(result, dict)
            or result.get("type") != "replay"
            or isinstance(result.get("actions"), list)
        )
    frames = frames_of(name, data.draw(values(METHODS[name].params)), result)
    found = ours(frames)
    assert bool(found) == judge(frames), (found, frames)


@pytest.mark.parametrize("action", ACTIONS)
@given(data=st.data())
@examples(2)
def test_both_checkers_agree_about_actions(action: str, data: st.DataObject, judge: Any) -> None:
    base = st.one_of(*(values(cls) | newer(cls) for cls in ACTIONS[action].classes))
    params = {"channel": "c", "serverSeq": 1, "action": data.draw(mutated(base))}
    frames = frames_of("action", params, None)
    found = ours(frames)
    assert bool(found) == judge(frames), (found, frames)


@pytest.mark.parametrize(
    "name",
    ["RootState", "SessionState", "ChatState", "TerminalState", "ChangesetState",
     "AnnotationsState", "ResourceWatchState", "AutomationState", "AutomationRunState",
     "CanvasState"],
)  # fmt: skip
@given(data=st.data())
@examples(4)
def test_both_checkers_agree_about_snapshots(name: str, data: st.DataObject, judge: Any) -> None:
    state = data.draw(mutated(values(CLASSES[name]) | newer(CLASSES[name])))
    assume(isinstance(state, dict))
    snapshot = {"resource": "u", "state": state, "fromSeq": 1}
    frames = frames_of("subscribe", {"channel": "c"}, {"snapshot": snapshot})
    found = ours(frames)
    assert bool(found) == judge(frames), (found, frames)


@given(
    error=st.fixed_dictionaries(
        {},
        optional={
            "code": st.integers(-40000, 0).filter(lambda code: code not in (-32005, -32007, -32009))
            | st.sampled_from((None, "x", 1.5)),
            "message": st.text(max_size=3) | st.none() | st.integers(),
        },
    )
)
@example(error={"code": -32603, "message": "m"})
def test_both_checkers_agree_about_errors(error: Any, judge: Any) -> None:
    frames: list[tuple[Way, Any]] = [("h2c", {"jsonrpc": "2.0", "id": 1, "error": error})]
    assert bool(ours(frames)) == judge(frames)
