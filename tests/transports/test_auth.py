from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from ahpd.transports.auth import (
    TokenError,
    check_token,
    is_loopback,
    make_token,
    read_or_make_token,
    read_token,
    redact,
    same_token,
)


def test_tokens_are_long_and_need_no_escaping_and_differ() -> None:
    tokens = {make_token() for _ in range(100)}
    assert len(tokens) == 100
    for token in tokens:
        assert len(token) == 43
        assert check_token(token) == token


@pytest.mark.parametrize("bad", ["", "  \n", "a b", "a&b", "a%20", "a/b", "ü", "a\nb", "tkn=a"])
def test_a_token_that_could_not_stand_in_a_url_is_refused(bad: str) -> None:
    with pytest.raises(TokenError, match="--connection-token"):
        check_token(bad, "--connection-token")


def test_comparing() -> None:
    assert same_token("abc", "abc")
    for wrong in ("", "ab", "abcd", "abC", "ü", "\udcff"):
        assert not same_token(wrong, "abc")


def test_a_file_is_made_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "token"
    token = read_or_make_token(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == token + "\n"
    assert read_or_make_token(path) == token
    assert list(tmp_path.iterdir()) == [path]


def test_many_that_start_at_once_agree(tmp_path: Path) -> None:
    path = tmp_path / "token"
    tokens: list[str] = []
    threads = [
        threading.Thread(target=lambda: tokens.append(read_or_make_token(path))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(tokens), len(set(tokens))) == (8, 1)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666, 0o601])
def test_a_file_that_others_can_use_is_refused_by_its_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    path.write_text("abc")
    path.chmod(mode)
    with pytest.raises(TokenError, match=f"mode {mode:04o}.*chmod 600 ") as caught:
        read_or_make_token(path)
    assert "abc" not in str(caught.value)


def test_files_that_hold_no_token_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    for content in (b"", b"\n", b"\xff\xfe", b"two words", b"a\nb"):
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(TokenError, match="token"):
            read_token(path)
    path.unlink()
    os.mkfifo(path, 0o600)
    with pytest.raises(TokenError, match="not a file"):
        read_token(path)
    with pytest.raises(FileNotFoundError):
        read_token(tmp_path / "none")


def test_a_link_to_a_private_file_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "real"
    path.write_text("abc\r\n")
    path.chmod(0o400)
    (tmp_path / "link").symlink_to(path)
    assert read_or_make_token(tmp_path / "link") == "abc"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("LocalHost.", True),
        ("127.0.0.1", True),
        ("127.255.0.9", True),
        ("::1", True),
        ("[::1]", True),
        ("::ffff:127.0.0.1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("10.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("example.org", False),
        ("localhost.example.org", False),
        ("127.0.0.1.example.org", False),
        ("0177.0.0.1", False),
        ("2130706433", False),
    ],
)
def test_what_is_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ws://h:1/?tkn=abc&x=1", "ws://h:1/?tkn=***&x=1"),
        ("GET /?a=b&tkn=abc HTTP/1.1", "GET /?a=b&tkn=*** HTTP/1.1"),
        ('{"url":"ws://h/?tkn=a.b~c_d-e"}', '{"url":"ws://h/?tkn=***"}'),
        ("TKN=abc", "TKN=***"),
        ("redirect%3Ftkn%3Dabc%26", "redirect%3Ftkn%3D***"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("tkn=a, tkn=b", "tkn=***, tkn=***"),
        ("nothing", "nothing"),
    ],
)
def test_redaction(text: str, shown: str) -> None:
    assert redact(text) == shown
