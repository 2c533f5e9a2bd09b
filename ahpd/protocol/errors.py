"""Error codes of JSON-RPC and AHP, and the one exception that becomes an error answer (RULES 23).

| code | raised for | data |
|---|---|---|
| -32700 to -32603 | JSON-RPC's own | none |
| -32005 | no offered version fits | `UnsupportedProtocolVersionErrorData` |
| -32007 | a token is missing | `AuthRequiredErrorData` |
| -32009 | access denied | `PermissionDeniedErrorData`, or none |
| the others | see `ErrorCode` | none |
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from ahpd.protocol.connection import (
    PermissionDeniedErrorData,
    UnsupportedProtocolVersionErrorData,
)
from ahpd.protocol.model import JSON, WireType
from ahpd.protocol.root import AuthRequiredErrorData


class ErrorCode(IntEnum):
    """Every code that an answer may carry. -32006 is reserved and never used (R-23)."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    SESSION_NOT_FOUND = -32001
    PROVIDER_NOT_FOUND = -32002
    SESSION_ALREADY_EXISTS = -32003
    TURN_IN_PROGRESS = -32004
    UNSUPPORTED_PROTOCOL_VERSION = -32005
    AUTH_REQUIRED = -32007
    NOT_FOUND = -32008
    PERMISSION_DENIED = -32009
    ALREADY_EXISTS = -32010
    CONFLICT = -32011


#: The type of an error's ``data``, for the codes that have one (R-23.1).
ERROR_DATA: Mapping[int, WireType] = {
    ErrorCode.UNSUPPORTED_PROTOCOL_VERSION: UnsupportedProtocolVersionErrorData,
    ErrorCode.AUTH_REQUIRED: AuthRequiredErrorData,
    ErrorCode.PERMISSION_DENIED: PermissionDeniedErrorData,
}

#: Codes whose ``data`` must be there (R-23.1).
ERROR_DATA_REQUIRED = frozenset({ErrorCode.UNSUPPORTED_PROTOCOL_VERSION, ErrorCode.AUTH_REQUIRED})


class ProtocolError(Exception):
    """A request that is answered with an error.

    `code` is an `ErrorCode`, or any number when an error of another peer is passed on unchanged
    (R-23.4). `message` is for people. `data` is plain JSON, None for none.
    """

    def __init__(self, code: int, message: str, data: JSON = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def __repr__(self) -> str:
        """With the code's name where it has one."""
        known = self.code in ErrorCode._value2member_map_
        name = ErrorCode(self.code).name if known else self.code
        return f"ProtocolError({name}, {self.message!r})"
