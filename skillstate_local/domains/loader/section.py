"""One mapping of a domain file, read keyword by keyword; what is not known there is an error, never ignored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import TypeVar

from skillstate_local.domains.findings import Findings, nearest, shown
from skillstate_local.domains.loader.yaml_tree import Node
from skillstate_local.state.diff import escape_token

Choice = TypeVar("Choice", bound=StrEnum)


class Section:
    """Reads the members of a mapping. Every getter reports what is wrong and then returns its default."""

    def __init__(
        self,
        node: Node,
        findings: Findings,
        what: str,
        known: Iterable[str],
        instead: Mapping[str, str] | None = None,
    ) -> None:
        """Report members that are not ``known``; ``instead`` has hints for words that an author may expect."""
        self.node = node
        self.findings = findings
        self.what = what
        self.members: Mapping[str, Node] = {}
        if isinstance(node.value, Mapping):
            self.members = node.value
        else:
            self.error(f"{what} must be a mapping, this is {node.kind}", "Write `keyword: value` lines.")
        known = tuple(known)
        for name, member in self.members.items():
            if name not in known:
                hint = (instead or {}).get(name) or nearest(name, known)
                findings.error(member.pointer, f"unknown keyword {shown(name)} in {what}", hint, member.line)

    def __contains__(self, name: str) -> bool:
        return name in self.members

    def error(self, message: str, hint: str = "", at: Node | None = None) -> None:
        """Report a mistake at a member, or in the whole mapping."""
        place = at or self.node
        self.findings.error(place.pointer, message, hint, place.line)

    def get(self, name: str) -> Node | None:
        """The member's node, if it is there."""
        return self.members.get(name)

    def need(self, name: str, hint: str = "") -> Node | None:
        """The member's node; reports when it is missing."""
        node = self.members.get(name)
        if node is None and isinstance(self.node.value, Mapping):
            self.error(f"{name} is missing in {self.what}", hint or f"Add `{name}: …`.")
        return node

    def text(self, name: str, default: str = "", at_most: int = 10_000) -> str:
        """A string member."""
        node = self.members.get(name)
        return default if node is None else self.as_text(node, name, at_most)

    def as_text(self, node: Node, name: str, at_most: int = 10_000) -> str:
        """A node that must be a string."""
        if not isinstance(node.value, str):
            self.error(f"{name} must be text, this is {node.kind}", "Put it in quotes.", node)
            return ""
        if len(node.value) > at_most:
            self.error(f"{name} has {len(node.value):,} characters; the limit is {at_most:,}", "Shorten it.", node)
            return ""
        return node.value

    def integer(self, name: str, default: int, low: int, high: int) -> int:
        """An integer member within bounds."""
        node = self.members.get(name)
        if node is None:
            return default
        if not isinstance(node.value, int) or isinstance(node.value, bool):
            self.error(f"{name} must be an integer, this is {node.kind}", at=node)
            return default
        if not low <= node.value <= high:
            self.error(f"{name} is {node.value:,}; it must be from {low:,} to {high:,}", at=node)
            return default
        return node.value

    def decimal(self, name: str) -> Decimal | None:
        """A number member."""
        node = self.members.get(name)
        if node is None or (isinstance(node.value, (int, Decimal)) and not isinstance(node.value, bool)):
            return None if node is None else Decimal(str(node.value))
        self.error(f"{name} must be a number, this is {node.kind}", at=node)
        return None

    def boolean(self, name: str, default: bool = False) -> bool:
        """A true or false member."""
        node = self.members.get(name)
        if node is None or isinstance(node.value, bool):
            return default if node is None else bool(node.value)
        self.error(f"{name} must be true or false, this is {node.kind}", at=node)
        return default

    def choice(self, name: str, default: Choice) -> Choice:
        """A member out of the values of ``default``'s class."""
        node = self.members.get(name)
        if node is None:
            return default
        values = [option.value for option in type(default)]
        if node.value in values:
            return type(default)(str(node.value))
        hint = nearest(node.value, values) if isinstance(node.value, str) else f"Known: {', '.join(values)}."
        self.error(f"{name} cannot be {node.kind}", hint, node)
        return default

    def items(self, name: str, at_most: int) -> tuple[Node, ...]:
        """The nodes of a list member."""
        node = self.members.get(name)
        return () if node is None else self.as_items(node, name, at_most)

    def as_items(self, node: Node, name: str, at_most: int) -> tuple[Node, ...]:
        """The nodes of a node that must be a list."""
        if not isinstance(node.value, tuple):
            self.error(f"{name} must be a list, this is {node.kind}", "Write `- item` lines or [a, b].", node)
            return ()
        if len(node.value) > at_most:
            raise self.findings.limit(node.pointer, f"{name} has {len(node.value):,} items", at_most, line=node.line)
        return node.value

    def texts(self, name: str, at_most: int, chars: int = 200) -> tuple[str, ...]:
        """The strings of a list member, without repetition."""
        node = self.members.get(name)
        return () if node is None else self.texts_of(node, name, at_most, chars)

    def texts_of(self, node: Node, name: str, at_most: int, chars: int = 200) -> tuple[str, ...]:
        """The strings of a node that must be a list of them."""
        found: dict[str, None] = {}
        for item in self.as_items(node, name, at_most):
            word = self.as_text(item, f"an item of {name}", chars)
            if word in found:
                self.error(f"{shown(word)} stands twice in {name}", "Remove one of them.", item)
            found[word] = None
        return tuple(found)

    def mapping(self, name: str, at_most: int) -> Mapping[str, Node]:
        """The members of a mapping member."""
        node = self.members.get(name)
        if node is None:
            return {}
        if not isinstance(node.value, Mapping):
            self.error(f"{name} must be a mapping, this is {node.kind}", "Write `name: …` lines.", node)
            return {}
        if len(node.value) > at_most:
            raise self.findings.limit(node.pointer, f"{name} has {len(node.value):,} members", at_most, line=node.line)
        return node.value


def below(pointer: str, *tokens: str | int) -> str:
    """A pointer some tokens further down."""
    return pointer + "".join(f"/{escape_token(str(token))}" for token in tokens)
