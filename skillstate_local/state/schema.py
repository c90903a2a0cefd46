"""What a state may hold: field kinds, their types and bounds, and who may change them.

Every string, number, list and map has a bound; a kind that has none cannot be written down here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import TypeAlias

from skillstate_local.state.canonical import Json
from skillstate_local.state.source import Source

MAX_TEXT_CHARS = 100_000
_NOTHING: Mapping[str, tuple[str, ...]] = MappingProxyType({})


@dataclass(frozen=True)
class Vocabulary:
    """A named set of ids: closed (``members``) or open (``pattern``, a bounded ASCII regular expression)."""

    name: str
    members: tuple[str, ...] = ()
    pattern: str = ""

    @cached_property
    def known(self) -> frozenset[str]:
        """The members of a closed vocabulary."""
        return frozenset(self.members)

    def __contains__(self, word: object) -> bool:
        if not isinstance(word, str):
            return False
        if self.members:
            return word in self.known
        return _fits(self.pattern, word)


@lru_cache(maxsize=65_536)
def _fits(pattern: str, word: str) -> bool:
    return re.fullmatch(pattern, word, re.ASCII) is not None


@dataclass(frozen=True, slots=True)
class Text:
    """Free text of ``min_chars``…``max_chars`` code points."""

    max_chars: int
    min_chars: int = 0


@dataclass(frozen=True, slots=True)
class Pattern:
    """A string that fully matches a bounded ASCII regular expression."""

    regex: str


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a closed list of strings."""

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Id:
    """A string of the named vocabulary."""

    vocabulary: str


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer within inclusive bounds."""

    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True)
class Fixed:
    """A decimal with exactly ``scale`` digits after the point; bounds are inclusive, in units of 10**-scale."""

    minimum_units: int
    maximum_units: int
    scale: int


@dataclass(frozen=True, slots=True)
class Boolean:
    """true or false."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """Any of several scalar types."""

    types: tuple[ScalarType, ...]


ScalarType: TypeAlias = Text | Pattern | Choice | Id | Integer | Fixed | Boolean | OneOf


class Permission(StrEnum):
    """Who may insert, update or delete an entry of a table. ``GROUNDED``: only an entry that O_t names."""

    ALLOWED = "allowed"
    GROUNDED = "grounded"
    NEVER = "never"


class Mutability(StrEnum):
    """When a scalar may be set. ``PROTECTED``: never by a patch."""

    MUTABLE = "mutable"
    WRITE_ONCE = "write-once"
    PROTECTED = "protected"


class ListMode(StrEnum):
    """How a list may change at `delta` and above."""

    REPLACE = "replaceable"
    APPEND = "append-only"
    ADD_REMOVE = "add-and-remove"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value. ``transitions`` maps a current value to the next ones allowed; ``values`` grounds it."""

    type: ScalarType
    mutability: Mutability = Mutability.MUTABLE
    transitions: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NOTHING)
    values: Source | None = None
    optional: bool = False
    deletable: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True)
class ListField:
    """An array of scalars. ``max_changes`` bounds each of `+` and `-` in one patch."""

    item: ScalarType
    max_items: int
    mode: ListMode = ListMode.REPLACE
    max_changes: int = 8
    values: Source | None = None
    optional: bool = False
    deletable: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """A closed object with named members, in canonical order (stable ones first)."""

    members: Mapping[str, FieldKind]
    optional: bool = False
    deletable: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A map keyed by ids of ``keys``; an absent entry is an absent key.

    ``max_inserts``, ``max_updates`` and ``max_deletes`` bound one patch at `delta`; their sum bounds the changes at
    `schema`. ``max_entries`` bounds the whole table.
    """

    keys: str
    value: FieldKind
    max_entries: int
    insert: Permission = Permission.ALLOWED
    update: Permission = Permission.ALLOWED
    delete: Permission = Permission.ALLOWED
    max_inserts: int = 1
    max_updates: int = 1
    max_deletes: int = 1
    optional: bool = False
    deletable: bool = False
    description: str = ""

    @property
    def max_changes(self) -> int:
        """Most entries that one patch can name."""
        return sum(
            count
            for count, permission in (
                (self.max_inserts, self.insert),
                (self.max_updates, self.update),
                (self.max_deletes, self.delete),
            )
            if permission is not Permission.NEVER
        )


FieldKind: TypeAlias = Scalar | ListField | Record | Table


@dataclass(frozen=True, slots=True)
class Schema:
    """The shape of Σ: a closed root record and the vocabularies its ids come from."""

    root: Record
    vocabularies: Mapping[str, Vocabulary]

    def canonical(self, state: Json) -> Json:
        """``state`` with members in declared order and table keys sorted; what is unknown comes last, sorted."""
        return _ordered(self.root, state)


def natural_key(word: str) -> tuple[tuple[tuple[int, int, str], ...], str]:
    """Sort key that puts ``shelf_2`` before ``shelf_10``; no two words share one."""
    return tuple(_part_key(part) for part in re.split(r"([0-9]+)", word) if part), word


def _part_key(part: str) -> tuple[int, int, str]:
    """Digits compare by value, whatever their number; Python's own ``int`` refuses thousands of them."""
    if "0" <= part[0] <= "9":
        digits = part.lstrip("0")
        return 0, len(digits), digits
    return 1, 0, part


def _ordered(kind: FieldKind, value: Json) -> Json:
    if not isinstance(value, dict):
        return value
    if isinstance(kind, Table):
        return {key: _ordered(kind.value, value[key]) for key in sorted(value, key=natural_key)}
    if isinstance(kind, Record):
        known = {name: _ordered(member, value[name]) for name, member in kind.members.items() if name in value}
        return known | {name: value[name] for name in sorted(value) if name not in known}
    return value
