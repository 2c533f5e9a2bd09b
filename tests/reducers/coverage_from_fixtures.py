"""How much of `ahpd.reducers` the project's own cases reach: ``python <this file>``.

Exits 1, naming the lines and branches, when they do not reach all of it. Nothing but the cases
runs, so that a clone of the project alone proves its reducers.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import coverage

FIXTURES = Path(__file__).parents[2] / "fixtures" / "reducers"


def main() -> int:
    """Run all cases under coverage and report."""
    measured = coverage.Coverage(data_file=None, branch=True, source=["ahpd.reducers"])
    measured.start()  # before the import, which runs lines too
    from ahpd.reducers import reduce

    files = sorted(FIXTURES.glob("*.json"))
    for file in files:
        case = json.loads(file.read_text("utf-8"))
        state = case["initial"]
        for action in case["actions"]:
            state = reduce(case["reducer"], state, action)
    measured.stop()
    report = io.StringIO()
    percent = measured.report(file=report, show_missing=True, skip_covered=True, precision=2)
    print(report.getvalue().rstrip())
    print(f"{len(files)} cases reach {percent:.2f} % of ahpd.reducers")
    return 0 if percent == 100 else 1


if __name__ == "__main__":
    sys.exit(main())
