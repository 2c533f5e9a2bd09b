"""Version negotiation (RULES 2)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.faults import shown
from ahpd.protocol.model import JSON

#: The newest version whose wire this host speaks; also what 0.10.0 means on the wire (R-2.15).
CURRENT = "1.0.0"

#: What this host serves, as caret ranges: told in an error's data (R-2.5).
SUPPORTED = ("^1.0.0", "^0.10.0", "^0.9.0")

# Three non-negative integers without leading zeros, nothing before or behind. The length
# bound keeps a peer from making us convert a number of a million digits.
_VERSION = re.compile(r"(0|[1-9][0-9]{0,9})\.(0|[1-9][0-9]{0,9})\.(0|[1-9][0-9]{0,9})")


def parse_version(text: JSON) -> tuple[int, int, int] | None:
    """The three numbers of a version, or None when it is malformed."""
    match = _VERSION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    major, minor, patch = match.groups()
    return int(major), int(minor), int(patch)


def _is_served(version: tuple[int, int, int]) -> bool:
    """Caret ranges: from 1 on the major decides, below it the minor does (R-2.16)."""
    major, minor, _ = version
    return major == 1 or (major == 0 and minor in (9, 10))


def choose(offered: Sequence[JSON]) -> str | None:
    """The highest offered version that is served, exactly as offered; None when none is.

    Raises `ProtocolError` (-32602) naming the first malformed entry: one spoils the offer, even
    when another would fit (R-2.6, R-2.7).
    """
    best: tuple[tuple[int, int, int], str] | None = None
    for entry in offered:
        version = parse_version(entry)
        if version is None:
            raise ProtocolError(
                ErrorCode.INVALID_PARAMS,
                f"protocolVersions: {shown(entry)} is not a version such as {CURRENT}",
            )
        if _is_served(version) and (best is None or version > best[0]):
            best = version, entry
    return best[1] if best else None


def negotiate(offered: Sequence[JSON]) -> str:
    """As `choose`, but an offer in which nothing fits raises -32005 with `supportedVersions`."""
    chosen = choose(offered)
    if chosen is None:
        shown_offer = ", ".join(str(entry) for entry in offered[:10]) or "nothing"
        raise ProtocolError(
            ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
            f"none of the offered protocol versions ({shown_offer}) is served here",
            {"supportedVersions": list(SUPPORTED)},
        )
    return chosen
