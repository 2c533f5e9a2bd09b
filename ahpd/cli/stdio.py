"""``ahpd --stdio``: the host for whoever started it, over standard input and output.

An editor waits for the first answer, so this way goes round click: it reads the few options itself,
and leaves every command line that it does not know to the ordinary way, which says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ahpd.cli import exits
from ahpd.cli.loading import loading

if TYPE_CHECKING:
    from ahpd.daemon.launching import Flags

_VALUES = (
    *("--agent", "--path", "--config", "--wire", "--wire-format", "--state-dir", "--log-level"),
)


def read(arguments: Sequence[str]) -> dict[str, list[str]] | None:
    """The options of a command line for stdio; None when it is none or needs to be explained."""
    if "--stdio" not in arguments:
        return None
    found: dict[str, list[str]] = {}
    words = list(arguments)
    if words[0] == "serve":
        del words[0]
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if word in ("--stdio", "--quiet"):
            continue
        if name not in _VALUES or not (equals or words):
            return None
        found.setdefault(name, []).append(value if equals else words.pop(0))
    return found


def run(given: dict[str, list[str]]) -> int:
    """Serve with the options that `read` gave, and return the exit code."""
    with loading():
        from ahpd.daemon.launching import Flags  # noqa: PLC0415

    flags = Flags(
        agents=given.get("--agent", ()),
        paths=given.get("--path", ()),
        config=_last(given, "--config"),
        wire=_last(given, "--wire"),
        wire_format=_last(given, "--wire-format"),
        state_dir=_last(given, "--state-dir"),
        log_level=_last(given, "--log-level"),
    )
    return serve(flags)


def serve(flags: Flags) -> int:
    """Serve one peer over stdin and stdout until it ends its stream; the exit code."""
    with loading():
        from ahpd.cli import failing  # noqa: PLC0415
        from ahpd.daemon.launching import make_launch  # noqa: PLC0415
        from ahpd.daemon.over_stdio import serve_stdio  # noqa: PLC0415
        from ahpd.transports.stdio import take_stdio  # noqa: PLC0415

    try:
        descriptors = take_stdio()
    except OSError as error:
        failing.say(f"standard input, output and error must be open: {error.strerror}")
        return exits.USAGE
    with failing.explained() as outcome:
        outcome.reason = serve_stdio(make_launch(flags, failing.say), *descriptors)
    return outcome.code


def _last(given: dict[str, list[str]], name: str) -> str | None:
    values = given.get(name)
    return values[-1] if values else None
