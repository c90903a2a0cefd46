"""JSON as this project reads and writes it: strict on the way in, one canonical text on the way out.

Canonical text has no free whitespace; strings use only the short escapes and lower-case ``\\u00xx`` for the other
control characters, everything else is literal UTF-8; integers have no leading zero and no ``-0``; decimals have no
exponent. Python's ``json`` alone accepts more (``NaN``, duplicate keys, lone surrogates), hence this module.
"""

from __future__ import annotations

import hashlib
import json
import re
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A JSON value: dict, list, str, int, Decimal, bool or None. Never float, so that 1.50 keeps its scale."""

MAX_DEPTH = 64
MAX_NUMBER_CHARS = 64

_TOKEN = re.compile(
    r'"(?:[^"\\\x00-\x1f]|\\["\\bfnrt]|\\u00(?:0[0-7bef]|1[0-9a-f]))*"'
    r"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|true|false|null|[{}\[\]:,]"
)
_NEGATIVE_ZERO = re.compile(r"-0(?:\.0+)?")


class StrictJsonError(ValueError):
    """The text is not strict JSON; ``position`` is the character offset where known."""

    def __init__(self, message: str, position: int = 0) -> None:
        super().__init__(message)
        self.position = position


def loads(text: str) -> Json:
    """Parse strict JSON (RFC 8259, and: no duplicate key, no NaN, no lone surrogate, bounded depth and numbers).

    Raises StrictJsonError.
    """
    if _depth(text) > MAX_DEPTH:
        raise StrictJsonError(f"nested deeper than {MAX_DEPTH} levels")
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique_members,
            parse_constant=_refuse_constant,
            parse_float=_decimal,
            parse_int=_integer,
        )
    except json.JSONDecodeError as error:
        raise StrictJsonError(error.msg, error.pos) from None
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        raise StrictJsonError("a string holds a lone surrogate") from None
    return value


def dumps(value: Json) -> str:
    """Write canonical text. Member order is the dictionary's own."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except TypeError:
        return _write(value)


def is_canonical(text: str) -> bool:
    """Whether ``text`` is spelled canonically, token by token; says nothing about its grammar."""
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or _NEGATIVE_ZERO.fullmatch(match.group()):
            return False
        position = match.end()
    return True


def digest(value: Json) -> str:
    """SHA-256 (hex) of the canonical text of ``value``, members sorted."""
    return hashlib.sha256(dumps(_sorted(value)).encode()).hexdigest()


def equal(left: Json, right: Json) -> bool:
    """JSON equality: unlike Python's, ``1`` is not ``true`` and member order does not matter."""
    if isinstance(left, dict):
        return (
            isinstance(right, dict) and left.keys() == right.keys() and all(equal(v, right[k]) for k, v in left.items())
        )
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return type(left) is type(right) and bool(left == right)


@lru_cache(maxsize=65_536)
def escape(text: str) -> str:
    """The canonical text of a string without its quotes. Ids recur at every step, so results are kept."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _unique_members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise StrictJsonError(f"duplicate key {twice!r}")
    return members


def _refuse_constant(name: str) -> Json:
    raise StrictJsonError(f"{name} is not JSON")


def _integer(digits: str) -> int:
    if len(digits) > MAX_NUMBER_CHARS:
        raise StrictJsonError(f"a number of more than {MAX_NUMBER_CHARS} characters")
    return int(digits)


def _decimal(digits: str) -> Decimal:
    """A number with a point or an exponent. The bound holds for it written out, so that ``1e999999999`` is harmless."""
    exponent = re.split("[eE]", digits)[1:]
    if len(digits) > MAX_NUMBER_CHARS or any(abs(int(e)) > MAX_NUMBER_CHARS for e in exponent):
        raise StrictJsonError(f"a number of more than {MAX_NUMBER_CHARS} characters")
    value = Decimal(digits)
    return value if value else value.copy_abs()


def _depth(text: str) -> int:
    """Deepest bracket nesting outside strings; counted before parsing, so that no input reaches the recursion limit."""
    depth = deepest = 0
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"?|[{\[]|[}\]]', text, re.DOTALL):
        first = token.group()[0]
        if first in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif first in "}]":
            depth -= 1
    return deepest


def _sorted(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    return value


def _write(value: Json) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{_write(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_write, value)) + "]"
    if isinstance(value, Decimal):
        return format(value, "f")
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
