"""What a client is told when something inside the host refused, or is not there."""

from __future__ import annotations

import pytest

from actors.refusal import as_protocol_error, refusal
from ahpd.protocol.errors import ErrorCode, ProtocolError
from supervisors import CallFailed, Failure, FailureKind
from tests.actors.support import readable


@pytest.mark.parametrize("kind", FailureKind)
def test_r_23_5_a_failure_is_told_in_words_without_the_hosts_insides(kind: FailureKind) -> None:
    failure = Failure(kind, "session/secret/chat/0", "it is in the way of things")
    error = as_protocol_error(CallFailed(failure))
    assert readable(error.message)
    assert "secret" not in error.message
    rejected = kind is FailureKind.REJECTED
    assert error.code == (ErrorCode.INVALID_PARAMS if rejected else ErrorCode.INTERNAL_ERROR)
    assert (failure.reason in error.message) == rejected


def test_a_refusal_with_a_code_keeps_it() -> None:
    reject = refusal(ErrorCode.NOT_FOUND, "there is no such thing")
    failure = Failure(FailureKind.REJECTED, "x", reject.reason, detail=reject.detail)
    error = as_protocol_error(CallFailed(failure))
    assert isinstance(error, ProtocolError)
    assert (error.code, error.message) == (ErrorCode.NOT_FOUND, "there is no such thing")
