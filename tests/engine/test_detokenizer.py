"""Text comes out in pieces and adds up, also where characters are split over tokens."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillstate_local.engine.detokenizer import Detokenizer


def single_byte(token: int) -> bytes:
    return bytes([token])


@given(st.text())
def test_byte_tokens_add_up_to_the_text(text: str) -> None:
    detokenizer = Detokenizer(single_byte)
    pieces = [detokenizer.feed(byte) for byte in text.encode()]
    assert "".join(pieces) == text
    assert detokenizer.finish() == text


def test_a_character_appears_when_it_is_whole() -> None:
    detokenizer = Detokenizer(single_byte)
    assert [detokenizer.feed(b) for b in "é€".encode()] == ["", "é", "", "", "€"]


def test_an_unfinished_character_at_the_end_is_marked() -> None:
    detokenizer = Detokenizer(single_byte)
    detokenizer.feed(0xE2)
    assert detokenizer.finish() == "\ufffd"
