"""EBNF for xgrammar. Vocabularies become character tries, objects become one rule for each set of used members.

The dialect has no parameters, so an object's any-order language is written out state by state (``bnf.py``). Three
exceptions to exactness, each caught by validation: a table whose patch may name two or more entries can repeat a key;
an open vocabulary keeps the words that are taken already; and level `json` leaves strings unbounded, because a bounded
string takes xgrammar seconds to compile.
"""

from __future__ import annotations

from skillstate_local.grammar.bnf import BnfWriter
from skillstate_local.grammar.ir import Grammar


def write_ebnf(grammar: Grammar) -> str:
    """The object's grammar as xgrammar reads it; ``root`` is its first rule. The reasoning section is not in it."""
    writer = BnfWriter(unbounded_text=grammar.unbounded_text)
    body = writer.expression(grammar.root)
    return "\n".join([f"root ::= {body}", *writer.lines, ""])
