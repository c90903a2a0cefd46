"""``state:`` a subset of JSON Schema with ``x-`` keywords for policies, read into the kinds of ``state.schema``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType

from skillstate_local.domains.findings import Findings, nearest, shown
from skillstate_local.domains.limits import (
    MAX_CHANGES,
    MAX_ENTRIES,
    MAX_FIELDS,
    MAX_LIST_ITEMS,
    MAX_NAME_CHARS,
    MAX_NESTING,
    MAX_NODES,
)
from skillstate_local.domains.loader.scalars import TYPE_WORDS, scalar_type, type_name, vocabulary_id
from skillstate_local.domains.loader.section import Section
from skillstate_local.domains.loader.sources import read_source
from skillstate_local.domains.loader.vocabularies import whole
from skillstate_local.domains.loader.yaml_tree import Node, size_of
from skillstate_local.state.schema import (
    FieldKind,
    ListField,
    ListMode,
    Mutability,
    Permission,
    Record,
    Scalar,
    Table,
    Vocabulary,
)
from skillstate_local.state.source import Source

_COMMON = ("description", "x-deletable")
_SCALAR = (*TYPE_WORDS, "x-mutability", "x-transitions", "x-values", *_COMMON)
_LIST = ("type", "items", "maxItems", "x-list", "x-max-changes", "x-values", *_COMMON)
_RECORD = ("type", "properties", "required", "additionalProperties", *_COMMON)
_COUNTS = {"x-max-inserts": "x-insert", "x-max-updates": "x-update", "x-max-deletes": "x-delete"}
_TABLE = ("type", "additionalProperties", "patternProperties", "x-keys", "x-max-entries", *_COUNTS.values(), *_COUNTS)
_INSTEAD = {
    "maxProperties": "Write x-max-entries.",
    "propertyNames": "Write x-keys with the name of a vocabulary, or patternProperties.",
    "const": "Write an enum of one value.",
    "default": "Put first values into initial_state.",
    "oneOf": "Write anyOf with scalar types.",
    "allOf": "Write the fields out, or share them with $defs and $ref.",
    "not": "Nothing can be excluded; list what is allowed.",
    "format": "Write a pattern.",
    "multipleOf": "Write type number with x-scale.",
    "exclusiveMinimum": "Write minimum, which is inclusive.",
    "exclusiveMaximum": "Write maximum, which is inclusive.",
    "minItems": "Lists have no lower bound; write maxItems only.",
    "uniqueItems": "Lists may repeat items; a table has unique keys.",
    "nullable": "A state holds no null: leave the field out of `required` and set x-deletable.",
    "title": "Write description.",
    "definitions": "Write $defs.",
}


class SchemaReader:
    """Reads the state's schema. ``vocabularies`` gains one for each ``patternProperties`` that has none yet."""

    def __init__(self, findings: Findings, vocabularies: dict[str, Vocabulary]) -> None:
        self._findings = findings
        self._vocabularies = vocabularies
        self._definitions: Mapping[str, Node] = {}
        self._used: set[str] = set()
        self._open: list[str] = []
        self._fields = 0
        self._copied = 0
        self._depth = 0

    def state(self, node: Node) -> Record | None:
        """The root record."""
        if not isinstance(node.value, Mapping):
            Section(node, self._findings, "state", ())
            return None
        definitions = node.value.get("$defs")
        if definitions is not None:
            self._definitions = Section(node, self._findings, "state", node.value).mapping("$defs", MAX_FIELDS)
        body = Node({name: below for name, below in node.value.items() if name != "$defs"}, node.line, node.pointer)
        root = self.field("", body, required=True)
        for name in self._definitions.keys() - self._used:
            self._findings.warn(self._definitions[name].pointer, f"$defs/{name} is never used")
        if root is not None and not isinstance(root, Record):
            self._findings.error(node.pointer, "the state must be an object with properties", "", node.line)
            return None
        return root

    def scalar(self, node: Node, what: str, known: tuple[str, ...]) -> Section:
        """The section of a scalar schema outside the state, such as an action's argument; ``$ref`` is followed."""
        with self._expanded(node) as schema:
            return Section(schema or Node({}, node.line, node.pointer), self._findings, what, known, _INSTEAD)

    def field(self, name: str, node: Node, *, required: bool) -> FieldKind | None:
        """One field; None when it could not be read (which is reported)."""
        self._fields += 1
        if self._fields > MAX_FIELDS:
            raise self._findings.limit(node.pointer, "the state has too many fields", MAX_FIELDS, line=node.line)
        if self._depth > MAX_NESTING:
            raise self._findings.limit(node.pointer, "the state is nested too deeply", MAX_NESTING, line=node.line)
        self._depth += 1
        try:
            with self._expanded(node) as schema:
                return None if schema is None else self._kind(name, schema, optional=not required)
        finally:
            self._depth -= 1

    def _kind(self, name: str, node: Node, *, optional: bool) -> FieldKind | None:
        members: Mapping[str, Node] = node.value if isinstance(node.value, Mapping) else {}
        what = f"field {name}" if name else "state"
        kind = members["type"].value if "type" in members else None
        extra = members.get("additionalProperties")
        if kind == "array":
            return self._list(Section(node, self._findings, what, _LIST, _INSTEAD), optional)
        if kind == "object":
            table = "patternProperties" in members or "x-keys" in members
            if "properties" not in members and (table or (extra is not None and extra.value is not False)):
                return self._table(name, Section(node, self._findings, what, (*_TABLE, *_COMMON), _INSTEAD), optional)
            return self._record(Section(node, self._findings, what, _RECORD, _INSTEAD), optional)
        section = Section(node, self._findings, what, _SCALAR, _INSTEAD)
        return self._scalar(section, optional)

    def _scalar(self, section: Section, optional: bool) -> FieldKind | None:
        if "anyOf" not in section and not type_name(section):
            return None
        kind = scalar_type(section, self._vocabularies)
        transitions = {
            state: section.texts_of(node, f"x-transitions of {state}", 1000)
            for state, node in section.mapping("x-transitions", 1000).items()
        }
        mutability = section.choice("x-mutability", Mutability.MUTABLE)
        source, deletable = self._source(section), self._deletable(section, optional)
        if kind is None:
            return None
        scalar = Scalar(kind, mutability, MappingProxyType(transitions), source, optional, deletable)
        return replace(scalar, description=section.text("description"))

    def _list(self, section: Section, optional: bool) -> FieldKind | None:
        items = section.need("items", "Say what the list holds: `items: {type: string, maxLength: 80}`.")
        section.need("maxItems", "Every list needs a bound: `maxItems: 20`.")
        kind = None
        if items is not None:
            inner = self.scalar(items, "items", TYPE_WORDS)
            if inner.members and ("anyOf" in inner or type_name(inner)):
                kind = scalar_type(inner, self._vocabularies)
        most = section.integer("maxItems", 1, 1, MAX_LIST_ITEMS)
        mode = section.choice("x-list", ListMode.REPLACE)
        changes = section.integer("x-max-changes", min(8, most), 1, MAX_CHANGES)
        if mode is ListMode.REPLACE and "x-max-changes" in section:
            section.error("x-max-changes says nothing about a replaceable list", at=section.get("x-max-changes"))
        source, deletable = self._source(section), self._deletable(section, optional)
        if kind is None:
            return None
        return ListField(kind, most, mode, changes, source, optional, deletable, section.text("description"))

    def _record(self, section: Section, optional: bool) -> FieldKind | None:
        section.need("properties", "Name the fields; for a map with free keys write additionalProperties and x-keys.")
        section.need("required", "List the fields that are always there; [] if there are none.")
        extra = section.get("additionalProperties")
        if extra is not None and extra.value is not False:
            hint = "Move the map into a field of its own."
            section.error("properties and additionalProperties stand together", hint, extra)
        names = section.mapping("properties", MAX_FIELDS)
        required = section.texts("required", MAX_FIELDS, MAX_NAME_CHARS)
        for index, name in enumerate(required):
            if name not in names:
                item = section.items("required", MAX_FIELDS)[index]
                section.error(f"required names {shown(name)}, which is no property", nearest(name, names), item)
        if "properties" in section and not names:
            section.error("properties is empty", "Name at least one field.", section.get("properties"))
        members: dict[str, FieldKind] = {}
        for name, node in names.items():
            if not name or len(name) > MAX_NAME_CHARS:
                section.error(f"a field's name has 1 to {MAX_NAME_CHARS} characters", at=node)
            kind = self.field(name, node, required=name in required)
            if kind is not None:
                members[name] = kind
        deletable = self._deletable(section, optional)
        return Record(members, optional, deletable, section.text("description")) if members else None

    def _table(self, name: str, section: Section, optional: bool) -> FieldKind | None:
        keys, value_node = self._keys(name, section)
        section.need("x-max-entries", "Every table needs a bound: `x-max-entries: 100`.")
        value = None if value_node is None else self.field(f"{name}.value", value_node, required=True)
        may = {word: section.choice(word, Permission.ALLOWED) for word in _COUNTS.values()}
        counts = {word: section.integer(word, 1, 1, MAX_CHANGES) for word in _COUNTS}
        for count, word in _COUNTS.items():
            if may[word] is Permission.NEVER and count in section:
                section.error(f"{count} says nothing beside {word}: never", "Remove it.", section.get(count))
        entries = section.integer("x-max-entries", 1, 1, MAX_ENTRIES)
        deletable = self._deletable(section, optional)
        if value is None or not keys:
            return None
        return Table(
            keys,
            value,
            entries,
            *(may["x-insert"], may["x-update"], may["x-delete"]),
            *(counts["x-max-inserts"], counts["x-max-updates"], counts["x-max-deletes"]),
            optional=optional,
            deletable=deletable,
            description=section.text("description"),
        )

    def _keys(self, name: str, section: Section) -> tuple[str, Node | None]:
        """The vocabulary of a table's keys and the schema of its values."""
        if "patternProperties" not in section:
            section.need("x-keys", f"Name the vocabulary of the keys. {nearest('', self._vocabularies)}")
            found = vocabulary_id(section, "x-keys", self._vocabularies) if "x-keys" in section else None
            value = section.need("additionalProperties", "Say what each entry holds.")
            return ("" if found is None else found.vocabulary), value
        for word in ("x-keys", "additionalProperties"):
            node = section.get(word)
            if node is not None and node.value is not False:
                section.error(f"{word} stands beside patternProperties", "Remove one of them.", node)
        patterns = section.mapping("patternProperties", 8)
        if len(patterns) != 1:
            hint = "Write one pattern that covers all keys."
            section.error("patternProperties needs exactly one pattern", hint, section.get("patternProperties"))
            return "", None
        (pattern, value), *_ = patterns.items()
        return self._vocabulary_of(name, whole(pattern)), value

    def _vocabulary_of(self, name: str, pattern: str) -> str:
        """The vocabulary with this pattern; one named after the table when there is none."""
        for known in self._vocabularies.values():
            if known.pattern == pattern:
                return known.name
        new = f"{name}.key"
        while new in self._vocabularies:
            new += "_"
        self._vocabularies[new] = Vocabulary(new, pattern=pattern)
        return new

    def _source(self, section: Section) -> Source | None:
        node = section.get("x-values")
        return None if node is None else read_source(node, self._findings)

    def _deletable(self, section: Section, optional: bool) -> bool:
        deletable = section.boolean("x-deletable")
        if deletable and not optional:
            hint = "Leave the field out of `required`, or remove x-deletable."
            section.error("a required field cannot be deletable", hint, section.get("x-deletable"))
        return deletable

    @contextmanager
    def _expanded(self, node: Node) -> Iterator[Node | None]:
        """The schema with every ``$ref`` at its top followed; keywords beside ``$ref`` override. None: reported."""
        before = len(self._open)
        try:
            schema: Node | None = node
            while schema is not None and isinstance(schema.value, Mapping) and "$ref" in schema.value:
                schema = self._followed(schema, schema.value)
            yield schema
        finally:
            del self._open[before:]

    def _followed(self, node: Node, members: Mapping[str, Node]) -> Node | None:
        place = members["$ref"]
        reference = place.value if isinstance(place.value, str) else ""
        name = reference.removeprefix("#/$defs/")
        if not reference.startswith("#/$defs/") or name not in self._definitions:
            known = [f"#/$defs/{known}" for known in self._definitions]
            said = f"$ref {shown(place.value)} names nothing"
            self._findings.error(place.pointer, said, nearest(reference, known), place.line)
            return None
        self._used.add(name)
        if name in self._open:
            cycle = " → ".join([*self._open[self._open.index(name) :], name])
            hint = "A state has bounded depth; write the levels out."
            self._findings.error(place.pointer, f"$ref goes round in a circle: {cycle}", hint, place.line)
            return None
        self._open.append(name)
        target = self._definitions[name]
        if not isinstance(target.value, Mapping):
            return target
        self._copied += size_of(target)
        if self._copied > MAX_NODES:
            said = "references copy too many values"
            raise self._findings.limit(place.pointer, said, MAX_NODES, "Use a vocabulary for a long list.", place.line)
        beside = {word: below for word, below in members.items() if word != "$ref"}
        return Node({**target.value, **beside}, node.line, target.pointer)
