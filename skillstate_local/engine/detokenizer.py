"""Token ids to text while they arrive: bytes first, so that a character split over tokens comes out whole."""

from __future__ import annotations

import codecs
from collections.abc import Callable


class Detokenizer:
    """The text of one completion. ``token_bytes`` gives the bytes of one token, as the grammar sees them."""

    def __init__(self, token_bytes: Callable[[int], bytes]) -> None:
        self._token_bytes = token_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._pieces: list[str] = []

    def feed(self, token: int) -> str:
        """The text that this token completes; empty while a character is still unfinished."""
        piece = self._decoder.decode(self._token_bytes(token))
        self._pieces.append(piece)
        return piece

    def finish(self) -> str:
        """The whole text; an unfinished character at the end becomes U+FFFD."""
        self._pieces.append(self._decoder.decode(b"", final=True))
        return "".join(self._pieces)
