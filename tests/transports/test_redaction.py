"""What is taken out of everything that is written: the secrets that look like one, or are known."""

from __future__ import annotations

import json

import pytest

from ahpd.protocol.jsontext import dumps
from ahpd.transports import redaction
from ahpd.transports.redaction import Redactor, secrets_in


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ws://h:1/?tkn=abc&x=1", "ws://h:1/?tkn=***&x=1"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("{'accessToken': 'abc', 'n': 1}", "{'accessToken': '***', 'n': 1}"),
        ('password = "a\\"b" and on', 'password = "***" and on'),
        ("Token(value=1, api_key='x y')", "Token(value=1, api_key='***')"),
        ("https://h/?a=b&access_token=abc&c", "https://h/?a=b&access_token=***&c"),
        ("GITHUB_TOKEN=abc PATH=/bin", "GITHUB_TOKEN=*** PATH=/bin"),
        ("token=self.token", "token=self.token"),
        ("progressToken='p', inputTokens=3", "progressToken='p', inputTokens=3"),
        ("the token is: 'x'", "the token is: 'x'"),
    ],
)
def test_what_looks_like_a_secret(text: str, shown: str) -> None:
    assert Redactor()(text) == shown


def test_json_text_stays_json_text_also_inside_a_string() -> None:
    inner = json.dumps({"apiKey": "a b", "x": 1})
    text = dumps({"input": inner, "secret": 'a"b\\'})
    shown = json.loads(Redactor().json(text))
    assert shown["secret"] == "***"
    assert json.loads(shown["input"]) == {"apiKey": "***", "x": 1}


def test_what_is_known_to_be_a_secret_goes_wherever_it_stands() -> None:
    redact = Redactor(["s3cr3t-value", "s3cr3t-value-2", "short", 'quo"ted!'])
    assert redact("as3cr3t-value-2b, s3cr3t-value and short") == "a***b, *** and short"
    shown = redact.json(dumps(['x quo"ted! y', "s3cr3t-value"]))
    assert json.loads(shown) == ["x *** y", "***"]
    redact.add("another one", "s3cr3t-value")
    assert redact("another one s3cr3t-value") == "*** ***"


def test_the_oldest_secrets_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "MOST_SECRETS", 2)
    redact = Redactor(["secret1", "secret2"])
    redact.add("secret3")
    assert redact("secret1 secret2 secret3") == "secret1 *** ***"


def test_a_secret_that_no_json_text_can_hold_hurts_nobody() -> None:
    redact = Redactor(["lone \ud800 half"])
    assert redact("a lone \ud800 half b") == "a *** b"
    assert redact.json(b'"x"') == b'"x"'


def test_which_variables_may_be_secrets() -> None:
    environment = {
        "OPENAI_API_KEY": "sk-1",
        "A_PASSWORD": "correcthorsebattery",
        "GH_PAT": "p1",
        "BASIC_AUTH": "a:b",
        "KEYBOARD": "de",
        "AUTH_MODE": "disabled",
        "SSH_AUTH_SOCK": "/dev/null",
        "OPAQUE": "x" * redaction.LONG_VALUE,
        "PATH": "/usr/bin:" * 9,
    }
    telling = ["sk-1", "correcthorsebattery", "p1", "a:b"]
    assert secrets_in(environment, ours=False) == telling
    assert secrets_in(environment, ours=True) == [*telling, "x" * redaction.LONG_VALUE]


def test_no_rule_is_missed_by_the_look_ahead() -> None:
    """Whatever a rule finds, in any case, holds one of the hints."""
    text_hint, json_hint = redaction._hints()
    words = (
        *("token", "secret", "password", "passphrase", "apikey", "api-key", "credential"),
        *("authorization", "credentials", "cookie", "private_key", "privatekey"),
    )
    for word in words:
        for name in (word, word.upper(), "my" + word.title()):
            assert Redactor()(f"{name}: 'x y'") == f"{name}: '***'"
            assert Redactor().json(dumps({name: "x"})) == dumps({name: "***"})
    for text in ("tkn=a", "TKN%3Da", "Bearer a", "BEARER a", "A_KEY=a", "?token=a"):
        assert Redactor()(text) != text
        assert text_hint.search(text) is not None
        assert json_hint.search(text.encode()) is not None
