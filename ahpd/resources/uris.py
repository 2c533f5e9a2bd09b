"""`file:` URIs to paths and back, exactly, whatever bytes a name is made of.

A path is bytes. In a URI each byte may stand as ``%XX``, so any path has one. A name in a list is
text, and not all bytes are UTF-8: such a byte *b* is shown as the character U+10F700 + *b*, of the
private use area. A name that really holds one of these characters has each byte of it shown in the
same way, so no two names look alike; and whoever puts a name that was shown to them into a URI, as
UTF-8, has named the file it was shown for.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.uris import URI, scheme

#: U+10F780 to U+10F7FF in UTF-8: what stands for the bytes 0x80 to 0xFF.
_STAND_INS = re.compile(rb"\xf4\x8f[\x9e\x9f][\x80-\xbf]")
_BASE = 0x10F700
#: Longest path (bytes); the kernel takes no longer ones.
LONGEST = 4096


def to_path(uri: URI, method: str) -> bytes:
    """The absolute path that a `file:` URI names; what ``..`` leads to is not looked at here.

    Raises `ProtocolError` (-32602) for anything that is no URI of a file of this machine.
    """
    if scheme(uri).lower() != "file":
        raise _bad(method, uri, "is not a file: URI")
    rest = uri[len("file:") :]
    if "?" in rest or "#" in rest:
        raise _bad(method, uri, "has a query or a fragment; in a name, ? is %3F and # is %23")
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        if authority.lower() not in ("", "localhost"):
            raise _bad(method, uri, f"is of the machine {authority}, not of this one")
        rest = slash + path
    raw = _STAND_INS.sub(_stood_for, unquote_to_bytes(rest))
    if not raw.startswith(b"/"):
        raise _bad(method, uri, "has no absolute path")
    if b"\0" in raw:
        raise _bad(method, uri, "has a NUL in its path")
    if len(raw) > LONGEST:
        raise _bad(method, uri, f"has a path of more than {LONGEST} bytes")
    return raw


def to_uri(path: bytes) -> URI:
    """The URI of an absolute path; `to_path` gives the same bytes back."""
    return "file://" + quote(_STAND_INS.sub(_spelled, path))


def to_name(raw: bytes) -> str:
    """A file's name as text, see the module's docstring."""
    if raw.isascii():
        return raw.decode("ascii")
    text = _STAND_INS.sub(_spelled, raw).decode("utf-8", "surrogateescape")
    return "".join(chr(_BASE + ord(c) - 0xDC00) if "\udc80" <= c <= "\udcff" else c for c in text)


def _stood_for(match: re.Match[bytes]) -> bytes:
    _, _, third, fourth = match.group()
    return bytes([0x80 | (third & 1) << 6 | fourth & 0x3F])


def _spelled(match: re.Match[bytes]) -> bytes:
    return "".join(chr(_BASE + byte) for byte in match.group()).encode()


def _bad(method: str, uri: URI, what: str) -> ProtocolError:
    shown = uri if len(uri) <= 200 else uri[:200] + "…"
    return ProtocolError(ErrorCode.INVALID_PARAMS, f"{method}: {shown!a} {what}")
