"""How one actor refuses what another asks for, so that a client gets the right error code."""

from __future__ import annotations

from ahpd.protocol.errors import ErrorCode, ProtocolError
from supervisors import CallFailed, FailureKind, Reject


def refusal(code: ErrorCode, message: str) -> Reject:
    """A refusal that carries the error its asker is to be answered with."""
    return Reject(message, ProtocolError(code, message))


def as_protocol_error(error: CallFailed) -> ProtocolError:
    """What a client is told about a call inside the host that came to nothing.

    A refusal says why; of anything else a client learns only what it can act on (R-23.5).
    """
    failure = error.failure
    if isinstance(failure.detail, ProtocolError):
        return failure.detail
    if failure.kind is FailureKind.REJECTED:
        return ProtocolError(ErrorCode.INVALID_PARAMS, failure.reason)
    if failure.kind is FailureKind.PARKED:
        return ProtocolError(
            ErrorCode.INTERNAL_ERROR, "this part of the host failed too often and was set aside"
        )
    if failure.kind is FailureKind.TIMEOUT:
        return ProtocolError(ErrorCode.INTERNAL_ERROR, "the host did not get to it in time")
    return ProtocolError(ErrorCode.INTERNAL_ERROR, "this part of the host is not running just now")
