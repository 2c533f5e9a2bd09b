"""Who may connect: connection tokens, the files they live in, and what counts as loopback.

Whoever connects can read files, open terminals and approve tool calls (R-1.7), so a token is the
rule and going without one is for loopback only. The token is judged in the handshake of the
transport (R-1.4); AHP itself never carries it.
"""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import os
import re
import secrets
import stat
from pathlib import Path

from ahpd.transports.redaction import Redactor

#: Random bytes in a token that is made here.
TOKEN_BYTES = 32
#: Readers of a token file stop here; nobody has a longer token.
_MOST_FILE_BYTES = 4096

#: What may stand in a URL's query and in a header alike, without any escaping.
_TOKEN = re.compile(r"[A-Za-z0-9._~-]+")
_REDACT = Redactor()


class TokenError(Exception):
    """A token or its file is unusable; the message names which, and what to do about it."""


def make_token() -> str:
    """A new token: 32 random bytes in 43 characters that need no escaping in a URL."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def check_token(token: str, where: str = "the connection token") -> str:
    """The token when it can be used, without surrounding white space.

    Raises `TokenError` when it is empty or could not stand in a URL as it is; the message names
    `where` and never the token.
    """
    token = token.strip()
    if not token:
        raise TokenError(f"{where} is empty")
    if not _TOKEN.fullmatch(token):
        raise TokenError(f"{where} may hold only letters, digits and . _ ~ -")
    return token


def same_token(given: str, expected: str) -> bool:
    """Whether they are equal, in a time that does not tell how much of them is."""
    return hmac.compare_digest(
        given.encode("utf-8", "surrogateescape"), expected.encode("utf-8", "surrogateescape")
    )


def read_token(path: Path) -> str:
    """The token in a file.

    Raises `TokenError` when others than its owner may read or change the file, when it belongs to
    another user, or when it holds no token; `FileNotFoundError` when there is no such file.
    """
    # Not blocking, so that a named pipe in its place is refused and not waited for.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            raise TokenError(f"{path} is not a file")
        mode = stat.S_IMODE(about.st_mode)
        if mode & 0o077:
            raise TokenError(
                f"{path} has mode {mode:04o}: others than its owner could use it to get in. "
                f"If nobody has, make it private with: chmod 600 {path}"
            )
        if about.st_uid not in (os.getuid(), 0):
            raise TokenError(f"{path} belongs to another user (uid {about.st_uid})")
        text = os.read(fd, _MOST_FILE_BYTES)
    finally:
        os.close(fd)
    try:
        return check_token(text.decode("ascii"), f"the token in {path}")
    except UnicodeDecodeError:
        raise TokenError(f"{path} does not hold a token: it is not plain text") from None


def read_or_make_token(path: Path) -> str:
    """The token in a file, made with a new one (mode 0600) when there is no such file.

    Two processes that start at once agree on one token: the file appears whole and never replaces
    another. Raises `TokenError` as `read_token`, and OSError when it cannot be made.
    """
    with contextlib.suppress(FileNotFoundError):
        return read_token(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "w", encoding="ascii") as file:
            file.write(make_token() + "\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
    return read_token(path)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a listener on `host`, or is meant by it.

    Names are not looked up: ``localhost`` is loopback, any other name is not, and neither is the
    empty string, which means every interface.
    """
    host = host.strip().removesuffix(".").lower()
    if host == "localhost":
        return True
    address = ip_address(host)
    if address is None:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that `host` is, in brackets or with a zone or without; None when it is none."""
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def redact(text: str) -> str:
    """`text` without the tokens in it, for everything that is logged or shown."""
    return _REDACT(text)
