"""Scalar types in JSON Schema, with ``x-vocabulary`` for ids and ``x-scale`` for decimals."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from skillstate_local.domains.findings import nearest, shown
from skillstate_local.domains.limits import MAX_INTEGER, MAX_MEMBERS, MAX_PATTERN_CHARS, MAX_SCALE, MAX_WORD_CHARS
from skillstate_local.domains.loader.section import Section
from skillstate_local.domains.loader.vocabularies import whole
from skillstate_local.state.schema import (
    MAX_TEXT_CHARS,
    Boolean,
    Choice,
    Fixed,
    Id,
    Integer,
    OneOf,
    Pattern,
    ScalarType,
    Text,
    Vocabulary,
)

STRING = ("minLength", "maxLength", "enum", "pattern", "x-vocabulary")
TYPE_WORDS = ("type", *STRING, "minimum", "maximum", "x-scale", "anyOf")
TYPES = ("string", "integer", "number", "boolean", "array", "object")

_USED_BY = {
    "string": STRING,
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum", "x-scale"),
    "boolean": (),
}


def scalar_type(section: Section, vocabularies: Mapping[str, Vocabulary]) -> ScalarType | None:
    """The scalar type that a schema states; None when it could not be read (which is reported)."""
    if "anyOf" in section:
        return _any_of(section, vocabularies)
    kind = type_name(section)
    if kind not in _USED_BY:
        if kind:
            section.error(f"a {kind} cannot stand here, only a string, number or boolean")
        return None
    for word in TYPE_WORDS[1:]:
        if word in section and word not in _USED_BY[kind]:
            section.error(
                f"{word} says nothing about a {kind}", f"Remove {word} or change the type.", section.get(word)
            )
    match kind:
        case "boolean":
            return Boolean()
        case "integer":
            return _integer(section)
        case "number":
            return _fixed(section)
    return _string(section, vocabularies)


def type_name(section: Section) -> str:
    """The ``type`` of a schema, or "" when it is missing or unknown (which is reported)."""
    node = section.need("type", f"Add `type:` with one of {', '.join(TYPES)}.")
    if node is None:
        return ""
    if isinstance(node.value, tuple):
        section.error("type must be one word", "Use anyOf for several scalar types.", node)
        return ""
    if node.value not in TYPES:
        null = node.value is None or node.value == "null"
        hint = "A state holds no null: leave the field out of `required` and set x-deletable." if null else ""
        section.error(f"there is no type {shown(node.value)}", hint or nearest(str(node.value), TYPES), node)
        return ""
    return str(node.value)


def _any_of(section: Section, vocabularies: Mapping[str, Vocabulary]) -> ScalarType | None:
    for word in TYPE_WORDS[:-1]:
        if word in section:
            section.error(f"{word} stands beside anyOf", "Move it into the options.", section.get(word))
    options = section.items("anyOf", 8)
    if len(options) < 2:
        section.error("anyOf needs two options or more", "List scalar types.", section.get("anyOf"))
    types = [
        scalar_type(Section(option, section.findings, "an option of anyOf", TYPE_WORDS[:-1]), vocabularies)
        for option in options
    ]
    found = tuple(kind for kind in types if kind is not None)
    return OneOf(found) if len(found) == len(options) >= 2 else None


def _string(section: Section, vocabularies: Mapping[str, Vocabulary]) -> ScalarType | None:
    given = [word for word in ("enum", "pattern", "x-vocabulary", "maxLength") if word in section]
    if len(given) != 1:
        said = f"{' and '.join(given)} stand together" if given else "this string has no bound"
        hint = "Give exactly one of maxLength (with minLength if you like), enum, pattern and x-vocabulary."
        section.error(said, hint)
        return None
    if "minLength" in section and given != ["maxLength"]:
        section.error(f"minLength says nothing beside {given[0]}", "Remove it.", section.get("minLength"))
    match given[0]:
        case "enum":
            words = section.texts("enum", MAX_MEMBERS, MAX_WORD_CHARS)
            if not words:
                section.error("enum is empty", "List the values.", section.get("enum"))
            return Choice(words) if words else None
        case "pattern":
            pattern = whole(section.text("pattern", at_most=MAX_PATTERN_CHARS))
            return Pattern(pattern) if pattern else None
        case "x-vocabulary":
            return vocabulary_id(section, "x-vocabulary", vocabularies)
    most = section.integer("maxLength", 1, 1, MAX_TEXT_CHARS)
    least = section.integer("minLength", 0, 0, MAX_TEXT_CHARS)
    if least > most:
        section.error("minLength is larger than maxLength", at=section.get("minLength"))
    return Text(most, least)


def vocabulary_id(section: Section, word: str, vocabularies: Mapping[str, Vocabulary]) -> Id | None:
    """The id type of a declared vocabulary."""
    name = section.text(word)
    if name in vocabularies:
        return Id(name)
    if name:
        section.error(f"there is no vocabulary {shown(name)}", nearest(name, vocabularies), section.get(word))
    return None


def _integer(section: Section) -> ScalarType | None:
    if not _both_bounds(section):
        return None
    low = section.integer("minimum", 0, -MAX_INTEGER, MAX_INTEGER)
    high = section.integer("maximum", low, -MAX_INTEGER, MAX_INTEGER)
    if low > high:
        section.error("minimum is larger than maximum", at=section.get("minimum"))
        return None
    return Integer(low, high)


def _fixed(section: Section) -> ScalarType | None:
    if section.need("x-scale", "Say how many digits stand after the point: `x-scale: 2`.") is None:
        return None
    if not _both_bounds(section):
        return None
    scale = section.integer("x-scale", 0, 1, MAX_SCALE)
    bounds = [_units(section, word, scale) for word in ("minimum", "maximum")]
    if scale == 0 or bounds[0] is None or bounds[1] is None:
        return None
    if bounds[0] > bounds[1]:
        section.error("minimum is larger than maximum", at=section.get("minimum"))
        return None
    return Fixed(bounds[0], bounds[1], scale)


def _both_bounds(section: Section) -> bool:
    needed = [section.need(word, "Every number needs minimum and maximum.") for word in ("minimum", "maximum")]
    return all(node is not None for node in needed)


def _units(section: Section, word: str, scale: int) -> int | None:
    number = section.decimal(word)
    if number is None:
        return None
    units = number.scaleb(scale)
    if units != units.to_integral_value() or abs(units) > MAX_INTEGER:
        section.error(f"{word} has more digits than x-scale {scale} allows", at=section.get(word))
        return None
    return int(Decimal(units))
