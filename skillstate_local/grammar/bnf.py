"""What the BNF dialects share: EBNF for xgrammar and GBNF for llama.cpp are one family.

Neither has parameters, so an object's any-order language is written out state by state: up to eight members, or
``MAX_STATES`` states. Vocabularies become character tries, and what is shared or large becomes a rule of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

from skillstate_local.errors import GrammarError, UnsupportedConstraint
from skillstate_local.grammar.ir import (
    Alt,
    Array,
    Chars,
    Excluding,
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


class BnfWriter:
    """Writes the rules of one grammar into ``lines``; a dialect overrides what it spells otherwise."""

    dialect = "EBNF"
    spelling = SPELLING
    separator = "_"
    """Stands between the numbers of a state's rule name."""

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
                return self._rule("a", " | ".join(self._options(options)))
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

    def _options(self, options: tuple[Node, ...]) -> list[str]:
        return list(map(self.expression, options))

    def _vocabulary(self, words: tuple[str, ...]) -> str:
        """The same vocabulary in two places is one rule: xgrammar computes the masks of a rule once."""
        if words not in self._vocabularies:
            single = literal(words[0]) if len(words) == 1 else ""
            self._vocabularies[words] = single or self._rule("w", fold(words, self.spelling))
        return self._vocabularies[words]

    def _repeat(self, node: Node, minimum: int, maximum: int) -> str:
        if maximum == 0:
            return '""'
        unbounded = self._unbounded_text and node is any_character()
        return self._times(self.expression(node), minimum, None if unbounded else maximum)

    def _times(self, expression: str, minimum: int, maximum: int | None) -> str:
        """A repetition; ``maximum`` None is without a bound."""
        return f"({expression}){{{minimum},{'' if maximum is None else maximum}}}"

    def _array(self, node: Array) -> str:
        if node.maximum == 0:
            return '"[]"'
        item = self.expression(node.item)
        more = ""
        if node.maximum > 1:  # xgrammar misreads {0,0}
            more = " " + self._times(f'"," {item}', max(0, node.minimum - 1), node.maximum - 1)
        some = f'"[" {item}{more} "]"'
        return self._rule("l", some if node.minimum else f'"[]" | {some}')

    def _object(self, node: Object) -> str:
        if not node.groups or node.maximum == 0:
            return '"{}"'
        if states(node) > MAX_STATES:
            raise UnsupportedConstraint(
                f"an object of {len(node.groups)} members in any order needs {states(node)} rules in {self.dialect}, "
                f"at most {MAX_STATES} (8 optional members) are written",
                "Use the llguidance backend, whose Lark dialect has no such bound.",
            )
        return self._states(node)

    def _states(self, node: Object) -> str:
        members = [self._rule("m", " | ".join(map(self._member, group.variants))) for group in node.groups]
        base = len(self.lines)
        ready = live_states(node)

        def name(used: tuple[int, ...]) -> str:
            return f"o{base}{self.separator}{self.separator.join(map(str, used))}"

        for used in _all_states(node):
            options = [f'"," {members[i]} {name(after)}' for i, after in successors(node, used) if after in ready]
            if may_end(node, used):
                options.insert(0, '""')
            if any(used) and used in ready:
                self.lines.append(f"{name(used)} ::= {' | '.join(options)}")
        start = tuple(0 for _ in node.groups)
        empty = ['"{}"'] if may_end(node, start) and not node.nonempty else []
        first = [f'"{{" {members[i]} {name(after)} "}}"' for i, after in successors(node, start) if after in ready]
        if not (empty or first):
            raise GrammarError("an object needs more members than it may have")
        return self._rule("o", " | ".join(empty + first))

    def _member(self, variant: Variant) -> str:
        keys = variant.keys if isinstance(variant.keys, Quoted) else Quoted(variant.keys)
        return f'{self._write(keys)} ":" {self.expression(variant.value)}'


def states(node: Object) -> int:
    """How many ways there are to have used some of the members."""
    return math.prod(group.maximum + 1 for group in node.groups)


def _all_states(node: Object) -> Iterable[tuple[int, ...]]:
    return itertools.product(*(range(group.maximum + 1) for group in node.groups))


def may_end(node: Object, used: tuple[int, ...]) -> bool:
    """Whether an object that has used so many members of each group may close."""
    return all(count >= group.minimum for count, group in zip(used, node.groups, strict=True))


def successors(node: Object, used: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
    """Each group that may give one more member, with the state after it."""
    if sum(used) >= node.maximum:
        return []
    return [
        (i, (*used[:i], used[i] + 1, *used[i + 1 :])) for i, group in enumerate(node.groups) if used[i] < group.maximum
    ]


def live_states(node: Object) -> frozenset[tuple[int, ...]]:
    """The states from which the object can still close within its maximum."""
    live: set[tuple[int, ...]] = set()
    for used in reversed(list(_all_states(node))):
        if sum(used) <= node.maximum and (
            may_end(node, used) or any(after in live for _, after in successors(node, used))
        ):
            live.add(used)
    return frozenset(live)
