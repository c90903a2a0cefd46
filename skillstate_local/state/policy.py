"""Policies: which well-typed changes are allowed in this state and under this observation.

The grammar of level `delta` and the validator both ask the questions of this module, so what one cannot decode the
other would refuse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from skillstate_local.state.canonical import Json
from skillstate_local.state.diff import escape_token
from skillstate_local.state.schema import (
    FieldKind,
    Id,
    ListField,
    ListMode,
    Mutability,
    Permission,
    Record,
    Scalar,
    Schema,
    Table,
)
from skillstate_local.state.source import World
from skillstate_local.state.validate import Problem, whole_problems


class Entries(NamedTuple):
    """The keys of a table that one patch may insert, update and delete, each with its bound."""

    insertable: frozenset[str] | None
    """None when the vocabulary is open and any of its words that is no key yet may be inserted."""
    updatable: frozenset[str]
    deletable: frozenset[str]
    max_inserts: int
    max_updates: int
    max_deletes: int


def changeable(schema: Schema, kind: Table, current: Json, world: World) -> Entries:
    """What one patch may do to the entries of a table that now holds ``current``."""
    held = current if isinstance(current, dict) else {}
    room = max(0, kind.max_entries - len(held))
    grounded = Permission.GROUNDED in (kind.update, kind.delete)
    concerned = _concerned(kind, held, world) if grounded else frozenset()
    updatable = _existing(kind.update, held, concerned)
    deletable = _existing(kind.delete, held, concerned)
    insertable = _absent(schema, kind, held, world)
    return Entries(
        insertable,
        updatable,
        deletable,
        0 if kind.insert is Permission.NEVER else min(kind.max_inserts, room),
        kind.max_updates if updatable else 0,
        kind.max_deletes if deletable else 0,
    )


def _existing(permission: Permission, held: dict[str, Json], concerned: frozenset[str]) -> frozenset[str]:
    if permission is Permission.NEVER:
        return frozenset()
    return concerned if permission is Permission.GROUNDED else frozenset(held)


def _absent(schema: Schema, kind: Table, held: dict[str, Json], world: World) -> frozenset[str] | None:
    vocabulary = schema.vocabularies[kind.keys]
    if kind.insert is Permission.NEVER:
        return frozenset()
    if kind.insert is Permission.GROUNDED:
        return frozenset(word for word in world.seen.get(kind.keys, ()) if word in vocabulary) - held.keys()
    return vocabulary.known - held.keys() if vocabulary.members else None


def _concerned(kind: Table, held: dict[str, Json], world: World) -> frozenset[str]:
    """The entries that O_t names. Tables of ids may be large, so they are not asked entry by entry."""
    if isinstance(kind.value, Scalar) and isinstance(kind.value.type, Id):
        keys = world.seen.get(kind.keys, frozenset())
        words = world.seen.get(kind.value.type.vocabulary, frozenset())
        return frozenset(k for k, v in held.items() if k in keys or (isinstance(v, str) and v in words))
    return frozenset(key for key, value in held.items() if _named(kind, key, value, world))


def _named(kind: Table, key: str, value: Json, world: World) -> bool:
    """Whether O_t names an entry: by its key, or by an id that the entry holds."""
    if key in world.seen.get(kind.keys, ()):
        return True
    return any(word in world.seen.get(vocabulary, ()) for vocabulary, word in _ids(kind.value, value))


def named_entries(schema: Schema, world: World) -> frozenset[str]:
    """Pointers of the table entries of Σ_t that O_t names, by their key or by an id that they hold."""
    return frozenset(_named_within(schema.root, world.state, world, ""))


def _named_within(kind: FieldKind, held: Json, world: World, at: str) -> Iterator[str]:
    if not isinstance(kind, (Record, Table)) or not isinstance(held, dict):
        return
    for key, value in held.items():
        pointer = f"{at}/{escape_token(key)}"
        if isinstance(kind, Table) and _named(kind, key, value, world):
            yield pointer
        member = kind.value if isinstance(kind, Table) else kind.members.get(key)
        if member is not None:
            yield from _named_within(member, value, world, pointer)


def _ids(kind: FieldKind, value: Json) -> Iterator[tuple[str, str]]:
    if isinstance(kind, Scalar) and isinstance(kind.type, Id) and isinstance(value, str):
        yield kind.type.vocabulary, value
    elif isinstance(kind, Record) and isinstance(value, dict):
        for name, member in kind.members.items():
            yield from _ids(member, value.get(name))


def settable(kind: Scalar, current: Json) -> bool:
    """Whether a scalar that now holds ``current`` (None: absent) may be set at all."""
    if kind.mutability is Mutability.PROTECTED:
        return False
    return current is None or kind.mutability is Mutability.MUTABLE


def next_values(kind: Scalar, current: Json, world: World) -> frozenset[str] | None:
    """The strings a scalar may be set to by transitions and grounding; None when its type alone decides."""
    allowed: frozenset[str] | None = None
    if kind.transitions and isinstance(current, str):
        allowed = frozenset(kind.transitions.get(current, ()))
    if kind.values is not None:
        grounded = kind.values.resolve(world)
        allowed = grounded if allowed is None else allowed & grounded
    return allowed


def can_delete(kind: FieldKind, current: Json) -> bool:
    """Whether a record member that now holds ``current`` (None: absent) may be nulled."""
    return kind.optional and kind.deletable and current is not None


def item_words(kind: ListField, world: World) -> frozenset[str] | None:
    """The strings a list item may be, when it is grounded; None when its type alone decides."""
    return None if kind.values is None else kind.values.resolve(world)


def policy_problems(schema: Schema, patch: Json, world: World) -> Iterator[Problem]:
    """Violations of a patch that is already well typed, given Σ_t and O_t."""
    yield from _record(schema, schema.root, patch, world.state, world, "")


def _change(schema: Schema, kind: FieldKind, value: Json, current: Json, world: World, at: str) -> Iterator[Problem]:
    if isinstance(kind, Scalar):
        yield from _scalar(kind, value, current, world, at)
    elif isinstance(kind, ListField):
        yield from _list(kind, value, current, world, at)
    elif isinstance(kind, Table):
        yield from _table(schema, kind, value, current, world, at)
    elif current is None:
        yield from _inserted(schema, kind, value, world, at)
    else:
        yield from _record(schema, kind, value, current, world, at)


def _record(schema: Schema, kind: Record, value: Json, current: Json, world: World, at: str) -> Iterator[Problem]:
    held = current if isinstance(current, dict) else {}
    for name, change in value.items():
        member, pointer = kind.members[name], f"{at}/{escape_token(name)}"
        if change is None:
            if not can_delete(member, held.get(name)):
                yield Problem(pointer, "this field is protected from deletion or is not there")
        else:
            yield from _change(schema, member, change, held.get(name), world, pointer)


def _scalar(kind: Scalar, value: Json, current: Json, world: World, at: str) -> Iterator[Problem]:
    if not settable(kind, current):
        yield Problem(at, f"this field is {kind.mutability.value}")
    else:
        allowed = next_values(kind, current, world)
        if allowed is not None and value not in allowed:
            yield Problem(at, f"{value!r} is not allowed here; allowed: {_some(allowed)}")


def _list(kind: ListField, value: Json, current: Json, world: World, at: str) -> Iterator[Problem]:
    held = current if isinstance(current, list) else []
    if isinstance(value, list):
        if kind.mode is not ListMode.REPLACE:
            yield Problem(at, f"this list is {kind.mode.value} and cannot be replaced")
        added = value
    else:
        added = value.get("+", [])
        if len(held) + len(added) > kind.max_items:
            yield Problem(f"{at}/+", f"the list holds {len(held)} items and may hold {kind.max_items}")
        for item in value.get("-", []):
            if not any(type(item) is type(other) and item == other for other in held):
                yield Problem(f"{at}/-", f"{item!r} is not in the list")
    words = item_words(kind, world)
    for item in added:
        if words is not None and item not in words:
            yield Problem(at, f"{item!r} is not known here; known: {_some(words)}")


def _table(schema: Schema, kind: Table, value: Json, current: Json, world: World, at: str) -> Iterator[Problem]:
    held = current if isinstance(current, dict) else {}
    allowed = changeable(schema, kind, held, world)
    counts = {"inserts": 0, "updates": 0, "deletes": 0}
    for key, change in value.items():
        pointer = f"{at}/{escape_token(key)}"
        if change is None:
            counts["deletes"] += 1
            if key not in allowed.deletable:
                yield Problem(pointer, _why_not("deleted", kind.delete, key in held))
        elif key in held:
            counts["updates"] += 1
            if key not in allowed.updatable:
                yield Problem(pointer, _why_not("changed", kind.update, True))
            else:
                yield from _change(schema, kind.value, change, held[key], world, pointer)
        else:
            counts["inserts"] += 1
            if allowed.insertable is not None and key not in allowed.insertable:
                yield Problem(pointer, "this entry may not be inserted here")
            else:
                yield from _inserted(schema, kind.value, change, world, pointer)
    for name, at_most in zip(counts, allowed[3:], strict=True):
        if counts[name] > at_most:
            yield Problem(at, f"{counts[name]} {name} in one patch, at most {at_most} are allowed now")


def _inserted(schema: Schema, kind: FieldKind, value: Json, world: World, at: str) -> Iterator[Problem]:
    """An inserted value must be complete, hold no null, and be grounded where its scalars and tables are."""
    problems = list(whole_problems(schema, kind, value, at))
    yield from problems
    if not problems:
        yield from _grounded(schema, kind, value, world, at)


def _grounded(schema: Schema, kind: FieldKind, value: Json, world: World, at: str) -> Iterator[Problem]:
    if isinstance(kind, Scalar):
        if kind.values is not None and value not in (words := kind.values.resolve(world)):
            yield Problem(at, f"{value!r} is not known here; known: {_some(words)}")
    elif isinstance(kind, ListField):
        words = item_words(kind, world) or frozenset()
        for item in value:
            if kind.values is not None and item not in words:
                yield Problem(at, f"{item!r} is not known here; known: {_some(words)}")
    elif isinstance(kind, Record):
        for name, member in value.items():
            yield from _grounded(schema, kind.members[name], member, world, f"{at}/{escape_token(name)}")
    else:
        yield from _table(schema, kind, value, {}, world, at)


def _why_not(what: str, permission: Permission, exists: bool) -> str:
    if not exists:
        return f"there is no such entry to be {what}"
    if permission is Permission.NEVER:
        return f"entries of this table are never {what}"
    return f"this entry is not named in the observation and may not be {what}"


def _some(words: frozenset[str]) -> str:
    shown = sorted(words)[:5]
    return ", ".join(shown) + (", …" if len(words) > len(shown) else "") if shown else "none"
