"""Lark for llguidance. JSON tokens become terminals, objects become parametric rules.

Terminals are kept prefix-free (punctuation one by one, strings whole, from quote to quote), because llguidance's lexer
takes the longest match: a literal ``{`` beside a literal ``{"a"`` would hide the shorter one. An object's members are
written by one rule whose 64-bit parameter remembers what has been used, so any key order is allowed and none repeats.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from skillstate_local.domains.turn import REASONING_CLOSE, REASONING_OPEN
from skillstate_local.errors import UnsupportedConstraint
from skillstate_local.grammar.ir import (
    Alt,
    Array,
    Excluding,
    Grammar,
    Group,
    Lit,
    Node,
    Number,
    Object,
    Quoted,
    Repeat,
    Seq,
    Token,
    Variant,
    Words,
    contended,
)
from skillstate_local.grammar.regex import escape_regex, regex_of, vocabulary_regex

PARAMETER_BITS = 63
MAX_INDEXED_KEYS = 1024
VOCABULARY_WORDS = 8
"""From this length on, a vocabulary is written once and referred to by name."""

_LEXEME = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^"{}\[\]:,]+', re.DOTALL)


def write_lark(grammar: Grammar) -> str:
    """The grammar as llguidance reads it; ``start`` is its first rule."""
    writer = _Writer()
    body = writer.rule_of(grammar.root)
    lines = ["%llguidance {}"]
    if grammar.reasoning_tokens:
        lines.append(f'start: "{REASONING_OPEN}" reasoning "{REASONING_CLOSE}" {body}')
        lines.append(f"reasoning[max_tokens={grammar.reasoning_tokens}]: /[^<]*/")
    else:
        lines.append(f"start: {body}")
    return "\n".join([*lines, *writer.lines, ""])


@dataclass(frozen=True, slots=True)
class _Use:
    """One way to use a member: its key and value, when it may be used, and what it marks as used."""

    key: str
    value: str
    guard: str
    mark: int


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[int, str] = {}
        self._kept: list[Node] = []
        self._terminals: dict[str, str] = {}
        self._vocabularies: dict[tuple[str, ...], str] = {}
        self._quoted: dict[int, Quoted] = {}

    def rule_of(self, node: Node) -> str:
        """The name of the rule (or the expression) that stands for a node; shared nodes are written once."""
        if id(node) not in self._names:
            self._names[id(node)] = self._write(node)
            self._kept.append(node)
        return self._names[id(node)]

    def _write(self, node: Node) -> str:
        match node:
            case Lit(text):
                return " ".join(self._lexeme(part) for part in _LEXEME.findall(text)) or '""'
            case Quoted() | Number() | Token():
                return self._terminal(self._pattern(node))
            case Seq(parts):
                return " ".join(self.rule_of(part) for part in parts) or '""'
            case Alt(options):
                return self._rule("a", " | ".join(self.rule_of(option) for option in options))
            case Array():
                return self._array(node)
            case Object():
                return self._object(node)
        raise UnsupportedConstraint(f"{type(node).__name__} outside a string")

    def _rule(self, prefix: str, body: str) -> str:
        name = f"{prefix}{len(self.lines)}"
        self.lines.append(f"{name}: {body}")
        return name

    def _terminal(self, pattern: str) -> str:
        if pattern not in self._terminals:
            self._terminals[pattern] = f"T{len(self._terminals)}"
            self.lines.append(f"{self._terminals[pattern]}: {pattern}")
        return self._terminals[pattern]

    def _pattern(self, node: Node) -> str:
        """A regular node as a terminal's expression; a long vocabulary becomes a terminal that others refer to."""
        if not _has_vocabulary(node):
            return _slashed(regex_of(node))
        match node:
            case Words(words):
                if words not in self._vocabularies:
                    self._vocabularies[words] = self._terminal(f"/{vocabulary_regex(words)}/")
                return self._vocabularies[words]
            case Seq(parts):
                return " ".join(self._pattern(part) for part in _merged(parts))
            case Alt(options):
                return f"({' | '.join(map(self._pattern, options))})"
            case Repeat(inner, minimum, maximum):
                return f"({self._pattern(inner)}){{{minimum},{maximum}}}"
            case Quoted(content):
                return self._pattern(Seq((Lit('"'), *_parts(content), Lit('"'))))
            case Token(content):
                return self._pattern(content)
            case Excluding(content, excluded):
                return self._terminal(f"{self._pattern(content)} & ~{_slashed(vocabulary_regex(excluded))}")
        raise UnsupportedConstraint(f"{type(node).__name__} is not regular")

    def _lexeme(self, text: str) -> str:
        if text.isprintable() and text.isascii():
            return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return self._terminal(f"/{escape_regex(text)}/")

    def _array(self, node: Array) -> str:
        item = self.rule_of(node.item)
        if node.maximum == 0:
            return '"[" "]"'
        more = f' ("," {item}){{{max(0, node.minimum - 1)},{node.maximum - 1}}}' if node.maximum > 1 else ""
        some = f'"[" {item}{more} "]"'
        return self._rule("l", some if node.minimum else f'"[" "]" | {some}')

    def _object(self, node: Object) -> str:
        if not node.groups or node.maximum == 0:
            return '"{" "}"'
        uses, ready = self._uses(node)
        rest = f"r{len(self.lines)}"
        continuing = [f'"," {use.key} ":" {use.value} {rest}::bit_or({use.mark:#x}) %if {use.guard}' for use in uses]
        ending = f'"" %if {ready}' if ready else '""'
        self.lines.append(f"{rest}::_: " + "\n  | ".join([ending, *continuing]))
        first = [f'"{{" {use.key} ":" {use.value} {rest}::{use.mark:#x} "}}"' for use in uses if _at_first(use.guard)]
        return self._rule("o", " | ".join((['"{" "}"'] if not (ready or node.nonempty) else []) + first))

    def _uses(self, node: Object) -> tuple[list[_Use], str]:
        """Every use of every member, and the condition under which the object may end."""
        layout = _Layout(node)
        uses = [
            _Use(self._key(keys), self.rule_of(value), guard, mark)
            for index, group in enumerate(node.groups)
            for keys, value, guard, mark in layout.uses(index, group)
        ]
        return uses, layout.ready(node)

    def _key(self, keys: str | Words | Quoted) -> str:
        if isinstance(keys, str):
            return self._lexeme(f'"{keys}"')
        if isinstance(keys, Words):
            keys = self._quoted.setdefault(id(keys), Quoted(keys))
            self._kept.append(keys)
        return self.rule_of(keys)


