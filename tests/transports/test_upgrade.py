from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpd.transports.upgrade import HEAD_TOO_LARGE, PREFLIGHT, Admission, judge
from tests.transports.raw import TOKEN, request

ADMISSION = Admission(
    TOKEN,
    hosts=frozenset({"Build.example.org"}),
    origins=frozenset({"https://screens.example.org/", "http://[fd00::1]:3000"}),
)


def status(head: bytes, admission: Admission = ADMISSION, local: str = "127.0.0.1") -> int:
    refusal = judge(head, admission, local)
    if refusal is None:
        return 101
    response = refusal.response()
    assert response.startswith(b"HTTP/1.1 %d " % refusal.status)
    assert b"close" in response
    return refusal.status


@pytest.mark.parametrize(
    ("path", "headers", "expected"),
    [
        (f"/?tkn={TOKEN}", {}, 101),
        (f"/any/path?a=b&tkn={TOKEN}&c", {}, 101),
        ("/", {"Authorization": f"Bearer {TOKEN}"}, 101),
        ("/", {"Authorization": f"bearer   {TOKEN} "}, 101),
        ("/?tkn=wrong", {"Authorization": f"Bearer {TOKEN}"}, 101),
        ("/", {}, 401),
        ("/?tkn=", {}, 401),
        (f"/?tkn={TOKEN}x", {}, 401),
        (f"/?TKN={TOKEN}", {}, 401),
        (f"/#tkn={TOKEN}", {}, 401),
        (f"/?tkn={TOKEN.upper()}", {}, 401),
        ("/?tkn=%ff%00", {}, 401),
        ("/", {"Authorization": f"Basic {TOKEN}"}, 401),
        ("/", {"Authorization": TOKEN}, 401),
        ("/", {"Authorization": "Bearer"}, 401),
        ("/", {"Authorization": "Bearer \u00ff"}, 401),
    ],
)
def test_the_token(path: str, headers: dict[str, str], expected: int) -> None:
    assert status(request(path, more=headers)) == expected
    # Without an upgrade: 401 where the token would fail, 426 where it would pass.
    plain = judge(request(path, upgrade=False, more=headers), ADMISSION, "127.0.0.1")
    assert plain is not None
    assert plain.status == (426 if expected == 101 else 401)
    assert ("Access-Control-Allow-Origin", "*") in plain.headers


def test_without_a_token_everybody_passes_who_is_not_foreign() -> None:
    assert status(request("/"), Admission(None)) == 101
    assert status(request("/", host="evil.example"), Admission(None)) == 403
    assert status(request("/", Origin="https://evil.example"), Admission(None)) == 403


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", 101),
        ("LOCALHOST:9187", 101),
        ("localhost.:1", 101),
        ("127.0.0.1:80", 101),
        ("127.9.9.9", 101),
        ("[::1]:9187", 101),
        ("10.1.2.3:9187", 101),  # the address at which it came in
        ("build.example.org:9187", 101),
        ("10.1.2.4", 403),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("evil-localhost", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost:9187:1", 403),
        ("user@localhost", 403),
        ("[::1", 403),
        ("", 403),
        (None, 400),
    ],
)
def test_the_host(host: str | None, expected: int) -> None:
    assert status(request(host=host), local="10.1.2.3") == expected


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("vscode-file://vscode-app", 101),
        ("vscode-webview://1a2b3c", 101),
        ("https://screens.example.org", 101),
        ("HTTPS://Screens.Example.org", 101),
        ("http://[fd00::1]:3000", 101),
        ("http://localhost:9187", 101),
        ("http://localhost:3000", 101),
        ("http://127.0.0.1", 101),
        ("https://[::1]:8443", 101),
        ("null", 403),
        ("file://", 403),
        ("http://evil.example", 403),
        ("http://localhost.evil.example", 403),
        ("http://localhost@evil.example", 403),
        ("https://screens.example.org:444", 403),
        ("http://screens.example.org", 403),
        ("http://10.1.2.4", 403),
        ("ftp://localhost", 403),
        ("vscode-file:", 403),
        ("chrome-extension://abc", 403),
    ],
)
def test_the_origin(origin: str, expected: int) -> None:
    assert status(request(Origin=origin)) == expected


def test_a_page_of_the_same_host_and_of_no_other_may_connect() -> None:
    host = "build.example.org:9187"
    assert status(request(host=host, Origin="https://build.example.org")) == 101
    assert status(request(host=host, Origin="http://localhost:3000")) == 403


def test_a_foreign_page_does_not_learn_whether_its_token_is_right() -> None:
    for path in ("/?tkn=wrong", f"/?tkn={TOKEN}"):
        assert status(request(path, Origin="http://evil.example")) == 403


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (request(Sec_WebSocket_Version="8"), 426),
        (request(Sec_WebSocket_Key="short"), 400),
        (request(method="POST"), 426),
        (request(method="HEAD", upgrade=False), 426),
        (request(method="OPTIONS"), 204),
        (request(method="OPTIONS", path="*", upgrade=False), 204),
        (request(upgrade=False, Upgrade="h2c", Connection="Upgrade"), 426),
        (request(upgrade=False, Upgrade="websocket"), 426),
        (b"GET / HTTP/1.0\r\n\r\n", 401),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),  # TLS
        (b"GET /\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (request() .replace(b"\r\n", b"\r\nHost: evil.example\r\n", 1), 400),
        (request(Origin="http://localhost, http://evil.example"), 403),
        (request(X="y" * 9000), 101),
        (request(X="\u00ff"), 101),
    ],
)  # fmt: skip
def test_other_requests(head: bytes, expected: int) -> None:
    assert status(head) == expected


@given(st.binary(max_size=200))
def test_no_bytes_make_it_raise_or_let_somebody_in(junk: bytes) -> None:
    assert judge(junk + b"\r\n\r\n", ADMISSION, "127.0.0.1") is not None
    judge(request().replace(b"localhost", junk), ADMISSION, "127.0.0.1")
    judge(request(path="/?").replace(b"/?", b"/?" + junk), ADMISSION, "127.0.0.1")


def test_responses_are_whole() -> None:
    assert HEAD_TOO_LARGE.response().startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    preflight = PREFLIGHT.response()
    assert preflight.startswith(b"HTTP/1.1 204 No Content\r\n")
    assert preflight.endswith(b"\r\n\r\n")
    assert b"Access-Control-Allow-Headers: Authorization\r\n" in preflight


def test_the_token_is_in_no_repr() -> None:
    assert TOKEN not in repr(ADMISSION)
