"""Σ′ = Σ ⊕ ΔΣ under a schema: ⊕ itself, plus the list operations where a list field is declared."""

from __future__ import annotations

from skillstate_local.state.canonical import Json, equal
from skillstate_local.state.merge import MergeMode, merge, merge_shallow
from skillstate_local.state.schema import FieldKind, ListField, Record, Schema, Table
from skillstate_local.state.validate import list_operations


def apply_patch(schema: Schema, state: Json, patch: Json, mode: MergeMode = MergeMode.DEEP) -> Json:
    """Return the canonical state after ``patch``; ``state`` is not changed.

    The patch need not be valid: an invalid one gives what a runtime without validation would end up with.
    """
    if mode is MergeMode.SHALLOW:
        return schema.canonical(merge_shallow(state, _listed(schema.root, {}, patch)))
    return schema.canonical(merge(state, _listed(schema.root, state, patch)))


def _listed(kind: FieldKind | None, current: Json, change: Json) -> Json:
    """``change`` with every list operation at a declared list field replaced by the list it leads to."""
    if not isinstance(change, dict):
        return change
    if isinstance(kind, ListField):
        return _edited(current, change) if _is_edit(kind, change) else change
    held = current if isinstance(current, dict) else {}
    return {key: _listed(_member(kind, key), held.get(key), value) for key, value in change.items()}


def _member(kind: FieldKind | None, key: str) -> FieldKind | None:
    if isinstance(kind, Record):
        return kind.members.get(key)
    return kind.value if isinstance(kind, Table) else None


def _is_edit(kind: ListField, change: dict[str, Json]) -> bool:
    operations = list_operations(kind)
    return bool(operations) and all(name in operations and isinstance(items, list) for name, items in change.items())


def _edited(current: Json, change: dict[str, Json]) -> list[Json]:
    held = current if isinstance(current, list) else []
    kept = [item for item in held if not any(equal(item, gone) for gone in change.get("-", ()))]
    return kept + list(change.get("+", ()))
