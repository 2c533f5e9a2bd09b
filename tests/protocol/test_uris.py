"""URIs are exact strings (RULES 3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpd.protocol import uris

ANY = st.text(max_size=40)


def test_fixed_channels_are_spelled_exactly() -> None:
    assert uris.ROOT == "ahp-root://"
    assert uris.AUTOMATIONS == "ahp-automations://"


def test_r_3_13_other_spellings_of_fixed_channels_are_taken() -> None:
    assert uris.canonical("ahp-automations://catalog") == uris.AUTOMATIONS
    assert uris.canonical("ahp-root:") == uris.ROOT


@pytest.mark.parametrize(
    "uri",
    ["ahp-root://", "AHP-ROOT://", "ahp-session:/A%2fb/../c", "ahp-chat:/é?x#y", "", "no scheme"],
)
def test_every_other_uri_stays_as_it_is(uri: str) -> None:
    assert uris.canonical(uri) == uri


def test_r_3_11_the_default_chat_is_computed_from_the_session() -> None:
    assert uris.default_chat("ahp-session:/s1") == "ahp-chat://default/YWhwLXNlc3Npb246L3Mx"
    assert "=" not in uris.default_chat("ahp-session:/s12")
    assert (
        uris.default_chat("ahp-session:/>>>???") == "ahp-chat://default/YWhwLXNlc3Npb246Lz4-Pj8_Pw"
    )


@given(session=ANY.filter(lambda text: text.isprintable()))
def test_the_default_chat_leads_back_to_its_session(session: str) -> None:
    assert uris.default_chat_session(uris.default_chat(session)) == session


@pytest.mark.parametrize(
    "chat",
    [
        "ahp-chat:/c",
        "ahp-chat://default",
        "ahp-chat://default/YWhw*",
        "ahp-chat://default/YWhwLXNlc3Npb246L3Mx=",
        "ahp-chat://default/_w",
        "ahp-chat://default/Y",
        "ahp-chat://default/YWhwLXNlc3Npb246L3M\N{LATIN SMALL LETTER E WITH ACUTE}",
    ],
)
def test_what_is_no_default_chat_names_no_session(chat: str) -> None:
    assert uris.default_chat_session(chat) is None


@given(uri=ANY)
def test_any_text_is_taken(uri: str) -> None:
    uris.default_chat_session(uri)
    uris.default_chat_session("ahp-chat://default/" + uri)
    assert uris.default_chat("\ud800")
    assert uris.scheme(uri) == uris.scheme(uri + "x") or ":" not in uri


def test_a_worker_chat_carries_its_session_and_call() -> None:
    one = uris.worker_chat("ahp-session:/s", "call/1")
    assert one.startswith("ahp-chat://subagent/")
    assert one != uris.worker_chat("ahp-session:/s", "call/2")
    assert uris.default_chat_session(one) is None


def test_r_3_8_the_annotations_channel_is_the_session_and_a_suffix() -> None:
    assert uris.annotations_of("ahp-session:/s") == "ahp-session:/s/annotations"
    assert uris.annotations_session("ahp-session:/s/annotations") == "ahp-session:/s"
    assert uris.annotations_session("ahp-session:/s") is None


@pytest.mark.parametrize(
    ("uri", "scheme"), [("ahp-root://", "ahp-root"), ("file:///a:b", "file"), ("plain", "")]
)
def test_the_scheme_is_what_stands_before_the_colon(uri: str, scheme: str) -> None:
    assert uris.scheme(uri) == scheme
