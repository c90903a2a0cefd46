"""Whether a turn is in a grammar's language, and if not: where it left the language and what was allowed there.

The verdict is the real library's, byte by byte, so it is what an engine with this grammar would have let through. The
reasoning budget is in tokens, which bytes cannot show: 4 characters for each token are taken as within it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from skillstate_local.grammar.ir import Dialect, Grammar
from skillstate_local.grammar.trie import ranges
from skillstate_local.grammar.walker import Walker, compiled, written

LISTED = 12
"""Up to so many characters are listed one by one; beyond, ranges."""
SHOWN_CHARS = 80


class MatchResult(NamedTuple):
    """``position`` is the first character that is not allowed, or the text's length; ``allowed`` is for people."""

    accepted: bool
    position: int
    allowed: str

    def report(self, text: str) -> str:
        """What happened, in two or three lines."""
        if self.accepted:
            return "accepted"
        if self.position == len(text):
            return f"refused: the text ends too early, after {_tail(text)}\nallowed there: {self.allowed}"
        at = f"refused at character {self.position}: {text[self.position]!r} after {_tail(text[: self.position])}"
        return f"{at}\nallowed there: {self.allowed}"


def match(grammar: Grammar, text: str, dialect: Dialect | str = Dialect.LARK) -> MatchResult:
    """Follow ``text`` through the grammar as its dialect's library reads it.

    Raises GrammarError if the library cannot compile the grammar, UnsupportedConstraint if the dialect cannot express
    it, EnvironmentProblem if the library is not installed.
    """
    dialect = Dialect(dialect)
    return match_written(written(grammar, dialect), text, dialect)


def match_written(source: str, text: str, dialect: Dialect) -> MatchResult:
    """The same for a grammar that is written already."""
    data = text.encode(errors="surrogatepass")
    walk = compiled(source, dialect)
    count = walk.consume(data)
    if count == len(data) and walk.allowed()[1]:
        return MatchResult(True, len(text), "")
    position = len(data[:count].decode(errors="ignore"))
    prefix = text[:position].encode()
    if count != len(prefix):  # it stopped in the middle of a character
        walk = compiled(source, dialect)
        walk.consume(prefix)
    return MatchResult(False, position, describe(walk))


def describe(walk: Walker) -> str:
    """What may follow, in words: a forced continuation as it is, else characters or ranges, and the end."""
    found, may_end = walk.allowed()
    forced = b"" if may_end else walk.forced()
    if len(forced) > 1:
        return f"only {_quoted(forced.decode(errors='ignore'))}"
    options = _characters(found)
    if may_end:
        options.append("the end of the text")
    return ", ".join(options) or "nothing: the grammar has no way on from here"


def _characters(found: Iterable[int]) -> list[str]:
    plain = [chr(byte) for byte in sorted(found) if byte < 0x80]
    beyond = ["characters outside ASCII"] if any(byte >= 0x80 for byte in found) else []
    if len(plain) <= LISTED:
        return [*map(_quoted, plain), *beyond]
    return [_range(low, high) for low, high in ranges(plain)] + beyond


def _range(low: int, high: int) -> str:
    first, last = _quoted(chr(low)), _quoted(chr(high))
    return first if low == high else f"{first}, {last}" if high == low + 1 else f"{first} to {last}"


def _quoted(text: str) -> str:
    shown = text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
    return "'" + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown) + "'"


def _tail(text: str) -> str:
    return "the start" if not text else _quoted(text if len(text) <= 40 else "…" + text[-39:])
