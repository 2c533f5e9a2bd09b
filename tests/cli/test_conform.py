"""``ahpd conform``: text, JSON and exit codes. What the cases mean is tested with the runner."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ahpd.cli import exits
from ahpd.cli.group import run

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


@pytest.fixture
def failing(tmp_path: Path) -> Path:
    """One round trip that fails, one version case that passes."""
    (tmp_path / "round-trips").mkdir()
    case = {
        "name": "wrong",
        "type": "Implementation",
        "input": {"name": "a"},
        "acceptableOutputs": [{"name": "b"}],
    }
    (tmp_path / "round-trips" / "one.json").write_text(json.dumps(case))
    (tmp_path / "version-negotiation.json").write_text('[{"offered":[],"expected":null}]')
    return tmp_path


def test_the_cases_of_this_project(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conform", str(FIXTURES)]) == exits.OK
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "reducers", "round-trips", "version-negotiation",
    ]  # fmt: skip
    for line in lines:
        passed, total = line.split(": ")[1].split(" of ")
        assert passed == total


def test_a_failure_has_a_line_and_its_differences(
    failing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["conform", str(failing)]) == exits.FAULTS
    assert capsys.readouterr().out.splitlines() == [
        "FAIL round-trips/one.json: wrong: not what it should be",
        '     name: expected "b", got "a"',
        "round-trips: 0 of 1",
        "version-negotiation: 1 of 1",
    ]


def test_the_same_as_json(failing: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conform", "--json", str(failing)]) == exits.FAULTS
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is False
    assert report["sections"][0] == {
        "name": "round-trips",
        "passed": 0,
        "total": 1,
        "failures": [
            {
                "file": "round-trips/one.json",
                "case": "wrong",
                "problem": "not what it should be",
                "differences": ['name: expected "b", got "a"'],
            }
        ],
    }
    assert report["sections"][1]["passed"] == 1


def test_a_folder_without_cases_is_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["conform", str(tmp_path)]) == exits.USAGE
    assert "holds no cases" in capsys.readouterr().err
