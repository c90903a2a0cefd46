"""The intermediate form of a grammar: a small algebra that every dialect is written from, and that can be sampled.

A grammar is a directed acyclic graph of nodes; nodes compare by identity, and sharing one means writing it once.
Strings inside ``Quoted`` are already JSON-escaped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias


class Dialect(StrEnum):
    """A language that grammars are written in."""

    LARK = "lark"
    EBNF = "ebnf"
    GBNF = "gbnf"
    REGEX = "regex"


@dataclass(frozen=True, slots=True, eq=False)
class Lit:
    """Exactly this text."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Chars:
    """One code point out of inclusive ranges."""

    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """One of many texts; ``words`` is sorted, without repetition and not empty."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Seq:
    """The parts one after another."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Alt:
    """One of the options."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """``minimum``…``maximum`` times the node."""

    node: Node
    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True, eq=False)
class Quoted:
    """A JSON string whose content is regular; one token of the language as far as a lexer is concerned."""

    content: Node


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """An integer within inclusive bounds, written with ``scale`` digits after the point (bounds in units of it)."""

    minimum: int
    maximum: int
    scale: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """A JSON array of ``minimum``…``maximum`` items."""

    item: Node
    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True, eq=False)
class Token:
    """A JSON token other than a string whose spelling is regular, such as any number."""

    content: Node


@dataclass(frozen=True, slots=True, eq=False)
class Excluding:
    """Everything of a regular ``content`` but these texts."""

    content: Node
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """Members whose keys come from ``keys`` and share one value. A single key is a field, many are a table's entries.

    A ``Quoted`` stands for keys of an open vocabulary.
    """

    keys: Words | Quoted
    value: Node


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """``minimum``…``maximum`` members out of several variants with disjoint keys.

    Groups of one object may share keys; no key appears twice in the object. That cannot be promised where more than
    one key of an open vocabulary may appear; validation refuses a repetition there.
    """

    variants: tuple[Variant, ...]
    minimum: int = 0
    maximum: int = 1

    def closed_keys(self) -> tuple[str, ...]:
        """The keys of all variants with a closed vocabulary."""
        return tuple(key for v in self.variants if isinstance(v.keys, Words) for key in v.keys.words)


@dataclass(frozen=True, slots=True, eq=False)
class Object:
    """A JSON object of members from several groups, in any order, ``maximum`` members altogether at most.

    ``nonempty`` excludes the object without members.
    """

    groups: tuple[Group, ...]
    maximum: int
    nonempty: bool = False


Node: TypeAlias = Lit | Chars | Words | Seq | Alt | Repeat | Quoted | Token | Excluding | Number | Array | Object


@dataclass(slots=True, eq=False)
class Grammar:
    """What is compiled for one request: the object's language, and the reasoning section before it.

    ``static`` grammars are the same at every step; their compiled form can be kept under ``key``.
    """

    root: Node
    reasoning_tokens: int = 0
    static: bool = False
    label: str = ""
    unbounded_text: bool = False
    """Dialects in which a bounded string is slow may leave its length open; only level `json` allows it."""
    _written: dict[Dialect, str] = field(default_factory=dict)

    def write(self, dialect: Dialect | str) -> str:
        """The grammar's text in a dialect. Raises UnsupportedConstraint where the dialect cannot express it."""
        dialect = Dialect(dialect)
        if dialect not in self._written:
            self._written[dialect] = _writer(dialect)(self)
        return self._written[dialect]

    @property
    def key(self) -> str:
        """SHA-256 (16 hex digits) of the Lark text: the grammar hash of journals."""
        return hashlib.sha256(self.write(Dialect.LARK).encode()).hexdigest()[:16]


def _writer(dialect: Dialect) -> Callable[[Grammar], str]:
    if dialect is Dialect.LARK:
        from skillstate_local.grammar.lark import write_lark

        return write_lark
    if dialect is Dialect.GBNF:
        from skillstate_local.grammar.gbnf import write_gbnf

        return write_gbnf
    if dialect is Dialect.REGEX:
        from skillstate_local.grammar.regular import write_regex

        return write_regex
    from skillstate_local.grammar.ebnf import write_ebnf

    return write_ebnf


def contended(node: Object) -> tuple[str, ...]:
    """Keys that more than one member of the object could bear: only these need to be remembered while decoding."""
    counts: dict[str, int] = {}
    for group in node.groups:
        for key in group.closed_keys():
            counts[key] = counts.get(key, 0) + group.maximum
    return tuple(sorted(key for key, count in counts.items() if count > 1))


def words_node(found: Iterable[str]) -> Words | None:
    """A ``Words`` node, or None when there is nothing to choose from."""
    distinct = sorted(set(found))
    return Words(tuple(distinct)) if distinct else None


def alternatives(options: list[Node]) -> Node:
    """An ``Alt`` of one or more options, without a useless layer."""
    return options[0] if len(options) == 1 else Alt(tuple(options))
