"""Checksums over rows of the journal's file."""

from __future__ import annotations

from zlib import crc32

from ahpd.protocol.jsontext import ParseError, dumps
from ahpd.protocol.model import JSON

_PLAIN = frozenset({str, int, float, type(None)})


def checksum(*values: object) -> int:
    """Over the values of a row, their types and their order.

    It is asked of every row at a start, so it must cost little. -1, which no row has, for values
    that none was written with.
    """
    crc = 0
    plain: list[JSON] = []
    for value in values:
        kind = type(value)
        if kind in _PLAIN:
            plain.append(value)
        elif kind is bytes:
            crc = crc32(value, crc)  # type: ignore[arg-type]
            plain.append([len(value)])  # type: ignore[arg-type]
        elif kind is bool:  # what SQLite gives back is a number
            plain.append(int(value))  # type: ignore[call-overload]
        else:
            return -1
    try:
        return crc32(dumps(plain), crc)
    except ParseError:  # a text that is no UTF-8
        return -1


def seal(key: int, what: str, text: bytes) -> bytes:
    """`text` behind its checksum; of that channel, in that column."""
    return checksum(key, what, text).to_bytes(4, "big") + text


def unseal(key: int, what: str, sealed: object) -> bytes:
    """What `seal` was given. Raises `ValueError` when this is nothing that it gave."""
    if not isinstance(sealed, bytes) or len(sealed) < 4:
        raise ValueError(what)
    text = sealed[4:]
    if checksum(key, what, text).to_bytes(4, "big") != sealed[:4]:
        raise ValueError(what)
    return text
