from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto.frame_protocol import FrameProtocol, Opcode

from ahpd.protocol.frame import Frame
from ahpd.transports.framing import PING, close_frame, text_header, writes


def parsed(data: bytes) -> list[tuple[Opcode, bytes | str | tuple[int, str]]]:
    """What an independent parser on the client's side makes of it; payloads of whole frames."""
    protocol = FrameProtocol(client=True, extensions=[])
    protocol.receive_bytes(data)
    return [(frame.opcode, frame.payload) for frame in protocol.received_frames()]


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65_535, 65_536, 100_000])
def test_a_header_fits_its_text(size: int) -> None:
    assert parsed(text_header(size) + b"x" * size) == [(Opcode.TEXT, "x" * size)]


def test_lengths_that_no_test_can_fill() -> None:
    assert text_header(1 << 33) == b"\x81\x7f" + (1 << 33).to_bytes(8, "big")


@given(
    st.lists(st.sampled_from([0, 1, 125, 126, 300, 40_000, 70_000]), max_size=40),
    st.sampled_from([1, 500, 262_144]),
)
def test_pieces_joined_are_the_frames_in_order(sizes: list[int], limit: int) -> None:
    frames = [Frame(bytes([97 + index % 26]) * size) for index, size in enumerate(sizes)]
    for _ in range(2):  # not yet framed, and already framed
        pieces = list(writes(frames, limit))
        assert parsed(b"".join(pieces)) == [(Opcode.TEXT, each.text.decode()) for each in frames]


def test_small_frames_are_framed_once_and_joined() -> None:
    frames = [Frame(b"x" * 250) for _ in range(64)]
    [first] = writes(frames, 262_144)
    kept = [frame.framed for frame in frames]
    [second] = writes(frames, 262_144)
    assert first == second == b"".join(each for each in kept if each)
    assert all(frame.framed is each for frame, each in zip(frames, kept, strict=True))


def test_pieces_keep_to_the_limit_and_long_texts_are_not_copied() -> None:
    small, big = [Frame(b"x" * 1000) for _ in range(600)], Frame(b"y" * 1_000_000)
    pieces = list(writes([*small, big, *small], 50_000))
    assert any(piece is big.text for piece in pieces)
    assert big.framed is None
    assert max(len(piece) for piece in pieces if piece is not big.text) < 52_000
    assert list(writes([], 50_000)) == []


def test_control_frames() -> None:
    assert parsed(PING) == [(Opcode.PING, b"")]
    assert parsed(close_frame(1000)) == [(Opcode.CLOSE, (1000, ""))]
    assert parsed(close_frame(4000, "é" * 200)) == [(Opcode.CLOSE, (4000, "é" * 61))]
