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
        return _edited(current, change) if change.keys() <= set(list_operations(kind)) else change
    held = current if isinstance(current, dict) else {}
    return {key: _listed(_member(kind, key), held.get(key), value) for key, value in change.items()}


def _member(kind: FieldKind | None, key: str) -> FieldKind | None:
    if isinstance(kind, Record):
        return kind.members.get(key)
    return kind.value if isinstance(kind, Table) else None


def _edited(current: Json, change: dict[str, Json]) -> list[Json]:
    removed = change.get("-") or []
    kept = [item for item in (current or []) if not any(equal(item, gone) for gone in removed)]
    return kept + list(change.get("+") or [])
