"""Configuration values of the host and of sessions (R-7.5, R-8.41)."""

from __future__ import annotations

from ahpd.protocol.model import Object


def merged(values: Object, pushed: Object, *, replace: bool | None) -> Object:
    """`values` with `pushed` laid over them key by key, or `pushed` alone with `replace`."""
    return pushed if replace else {**values, **pushed}
