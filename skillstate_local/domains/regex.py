"""Regular expressions that an author writes: are they safe to run, and can a grammar express them?

Python's matcher backtracks, and observations are untrusted, so an expression is accepted only when the number of ways
to read a text is bounded. A choice costs nothing when the next character decides it (the sets of possible next
characters are disjoint); other choices multiply.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from skillstate_local.domains.limits import (
    MAX_PATTERN_CHARS,
    MAX_PATTERN_CHOICES,
    MAX_PATTERN_GROUPS,
    MAX_PATTERN_LENGTH,
)

Ranges: TypeAlias = tuple[tuple[int, int], ...]

_PARSER: Any = re._parser  # type: ignore[attr-defined]
_UNBOUNDED = int(_PARSER.MAXREPEAT)
_LAST = 0x10FFFF
_ASSUMED_LINE_CHARS = 1000
_CATEGORIES: dict[str, Ranges] = {
    "DIGIT": ((48, 57),),
    "WORD": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "SPACE": ((9, 13), (32, 32)),
}
_NAMES = {
    "GROUPREF": "a backreference",
    "GROUPREF_EXISTS": "a conditional group",
    "ASSERT": "a lookahead or lookbehind",
    "ASSERT_NOT": "a lookahead or lookbehind",
    "AT": "an anchor (^, $ or \\b), which is not needed: a pattern always matches the whole text",
    "ATOMIC_GROUP": "an atomic group",
    "POSSESSIVE_REPEAT": "a possessive repeat",
    "MIN_REPEAT": "a lazy repeat",
}


class RegexProblem(ValueError):
    """Why an expression is refused; ``hint`` says what to write instead."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Shape(NamedTuple):
    """What is known of a (part of an) expression."""

    first: Ranges
    nullable: bool
    choices: int
    longest: float
    shortest: str
    characters: Ranges
    wide: int = 0
    """Unbounded repeats whose end the next character does not decide."""


@lru_cache(maxsize=256)
def shape_of(pattern: str) -> Shape:
    """Analyse an expression that is matched against whole texts of any length. Raises RegexProblem."""
    shape = _sequence(_parsed(pattern), ())
    if shape.wide > 1 or shape.choices > MAX_PATTERN_CHOICES:
        raise RegexProblem(
            "it can be read in too many ways, so that a long line would stall the process",
            "Let each repeat end at a character that it cannot contain itself, as in [^:]{1,80}: or use a bound {m,n}.",
        )
    return shape


def bounded_shape_of(pattern: str) -> Shape:
    """Analyse an expression that a grammar must express: as ``shape_of``, and bounded. Raises RegexProblem."""
    shape = shape_of(pattern)
    _refuse_lazy(_parsed(pattern))
    if shape.longest == float("inf"):
        raise RegexProblem("it repeats without a bound", "Write {m,n} instead of *, + or {m,}.")
    if shape.longest > MAX_PATTERN_LENGTH:
        raise RegexProblem(
            f"it matches texts of {shape.longest:,.0f} characters; the limit is {MAX_PATTERN_LENGTH:,}",
            "Lower its bounds, or use maxLength for free text.",
        )
    return shape


def overlap(left: Ranges, right: Ranges) -> bool:
    """Whether two sets of characters share one."""
    return any(a <= d and c <= b for a, b in left for c, d in right)


def _parsed(pattern: str) -> list[Any]:
    if len(pattern) > MAX_PATTERN_CHARS:
        raise RegexProblem(f"it has {len(pattern):,} characters; the limit is {MAX_PATTERN_CHARS}")
    if pattern.count("(") > MAX_PATTERN_GROUPS:
        raise RegexProblem(f"it has more than {MAX_PATTERN_GROUPS} groups")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tree = _PARSER.parse(pattern, re.ASCII)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        raise RegexProblem(f"it is not a regular expression: {error}") from None
    if tree.state.flags & ~re.ASCII:
        raise RegexProblem("it sets a flag such as (?i)", "Write the characters out, as in [Aa].")
    return list(tree)


def _sequence(items: list[Any], follow: Ranges) -> Shape:
    """Analysed from the end, so that each part knows which characters may come after it."""
    whole = Shape((), True, 1, 0, "", ())
    for op, argument in reversed(items):
        part = _item(str(op), argument, follow)
        follow = part.first + (follow if part.nullable else ())
        whole = Shape(
            part.first + (whole.first if part.nullable else ()),
            part.nullable and whole.nullable,
            _capped(part.choices * whole.choices),
            part.longest + whole.longest,
            part.shortest + whole.shortest,
            part.characters + whole.characters,
            part.wide + whole.wide,
        )
    return whole


