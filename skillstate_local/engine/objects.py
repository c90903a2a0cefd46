"""Find, while text arrives, the moment when the first balanced JSON object has closed."""

from __future__ import annotations

REASONING_OPEN = "<reasoning>"
REASONING_CLOSE = "</reasoning>"
_SPACE = " \t\r\n"


class ObjectDetector:
    """Fed with pieces of a completion; ``closed`` turns true once the first object of the answer is balanced.

    An object starts at a ``{`` that is followed, after optional whitespace, by ``"`` or ``}``. Braces inside strings
    do not count. Everything up to the first ``</reasoning>`` is reasoning and does not count either, and a text that
    starts with ``<reasoning>`` has no answer until that tag has come.
    """

    def __init__(self) -> None:
        self.closed = False
        self._text = ""
        self._at = 0
        self._answer = False
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def feed(self, piece: str) -> bool:
        """Take the next piece of text; returns ``closed``."""
        if self.closed:
            return True
        self._text += piece
        self._leave_reasoning()
        while not self.closed and self._advance():
            pass
        return self.closed

    def _leave_reasoning(self) -> None:
        """Start anew behind the first closing tag."""
        if self._answer:
            return
        end = self._text.find(REASONING_CLOSE)
        if end >= 0:
            self._answer = True
            self._at = end + len(REASONING_CLOSE)
            self._depth = 0
            self._in_string = self._escaped = False

    def _advance(self) -> bool:
        """Look at the next character; False when more text is needed to judge it."""
        if self._at >= len(self._text) or self._in_reasoning():
            return False
        if self._depth:
            self._inside(self._text[self._at])
            self._at += 1
            return True
        return self._outside(self._text[self._at])

    def _in_reasoning(self) -> bool:
        """Is the text so far a reasoning section without its closing tag, or may it become one?"""
        if self._answer or self._at:
            return False
        head = self._text.lstrip(_SPACE)
        return head.startswith(REASONING_OPEN) or REASONING_OPEN.startswith(head)

    def _outside(self, char: str) -> bool:
        if char == "{":
            following = self._text[self._at + 1 :].lstrip(_SPACE)
            if not following:
                return False
            if following[0] in '"}':
                self._depth = 1
        self._at += 1
        return True

    def _inside(self, char: str) -> None:
        if self._escaped:
            self._escaped = False
        elif self._in_string:
            self._escaped = char == "\\"
            self._in_string = char != '"'
        elif char == '"':
            self._in_string = True
        elif char == "{":
            self._depth += 1
        elif char == "}":
            self._depth -= 1
            self.closed = self._depth == 0
