"""The language of patches: every well-typed one (`schema`), or only what Σ_t and O_t allow (`delta`)."""

from __future__ import annotations

from collections.abc import Iterator

from skillstate_local.domains.base import Domain
from skillstate_local.grammar.action import type_content
from skillstate_local.grammar.ir import (
    Alt,
    Array,
    Group,
    Lit,
    Node,
    Number,
    Object,
    Quoted,
    Token,
    Variant,
    Words,
    alternatives,
    words_node,
)
from skillstate_local.grammar.text import excluding
from skillstate_local.state.canonical import Json, dumps, escape
from skillstate_local.state.policy import Entries, can_delete, changeable, item_words, next_values, settable
from skillstate_local.state.schema import (
    Boolean,
    FieldKind,
    Fixed,
    Id,
    Integer,
    ListField,
    ListMode,
    OneOf,
    Record,
    Scalar,
    ScalarType,
    Schema,
    Table,
)
from skillstate_local.state.source import World
from skillstate_local.state.validate import list_operations, typed_words

NULL = Lit("null")


def schema_patch(domain: Domain) -> Node:
    """Any well-typed patch of the domain."""
    return _typed(domain.schema, domain.schema.root)


def delta_patch(domain: Domain, world: World) -> Node:
    """Any patch that the policies allow in this state and under this observation."""
    return _Delta(domain.schema, world).record(domain.schema.root, world.state)


def scalar_node(schema: Schema, kind: ScalarType) -> Node:
    """Any JSON value of a scalar type."""
    match kind:
        case Boolean():
            return Alt((Lit("false"), Lit("true")))
        case Integer(minimum, maximum):
            return Number(minimum, maximum)
        case Fixed(minimum, maximum, scale):
            return Number(minimum, maximum, scale)
        case OneOf(types):
            return Alt(tuple(scalar_node(schema, option) for option in types))
        case _:
            return Quoted(type_content(schema, kind))


def _key(name: str) -> Words:
    return Words((escape(name),))


def _typed(schema: Schema, kind: FieldKind) -> Node:
    match kind:
        case Scalar():
            return scalar_node(schema, kind.type)
        case ListField():
            return _typed_list(schema, kind)
        case Table():
            value = Alt((_typed(schema, kind.value), NULL))
            group = Group((Variant(_table_keys(schema, kind), value),), 0, kind.max_changes)
            return Object((group,) if kind.max_changes else (), kind.max_changes)
        case Record():
            groups = tuple(
                Group((Variant(_key(name), Alt((node, NULL)) if member.optional else node),))
                for name, member in kind.members.items()
                for node in [_typed(schema, member)]
            )
            return Object(groups, len(groups))


def _typed_list(schema: Schema, kind: ListField) -> Node:
    item = scalar_node(schema, kind.item)
    whole = Array(item, 0, kind.max_items)
    names = list_operations(kind)
    if not names:
        return whole
    changes = Array(item, 1, kind.max_changes)
    return Alt((whole, Object(tuple(Group((Variant(_key(name), changes),)) for name in names), len(names))))


def _table_keys(schema: Schema, kind: Table) -> Words | Quoted:
    vocabulary = schema.vocabularies[kind.keys]
    if vocabulary.members:
        return Words(tuple(sorted({escape(word) for word in vocabulary.members})))
    return Quoted(type_content(schema, Id(kind.keys)))


