"""Who may import whom: read from the imports in the source, function bodies included.

The table holds every package of the design, those that do not exist yet too. A module is judged
by the longest prefix that the table has for it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).resolve().parents[1]
OURS = ("ahpd", "actors", "supervisors")

#: What actors know of the world outside: small `Protocol` classes and the values that pass through
#: them, never an adapter.
PORTS = frozenset(
    f"ahpd.{package}.port"
    for package in ("journal", "agents", "terminals", "resources", "git", "transports", "telemetry")
) | {"ahpd.agents.events"}

#: Of the standard library, what reads a clock, a random source or the world outside.
IMPURE = frozenset(
    {"asyncio", "multiprocessing", "os", "random", "secrets", "select", "signal", "socket",
     "sqlite3", "subprocess", "tempfile", "threading", "time"}
)  # fmt: skip


@attrs.frozen
class Rule:
    """What a package may import, besides itself and the standard library."""

    ours: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    pure: bool = False


def rule(*ours: str, others: str = "attrs msgspec", pure: bool = False) -> Rule:
    return Rule(frozenset(ours), frozenset(others.split()), pure)


def edge(*ours: str, others: str = "") -> Rule:
    """An adapter: bytes, files and processes on one side, the protocol's values on the other."""
    return rule("ahpd.protocol", *ours, others=f"trio attrs cattrs msgspec {others}")


ARROWS = {
    "supervisors": rule(others="trio attrs msgspec"),
    "supervisors._policy": rule("supervisors"),
    "ahpd": rule(),
    "ahpd.__main__": rule("ahpd.cli"),
    "ahpd.protocol": rule(others="attrs cattrs msgspec orjson", pure=True),
    "ahpd.reducers": rule("ahpd.protocol", pure=True),
    "ahpd.conformance": rule("ahpd.protocol", "ahpd.reducers"),
    "ahpd.journal": edge(),
    "ahpd.agents": edge(),
    "ahpd.agents.acp": edge("ahpd.agents", "ahpd.transports.lines"),
    "ahpd.terminals": edge(),
    "ahpd.resources": edge(),
    "ahpd.git": edge(),
    "ahpd.telemetry": edge(others="opentelemetry google"),
    "ahpd.transports": edge(others="trio_websocket wsproto h11"),
    "ahpd.client": edge("ahpd.reducers", "ahpd.transports"),
    "actors": rule(
        "supervisors", "ahpd", "ahpd.protocol", "ahpd.reducers", *PORTS, others="trio attrs msgspec"
    ),
    "ahpd.inspection": rule(
        "supervisors", "actors", "ahpd.protocol", "ahpd.reducers", *PORTS,
        others="trio msgspec jsonpath greenback",
    ),
    "ahpd.daemon": rule(
        "supervisors", "actors", "ahpd", "ahpd.protocol", "ahpd.reducers", "ahpd.journal",
        "ahpd.agents", "ahpd.terminals", "ahpd.resources", "ahpd.git", "ahpd.transports",
        "ahpd.inspection", "ahpd.telemetry",
        others="trio attrs cattrs msgspec platformdirs tomlkit",
    ),
    "ahpd.bench": rule("ahpd", "ahpd.protocol", others="trio trio_websocket attrs orjson"),
    "ahpd.cli": rule(
        "ahpd", "ahpd.bench", "ahpd.daemon", "ahpd.client", "ahpd.conformance", "ahpd.protocol",
        "ahpd.transports", "supervisors.sys", "ahpd.inspection.names",
        others="trio attrs cattrs click rich platformdirs prompt_toolkit",
    ),
}  # fmt: skip


def modules() -> dict[str, Path]:
    found = {}
    for package in OURS:
        for file in (ROOT / package).rglob("*.py"):
            parts = file.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


MODULES = modules()


def imported(module: str, file: Path) -> Iterator[str]:
    """The full names of the modules that a file imports."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            assert node.module is not None
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module


def covered(name: str, prefixes: frozenset[str] | dict[str, Rule]) -> str | None:
    """The longest of `prefixes` that `name` is or lies in; bare ``ahpd`` covers only itself."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        prefix = ".".join(parts[:length])
        if prefix in prefixes and (prefix != "ahpd" or name == "ahpd"):
            return prefix
    return None


def wrong(module: str, file: Path) -> list[str]:
    home = covered(module, ARROWS)
    if home is None:
        return [f"{module}: has no row in the table"]
    mine = ARROWS[home]
    told = []
    for name in sorted(set(imported(module, file))):
        top = name.split(".")[0]
        if top in OURS:
            allowed = covered(name, frozenset({home, *mine.ours})) is not None
        elif top in sys.stdlib_module_names:
            allowed = not (mine.pure and top in IMPURE)
        else:
            allowed = top in mine.others
        if not allowed:
            told.append(f"{module} ({home}) must not import {name}")
    return told


@pytest.mark.parametrize("home", ARROWS)
def test_arrows_point_one_way(home: str) -> None:
    told = [
        fault
        for module, file in MODULES.items()
        if covered(module, ARROWS) == home
        for fault in wrong(module, file)
    ]
    assert told == []


def test_every_module_has_a_row() -> None:
    assert [module for module in MODULES if covered(module, ARROWS) is None] == []


def test_nobody_but_the_command_line_imports_the_daemon() -> None:
    importers = {
        module
        for module, file in MODULES.items()
        for name in imported(module, file)
        if name.split(".")[:2] == ["ahpd", "daemon"] and covered(module, ARROWS) != "ahpd.daemon"
    }
    assert {covered(module, ARROWS) for module in importers} <= {"ahpd.cli"}


def test_a_wrong_arrow_is_found(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text("import trio, time\nfrom ahpd import reducers\ndef f():\n    import actors\n")
    assert wrong("ahpd.protocol.wrong", file) == [
        "ahpd.protocol.wrong (ahpd.protocol) must not import actors",
        "ahpd.protocol.wrong (ahpd.protocol) must not import ahpd.reducers",
        "ahpd.protocol.wrong (ahpd.protocol) must not import time",
        "ahpd.protocol.wrong (ahpd.protocol) must not import trio",
    ]
    assert wrong("ahpd.unheard_of", file) == ["ahpd.unheard_of: has no row in the table"]
