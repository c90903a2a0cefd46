"""Strings as nodes: characters and patterns in the canonical spelling of JSON strings, and numbers digit by digit."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from skillstate_local.errors import DomainError, GrammarError
from skillstate_local.grammar.ir import (
    Alt,
    Chars,
    Excluding,
    Lit,
    Node,
    Number,
    Repeat,
    Seq,
    Words,
    alternatives,
    words_node,
)
from skillstate_local.state.canonical import escape

re_parser: Any = re._parser  # type: ignore[attr-defined]

LAST_CODE_POINT = 0x10FFFF
_MAX_REPEAT = 10_000
_LISTED_SENTENCES = 256
"""A complement with at most so many sentences more than it excludes is written as a list."""
_REPEATS_COUNTED = 64
_SURROGATES = (0xD800, 0xDFFF)
_DIGIT, _WORD, _SPACE = ((48, 57),), ((48, 57), (65, 90), (95, 95), (97, 122)), ((9, 13), (32, 32))


@lru_cache(maxsize=1)
def any_character() -> Node:
    """One code point of a string, as canonical text spells it."""
    return escaped_chars(((0, LAST_CODE_POINT),))


def escaped_chars(ranges: tuple[tuple[int, int], ...]) -> Node:
    """One code point out of ``ranges``, spelled as inside a canonical JSON string."""
    literal = minus(ranges, ((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C), _SURROGATES))
    special = [c for c in (*range(0x20), 0x22, 0x5C) if any(low <= c <= high for low, high in ranges)]
    options: list[Node] = [Chars(literal)] if literal else []
    options += [Lit(escape(chr(c))) for c in special]
    if not options:
        raise DomainError("a character class that matches nothing")
    return alternatives(options)


def minus(ranges: tuple[tuple[int, int], ...], holes: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """``ranges`` without ``holes``; both inclusive."""
    left = list(ranges)
    for start, end in holes:
        cut: list[tuple[int, int]] = []
        for low, high in left:
            cut += (
                [(low, min(high, start - 1)), (max(low, end + 1), high)]
                if low <= end and high >= start
                else [(low, high)]
            )
        left = [(low, high) for low, high in cut if low <= high]
    return tuple(sorted(left))


def excluding(content: Node, taken: Iterable[str]) -> Node | None:
    """A regular ``content`` without these texts; None when nothing is left. Few enough texts are listed instead."""
    words = tuple(sorted(set(taken)))
    if not words:
        return content
    if sentence_count(content) > len(words) + _LISTED_SENTENCES:
        return Excluding(content, words)
    return words_node(sentences(content).difference(words))


def sentence_count(node: Node) -> int:
    """How many sentences a regular node has; one that can be derived in two ways counts twice."""
    match node:
        case Words(words):
            return len(words)
        case Chars(ranges):
            return sum(high - low + 1 for low, high in ranges)
        case Seq(parts):
            return math.prod(map(sentence_count, parts))
        case Alt(options):
            return sum(map(sentence_count, options))
        case Repeat(inner, minimum, maximum):
            each = sentence_count(inner)
            last = min(maximum, minimum + _REPEATS_COUNTED)
            return sum(each ** min(times, _REPEATS_COUNTED) for times in range(minimum, last + 1))
    return 1


def sentences(node: Node) -> frozenset[str]:
    """All sentences of a regular node that has few of them."""
    match node:
        case Lit(text):
            return frozenset((text,))
        case Words(words):
            return frozenset(words)
        case Chars(ranges):
            return frozenset(chr(code) for low, high in ranges for code in range(low, high + 1))
        case Seq(parts):
            return _products([sentences(part) for part in parts])
        case Alt(options):
            return frozenset().union(*map(sentences, options))
        case Repeat(inner, minimum, maximum):
            each = sentences(inner)
            return frozenset().union(*(_products([each] * times) for times in range(minimum, maximum + 1)))
    raise GrammarError(f"the sentences of {type(node).__name__} cannot be listed")


def _products(parts: list[frozenset[str]]) -> frozenset[str]:
    return frozenset(map("".join, itertools.product(*parts)))


@lru_cache(maxsize=256)
def pattern_node(pattern: str) -> Node:
    """A bounded ASCII regular expression as the content of a JSON string. Raises DomainError if it is not one."""
    try:
        tree = re_parser.parse(pattern, re.ASCII)
    except re.error as error:
        raise DomainError(f"{pattern!r} is not a regular expression: {error}") from None
    if tree.state.flags != re.ASCII:
        raise DomainError(f"{pattern!r} sets flags, which no grammar can express")
    return _sequence(list(tree), pattern)


def _sequence(items: list[Any], pattern: str) -> Node:
    parts = tuple(_item(str(op), argument, pattern) for op, argument in items)
    return parts[0] if len(parts) == 1 else Seq(parts)


def _item(op: str, argument: Any, pattern: str) -> Node:
    if op == "LITERAL":
        return Lit(escape(chr(argument)))
    if op == "NOT_LITERAL":
        return escaped_chars(minus(((0, LAST_CODE_POINT),), ((argument, argument),)))
    if op == "ANY":
        return escaped_chars(minus(((0, LAST_CODE_POINT),), ((10, 10),)))
    if op == "IN":
        return escaped_chars(_class(argument, pattern))
    if op == "BRANCH":
        return Alt(tuple(_sequence(list(branch), pattern) for branch in argument[1]))
    if op == "SUBPATTERN" and not (argument[1] or argument[2]):
        return _sequence(list(argument[3]), pattern)
    if op == "MAX_REPEAT":
        low, high, body = argument
        if int(high) > _MAX_REPEAT:
            raise DomainError(f"{pattern!r} repeats without a bound; write {{m,n}} instead of * or +")
        return Repeat(_sequence(list(body), pattern), int(low), int(high))
    raise DomainError(f"{pattern!r} uses {op.lower()}, which no grammar can express")


def _class(items: list[tuple[Any, Any]], pattern: str) -> tuple[tuple[int, int], ...]:
    ranges: list[tuple[int, int]] = []
    negate = False
    for op, argument in items:
        match str(op):
            case "NEGATE":
                negate = True
            case "LITERAL":
                ranges.append((argument, argument))
            case "RANGE":
                ranges.append(argument)
            case "CATEGORY":
                ranges += _category(str(argument), pattern)
            case other:
                raise DomainError(f"{pattern!r} uses {other.lower()} in a class, which no grammar can express")
    return minus(((0, LAST_CODE_POINT),), tuple(ranges)) if negate else tuple(sorted(ranges))


def _category(name: str, pattern: str) -> tuple[tuple[int, int], ...]:
    kinds = {"DIGIT": _DIGIT, "WORD": _WORD, "SPACE": _SPACE}
    _, _, kind = name.partition("CATEGORY_")
    if kind.removeprefix("NOT_") not in kinds:
        raise DomainError(f"{pattern!r} uses {name.lower()}, which no grammar can express")
    ranges = kinds[kind.removeprefix("NOT_")]
    return minus(((0, LAST_CODE_POINT),), ranges) if kind.startswith("NOT_") else ranges


def number_node(number: Number) -> Node:
    """The canonical spellings of a bounded number, digit by digit."""
    options: list[Node] = []
    if number.maximum >= 0:
        options += _natural(max(0, number.minimum), number.maximum, number.scale)
    if number.minimum < 0:
        negative = _natural(max(1, -number.maximum), -number.minimum, number.scale)
        options.append(Seq((Lit("-"), alternatives(negative))))
    return alternatives(options)


def _natural(low: int, high: int, scale: int) -> list[Node]:
    """``low``…``high`` in units of 10**-scale, one option for each number of digits."""
    options: list[Node] = []
    for length in range(scale + 1, len(str(high)) + scale + 2):
        first = 0 if length == scale + 1 else 10 ** (length - 1)
        bottom, top = max(low, first), min(high, 10**length - 1)
        if bottom <= top:
            point = length - scale if scale else -1
            options.append(_digits(str(bottom).zfill(length), str(top).zfill(length), point))
    return options


def _digits(low: str, high: str, point: int) -> Node:
    """Digit strings of equal length from ``low`` to ``high``, with a decimal point before index ``point``."""
    dot: tuple[Node, ...] = (Lit("."),) if point == 0 else ()
    if not low:
        return Seq(dot)
    if set(low) == {"0"} and set(high) == {"9"} and (point <= 0 or point >= len(low)):
        return Seq((*dot, Repeat(_digit("0", "9"), len(low), len(low))))
    if low[0] == high[0]:
        return Seq((*dot, Lit(low[0]), _digits(low[1:], high[1:], point - 1)))
    nines, zeros = "9" * (len(low) - 1), "0" * (len(low) - 1)
    options: list[Node] = [Seq((Lit(low[0]), _digits(low[1:], nines, point - 1)))]
    if int(high[0]) - int(low[0]) > 1:
        between = _digit(chr(ord(low[0]) + 1), chr(ord(high[0]) - 1))
        options.append(Seq((between, _digits(zeros, nines, point - 1))))
    options.append(Seq((Lit(high[0]), _digits(zeros, high[1:], point - 1))))
    return Seq((*dot, Alt(tuple(options))))


def _digit(low: str, high: str) -> Node:
    return Chars(((ord(low), ord(high)),))
