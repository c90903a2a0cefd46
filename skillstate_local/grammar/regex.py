"""Regular nodes as regular expressions, in the syntax of Rust's ``regex`` crate (which llguidance reads).

Vocabularies share their prefixes, so that 500 ids cost a few kilobytes and not one branch each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from skillstate_local.errors import UnsupportedConstraint
from skillstate_local.grammar.ir import Alt, Chars, Lit, Node, Number, Quoted, Repeat, Seq, Token, Words
from skillstate_local.grammar.text import number_node
from skillstate_local.grammar.trie import Spelling, fold, ranges

_PLAIN = re.compile(r"[A-Za-z0-9_ ]*")


def regex_of(node: Node) -> str:
    """A regular node as a regular expression. Raises UnsupportedConstraint for an object, an array or a complement."""
    match node:
        case Lit(text):
            return escape_regex(text)
        case Words(words):
            return vocabulary_regex(words)
        case Chars(code_points):
            return character_class(code_points)
        case Seq(parts):
            return "".join(map(regex_of, parts))
        case Alt(options):
            return f"({'|'.join(map(regex_of, options))})"
        case Repeat(inner, minimum, maximum):
            return f"({regex_of(inner)}){{{minimum},{maximum}}}"
        case Quoted(content):
            return f'"{regex_of(content)}"'
        case Token(content):
            return regex_of(content)
        case Number():
            return regex_of(number_node(node))
    raise UnsupportedConstraint(f"{type(node).__name__} is not regular")


@lru_cache(maxsize=65_536)
def escape_regex(text: str) -> str:
    """``text`` matched literally, also between slashes."""
    return text if _PLAIN.fullmatch(text) else "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    code = ord(character)
    if character.isascii() and (character.isalnum() or character in "_ "):
        return character
    if character.isascii() and character.isprintable() and character not in "<>":
        return f"\\{character}" if character in "\\/.+*?()|[]{}^$#&-~" else character
    return f"\\x{{{code:x}}}"


def character_class(ranges: Iterable[tuple[int, int]]) -> str:
    """A bracketed class of inclusive code point ranges."""
    return "[" + "".join(_range(low, high) for low, high in ranges) + "]"


def _range(low: int, high: int) -> str:
    return f"{_class_character(low)}-{_class_character(high)}" if low != high else _class_character(low)


def _class_character(code: int) -> str:
    return chr(code) if code < 0x7F and chr(code).isalnum() else f"\\x{{{code:x}}}"


SPELLING = Spelling(escape_regex, lambda characters: character_class(ranges(characters)), "")


def vocabulary_regex(words: tuple[str, ...]) -> str:
    """An expression for a sorted list of distinct words that shares what can be shared."""
    return fold(words, SPELLING)
