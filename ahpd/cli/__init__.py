"""The ``ahpd`` command.

Nothing is imported here but the standard library's cheapest: ``ahpd --stdio``, which must start in
no time, is picked out of the arguments in `main` before click is loaded. Every command is a module
of its own, with a `command`, named in `ahpd.cli.group`; it imports what it works with when it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line of this process and exit with its code (`ahpd.cli.exits`)."""
    try:
        sys.exit(_run(sys.argv[1:]))
    except KeyboardInterrupt:  # while something was still being imported
        from ahpd.cli.exits import INTERRUPTED  # noqa: PLC0415

        sys.exit(INTERRUPTED)


def _run(arguments: Sequence[str]) -> int:
    from ahpd.cli import stdio  # noqa: PLC0415

    options = stdio.read(arguments)
    if options is not None:
        return stdio.run(options)
    from ahpd.cli.group import run  # noqa: PLC0415 - click costs 30 ms

    return run(with_command(arguments))


def with_command(arguments: Sequence[str]) -> Sequence[str]:
    """The arguments with the command that is meant when there is none."""
    if not arguments or (
        arguments[0].startswith("-") and arguments[0] not in ("-h", "--help", "--version")
    ):
        return ["serve", *arguments]
    return arguments