class _Delta:
    """One walk over the schema beside Σ_t."""

    def __init__(self, schema: Schema, world: World) -> None:
        self.schema = schema
        self.world = world

    def record(self, kind: Record, current: Json) -> Node:
        held = current if isinstance(current, dict) else {}
        groups = [
            Group((Variant(_key(name), node),))
            for name, member in kind.members.items()
            if (node := self._member(member, held.get(name))) is not None
        ]
        return Object(tuple(groups), len(groups))

    def _member(self, kind: FieldKind, current: Json) -> Node | None:
        node = self._change(kind, current)
        if can_delete(kind, current):
            return NULL if node is None else Alt((node, NULL))
        return node

    def _change(self, kind: FieldKind, current: Json) -> Node | None:
        match kind:
            case Scalar():
                return self._set(kind, current)
            case ListField():
                return self._list(kind, current)
            case Table():
                return self._table(kind, current)
            case Record():
                return self._whole(kind) if current is None else self.record(kind, current)

    def _set(self, kind: Scalar, current: Json) -> Node | None:
        if not settable(kind, current):
            return None
        return self._among(kind.type, next_values(kind, current, self.world))

    def _among(self, kind: ScalarType, allowed: frozenset[str] | None) -> Node | None:
        if allowed is None:
            return scalar_node(self.schema, kind)
        node = words_node(map(escape, typed_words(self.schema, kind, allowed)))
        return None if node is None else Quoted(node)

    def _list(self, kind: ListField, current: Json) -> Node | None:
        item = self._among(kind.item, item_words(kind, self.world))
        if kind.mode is ListMode.REPLACE:
            return Lit("[]") if item is None else Array(item, 0, kind.max_items)
        held = current if isinstance(current, list) else []
        groups: list[Group] = []
        room = min(kind.max_changes, kind.max_items - len(held))
        if item is not None and room > 0:
            groups.append(Group((Variant(_key("+"), Array(item, 1, room)),)))
        if kind.mode is ListMode.ADD_REMOVE and held:
            groups.append(Group((Variant(_key("-"), Array(_any_of(held), 1, kind.max_changes)),)))
        return Object(tuple(groups), len(groups))

    def _table(self, kind: Table, current: Json) -> Node:
        held = current if isinstance(current, dict) else {}
        allowed = changeable(self.schema, kind, held, self.world)
        groups = [
            Group(tuple(variants), 0, bound if count is None else min(bound, count))
            for variants, count, bound in (
                (list(self._inserts(kind, held, allowed)), None, allowed.max_inserts),
                (list(self._updates(kind, held, allowed)), len(allowed.updatable), allowed.max_updates),
                (list(self._deletes(allowed)), len(allowed.deletable), allowed.max_deletes),
            )
            if variants and bound
        ]
        return Object(tuple(groups), sum(group.maximum for group in groups))

    def _inserts(self, kind: Table, held: dict[str, Json], allowed: Entries) -> Iterator[Variant]:
        value = self._whole(kind.value) if allowed.max_inserts else None
        if value is None:
            return
        if allowed.insertable is not None:
            keys = words_node(map(escape, allowed.insertable))
            if keys is not None:
                yield Variant(keys, value)
        else:
            content = excluding(type_content(self.schema, Id(kind.keys)), map(escape, held))
            if content is not None:
                yield Variant(content if isinstance(content, Words) else Quoted(content), value)

    def _updates(self, kind: Table, held: dict[str, Json], allowed: Entries) -> Iterator[Variant]:
        """Entries that may be changed alike share one variant: those that hold the same value."""
        alike: dict[str, list[str]] = {}
        for key in sorted(allowed.updatable):
            alike.setdefault(_update_class(kind.value, held[key]), []).append(key)
        for keys in alike.values():
            value = self._change(kind.value, held[keys[0]])
            if value is not None:
                yield Variant(Words(tuple(sorted(map(escape, keys)))), value)

    def _deletes(self, allowed: Entries) -> Iterator[Variant]:
        keys = words_node(map(escape, allowed.deletable))
        if keys is not None and allowed.max_deletes:
            yield Variant(keys, NULL)

    def _whole(self, kind: FieldKind) -> Node | None:
        """A complete value, as an insertion needs it; None when grounding leaves nothing."""
        match kind:
            case Scalar():
                return self._among(kind.type, None if kind.values is None else kind.values.resolve(self.world))
            case ListField():
                item = self._among(kind.item, item_words(kind, self.world))
                return Lit("[]") if item is None else Array(item, 0, kind.max_items)
            case Table():
                return self._table(kind, {})
            case Record():
                return self._whole_record(kind)

    def _whole_record(self, kind: Record) -> Node | None:
        groups: list[Group] = []
        for name, member in kind.members.items():
            node = self._whole(member)
            if node is not None:
                groups.append(Group((Variant(_key(name), node),), 0 if member.optional else 1))
            elif not member.optional:
                return None
        return Object(tuple(groups), len(groups))


def _update_class(kind: FieldKind, current: Json) -> str:
    """Entries of one class have the same update grammar. A free scalar's does not depend on what it holds."""
    if isinstance(kind, Scalar) and not kind.transitions:
        return ""
    return dumps(current)


def _any_of(values: list[Json]) -> Node:
    """Any of the given scalars."""
    strings = words_node(escape(value) for value in values if isinstance(value, str))
    others = words_node(dumps(value) for value in values if not isinstance(value, str))
    options: list[Node] = [] if strings is None else [Quoted(strings)]
    return alternatives([*options, *([] if others is None else [Token(others)])])
