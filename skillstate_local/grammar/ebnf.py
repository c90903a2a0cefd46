"""EBNF for xgrammar. Vocabularies become character tries, objects become one rule for each set of used members.

The dialect has no parameters, so an object's any-order language is written out state by state: up to eight members,
or ``MAX_STATES`` states. Three exceptions to exactness, each caught by validation: a table whose patch may name two
or more entries can repeat a key; an open vocabulary keeps the words that are taken already; and level `json` leaves
strings unbounded, because a bounded string takes xgrammar seconds to compile.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from skillstate_local.errors import UnsupportedConstraint
from skillstate_local.grammar.ir import (
    Alt,
    Array,
    Chars,
    Excluding,
    Grammar,
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
)
from skillstate_local.grammar.text import any_character, number_node
from skillstate_local.grammar.trie import Spelling, fold, ranges

MAX_STATES = 256
"""Eight members, each used or not."""


def write_ebnf(grammar: Grammar) -> str:
    """The object's grammar as xgrammar reads it; ``root`` is its first rule. The reasoning section is not in it."""
    writer = _Writer(unbounded_text=grammar.unbounded_text)
    body = writer.expression(grammar.root)
    return "\n".join([f"root ::= {body}", *writer.lines, ""])


def literal(text: str) -> str:
    """A quoted literal."""
    return '"' + "".join(_character(character) for character in text) + '"'


def _character(character: str) -> str:
    code = ord(character)
    if character in '"\\':
        return f"\\{character}"
    if 0x20 <= code < 0x7F:
        return character
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _class_character(code: int) -> str:
    if chr(code).isalnum() and code < 0x7F:
        return chr(code)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def character_class(ranges: Iterable[tuple[int, int]]) -> str:
    """A bracketed class of inclusive code point ranges."""
    return "[" + "".join(f"{_class_character(low)}-{_class_character(high)}" for low, high in ranges) + "]"


SPELLING = Spelling(literal, lambda characters: character_class(ranges(characters)), " ")


class _Writer:
    def __init__(self, *, unbounded_text: bool) -> None:
        self._unbounded_text = unbounded_text
        self.lines: list[str] = []
        self._names: dict[int, str] = {}
        self._kept: list[Node] = []
        self._vocabularies: dict[tuple[str, ...], str] = {}

    def expression(self, node: Node) -> str:
        """The expression that stands for a node; what is shared or large becomes a rule of its own, written once."""
        if id(node) not in self._names:
            self._names[id(node)] = self._write(node)
            self._kept.append(node)
        return self._names[id(node)]

    def _write(self, node: Node) -> str:
        match node:
            case Lit(text):
                return literal(text)
            case Words(words):
                return self._vocabulary(words)
            case Chars(code_points):
                return character_class(code_points)
            case Seq(parts):
                return " ".join(map(self.expression, parts)) or '""'
            case Alt(options):
                return self._rule("a", " | ".join(map(self.expression, options)))
            case Repeat(inner, minimum, maximum):
                return self._repeat(inner, minimum, maximum)
            case Token(content) | Excluding(content, _):
                return self.expression(content)
            case Quoted(content):
                return f'"\\"" {self.expression(content)} "\\""'
            case Number():
                return self.expression(number_node(node))
            case Array():
                return self._array(node)
            case Object():
                return self._object(node)

    def _rule(self, prefix: str, body: str) -> str:
        name = f"{prefix}{len(self.lines)}"
        self.lines.append(f"{name} ::= {body}")
        return name

    def _vocabulary(self, words: tuple[str, ...]) -> str:
        """The same vocabulary in two places is one rule: xgrammar computes the masks of a rule once."""
        if words not in self._vocabularies:
            self._vocabularies[words] = literal(words[0]) if len(words) == 1 else self._rule("w", fold(words, SPELLING))
        return self._vocabularies[words]

    def _repeat(self, node: Node, minimum: int, maximum: int) -> str:
        if maximum == 0:
            return '""'
        bound = f"{minimum}," if self._unbounded_text and node is any_character() else f"{minimum},{maximum}"
        return f"({self.expression(node)}){{{bound}}}"

    def _array(self, node: Array) -> str:
        if node.maximum == 0:
            return '"[]"'
        item = self.expression(node.item)
        some = f'"[" {item} ("," {item}){{{max(0, node.minimum - 1)},{node.maximum - 1}}} "]"'
        return self._rule("l", some if node.minimum else f'"[]" | {some}')

    def _object(self, node: Object) -> str:
        if not node.groups or node.maximum == 0:
            return '"{}"'
        states = 1
        for group in node.groups:
            states *= group.maximum + 1
        if states > MAX_STATES:
            raise UnsupportedConstraint(
                f"an object of {len(node.groups)} members in any order needs {states} rules in EBNF, "
                f"at most {MAX_STATES} (8 optional members) are written",
                "Use the llguidance backend, whose Lark dialect has no such bound.",
            )
        return self._states(node)

    def _states(self, node: Object) -> str:
        members = [self._rule("m", " | ".join(map(self._member, group.variants))) for group in node.groups]
        base = len(self.lines)

        def name(used: tuple[int, ...]) -> str:
            return f"o{base}_{'_'.join(map(str, used))}"

        for used in itertools.product(*(range(group.maximum + 1) for group in node.groups)):
            options = [
                f'"," {members[i]} {name(after)}' for i, after in _successors(node, used) if sum(used) < node.maximum
            ]
            if all(count >= group.minimum for count, group in zip(used, node.groups, strict=True)):
                options.insert(0, '""')
            if any(used) and sum(used) <= node.maximum:
                self.lines.append(f"{name(used)} ::= {' | '.join(options) or '[]'}")
        start = tuple(0 for _ in node.groups)
        empty = ['"{}"'] if not (node.nonempty or any(group.minimum for group in node.groups)) else []
        first = [f'"{{" {members[i]} {name(after)} "}}"' for i, after in _successors(node, start)]
        return self._rule("o", " | ".join(empty + first))

    def _member(self, variant: Variant) -> str:
        keys = variant.keys if isinstance(variant.keys, Quoted) else Quoted(variant.keys)
        return f'{self._write(keys)} ":" {self.expression(variant.value)}'


def _successors(node: Object, used: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
    return [
        (i, (*used[:i], used[i] + 1, *used[i + 1 :])) for i, group in enumerate(node.groups) if used[i] < group.maximum
    ]
