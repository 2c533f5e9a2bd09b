"""Checksums over rows of the journal's file."""

from __future__ import annotations

from zlib import crc32


def checksum(*values: object) -> int:
    """Over the values of a row, their types and their order."""
    crc = 0
    for value in values:
        match value:
            case bytes():
                crc = crc32(value, crc32(b"b%d" % len(value), crc))
            case str():
                text = value.encode("utf-8", "surrogateescape")
                crc = crc32(text, crc32(b"s%d" % len(text), crc))
            case bool():  # what SQLite gives back is a number
                crc = crc32(b"i%d" % value, crc)
            case int():
                crc = crc32(b"i%d" % value, crc)
            case other:
                crc = crc32(repr(other).encode(), crc32(b"o", crc))
    return crc


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
