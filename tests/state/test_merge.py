"""⊕ is RFC 7396: its own vectors, its laws, and another implementation beside it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from random import Random
from typing import Any

import json_merge_patch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillstate_local.state.canonical import Json
from skillstate_local.state.diff import diff, has_null_member
from skillstate_local.state.merge import merge, merge_shallow
from tests.state.documents import documents, objects

VECTORS = json.loads((Path(__file__).parent / "data" / "rfc7396_appendix_a.json").read_text())
LAW = settings(derandomize=True, database=None, deadline=None, max_examples=150)
ANY = documents(nulls=True)
NULL_FREE = documents(nulls=False)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: str(vector["n"]))
def test_appendix_a(vector: dict[str, Any]) -> None:
    assert merge(vector["target"], vector["patch"]) == vector["result"]


def test_appendix_a_is_complete() -> None:
    assert [vector["n"] for vector in VECTORS] == list(range(1, 16))


@LAW
@given(objects(nulls=True))
def test_the_empty_patch_changes_nothing(target: Json) -> None:
    assert merge(target, {}) == target


@LAW
@given(ANY, ANY)
def test_a_patch_applied_twice_is_a_patch_applied_once(target: Json, patch: Json) -> None:
    once = merge(target, patch)
    assert merge(once, patch) == once


@LAW
@given(ANY, ANY)
def test_neither_argument_is_changed(target: Json, patch: Json) -> None:
    before = copy.deepcopy((target, patch))
    result = merge(target, patch)
    assert (target, patch) == before
    merge(result, {"a": {"b": {"c": 1}}, "b": None})
    assert (target, patch) == before


@LAW
@given(NULL_FREE, ANY)
def test_no_null_member_appears_where_the_target_had_none(target: Json, patch: Json) -> None:
    result = merge(target, patch)
    assert result is None if patch is None else not has_null_member(result)


@LAW
@given(objects(nulls=False), objects(nulls=True))
def test_absent_keeps_null_deletes_and_the_rest_is_there(target: Json, patch: Json) -> None:
    result = merge(target, patch)
    assert result.keys() == (target.keys() | patch.keys()) - {key for key, value in patch.items() if value is None}
    for key in target.keys() - patch.keys():
        assert result[key] == target[key]


@LAW
@given(ANY, NULL_FREE)
def test_diff_is_the_way_from_one_to_the_other(source: Json, target: Json) -> None:
    assert merge(source, diff(source, target)) == target


@LAW
@given(objects(nulls=False), objects(nulls=True))
def test_diff_of_a_patched_state_leads_to_the_same_state(source: Json, patch: Json) -> None:
    target = merge(source, patch)
    assert merge(source, diff(source, target)) == target


@LAW
@given(objects(nulls=False))
def test_diff_to_itself_is_empty(state: Json) -> None:
    assert diff(state, copy.deepcopy(state)) == {}


@LAW
@given(objects(nulls=False), objects(nulls=False))
def test_diff_names_nothing_that_stays(source: Json, target: Json) -> None:
    patch = diff(source, target)
    for key in patch:
        assert merge(source, {k: v for k, v in patch.items() if k != key}) != target


def test_diff_refuses_a_target_that_no_patch_can_reach() -> None:
    with pytest.raises(ValueError, match="null member"):
        diff({}, {"a": {"b": None}})
    assert diff({}, {"a": [None, {"b": None}]}) == {"a": [None, {"b": None}]}


def test_one_and_true_are_different_values() -> None:
    assert diff({"a": 1}, {"a": True}) == {"a": True}
    assert diff({"a": [0]}, {"a": [False]}) == {"a": [False]}


def random_document(rng: Random, atoms: tuple[Json, ...], depth: int = 3) -> Json:
    """Few keys, so that target and patch meet."""
    kind = rng.random()
    if depth and kind < 0.55:
        return {rng.choice("abcd"): random_document(rng, atoms, depth - 1) for _ in range(rng.randint(0, 4))}
    if depth and kind < 0.65:
        return [random_document(rng, atoms, depth - 1) for _ in range(rng.randint(0, 3))]
    return rng.choice(atoms)


def test_five_thousand_documents_beside_the_package_json_merge_patch() -> None:
    """The package agrees on all of them; it merges in place and gives back its argument, hence the copies."""
    rng = Random(7396)
    for _ in range(5000):
        target, patch = (random_document(rng, (None, None, True, False, 0, 1, -3, "x", "é")) for _ in range(2))
        theirs = json_merge_patch.merge(copy.deepcopy(target), copy.deepcopy(patch))
        assert merge(target, patch) == theirs, (target, patch)


def test_five_thousand_diffs_beside_the_package_json_merge_patch() -> None:
    """Without truth values: the package takes 1 for true, so its patch from one to the other is empty."""
    assert json_merge_patch.create_patch({"a": 1}, {"a": True}) == {}
    rng = Random(6902)
    for _ in range(5000):
        source, target = random_document(rng, (None, 0, 1, "x")), random_document(rng, (0, 1, "x", "é"))
        if not has_null_member(target):
            assert diff(source, target) == json_merge_patch.create_patch(source, target), (source, target)


@LAW
@given(objects(nulls=False), objects(nulls=True))
def test_shallow_replaces_top_level_members_whole(target: Json, patch: Json) -> None:
    result = merge_shallow(target, patch)
    for key in target.keys() | patch.keys():
        if key not in patch:
            assert result[key] == target[key]
        elif patch[key] is None:
            assert key not in result
        else:
            assert result[key] == merge(None, patch[key])
    assert not has_null_member(result)


@given(st.one_of(st.none(), st.integers(), st.lists(st.integers(), max_size=2)), objects(nulls=True))
@LAW
def test_a_target_that_is_no_object_counts_as_empty(target: Json, patch: Json) -> None:
    assert merge(target, patch) == merge({}, patch)
    assert merge_shallow(target, patch) == merge({}, patch)
