"""⊕: how a patch changes a state. RFC 7396 at every depth, and the two variants an experiment may ask for."""

from __future__ import annotations

from enum import StrEnum

from skillstate_local.state.canonical import Json


class MergeMode(StrEnum):
    """``DEEP`` is ⊕; ``SHALLOW`` replaces top-level fields and exists only as an ablation at level `free`."""

    DEEP = "deep"
    SHALLOW = "shallow"


def merge(target: Json, patch: Json) -> Json:
    """Return ``target ⊕ patch`` (RFC 7396): null deletes, absent keeps, objects merge, anything else replaces.

    Neither argument is changed. Parts of the result may be shared with them, so treat states as values.
    """
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, change in patch.items():
        if change is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), change)
    return result


def merge_shallow(target: Json, patch: Json) -> Json:
    """Return ``target`` with each top-level member of ``patch`` put in the place of its own, null deleting it."""
    if not isinstance(patch, dict):
        return patch
    kept = {key: value for key, value in target.items() if key not in patch} if isinstance(target, dict) else {}
    return merge(kept, patch)
