"""Running folders of cases: what passes, what fails and how it is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ahpd.conformance import Failure, NoCases, run

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "protocol" / "cases"

REDUCER: dict[str, Any] = {
    "description": "counts sessions",
    "reducer": "root",
    "initial": {"agents": []},
    "actions": [{"type": "root/activeSessionsChanged", "activeSessions": 2}],
    "expected": {"agents": [], "activeSessions": 2, "terminals": None},
}
TRIP: dict[str, Any] = {
    "name": "a number",
    "type": "SessionStatus",
    "input": 8,
    "acceptableOutputs": [9, 8],
}


def folder(tmp_path: Path, **files: Any) -> Path:
    """A folder with the files named ``reducers__x`` (for ``reducers/x.json``) and so on."""
    for name, content in files.items():
        file = tmp_path / (name.replace("__", "/").replace("_", "-") + ".json")
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return tmp_path


def failures(cases: Path) -> list[Failure]:
    return [failure for section in run(cases).sections for failure in section.failures]


def test_the_cases_of_this_project_pass() -> None:
    report = run(ROOT / "fixtures")
    assert report.ok
    assert [section.name for section in report.sections] == [
        "reducers", "round-trips", "version-negotiation",
    ]  # fmt: skip
    assert all(section.total > 20 for section in report.sections)


@pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared/protocol/cases")
def test_the_cases_of_the_protocol_pass() -> None:
    report = run(SHARED)
    assert [failure for section in report.sections for failure in section.failures] == []


def test_cases_that_pass(tmp_path: Path) -> None:
    report = run(folder(tmp_path, reducers__a=REDUCER, round_trips__a=[TRIP, TRIP]))
    assert report.ok
    assert [(section.name, section.passed, section.total) for section in report.sections] == [
        ("reducers", 1, 1), ("round-trips", 2, 2),
    ]  # fmt: skip


def test_a_reducer_case_that_fails_shows_where(tmp_path: Path) -> None:
    wrong = {**REDUCER, "expected": {"agents": [], "activeSessions": 3}}
    assert failures(folder(tmp_path, reducers__a=wrong)) == [
        Failure(
            "reducers/a.json",
            "counts sessions",
            "not what it should be",
            ("activeSessions: expected 3, got 2",),
        )
    ]


def test_the_nearest_acceptable_output_is_shown(tmp_path: Path) -> None:
    case = {
        "type": "Implementation",
        "input": {"name": "a", "title": "b"},
        "acceptableOutputs": [{}, {"name": "a", "title": "c"}],
    }
    (failure,) = failures(folder(tmp_path, round_trips__a=case))
    assert failure.case == ""
    assert failure.differences == ('title: expected "c", got "b"',)


def test_a_preserved_output_is_the_only_one_to_give(tmp_path: Path) -> None:
    case = {
        "type": "Implementation",
        "input": {"name": "a", "x": 1},
        "acceptableOutputs": [{"name": "a"}],
    }
    (failure,) = failures(folder(tmp_path, round_trips__a=case))
    assert failure.differences == ("x: expected nothing, got 1",)
    kept = {**case, "preservedOutput": {"name": "a", "x": 1}}
    assert failures(folder(tmp_path, round_trips__a=kept)) == []
    wrong = {**case, "acceptableOutputs": [case["input"]], "preservedOutput": {"name": "a"}}
    assert len(failures(folder(tmp_path, round_trips__a=wrong))) == 1


def test_null_is_not_absent_in_a_round_trip(tmp_path: Path) -> None:
    case = {
        "type": "Implementation",
        "input": {"name": "a", "title": None},
        "acceptableOutputs": [{"name": "a"}],
    }
    (failure,) = failures(folder(tmp_path, round_trips__a=case))
    assert failure.differences == ("title: expected nothing, got null",)


@pytest.mark.parametrize(
    ("offered", "right", "wrong"),
    [
        (["1.0.0"], "1.0.0", None),
        (["2.0.0"], None, "2.0.0"),
        (["1.0"], "invalid", None),
        ("1.0.0", "invalid", "1.0.0"),
    ],
)
def test_version_cases(tmp_path: Path, offered: Any, right: Any, wrong: Any) -> None:
    good, bad = {"offered": offered, "expected": right}, {"offered": offered, "expected": wrong}
    (failure,) = failures(folder(tmp_path, version_negotiation=[good, bad]))
    assert failure.file == "version-negotiation.json"
    assert failure.case == "case 2"


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("reducers__a", b"{", "not JSON"),
        ("reducers__a", b"\xff\xfe", "not JSON"),
        ("reducers__a", b"[" * 100_000, "not JSON"),
        ("reducers__a", [], "holds no case"),
        ("reducers__a", 7, "a case is an object"),
        ("reducers__a", {}, "malformed case: no reducer"),
        ("reducers__a", {**REDUCER, "reducer": []}, "malformed case: reducer is not a string"),
        ("reducers__a", {**REDUCER, "reducer": "moon"}, "there is no reducer moon"),
        ("reducers__a", {**REDUCER, "actions": {}}, "malformed case: actions is not an array"),
        (
            "reducers__a",
            {**REDUCER, "actions": [7]},
            ": .: expected StateAction, got 7",
        ),
        ("reducers__a", {**REDUCER, "initial": 7}, "initial: .: expected RootState, got 7"),
        (
            "reducers__a",
            {**REDUCER, "initial": {}, "actions": [], "expected": {}},
            "initial: agents: expected array of AgentInfo, got nothing",
        ),
        ("reducers__a", {**REDUCER, "description": 7, "expected": 1}, "not what it should be"),
        ("round_trips__a", {**TRIP, "type": "Moon"}, "no type Moon in the protocol"),
        ("round_trips__a", {**TRIP, "type": 7}, "malformed case: type is not a string"),
        ("round_trips__a", {**TRIP, "input": "x"}, "expected integer of at least 0, got 'x'"),
        ("round_trips__a", {**TRIP, "acceptableOutputs": []}, "acceptableOutputs is empty"),
        ("round_trips__a", {"type": "URI", "input": ""}, "malformed case: no acceptableOutputs"),
        ("version_negotiation", [{"offered": []}], "malformed case: no expected"),
        ("version_negotiation", {}, "malformed case: no offered"),
    ],
)
def test_a_malformed_case_is_a_failure_that_names_its_file(
    tmp_path: Path, name: str, content: Any, problem: str
) -> None:
    (failure,) = failures(folder(tmp_path, **{name: content}))
    assert problem in failure.problem
    assert failure.file == name.replace("__", "/").replace("_", "-") + ".json"


def test_a_file_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    cases = folder(tmp_path, reducers__a=REDUCER)
    (cases / "reducers" / "b.json").symlink_to("nowhere")
    (cases / "reducers" / "c.json").mkdir()
    assert [(failure.file, failure.problem) for failure in failures(cases)] == [
        ("reducers/b.json", "cannot be read: No such file or directory"),
        ("reducers/c.json", "cannot be read: Is a directory"),
    ]


def test_a_reducer_that_raises_fails_its_case_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise KeyError("oops")

    monkeypatch.setattr("ahpd.conformance.runner.reduce", broken)
    (failure,) = failures(folder(tmp_path, reducers__a=REDUCER))
    assert failure.problem == "action 1 of 1: raised KeyError('oops')"


def test_a_reducer_that_changes_its_input_fails_its_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(_: Any, state: Any, action: Any) -> Any:
        state["activeSessions"] = action["activeSessions"]
        return state

    monkeypatch.setattr("ahpd.conformance.runner.reduce", careless)
    (failure,) = failures(folder(tmp_path, reducers__a=REDUCER))
    assert "changed the state" in failure.problem


def test_many_differences_are_counted(tmp_path: Path) -> None:
    wrong = {**REDUCER, "expected": {"agents": [], **{f"k{n}": 1 for n in range(50)}}}
    (failure,) = failures(folder(tmp_path, reducers__a=wrong))
    assert failure.differences[-1] == "and 31 more"
    assert len(failure.differences) == 21


def test_no_cases_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NoCases, match="holds no cases"):
        run(tmp_path)
    with pytest.raises(NoCases, match="is no folder"):
        run(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    with pytest.raises(NoCases, match="is no folder"):
        run(tmp_path / "file")
