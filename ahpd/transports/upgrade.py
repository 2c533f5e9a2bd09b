"""The one HTTP request that begins a WebSocket connection: whether it is taken, and if not, why.

Pure, without I/O. What is refused, in this order:

* no HTTP (400), a head beyond the limit (431, by the caller);
* ``OPTIONS`` is answered 204, for pages that ask before they connect;
* a request that is no WebSocket upgrade: 401 when the token would fail, else 426 (R-1.6), both
  readable by any page (``Access-Control-Allow-Origin: *``), so that a client can tell a wrong
  token from a wrong address;
* a foreign ``Host`` or ``Origin``: 403, whatever the token;
* a wrong or missing token: 401. It is given as ``?tkn=``, because a browser cannot set headers
  (R-1.5), or as ``Authorization: Bearer``;
* an upgrade that is not WebSocket 13, or has no key: 426 or 400.

**Foreign.** A page on the web can make a browser connect to this machine, either straight (its
`Origin` then tells) or through a name of its own that it points at this machine (DNS rebinding,
its `Host` then tells). So:

* `Host` must be ``localhost``, a loopback address, the very IP address at which the connection
  came in (an address cannot be rebound), or a configured name. Its port does not count, since
  tunnels change it.
* `Origin` may be absent (no browser), any ``vscode-file://`` or ``vscode-webview://`` one, an
  ``http`` or ``https`` one of the same host as `Host` (its port does not count; loopback names
  and addresses are the same host), or a configured one. ``null`` is foreign.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

import attrs
import h11

from ahpd.transports.auth import is_loopback, same_token

_EDITOR_SCHEMES = frozenset({"vscode-file", "vscode-webview"})
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+)(?::\d{1,5})?")
_KEY = re.compile(rb"[A-Za-z0-9+/]{22}==")
_ANY_PAGE = ("Access-Control-Allow-Origin", "*")


def _lowered(values: Iterable[str]) -> frozenset[str]:
    return frozenset(value.lower().rstrip("/.") for value in values)


@attrs.frozen
class Admission:
    """Who is let in. `token` None: whoever reaches the port, if not foreign.

    `hosts` are names under which this machine may be called besides loopback ones, without a port;
    `origins` are pages that may connect besides the editor's, as ``https://example.org``.
    """

    token: str | None = attrs.field(repr=False)
    hosts: frozenset[str] = attrs.field(default=frozenset(), converter=_lowered)
    origins: frozenset[str] = attrs.field(default=frozenset(), converter=_lowered)


@attrs.frozen
class Refusal:
    """The answer to a request that becomes no connection; the connection is closed after it."""

    status: int
    text: str
    headers: tuple[tuple[str, str], ...] = ()

    def response(self) -> bytes:
        """The whole HTTP response."""
        body = f"{self.text}\n".encode() if self.text else b""
        lines = [f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if all(name != "Connection" for name, _ in self.headers):
            lines.append("Connection: close")
        if body:
            lines.append("Content-Type: text/plain; charset=utf-8")
        if self.status != HTTPStatus.NO_CONTENT:
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join([*lines, "", ""]).encode() + body


HEAD_TOO_LARGE = Refusal(431, "the head of the request is too large")
PREFLIGHT = Refusal(
    204,
    "",
    (
        _ANY_PAGE,
        ("Access-Control-Allow-Methods", "GET"),
        ("Access-Control-Allow-Headers", "Authorization"),
        ("Access-Control-Max-Age", "600"),
        ("Allow", "GET, OPTIONS"),
    ),
)


def judge(head: bytes, admission: Admission, local_address: str) -> Refusal | None:
    """None when the request may become a WebSocket connection.

    `head` is the request up to and with its blank line; `local_address` is the IP address at which
    the connection came in. Never raises, whatever the head.
    """
    parser = h11.Connection(h11.SERVER, max_incomplete_event_size=len(head) + 1)
    parser.receive_data(head)
    try:
        request = parser.next_event()
    except h11.RemoteProtocolError:
        request = None
    if not isinstance(request, h11.Request):
        return Refusal(400, "this is not HTTP as it should be")
    headers: dict[bytes, bytes] = {}
    for name, value in request.headers:  # h11 gives the names in lower case
        headers[name] = headers[name] + b", " + value if name in headers else value
    if request.method == b"OPTIONS":
        return PREFLIGHT
    known = _knows_token(request.target, headers.get(b"authorization", b""), admission.token)
    if (
        request.method != b"GET"
        or b"websocket" not in _listed(headers.get(b"upgrade", b""))
        or b"upgrade" not in _listed(headers.get(b"connection", b""))
    ):
        return _unauthorized() if not known else _upgrade_required()
    foreign = _foreign(headers, admission, local_address)
    if foreign is not None:
        return Refusal(403, foreign)
    if not known:
        return _unauthorized()
    if headers.get(b"sec-websocket-version", b"").strip() != b"13":
        return _upgrade_required()
    if not _KEY.fullmatch(headers.get(b"sec-websocket-key", b"").strip()):
        return Refusal(400, "the Sec-WebSocket-Key is missing or wrong")
    return None


def _unauthorized() -> Refusal:
    return Refusal(
        401,
        "a connection token is needed: ?tkn=... in the address, or Authorization: Bearer ...",
        (_ANY_PAGE, ("WWW-Authenticate", "Bearer")),
    )


def _upgrade_required() -> Refusal:
    headers = (
        _ANY_PAGE,
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Connection", "Upgrade, close"),
    )
    return Refusal(426, "this port speaks WebSocket, version 13", headers)


def _listed(value: bytes) -> set[bytes]:
    return {item.strip().lower() for item in value.split(b",")}


def _knows_token(target: bytes, authorization: bytes, token: str | None) -> bool:
    if token is None:
        return True
    try:
        given = parse_qs(urlsplit(target.decode("ascii", "replace")).query).get("tkn", [])
    except ValueError:
        given = []
    scheme, _, credential = authorization.decode("latin-1").strip().partition(" ")
    if scheme.lower() == "bearer":
        given.append(credential.strip())
    return any(same_token(each, token) for each in given)


def _foreign(headers: dict[bytes, bytes], admission: Admission, local_address: str) -> str | None:
    """What is wrong with Host or Origin, or None."""
    host = _host_name(headers.get(b"host", b"").decode("latin-1"))
    if host is None or not (
        is_loopback(host) or host == local_address.lower() or host in admission.hosts
    ):
        return "the Host is not a name of this machine"
    origin = headers.get(b"origin", b"").decode("latin-1").strip().lower()
    if not origin or origin in admission.origins:
        return None
    scheme, separator, authority = origin.partition("://")
    if separator and scheme in _EDITOR_SCHEMES:
        return None
    if separator and scheme in {"http", "https"}:
        page = _host_name(authority)
        if page is not None and (page == host or (is_loopback(page) and is_loopback(host))):
            return None
    return "pages of this Origin may not connect"


def _host_name(authority: str) -> str | None:
    """``localhost`` of ``localhost:9187``, ``::1`` of ``[::1]:9187``; None when it is neither."""
    match = _HOST.fullmatch(authority.strip())
    return match[1].strip("[]").removesuffix(".").lower() if match else None
