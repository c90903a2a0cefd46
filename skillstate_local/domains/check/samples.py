"""Words that a type allows, to try templates with, and the characters that a word may hold."""

from __future__ import annotations

from collections.abc import Mapping

from skillstate_local.domains.observation import fill
from skillstate_local.domains.regex import Ranges, bounded_shape_of
from skillstate_local.state.canonical import Json
from skillstate_local.state.diff import escape_token
from skillstate_local.state.schema import Choice, Id, OneOf, Pattern, ScalarType, Schema, Text

_ANY: Ranges = ((0, 0x10FFFF),)


def sample_words(schema: Schema, kind: ScalarType) -> tuple[str, ...]:
    """One to three words of a string type; none when the type is no string."""
    match kind:
        case Text(most, least):
            return tuple(dict.fromkeys((_padded("a b", least, most), _padded("x", least, most))))
        case Choice(values):
            return (values[0], values[-1])
        case Pattern(regex):
            return (bounded_shape_of(regex).shortest,)
        case Id(name):
            vocabulary = schema.vocabularies[name]
            if vocabulary.members:
                return (vocabulary.members[0], vocabulary.members[-1])
            return (bounded_shape_of(vocabulary.pattern).shortest,)
        case OneOf(types):
            return tuple(word for option in types for word in sample_words(schema, option))
    return ()


def open_characters(schema: Schema, kind: ScalarType) -> Ranges:
    """The characters that words of an open type may hold; none for a closed list, whose words can be told apart."""
    match kind:
        case Text():
            return _ANY
        case Pattern(regex):
            return bounded_shape_of(regex).characters
        case Id(name) if not schema.vocabularies[name].members:
            return bounded_shape_of(schema.vocabularies[name].pattern).characters
        case OneOf(types):
            return tuple(ranges for option in types for ranges in open_characters(schema, option))
    return ()


def unfilled(template: Json, words: Mapping[str, str], pointer: str) -> str:
    """The pointer into a patch template for a pointer into the filled patch."""
    found = ""
    for token in pointer.split("/")[1:]:
        if not isinstance(template, dict):
            break
        key = next((key for key in template if escape_token(str(fill(key, words))) == token), None)
        if key is None:
            break
        found += f"/{escape_token(key)}"
        template = template[key]
    return found


def _padded(word: str, least: int, most: int) -> str:
    return word[:most].ljust(least, "x")
