"""The inverse of ⊕, and the pointers that a change touches."""

from __future__ import annotations

from collections.abc import Iterator

from skillstate_local.state.canonical import Json, equal


def diff(source: Json, target: Json) -> Json:
    """Return the smallest patch with ``merge(source, patch) == target``.

    ``target`` must have no null member (RFC 7396 cannot state one); raises ValueError otherwise.
    """
    if has_null_member(target):
        raise ValueError("a state with a null member cannot be reached by a merge patch")
    return _diff(source, target)


def _diff(source: Json, target: Json) -> Json:
    if not isinstance(target, dict) or not isinstance(source, dict):
        return target
    patch: dict[str, Json] = {key: None for key in source if key not in target}
    for key, value in target.items():
        if key not in source or not equal(source[key], value):
            patch[key] = _diff(source.get(key), value)
    return patch


def has_null_member(value: Json) -> bool:
    """Whether an object at any depth outside arrays holds a null."""
    return isinstance(value, dict) and any(v is None or has_null_member(v) for v in value.values())


def leaves(value: Json, pointer: str = "") -> Iterator[tuple[str, Json]]:
    """Yield (JSON pointer, value) of every leaf; arrays, scalars and empty objects are leaves."""
    if isinstance(value, dict) and value:
        for key, member in value.items():
            yield from leaves(member, f"{pointer}/{escape_token(key)}")
    else:
        yield pointer, value


def lost_or_changed(before: Json, after: Json) -> frozenset[str]:
    """Pointers of the leaves of ``before`` that ``after`` lacks or holds with another value."""
    now = dict(leaves(after))
    return frozenset(
        pointer
        for pointer, value in leaves(before)
        if pointer and not (pointer in now and equal(now[pointer], value)) and not _grown(value, after, pointer)
    )


def pointers(patch: Json) -> frozenset[str]:
    """Pointers of all leaves that a patch names, deletions included."""
    return frozenset(pointer for pointer, _ in leaves(patch) if pointer)


def overlapping(left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
    """The pointers of ``left`` that equal, contain or lie inside one of ``right``."""
    return frozenset(a for a in left if any(a == b or a.startswith(f"{b}/") or b.startswith(f"{a}/") for b in right))


def resolve(value: Json, pointer: str) -> Json:
    """The value at ``pointer``, or None when nothing is there."""
    for key in tokens(pointer):
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def nest(pointer: str, value: Json) -> Json:
    """The patch that sets or deletes one pointer."""
    for key in reversed(tokens(pointer)):
        value = {key: value}
    return value


def tokens(pointer: str) -> list[str]:
    """The keys that a JSON pointer names one after another."""
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def escape_token(key: str) -> str:
    """One reference token of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def _grown(value: Json, after: Json, pointer: str) -> bool:
    """An empty object that gained members lost nothing, nor did a list that was appended to."""
    now = resolve(after, pointer)
    if isinstance(value, list):
        return isinstance(now, list) and equal(now[: len(value)], value)
    return value == {} and isinstance(now, dict)