def _item(op: str, argument: Any, follow: Ranges) -> Shape:
    match op:
        case "LITERAL":
            return _one(((argument, argument),))
        case "NOT_LITERAL":
            return _one(_complement(((argument, argument),)))
        case "ANY":
            return _one(_complement(((10, 10),)))
        case "IN":
            return _one(_class(argument))
        case "BRANCH":
            return _branch([_sequence(list(option), follow) for option in argument[1]], follow)
        case "SUBPATTERN":
            if argument[1] or argument[2]:
                raise RegexProblem("it sets a flag such as (?i:…)", "Write the characters out, as in [Aa].")
            return _sequence(list(argument[3]), follow)
        case "MAX_REPEAT" | "MIN_REPEAT":
            low, high, body = argument
            return _repeat(int(low), int(high), list(body), follow)
    raise RegexProblem(f"it uses {_NAMES.get(op, op.lower())}", "Leave it out.")


def _one(ranges: Ranges) -> Shape:
    if not ranges:
        raise RegexProblem("a character class in it matches nothing")
    preferred = [low for low, high in ranges if 48 <= low < 127] or [ranges[0][0]]
    letter = next((c for c in (97, 65, 48) if overlap(ranges, ((c, c),))), preferred[0])
    return Shape(ranges, False, 1, 1, chr(letter), ranges)


def _branch(options: list[Shape], follow: Ranges) -> Shape:
    starts = [option.first + (follow if option.nullable else ()) for option in options]
    decided = not any(overlap(a, b) for i, a in enumerate(starts) for b in starts[:i])
    counts = [option.choices for option in options]
    return Shape(
        tuple(r for option in options for r in option.first),
        any(option.nullable for option in options),
        max(counts) if decided else _capped(sum(counts)),
        max(option.longest for option in options),
        min((option.shortest for option in options), key=len),
        tuple(r for option in options for r in option.characters),
        max(option.wide for option in options),
    )


def _repeat(low: int, high: int, items: list[Any], follow: Ranges) -> Shape:
    body = _sequence(items, follow + _first(items)[0] if high > 1 else follow)
    if body.nullable and high > 1:
        raise RegexProblem("it repeats something that may be empty", "Make the repeated part match one character.")
    if high > 1 and (body.choices > 1 or body.wide):
        raise RegexProblem(
            "it repeats something that can itself be read in several ways, so that a long line would stall the process",
            "Do not nest repeats, unless a separator that the inner one cannot contain ends it.",
        )
    open_end = low != high and overlap(body.first, follow)
    rounds = _ASSUMED_LINE_CHARS if high == _UNBOUNDED else high
    return Shape(
        body.first if high else (),
        low == 0 or body.nullable,
        _capped(body.choices * (max(1, rounds - low + 1) if open_end else 1)),
        (float("inf") if high == _UNBOUNDED else high * body.longest) if high else 0,
        body.shortest * min(low, 1 + MAX_PATTERN_LENGTH // max(1, len(body.shortest))),
        body.characters,
        body.wide + (1 if open_end and high == _UNBOUNDED else 0),
    )


def _first(items: list[Any]) -> tuple[Ranges, bool]:
    """The characters a sequence may begin with, and whether it may be empty; one pass, whatever the nesting."""
    found: Ranges = ()
    for op, argument in items:
        first, nullable = _first_of(str(op), argument)
        found += first
        if not nullable:
            return found, False
    return found, True


def _first_of(op: str, argument: Any) -> tuple[Ranges, bool]:
    match op:
        case "BRANCH":
            options = [_first(list(option)) for option in argument[1]]
            return tuple(r for ranges, _ in options for r in ranges), any(empty for _, empty in options)
        case "SUBPATTERN":
            return _first(list(argument[3]))
        case "MAX_REPEAT" | "MIN_REPEAT":
            ranges, nullable = _first(list(argument[2]))
            return (ranges, nullable or int(argument[0]) == 0) if int(argument[1]) else ((), True)
    return _item(op, argument, ()).first, False


def _capped(choices: int) -> int:
    return min(choices, 10 * MAX_PATTERN_CHOICES)


def _class(items: list[tuple[Any, Any]]) -> Ranges:
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
                ranges += _category(str(argument))
    return _complement(tuple(ranges)) if negate else tuple(ranges)


def _category(name: str) -> Ranges:
    kind = name.removeprefix("CATEGORY_")
    ranges = _CATEGORIES.get(kind.removeprefix("NOT_"))
    if ranges is None:
        raise RegexProblem(f"it uses {name.lower()}", "Write the characters out.")
    return _complement(ranges) if kind.startswith("NOT_") else ranges


def _complement(ranges: Ranges) -> Ranges:
    """All characters that are not in ``ranges``."""
    holes, start = [], 0
    for low, high in sorted(ranges):
        if start < low:
            holes.append((start, low - 1))
        start = max(start, high + 1)
    return (*holes, (start, _LAST)) if start <= _LAST else tuple(holes)


def _refuse_lazy(items: list[Any]) -> None:
    for op, argument in items:
        match str(op):
            case "MIN_REPEAT":
                raise RegexProblem("it uses a lazy repeat", "Leave out the ? after the repeat.")
            case "MAX_REPEAT":
                _refuse_lazy(list(argument[2]))
            case "SUBPATTERN":
                _refuse_lazy(list(argument[3]))
            case "BRANCH":
                for option in argument[1]:
                    _refuse_lazy(list(option))
