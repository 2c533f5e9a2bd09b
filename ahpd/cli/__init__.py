"""The ``ahpd`` command.

Nothing is imported here but the standard library's cheapest: what must start in no time can be
picked out of the arguments in `main` before click is loaded. Every command is a module of its
own, with a `command`, named in `ahpd.cli.group`; it imports what it works with when it runs.
"""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line of this process and exit with its code (`ahpd.cli.exits`)."""
    try:
        from ahpd.cli.group import run  # noqa: PLC0415 - click costs 30 ms

        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:  # while something was still being imported
        from ahpd.cli.exits import INTERRUPTED  # noqa: PLC0415

        sys.exit(INTERRUPTED)
