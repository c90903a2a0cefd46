"""How long the longest sentence of a grammar is: the token limit that makes truncation impossible."""

from __future__ import annotations

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
from skillstate_local.grammar.sample import spell


def longest_bytes(node: Node) -> int:
    """Length in UTF-8 bytes of the longest sentence. No tokenizer needs more tokens than bytes."""
    return _Measure().of(node)


class _Measure:
    """Remembers shared nodes, so that a shared graph is measured once."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def of(self, node: Node) -> int:
        if id(node) not in self._known:
            self._known[id(node)] = self._measure(node)
        return self._known[id(node)]

    def _measure(self, node: Node) -> int:
        match node:
            case Lit(text):
                return len(text.encode())
            case Words(words):
                return max(len(word.encode()) for word in words)
            case Seq(parts):
                return sum(map(self.of, parts))
            case Alt(options):
                return max(map(self.of, options))
            case Quoted(content):
                return 2 + self.of(content)
            case Token(content) | Excluding(content, _):
                return self.of(content)
            case Repeat(inner, _, maximum):
                return maximum * self.of(inner)
            case Chars(ranges):
                return len(chr(ranges[-1][1]).encode())
            case Number():
                return max(len(spell(bound, node.scale)) for bound in (node.minimum, node.maximum))
            case Array(item, _, maximum):
                return 2 + maximum * (self.of(item) + 1)
            case Object():
                return 2 + sum(self._group_bytes(node))

    def _group_bytes(self, node: Object) -> list[int]:
        """The heaviest members that fit together, each with its colon and comma."""
        members: list[int] = []
        for group in node.groups:
            members += [max(map(self._variant_bytes, group.variants))] * group.maximum
        return sorted(members, reverse=True)[: node.maximum]

    def _variant_bytes(self, variant: Variant) -> int:
        quotes = 2 if isinstance(variant.keys, Words) else 0
        return quotes + self.of(variant.keys) + 2 + self.of(variant.value)
