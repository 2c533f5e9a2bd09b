"""``data:`` URIs read as resources: what an edit would make of a file lies in such a one. Pure."""

from __future__ import annotations

import base64
import binascii
from urllib.parse import unquote_to_bytes

from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.resources import ContentEncoding, ResourceReadResult
from ahpd.protocol.uris import URI, scheme

#: Without a type it is this one (RFC 2397).
_PLAIN = "text/plain"


def is_data(uri: URI) -> bool:
    """Whether a URI holds its content itself."""
    return scheme(uri).lower() == "data"


def read_data(uri: URI, encoding: ContentEncoding | None) -> ResourceReadResult:
    """The content of such a URI, as text if it is asked for or is one. Raises `ProtocolError`."""
    head, comma, body = uri.partition(":")[2].partition(",")
    if not comma:
        raise _wrong("it has no comma before its content")
    kind, *settings = head.split(";")
    data = unquote_to_bytes(body)
    if settings and settings[-1].strip().lower() == "base64":
        try:
            data = base64.b64decode(data, validate=True)
        except binascii.Error as error:
            raise _wrong(f"it is no base64: {error}") from None
    text: str | None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    if text is not None and (encoding == "utf-8" or (encoding is None and "\0" not in text)):
        return ResourceReadResult(data=text, encoding="utf-8", content_type=kind or _PLAIN)
    if encoding == "utf-8":
        raise _wrong("it holds no text")
    coded = base64.b64encode(data).decode()
    return ResourceReadResult(data=coded, encoding="base64", content_type=kind or _PLAIN)


def _wrong(why: str) -> ProtocolError:
    return ProtocolError(ErrorCode.INVALID_PARAMS, f"resourceRead: uri: a data: URI, but {why}")
