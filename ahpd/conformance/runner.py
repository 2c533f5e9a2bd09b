"""Runs the cases of a folder and keeps what failed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import attrs

from ahpd.conformance.compare import differences
from ahpd.conformance.names import round_trip_of
from ahpd.protocol.codec import DecodeError, decode
from ahpd.protocol.errors import ProtocolError
from ahpd.protocol.jsontext import ParseError, dumps, loads
from ahpd.protocol.model import JSON
from ahpd.protocol.versions import choose
from ahpd.reducers import STATES, reduce

#: Differences kept of one case; the rest is counted.
MOST_DIFFERENCES = 20


@attrs.frozen
class Failure:
    """A case that did not give what it should, or a file that holds no case.

    `case` is its name or place, empty for a whole file. `differences` are lines to read.
    """

    file: str
    case: str
    problem: str
    differences: tuple[str, ...] = ()


@attrs.frozen
class Section:
    """The cases of one kind."""

    name: str
    total: int
    failures: tuple[Failure, ...]

    @property
    def passed(self) -> int:
        """How many cases gave what they should."""
        return self.total - len(self.failures)


@attrs.frozen
class Report:
    """Everything that ran."""

    sections: tuple[Section, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return not any(section.failures for section in self.sections)


class NoCases(Exception):
    """The folder is not there, cannot be read, or holds no cases."""


@attrs.frozen
class _Mismatch(Exception):
    """What a case raises when it fails."""

    problem: str
    differences: tuple[str, ...] = ()


#: Runs one case; raises `_Mismatch`.
_Runner: TypeAlias = Callable[[Mapping[str, JSON]], None]


def run(folder: Path) -> Report:
    """Run every case under `folder`; raises `NoCases`."""
    if not folder.is_dir():
        raise NoCases(f"{folder} is no folder")
    try:
        sections = [
            _section(folder, name, files, runner)
            for name, files, runner in (
                ("reducers", sorted((folder / "reducers").glob("*.json")), _reducer),
                ("round-trips", sorted((folder / "round-trips").glob("*.json")), _round_trip),
                ("version-negotiation", _versions_file(folder), _negotiation),
            )
            if files
        ]
    except OSError as error:
        raise NoCases(f"{folder}: {error.strerror}") from None
    if not sections:
        raise NoCases(
            f"{folder} holds no cases: no reducers/*.json, round-trips/*.json "
            "or version-negotiation.json"
        )
    return Report(tuple(sections))


def _versions_file(folder: Path) -> list[Path]:
    file = folder / "version-negotiation.json"
    return [file] if file.exists() else []


def _section(folder: Path, name: str, files: Iterable[Path], runner: _Runner) -> Section:
    results = [
        result for file in files for result in _file(file, str(file.relative_to(folder)), runner)
    ]
    return Section(name, len(results), tuple(result for result in results if result is not None))


def _file(file: Path, name: str, runner: _Runner) -> Iterator[Failure | None]:
    """One result for each case of a file, None for one that passed."""
    try:
        content = loads(file.read_bytes())
    except OSError as error:
        yield Failure(name, "", f"cannot be read: {error.strerror}")
        return
    except ParseError as error:
        yield Failure(name, "", str(error))
        return
    cases = content if isinstance(content, list) else [content]
    if not cases:
        yield Failure(name, "", "holds no case")
    for place, case in enumerate(cases):
        title = _title(case) or (f"case {place + 1}" if len(cases) > 1 else "")
        try:
            if not isinstance(case, dict):
                raise _Mismatch("a case is an object")
            runner(case)
        except _Mismatch as failed:
            yield Failure(name, title, failed.problem, failed.differences)
        else:
            yield None


def _title(case: JSON) -> str:
    given = (case.get("name") or case.get("description")) if isinstance(case, dict) else None
    return given if isinstance(given, str) else ""


def _need(case: Mapping[str, JSON], key: str, kind: type | None = None) -> Any:
    if key not in case:
        raise _Mismatch(f"malformed case: no {key}")
    if kind is not None and not isinstance(case[key], kind):
        raise _Mismatch(f"malformed case: {key} is not {_KINDS[kind]}")
    return case[key]


_KINDS: Mapping[type, str] = {str: "a string", list: "an array", dict: "an object"}


def _reducer(case: Mapping[str, JSON]) -> None:
    kind, state = _need(case, "reducer", str), _need(case, "initial")
    actions, expected = _need(case, "actions", list), _need(case, "expected")
    if kind not in STATES:
        raise _Mismatch(f"malformed case: there is no reducer {kind}")
    before = dumps(state), dumps(actions)
    initial = state
    try:
        decode(STATES[kind], state)
    except DecodeError as error:
        raise _Mismatch(f"initial: {error.fault}") from None
    for number, action in enumerate(actions, 1):
        try:
            state = reduce(kind, state, action)
        except DecodeError as error:
            raise _Mismatch(f"action {number} of {len(actions)}: {error.fault}") from None
        except Exception as error:
            raise _Mismatch(f"action {number} of {len(actions)}: raised {error!r}") from error
    _compare([expected], state, null_is_absent=True)
    if (dumps(initial), dumps(actions)) != before:
        raise _Mismatch("reducing changed the state or the actions it was given")


def _round_trip(case: Mapping[str, JSON]) -> None:
    name, value = _need(case, "type", str), _need(case, "input")
    if "preservedOutput" in case:
        acceptable = [case["preservedOutput"]]
    else:
        acceptable = _need(case, "acceptableOutputs", list)
        if not acceptable:
            raise _Mismatch("malformed case: acceptableOutputs is empty, so nothing could pass")
    again = round_trip_of(name)
    if again is None:
        raise _Mismatch(f"no type {name} in the protocol")
    try:
        got = again(value)
    except ValueError as error:
        raise _Mismatch(str(error)) from None
    _compare(acceptable, got, null_is_absent=False)


def _negotiation(case: Mapping[str, JSON]) -> None:
    offered, expected = _need(case, "offered"), _need(case, "expected")
    _compare([expected], _outcome(offered), null_is_absent=False)


def _outcome(offered: JSON) -> str | None:
    if not isinstance(offered, list):
        return "invalid"
    try:
        return choose(offered)
    except ProtocolError:
        return "invalid"


def _compare(acceptable: list[JSON], got: JSON, *, null_is_absent: bool) -> None:
    """Pass when `got` is one of those acceptable; tell the differences from the nearest."""
    found = [
        list(differences(expected, got, null_is_absent=null_is_absent)) for expected in acceptable
    ]
    nearest = min(found, key=len)
    if nearest:
        shown = itertools.islice(nearest, MOST_DIFFERENCES)
        more = len(nearest) - MOST_DIFFERENCES
        raise _Mismatch(
            "not what it should be",
            (*shown, f"and {more} more") if more > 0 else tuple(shown),
        )
