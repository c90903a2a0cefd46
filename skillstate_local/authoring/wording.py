"""Types and sources in an author's words."""

from __future__ import annotations

from skillstate_local.grammar.sample import spell
from skillstate_local.state.schema import (
    Boolean,
    Choice,
    Fixed,
    Id,
    Integer,
    OneOf,
    Pattern,
    ScalarType,
    Text,
)
from skillstate_local.state.source import KeysOf, Members, Minus, Seen, Source, Union, ValuesOf, Words


def type_words(kind: ScalarType) -> str:
    """A scalar type in a few words."""
    match kind:
        case Text(most, least):
            return f"text of {least} to {most} characters"
        case Pattern(regex):
            return f"text matching {regex}"
        case Choice(values):
            return "one of " + _some(values)
        case Id(name):
            return f"an id of {name}"
        case Integer(low, high):
            return f"an integer from {low} to {high}"
        case Fixed(low, high, scale):
            return f"a decimal from {spell(low, scale)} to {spell(high, scale)}"
        case Boolean():
            return "true or false"
        case OneOf(types):
            return " or ".join(map(type_words, types))


def source_words(source: Source) -> str:
    """Where a value may come from, in a few words."""
    match source:
        case Seen(name):
            return f"what the observation names as {name}"
        case Members(name):
            return f"any id of {name}"
        case Words(words):
            return _some(words)
        case KeysOf(table, where):
            return f"keys of {table}" + _where(where)
        case ValuesOf(table, member, at):
            of = f"{member} in {table}" if member else f"values of {table}"
            return of + (f" under {source_words(at)}" if at is not None else "")
        case Union(sources):
            return " or ".join(map(source_words, sources))
        case Minus(base, excluded):
            return f"{source_words(base)}, except {source_words(excluded)}"
    return "a source written in Python"


def _where(where: tuple[tuple[str, object], ...]) -> str:
    return " where " + " and ".join(f"{name} is {value}" for name, value in where) if where else ""


def _some(words: tuple[str, ...]) -> str:
    return ", ".join(words[:6]) + (f", … ({len(words)})" if len(words) > 6 else "")