class _Layout:
    """The 64-bit parameter of one object's rule: what has been used so far.

    First the members used of each group, counted in unary. Then, for keys that could appear twice: a bit for each
    where there is room; else, when two members at most can collide, the number of the key that came first.
    """

    def __init__(self, node: Object) -> None:
        self._starts: list[int] = []
        self.flags = 0
        for group in node.groups:
            self._starts.append(self.flags)
            self.flags += group.maximum
        if self.flags > PARAMETER_BITS:
            raise UnsupportedConstraint(
                f"an object with room for more than {PARAMETER_BITS} members cannot be written in Lark",
                "Lower the bounds of its tables or fields.",
            )
        self._room = f"bit_count_lt([0:{self.flags}], {node.maximum})" if node.maximum < self.flags else ""
        keys = contended(node)
        self._numbers = {key: number for number, key in enumerate(keys)}
        self._by_bit = len(keys) <= PARAMETER_BITS - self.flags
        self._width = len(keys).bit_length()
        colliding = sum(
            group.maximum for group in node.groups if not self._numbers.keys().isdisjoint(group.closed_keys())
        )
        fits = len(keys) <= MAX_INDEXED_KEYS and self._width <= PARAMETER_BITS - self.flags
        self._by_number = not self._by_bit and fits and min(colliding, node.maximum) == 2

    def ready(self, node: Object) -> str:
        """When the object may end."""
        needed = [
            f"bit_count_ge([{start}:{start + group.maximum}], {group.minimum})"
            for start, group in zip(self._starts, node.groups, strict=True)
            if group.minimum
        ]
        return _all(*needed)

    def uses(self, index: int, group: Group) -> Iterator[tuple[str | Words | Quoted, Node, str, int]]:
        """(keys, value, guard, mark) of every way to use a group once more."""
        start = self._starts[index]
        for bit in range(start, start + group.maximum):
            earlier = f"bit_set({bit - 1})" if bit > start else ""
            guard = _all(f"bit_clear({bit})", earlier, self._room)
            for variant in group.variants:
                for keys, extra, mark in self._keys(variant):
                    yield keys, variant.value, _all(guard, extra), 1 << bit | mark

    def _keys(self, variant: Variant) -> Iterator[tuple[str | Words | Quoted, str, int]]:
        if isinstance(variant.keys, Quoted) or not (self._by_bit or self._by_number):
            yield variant.keys, "", 0
            return
        alone = tuple(key for key in variant.keys.words if key not in self._numbers)
        if alone:
            yield variant.keys if len(alone) == len(variant.keys.words) else Words(alone), "", 0
        for key in variant.keys.words:
            if key in self._numbers:
                for extra, mark in self._once(self._numbers[key]):
                    yield key, extra, mark

    def _once(self, number: int) -> Iterator[tuple[str, int]]:
        """(guard, mark) that let a contended key appear if it has not yet."""
        if self._by_bit:
            yield f"bit_clear({self.flags + number})", 1 << (self.flags + number)
        else:
            first = f"[{self.flags}:{self.flags + self._width}]"
            yield f"eq({first}, 0)", (number + 1) << self.flags
            yield f"and(ne({first}, 0), ne({first}, {number + 1}))", 0


def _slashed(regex: str) -> str:
    """A regular expression as Lark quotes it; two slashes alone would begin a comment."""
    return f"/{regex or '()'}/"


def _has_vocabulary(node: Node) -> bool:
    match node:
        case Words(words):
            return len(words) >= VOCABULARY_WORDS
        case Seq(parts) | Alt(parts):
            return any(map(_has_vocabulary, parts))
        case Repeat(inner, _, _) | Quoted(inner) | Token(inner):
            return _has_vocabulary(inner)
    return isinstance(node, Excluding)


def _parts(node: Node) -> tuple[Node, ...]:
    """A sequence laid flat."""
    return tuple(p for part in node.parts for p in _parts(part)) if isinstance(node, Seq) else (node,)


def _merged(parts: tuple[Node, ...]) -> Iterator[Node]:
    """Neighbours without a vocabulary taken together, and nothing that is empty."""
    for named, group in itertools.groupby(_parts(Seq(parts)), key=_has_vocabulary):
        nodes = tuple(group)
        if named:
            yield from nodes
        elif regex_of(Seq(nodes)):
            yield Seq(nodes)


def _all(*conditions: str) -> str:
    found = [condition for condition in conditions if condition]
    while len(found) > 1:
        found[-2:] = [f"and({found[-2]}, {found[-1]})"]
    return found[0] if found else ""


def _at_first(guard: str) -> bool:
    """Whether a use is possible when nothing has been used yet, that is when the parameter is zero."""
    return "bit_set" not in guard and "ne(" not in guard
