"""A YAML file as a tree that knows its lines. Plain data only: no tags, anchors, aliases or merge keys; keys are text.

Built from the parser's events, so that every limit holds before a value exists. Plain scalars follow YAML 1.2 (``yes``
and ``on`` are strings); decimals keep their digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from skillstate_local.domains.findings import Findings, Stop, shown
from skillstate_local.domains.limits import MAX_FILE_BYTES, MAX_NESTING, MAX_NODES
from skillstate_local.errors import DomainError
from skillstate_local.state.canonical import Json
from skillstate_local.state.diff import escape_token

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,17})\.[0-9]{1,18}")
_NUMBER_LIKE = re.compile(
    r"[-+]?(?:[0-9][0-9_]*|0x[0-9a-fA-F]+|0o[0-7]+|(?:[0-9]+\.?|[0-9]*\.[0-9]+)(?:[eE][-+]?[0-9]+)?|\.inf|\.nan)", re.I
)
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "true": True, "false": False}

Value: TypeAlias = "str | int | Decimal | bool | tuple[Node, ...] | Mapping[str, Node] | None"


@dataclass(frozen=True, slots=True)
class Node:
    """One value, the line it (or its key) stands on, and its JSON pointer."""

    value: Value
    line: int
    pointer: str

    @property
    def kind(self) -> str:
        """What the value is, in an author's words."""
        if isinstance(self.value, Mapping):
            return "a mapping"
        if isinstance(self.value, tuple):
            return "a list"
        if isinstance(self.value, str):
            return f"the text {shown(self.value)}"
        return "nothing" if self.value is None else f"{str(self.value).lower()} (without quotes)"


def plain(node: Node) -> Json:
    """The value without lines, as JSON."""
    if isinstance(node.value, Mapping):
        return {key: plain(member) for key, member in node.value.items()}
    if isinstance(node.value, tuple):
        return [plain(item) for item in node.value]
    return node.value


def size_of(node: Node) -> int:
    """How many values a node holds, itself included."""
    if isinstance(node.value, Mapping):
        return 1 + sum(map(size_of, node.value.values()))
    return 1 + sum(map(size_of, node.value)) if isinstance(node.value, tuple) else 1


def line_at(root: Node, pointer: str) -> int:
    """The line of the node at ``pointer``, or of the nearest one above it."""
    node = root
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        below = None
        if isinstance(node.value, Mapping):
            below = node.value.get(key)
        elif isinstance(node.value, tuple) and key.isdigit() and int(key) < len(node.value):
            below = node.value[int(key)]
        if below is None:
            break
        node = below
    return node.line


def read_text(file: Path) -> str:
    """The text of a domain file. Raises DomainError when it cannot be read or is too large."""
    try:
        if not file.is_file():
            raise DomainError(f"{file}: there is no such file.", "`domain new NAME` writes one to start from.")
        with file.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise DomainError(f"{file}: the file is larger than {MAX_FILE_BYTES // 1024} KiB.", "Shorten it.")
        return data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise DomainError(f"{file}: cannot be read: {error}", "Check that it is a readable UTF-8 file.") from None


def read_tree(text: str, findings: Findings) -> Node | None:
    """The tree of one YAML document, or None when it has none. Mistakes go to ``findings``; raises Stop at a limit."""
    try:
        return _Builder(yaml.parse(text, Loader=_LOADER), findings).document()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or "it is not text"
        line = mark.line + 1 if mark else 0
        findings.error("", f"not valid YAML: {what}", "Check the indentation and the quotes there.", line)
        raise Stop from None


class _Builder:
    """Reads events into nodes; refuses what is not plain data."""

    def __init__(self, events: Iterator[Any], findings: Findings) -> None:
        self._events = events
        self._findings = findings
        self._nodes = 0

    def document(self) -> Node | None:
        root: Node | None = None
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    self._findings.error("", "a second document begins here", "Keep one document a file.", _line(event))
                    raise Stop
                root = self._node(next(self._events), "", 0, None)
        return root

    def _node(self, event: Any, pointer: str, depth: int, line: int | None) -> Node:
        line = line or _line(event)
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise self._findings.limit(pointer, "the file has too many values", MAX_NODES, line=line)
        if depth > MAX_NESTING:
            raise self._findings.limit(pointer, "the file is nested too deeply", MAX_NESTING, line=line)
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            name = f"*{event.anchor}" if isinstance(event, yaml.AliasEvent) else f"&{event.anchor}"
            self._findings.error(
                pointer, f"anchors and aliases are not read ({name[:40]})", "Use $defs and $ref to share a field.", line
            )
        elif event.tag is not None:
            self._findings.error(pointer, f"tags are not read ({str(event.tag)[:60]})", "Write plain values.", line)
        if isinstance(event, yaml.MappingStartEvent):
            return Node(self._members(pointer, depth), line, pointer)
        if isinstance(event, yaml.SequenceStartEvent):
            return Node(self._items(pointer, depth), line, pointer)
        return Node(None if isinstance(event, yaml.AliasEvent) else self._scalar(event, pointer, line), line, pointer)

    def _members(self, pointer: str, depth: int) -> dict[str, Node]:
        members: dict[str, Node] = {}
        lines: dict[str, int] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            line = _line(event)
            key = self._node(event, pointer, depth + 1, line).value
            if not isinstance(key, str):
                what = "a list or mapping" if isinstance(key, (tuple, Mapping)) else str(key).lower()
                self._findings.error(pointer, f"a key must be text, this one is {what}", "Put it in quotes.", line)
                key = f"\0{line}"
            elif key in members:
                said = f"the key {shown(key)} stands here twice; first on line {lines[key]}"
                self._findings.error(f"{pointer}/{escape_token(key)}", said, "Remove one of them.", line)
            node = self._node(next(self._events), f"{pointer}/{escape_token(key)}", depth + 1, line)
            if not key.startswith("\0"):
                members.setdefault(key, node)
                lines.setdefault(key, line)
        return members

    def _items(self, pointer: str, depth: int) -> tuple[Node, ...]:
        items: list[Node] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, f"{pointer}/{len(items)}", depth + 1, None))
        return tuple(items)

    def _scalar(self, event: Any, pointer: str, line: int) -> Value:
        text = str(event.value)
        if event.style:
            return self._text(text, pointer, line)
        if text.lower() in _WORDS:
            return _WORDS[text.lower()]
        if _INTEGER.fullmatch(text):
            return int(text)
        if _DECIMAL.fullmatch(text):
            return Decimal(text)
        if _NUMBER_LIKE.fullmatch(text):
            hint = "Write plain digits such as 12 or 0.50, or put it in quotes if it is text."
            self._findings.error(pointer, f"{text[:40]} is not a number that JSON can write", hint, line)
        return self._text(text, pointer, line)

    def _text(self, text: str, pointer: str, line: int) -> str:
        try:
            text.encode()
        except UnicodeEncodeError:
            self._findings.error(pointer, "the text holds half a surrogate pair", "Write the character itself.", line)
            return "?"
        return text


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
