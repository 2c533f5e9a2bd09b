"""The ``ahpd`` command; see `ahpd.cli`."""

from __future__ import annotations


def main() -> None:
    """Run the command line and exit with its code."""
    from ahpd.cli import main as run  # noqa: PLC0415 - keeps `python -m ahpd` light

    run()


if __name__ == "__main__":
    main()
