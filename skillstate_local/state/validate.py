"""Types: what a patch may look like, and what a whole state must look like, by the schema alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import NamedTuple

from skillstate_local.state.canonical import Json, dumps
from skillstate_local.state.diff import escape_token
from skillstate_local.state.schema import (
    Boolean,
    Choice,
    FieldKind,
    Fixed,
    Id,
    Integer,
    ListField,
    ListMode,
    OneOf,
    Pattern,
    Record,
    Scalar,
    ScalarType,
    Schema,
    Table,
    Text,
)


class Problem(NamedTuple):
    """One thing that is wrong: where (JSON pointer into patch or state) and what."""

    pointer: str
    message: str


def patch_problems(schema: Schema, patch: Json) -> Iterator[Problem]:
    """Type errors of a patch: unknown fields, wrong types, bounds and vocabularies. Conditions on Σ are not types."""
    yield from _patch(schema, schema.root, patch, "")


def state_problems(schema: Schema, state: Json) -> Iterator[Problem]:
    """Type errors of a whole state, which holds no null and every member that is not optional."""
    yield from _whole(schema, schema.root, state, "")


def _patch(schema: Schema, kind: FieldKind, value: Json, at: str) -> Iterator[Problem]:
    if isinstance(kind, Scalar):
        yield from scalar_problems(schema, kind.type, value, at)
    elif isinstance(kind, ListField):
        yield from _list_patch(schema, kind, value, at)
    elif not isinstance(value, dict):
        yield Problem(at, f"expected an object, got {_short(value)}")
    elif isinstance(kind, Table):
        yield from _table_patch(schema, kind, value, at)
    else:
        yield from _record_patch(schema, kind, value, at)


def _record_patch(schema: Schema, kind: Record, value: dict[str, Json], at: str) -> Iterator[Problem]:
    for name, change in value.items():
        member, pointer = kind.members.get(name), f"{at}/{escape_token(name)}"
        if member is None:
            yield Problem(pointer, f"unknown field {name!r}; known: {', '.join(kind.members)}")
        elif change is not None:
            yield from _patch(schema, member, change, pointer)
        elif not member.optional:
            yield Problem(pointer, "this field cannot be deleted")


def _table_patch(schema: Schema, kind: Table, value: dict[str, Json], at: str) -> Iterator[Problem]:
    if len(value) > kind.max_changes:
        yield Problem(at, f"{len(value)} entries changed, at most {kind.max_changes} are allowed in one patch")
    vocabulary = schema.vocabularies[kind.keys]
    for key, change in value.items():
        pointer = f"{at}/{escape_token(key)}"
        if key not in vocabulary:
            yield Problem(pointer, f"{_short(key)} is not a {vocabulary.name}")
        elif change is not None:
            yield from _patch(schema, kind.value, change, pointer)


def _list_patch(schema: Schema, kind: ListField, value: Json, at: str) -> Iterator[Problem]:
    if isinstance(value, list):
        yield from _items(schema, kind, value, kind.max_items, at)
        return
    allowed = list_operations(kind)
    if not isinstance(value, dict) or not allowed:
        forms = "an array" + "".join(f' or {{"{name}":[…]}}' for name in allowed)
        yield Problem(at, f"expected {forms}, got {_short(value)}")
        return
    for name, change in value.items():
        pointer = f"{at}/{escape_token(name)}"
        if name not in allowed:
            yield Problem(pointer, f"unknown list operation {name!r}; allowed: {', '.join(allowed)}")
        elif not isinstance(change, list) or not change:
            yield Problem(pointer, f"expected a non-empty array, got {_short(change)}")
        else:
            yield from _items(schema, kind, change, kind.max_changes, pointer)


def list_operations(kind: ListField) -> tuple[str, ...]:
    """The operations a list patch may name: `+` appends, `-` removes all equal elements."""
    return {ListMode.REPLACE: (), ListMode.APPEND: ("+",), ListMode.ADD_REMOVE: ("+", "-")}[kind.mode]


def _items(schema: Schema, kind: ListField, value: list[Json], at_most: int, at: str) -> Iterator[Problem]:
    if len(value) > at_most:
        yield Problem(at, f"{len(value)} items, at most {at_most} are allowed")
    for index, item in enumerate(value):
        yield from scalar_problems(schema, kind.item, item, f"{at}/{index}")


def _whole(schema: Schema, kind: FieldKind, value: Json, at: str) -> Iterator[Problem]:
    if isinstance(kind, Scalar):
        yield from scalar_problems(schema, kind.type, value, at)
    elif isinstance(kind, ListField):
        if isinstance(value, list):
            yield from _items(schema, kind, value, kind.max_items, at)
        else:
            yield Problem(at, f"expected an array, got {_short(value)}")
    elif not isinstance(value, dict):
        yield Problem(at, f"expected an object, got {_short(value)}")
    elif isinstance(kind, Table):
        yield from _whole_table(schema, kind, value, at)
    else:
        yield from _whole_record(schema, kind, value, at)


def _whole_record(schema: Schema, kind: Record, value: dict[str, Json], at: str) -> Iterator[Problem]:
    for name, member in kind.members.items():
        pointer = f"{at}/{escape_token(name)}"
        if name in value:
            yield from _whole(schema, member, value[name], pointer)
        elif not member.optional:
            yield Problem(pointer, "this field is missing")
    for name in value.keys() - kind.members.keys():
        yield Problem(f"{at}/{escape_token(name)}", f"unknown field {name!r}; known: {', '.join(kind.members)}")


def _whole_table(schema: Schema, kind: Table, value: dict[str, Json], at: str) -> Iterator[Problem]:
    if len(value) > kind.max_entries:
        yield Problem(at, f"{len(value)} entries, at most {kind.max_entries} are allowed")
    vocabulary = schema.vocabularies[kind.keys]
    for key, entry in value.items():
        pointer = f"{at}/{escape_token(key)}"
        if key not in vocabulary:
            yield Problem(pointer, f"{_short(key)} is not a {vocabulary.name}")
        yield from _whole(schema, kind.value, entry, pointer)


def whole_problems(schema: Schema, kind: FieldKind, value: Json, at: str) -> Iterator[Problem]:
    """Type errors of a complete value of ``kind``, as an insertion needs it."""
    yield from _whole(schema, kind, value, at)


def scalar_problems(schema: Schema, kind: ScalarType, value: Json, at: str) -> Iterator[Problem]:
    """At most one problem: why ``value`` is not of the scalar type."""
    reason = _scalar_reason(schema, kind, value)
    if reason:
        yield Problem(at, f"{reason}, got {_short(value)}")


def typed_words(schema: Schema, kind: ScalarType, words: Iterable[str]) -> Iterable[str]:
    """Those of many strings that are of the scalar type."""
    if isinstance(kind, Id):
        vocabulary = schema.vocabularies[kind.vocabulary]
        return vocabulary.known.intersection(words) if vocabulary.members else [w for w in words if w in vocabulary]
    return [word for word in words if not _scalar_reason(schema, kind, word)]


def _scalar_reason(schema: Schema, kind: ScalarType, value: Json) -> str:
    if isinstance(kind, OneOf):
        reasons = [_scalar_reason(schema, option, value) for option in kind.types]
        return "" if "" in reasons else " or ".join(reasons)
    if isinstance(kind, Boolean):
        return "" if isinstance(value, bool) else "expected true or false"
    if isinstance(kind, Integer):
        fits = type(value) is int and kind.minimum <= value <= kind.maximum
        return "" if fits else f"expected an integer from {kind.minimum} to {kind.maximum}"
    if isinstance(kind, Fixed):
        return (
            "" if _fits_fixed(kind, value) else f"expected a decimal with {kind.scale} digits after the point in range"
        )
    if not isinstance(value, str):
        return "expected a string"
    return _string_reason(schema, kind, value)


def _string_reason(schema: Schema, kind: ScalarType, value: str) -> str:
    if isinstance(kind, Text):
        fits = kind.min_chars <= len(value) <= kind.max_chars
        return "" if fits else f"expected {kind.min_chars} to {kind.max_chars} characters"
    if isinstance(kind, Choice):
        return "" if value in kind.values else f"expected one of {', '.join(kind.values)}"
    if isinstance(kind, Pattern):
        return "" if re.fullmatch(kind.regex, value, re.ASCII) else f"expected text matching {kind.regex}"
    if isinstance(kind, Id):
        return "" if value in schema.vocabularies[kind.vocabulary] else f"expected a {kind.vocabulary}"
    return "expected another type"


def _fits_fixed(kind: Fixed, value: Json) -> bool:
    """A decimal of exactly the declared scale; with scale 0 the text would be an integer's, which is another type."""
    if not isinstance(value, Decimal) or -int(value.as_tuple().exponent) != kind.scale:
        return False
    units = int(format(value, "f").replace(".", ""))
    return kind.minimum_units <= units <= kind.maximum_units


def _short(value: Json) -> str:
    text = dumps(value)
    return text if len(text) <= 60 else text[:57] + "…"
