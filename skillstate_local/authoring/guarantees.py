"""What each level's grammar guarantees for each field, and what validation alone catches, dialect by dialect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from skillstate_local.authoring.wording import source_words, type_words
from skillstate_local.domains.base import Domain
from skillstate_local.domains.check.state import Field, fields
from skillstate_local.grammar.bnf import MAX_STATES
from skillstate_local.grammar.lark import MAX_INDEXED_KEYS, PARAMETER_BITS
from skillstate_local.state.canonical import Json
from skillstate_local.state.diff import leaves
from skillstate_local.state.schema import (
    FieldKind,
    ListField,
    ListMode,
    Mutability,
    Permission,
    Record,
    Scalar,
    Schema,
    Table,
)
from skillstate_local.state.validate import list_operations


@dataclass(frozen=True, slots=True)
class Guarantee:
    """One field: what cannot be decoded at each level, and what can although validation refuses it."""

    path: str
    schema: str
    delta: str
    effects: str
    validation_alone: tuple[str, ...] = ()


def guarantees(domain: Domain) -> tuple[Guarantee, ...]:
    """The guarantees of every field, in order."""
    return tuple(
        Guarantee(
            field.path,
            _typed(field.kind),
            _policy(field.kind),
            _effects(domain, field),
            tuple(_exceptions(domain.schema, field.kind)),
        )
        for field in fields(domain.schema)
    )


def _typed(kind: FieldKind) -> str:
    match kind:
        case Scalar():
            return type_words(kind.type) + _null(kind)
        case ListField():
            items = f"a list of at most {kind.max_items} items, each {type_words(kind.item)}"
            return items + _operations(kind) + _null(kind)
        case Table():
            return f"at most {kind.max_changes} entries in one patch, keyed by ids of {kind.keys}{_null(kind)}"
        case Record():
            return f"an object of {', '.join(kind.members)}, each at most once{_null(kind)}"


def _operations(kind: ListField) -> str:
    names = list_operations(kind)
    return f", or an edit with {' and '.join(names)}" if names else ""


def _null(kind: FieldKind) -> str:
    return "; or null" if kind.optional else "; never null"


def _policy(kind: FieldKind) -> str:
    match kind:
        case Scalar():
            return _scalar_policy(kind)
        case ListField():
            return _list_policy(kind)
        case Table():
            return _table_policy(kind)
        case Record():
            return "members change one by one; it is never replaced or emptied as a whole" + _deletion(kind)


def _scalar_policy(kind: Scalar) -> str:
    said = {
        Mutability.MUTABLE: "may be set",
        Mutability.WRITE_ONCE: "set once, while it is absent",
        Mutability.PROTECTED: "never set by a patch",
    }[kind.mutability]
    if kind.transitions:
        steps = "; ".join(f"{state} → {' | '.join(nexts) or 'nothing'}" for state, nexts in kind.transitions.items())
        said += f", only along {steps} (a new entry may begin with any)"
    if kind.values is not None:
        said += f", only to {source_words(kind.values)}"
    return said + _deletion(kind)


def _list_policy(kind: ListField) -> str:
    said = {
        ListMode.REPLACE: "replaced as a whole",
        ListMode.APPEND: f"only appended to, at most {kind.max_changes} at once",
        ListMode.ADD_REMOVE: f"items added, and present ones removed, at most {kind.max_changes} of each at once",
    }[kind.mode]
    if kind.values is not None:
        said += f"; items are {source_words(kind.values)}"
    return said + _deletion(kind)


def _table_policy(kind: Table) -> str:
    parts = (
        _permission("insert", kind.insert, kind.max_inserts, "absent"),
        _permission("update", kind.update, kind.max_updates, "present"),
        _permission("delete", kind.delete, kind.max_deletes, "present"),
    )
    return "; ".join(parts) + f"; at most {kind.max_entries} entries in all" + _deletion(kind)


def _permission(what: str, permission: Permission, at_most: int, whom: str) -> str:
    if permission is Permission.NEVER:
        return f"{what} never"
    named = " and named in the observation" if permission is Permission.GROUNDED else ""
    return f"{what} at most {at_most}, only {whom}{named}"


def _deletion(kind: FieldKind) -> str:
    if not kind.optional:
        return ""
    return "; null removes it when it is there" if kind.deletable else "; never removed"


def _effects(domain: Domain, field: Field) -> str:
    """Who can change the field at `effects`, where the model writes no patch of its own."""
    path = tuple(field.path.split("/")[1:])
    actions = [action.name for action in domain.actions if _touches(action.effect, path)]
    events = [event.name for event in domain.observations.events if _touches(event.reports, path)]
    said = [f"set by {', '.join(dict.fromkeys(actions))}"] if actions else []
    said += [f"a fact of event {', '.join(dict.fromkeys(events))}"] if events else []
    return "; ".join(said) or "never changes: no action's effect and no event's report names it"


def _touches(template: Json, path: tuple[str, ...]) -> bool:
    for pointer, _ in leaves(template) if template is not None else ():
        tokens = pointer.split("/")[1:]
        if all(a == b or b.startswith("{") for a, b in zip(tokens, path, strict=False)):
            return True
    return False


def _exceptions(schema: Schema, kind: FieldKind) -> Iterator[str]:
    """What a dialect lets through, or cannot write at all."""
    if isinstance(kind, Record) and 2 ** len(kind.members) > MAX_STATES:
        yield f"EBNF and GBNF cannot write {len(kind.members)} members in any order (8 is the limit): use llguidance"
    if isinstance(kind, Table):
        yield from _table_exceptions(schema, kind)


def _table_exceptions(schema: Schema, kind: Table) -> Iterator[str]:
    members = len(schema.vocabularies[kind.keys].members)
    states = (kind.max_inserts + 1) * (kind.max_updates + 1) * (kind.max_deletes + 1)
    if kind.max_changes > 1:
        yield "EBNF and GBNF: one key named twice in a patch"
    if states > MAX_STATES:
        yield "EBNF and GBNF cannot write that many changes in any order: use llguidance"
    if not members and kind.insert is Permission.ALLOWED:
        yield "EBNF and GBNF at delta: inserting a key that is there already"
    if not members and kind.max_changes > 1:
        yield "Lark at schema: one key of an open vocabulary named twice in a patch"
    if not members and kind.max_inserts > 1 and kind.insert is Permission.ALLOWED:
        yield "Lark at delta: one new key of an open vocabulary inserted twice"
    room = PARAMETER_BITS - kind.max_changes
    if members > room and kind.max_changes > (2 if members <= MAX_INDEXED_KEYS else 1):
        yield f"Lark: one key named twice in a patch, where more than {room} keys may be named"


def oversized(schema: Schema) -> Iterator[tuple[str, str]]:
    """(pointer, why) of the parts that no dialect of the default backend can write."""
    yield from _oversized(schema.root, "/state", inserted=False)


def _oversized(kind: FieldKind, pointer: str, *, inserted: bool) -> Iterator[tuple[str, str]]:
    if isinstance(kind, Record):
        if len(kind.members) > PARAMETER_BITS:
            yield f"{pointer}/properties", f"an object of {len(kind.members)} members; {PARAMETER_BITS} is the limit"
        for name, member in kind.members.items():
            below = f"{pointer}/properties/{name}"
            yield from _oversized(member, below, inserted=inserted or kind.optional)
    elif isinstance(kind, Table):
        if kind.max_changes > PARAMETER_BITS:
            yield pointer, f"{kind.max_changes} changes in one patch; {PARAMETER_BITS} is the limit"
        if inserted and kind.max_entries > PARAMETER_BITS:
            said = f"a table that is inserted whole may have {PARAMETER_BITS} entries, this one {kind.max_entries}"
            yield f"{pointer}/x-max-entries", said
        within = inserted or kind.insert is not Permission.NEVER
        yield from _oversized(kind.value, f"{pointer}/additionalProperties", inserted=within)
