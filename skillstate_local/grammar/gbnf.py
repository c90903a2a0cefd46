"""GBNF for llama.cpp: the rules of ``bnf.py``, spelled so that every version of its parser reads them.

Rule names hold letters, digits and dashes only (underscores are newer), classes escape everything but letters and
digits, and what is repeated is a class or a rule's name: llama.cpp counts the rules inside a repeated group and
refuses the product from 2,000 on, and takes a larger maximum for none at all. So a longer repetition is written out as
a chain of rules, which is what the parser would have made of it.

The exceptions to exactness are EBNF's, each caught by validation: a table whose patch may name two or more entries can
repeat a key, and an open vocabulary keeps the words that are taken already. The reasoning section is bounded by
characters (``CHARS_PER_TOKEN`` for each token), because the dialect cannot count tokens.
"""

from __future__ import annotations

import re

from skillstate_local.domains.turn import REASONING_CLOSE, REASONING_OPEN
from skillstate_local.errors import UnsupportedConstraint
from skillstate_local.grammar.bnf import SPELLING, BnfWriter, literal
from skillstate_local.grammar.ir import Grammar, Lit, Node
from skillstate_local.grammar.trie import fold

CHARS_PER_TOKEN = 4
MAX_REPEATED = 1_999
"""llama.cpp's MAX_REPETITION_THRESHOLD is 2,000, and the product must stay below it."""
MAX_CHAIN = 10_000

_ATOM = re.compile(r"[a-z0-9-]+|\[\^?[^\[\] ]*\]")


def write_gbnf(grammar: Grammar) -> str:
    """The whole turn as llama.cpp reads it; ``root`` is its first rule.

    Raises UnsupportedConstraint for an object of too many members or a repetition of more than ``MAX_CHAIN``.
    """
    writer = _Writer(unbounded_text=False)
    body = writer.expression(grammar.root)
    if grammar.reasoning_tokens:
        body = f"{writer.reasoning(grammar.reasoning_tokens)} {body}"
    return "\n".join([f"root ::= {body}", *writer.lines, ""])


class _Writer(BnfWriter):
    dialect = "GBNF"
    spelling = SPELLING._replace(nothing='""')
    separator = "-"

    def reasoning(self, tokens: int) -> str:
        """The reasoning section: no ``<`` between its tags."""
        text = self._times("[^<]", 0, CHARS_PER_TOKEN * tokens)
        return f"{literal(REASONING_OPEN)} {text} {literal(REASONING_CLOSE)}"

    def _options(self, options: tuple[Node, ...]) -> list[str]:
        """Literals folded like a vocabulary: llama.cpp keeps one stack for each alternative that is still possible."""
        literals = sorted({option.text for option in options if isinstance(option, Lit)})
        others = [self.expression(option) for option in options if not isinstance(option, Lit)]
        return [*others, fold(literals, self.spelling)] if literals else others

    def _times(self, expression: str, minimum: int, maximum: int | None) -> str:
        atom = expression if _ATOM.fullmatch(expression) else self._rule("t", expression)
        if maximum is None or maximum <= MAX_REPEATED:
            return f"{atom}{{{minimum},{'' if maximum is None else maximum}}}"
        if maximum > MAX_CHAIN:
            raise UnsupportedConstraint(
                f"a repetition of {maximum:,} cannot be written in GBNF, at most {MAX_CHAIN:,} are",
                "Lower the field's bound, or use the Lark dialect, which counts instead of copying.",
            )
        return " ".join([*_copies(atom, minimum), *self._chain(atom, maximum - minimum)])

    def _chain(self, atom: str, count: int) -> list[str]:
        """Up to ``count`` times, one rule for each: it may come, and only then the next may."""
        base = f"c{len(self.lines)}-"
        for i in range(1, count + 1):
            following = f" {base}{i + 1}" if i < count else ""
            self.lines.append(f'{base}{i} ::= {atom}{following} | ""')
        return [f"{base}1"] if count else []


def _copies(atom: str, count: int) -> list[str]:
    """Exactly ``count`` times, in pieces that the parser takes."""
    pieces = [MAX_REPEATED] * (count // MAX_REPEATED) + [count % MAX_REPEATED]
    return [f"{atom}{{{piece},{piece}}}" for piece in pieces if piece]
