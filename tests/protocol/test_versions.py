"""Version negotiation, rule by rule (RULES 2)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpd.protocol import ErrorCode, ProtocolError, choose, negotiate
from ahpd.protocol.versions import SUPPORTED, parse_version

PART = st.integers(0, 2**31)
VERSION = st.tuples(PART, PART, PART).map(lambda parts: ".".join(map(str, parts)))


@pytest.mark.parametrize("text", ["1.0.0", "0.0.0", "10.20.30", "0.10.0"])
def test_r_2_1_three_numbers_joined_by_dots(text: str) -> None:
    assert parse_version(text) == tuple(int(part) for part in text.split("."))


MALFORMED = [
    "", "1", "1.0", "1.0.0.0", "1.0.0-beta", "1.0.0+build", "v1.0.0", "^1.0.0", "01.0.0", "1.00.0",
    " 1.0.0", "1.0.0 ", "1.0.0\n", "1..0", "-1.0.0", "1.0.x", "1.\N{ARABIC-INDIC DIGIT ZERO}.0",
    "9" * 5000 + ".0.0", 1, 1.0, None, True, [], {}, ["1.0.0"],
]  # fmt: skip


@pytest.mark.parametrize("entry", MALFORMED)
def test_r_2_6_one_malformed_entry_spoils_the_offer(entry: Any) -> None:
    assert parse_version(entry) is None
    for offer in ([entry], ["1.0.0", entry], [entry, "1.0.0"], ["2.0.0", entry]):
        with pytest.raises(ProtocolError) as caught:
            choose(offer)
        assert caught.value.code == ErrorCode.INVALID_PARAMS
        assert "protocolVersions" in caught.value.message


def test_r_2_7_the_error_names_the_first_malformed_entry() -> None:
    with pytest.raises(ProtocolError, match=r"'1\.0-x'"):
        choose(["1.0.0", "1.0-x", "2"])


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (["1.0.0"], "1.0.0"),
        (["0.9.0", "1.0.0"], "1.0.0"),
        (["1.0.0", "0.9.0"], "1.0.0"),
        (["1.2.99", "1.10.0"], "1.10.0"),
        (["0.9.9", "0.10.0"], "0.10.0"),
        (["0.10.0"], "0.10.0"),
        (["0.10.7", "0.9.12"], "0.10.7"),
        (["2.0.0", "0.9.4", "0.8.0"], "0.9.4"),
    ],
)
def test_r_2_2_and_3_the_highest_in_range_as_it_was_offered(
    offered: list[str], chosen: str
) -> None:
    assert choose(offered) == choose(offered[::-1]) == negotiate(offered) == chosen


@pytest.mark.parametrize(
    "offered", [[], ["2.0.0"], ["0.8.0"], ["0.11.0"], ["0.1.0", "3.0.0"], ["0.0.9"], ["11.0.0"]]
)
def test_r_2_5_and_8_nothing_that_fits(offered: list[str]) -> None:
    assert choose(offered) is None
    with pytest.raises(ProtocolError) as caught:
        negotiate(offered)
    assert caught.value.code == ErrorCode.UNSUPPORTED_PROTOCOL_VERSION
    assert caught.value.data == {"supportedVersions": list(SUPPORTED)}


def test_the_ranges_told_are_those_of_1_0_0_and_the_two_before() -> None:
    assert SUPPORTED == ("^1.0.0", "^0.10.0", "^0.9.0")


@given(st.lists(VERSION, max_size=6))
def test_the_order_of_an_offer_does_not_matter(offered: list[str]) -> None:
    chosen = choose(offered)
    assert choose(sorted(offered)) == chosen
    assert chosen is None or chosen in offered
