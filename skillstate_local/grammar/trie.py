"""Vocabularies folded into tries whose equal branches are merged: 500 ids in hundreds of bytes, not kilobytes.

``shelf_0 … shelf_499`` becomes ``shelf_([0-9]|[1-9][0-9]|[1-4][0-9][0-9])`` in all but name: branches with the same
continuation share one character class. Fewer bytes to parse and fewer states to compute masks for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Spelling(NamedTuple):
    """How a dialect writes the pieces of a folded vocabulary."""

    literal: Callable[[str], str]
    one_of: Callable[[Sequence[str]], str]
    """A class of two or more characters, given sorted."""
    join: str
    """What stands between two pieces of a sequence."""
    nothing: str = ""
    """An option that is empty, for a dialect in which `(…)?` around many options is refused."""


def fold(words: Sequence[str], spell: Spelling) -> str:
    """An expression for a sorted list of distinct words."""
    return _fold(words, 0, spell)


def _fold(words: Sequence[str], start: int, spell: Spelling) -> str:
    """The words without their first ``start`` characters, which they share."""
    first, last = words[0], words[-1]
    if len(words) == 1:
        return spell.literal(first[start:]) if start < len(first) else ""
    end = start
    shortest = min(len(first), len(last))
    while end < shortest and first[end] == last[end]:
        end += 1
    head = [spell.literal(first[start:end])] if end > start else []
    return spell.join.join([*head, _branches(words, end, spell)])


def _branches(words: Sequence[str], start: int, spell: Spelling) -> str:
    """The continuations after a shared prefix; a word that ends here makes them optional."""
    ends_here = len(words[0]) == start
    continuations: dict[str, list[str]] = {}
    at = 1 if ends_here else 0
    while at < len(words):
        character, begin = words[at][start], at
        while at < len(words) and words[at][start] == character:
            at += 1
        body = _fold(words[begin:at], start + 1, spell)
        continuations.setdefault(body, []).append(character)
    options = [_option(characters, body, spell) for body, characters in continuations.items()]
    if len(options) == 1 and not ends_here:
        return options[0]
    if ends_here and spell.nothing:
        options.append(spell.nothing)
    optional = "?" if ends_here and not spell.nothing else ""
    return f"({' | '.join(options) if spell.join else '|'.join(options)}){optional}"


def _option(characters: list[str], body: str, spell: Spelling) -> str:
    head = spell.literal(characters[0]) if len(characters) == 1 else spell.one_of(characters)
    return f"{head}{spell.join}{body}" if body else head


def ranges(characters: Sequence[str]) -> list[tuple[int, int]]:
    """Sorted characters as inclusive code point ranges."""
    found: list[tuple[int, int]] = []
    for character in characters:
        code = ord(character)
        if found and found[-1][1] == code - 1:
            found[-1] = (found[-1][0], code)
        else:
            found.append((code, code))
    return found
