from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpd.protocol.frame import Frame
from ahpd.transports.lines import LineSplitter, LineTooLong, joined_lines, line_of


def split(pieces: list[bytes], limit: int = 1000) -> list[bytes]:
    splitter = LineSplitter(limit)
    lines = [line for piece in pieces for line in splitter.feed(piece)]
    return lines + splitter.finish()


@given(
    st.lists(st.binary(min_size=1, max_size=40).filter(lambda b: b"\n" not in b)),
    st.lists(st.integers(0, 400)),
)
def test_lines_do_not_depend_on_how_the_bytes_are_cut(lines: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[a:b] for a, b in itertools.pairwise(edges)]
    assert split(pieces) == split([stream])
    assert split([bytes([byte]) for byte in stream]) == split([stream])


@pytest.mark.parametrize(
    ("stream", "lines"),
    [
        (b'{"a":1}\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
        (b"1\r\n2\r\n", [b"1", b"2"]),
        (b"\n\r\n  \n\t\n1\n\n", [b"1"]),
        (b"\xef\xbb\xbf1\n\xef\xbb\xbf2\n", [b"1", b"\xef\xbb\xbf2"]),  # only at the start
        (b"\xef\xbb\xbf", []),
        (b"1\nlast", [b"1", b"last"]),
        (b"1\nlast\r", [b"1", b"last"]),
        (b"", []),
        ("a\u2028b\u2029c\u0085d\u000be\u000cf\x1cg\rh\n".encode(),
         ["a\u2028b\u2029c\u0085d\u000be\u000cf\x1cg\rh".encode()]),
    ],
)  # fmt: skip
def test_what_ends_a_line_and_what_does_not(stream: bytes, lines: list[bytes]) -> None:
    assert split([stream]) == lines
    assert split([stream[i : i + 1] for i in range(len(stream))]) == lines


def test_a_line_of_the_limit_passes_and_one_more_byte_does_not() -> None:
    assert split([b"x" * 10 + b"\r\n"], limit=10) == [b"x" * 10]
    assert split([b"x" * 10, b"\r", b"\n"], limit=10) == [b"x" * 10]
    for pieces in ([b"x" * 11 + b"\n"], [b"x" * 11, b"\n"], [b"x" * 11], [b"x" * 12]):
        with pytest.raises(LineTooLong, match="longer than 10 bytes"):
            split(pieces, limit=10)


def test_lines_before_the_long_one_are_not_lost_and_nothing_follows_it() -> None:
    splitter = LineSplitter(5)
    with pytest.raises(LineTooLong) as caught:
        splitter.feed(b"1\n2\n3333333333\n4\n")
    assert caught.value.lines == [b"1", b"2"]
    with pytest.raises(LineTooLong) as caught:
        splitter.feed(b"5\n")
    assert caught.value.lines == ()
    with pytest.raises(LineTooLong):
        splitter.finish()
    assert splitter.pending == 0


def test_a_long_line_is_given_up_before_its_end_arrives() -> None:
    splitter = LineSplitter(1000)
    for _ in range(10):
        assert splitter.feed(b"x" * 100) == []
    assert splitter.pending == 1000
    with pytest.raises(LineTooLong):
        splitter.feed(b"xx")
    assert splitter.pending == 0


def test_five_mebibytes_in_small_pieces_is_one_line() -> None:
    line = b"x" * (5 * 1024 * 1024)
    stream = line + b"\n" + line + b"\n"
    splitter = LineSplitter()
    lines: list[bytes] = []
    for start in range(0, len(stream), 1024):
        lines += splitter.feed(stream[start : start + 1024])
    assert lines == [line, line]


def test_joining_is_the_inverse_of_splitting() -> None:
    frames = [Frame(b"1"), Frame(b"22"), Frame(b"333")]
    assert joined_lines(frames) == b"1\n22\n333\n" == b"".join(line_of(each) for each in frames)
    assert joined_lines([]) == b""
