"""Patches under a schema: list operations where a list is declared, and nowhere else."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings

from skillstate_local.state.apply import apply_patch
from skillstate_local.state.canonical import Json, dumps, equal
from skillstate_local.state.merge import MergeMode, merge
from skillstate_local.state.schema import Integer, ListField, ListMode, Record, Scalar, Schema, Table, Text, Vocabulary
from tests.state.documents import objects

LAW = settings(derandomize=True, database=None, deadline=None, max_examples=150)


def listed(mode: ListMode) -> ListField:
    return ListField(Text(9), 9, mode)


SCHEMA = Schema(
    Record(
        {
            "replace": listed(ListMode.REPLACE),
            "append": listed(ListMode.APPEND),
            "edit": listed(ListMode.ADD_REMOVE),
            "plain": Record({"+": Scalar(Text(9)), "-": Scalar(Text(9))}),
            "table": Table("id", listed(ListMode.ADD_REMOVE), 9),
            "numbers": ListField(Integer(0, 9), 9, ListMode.ADD_REMOVE),
        }
    ),
    {"id": Vocabulary("id", pattern=r"\w{1,9}")},
)


def after(state: Json, patch: Json) -> Json:
    return apply_patch(SCHEMA, state, patch)


def test_removal_comes_first_and_removes_all_equal_elements() -> None:
    state = {"edit": ["a", "b", "a", "c"]}
    assert after(state, {"edit": {"-": ["a"]}}) == {"edit": ["b", "c"]}
    assert after(state, {"edit": {"+": ["a", "a"], "-": ["a", "b"]}}) == {"edit": ["c", "a", "a"]}
    assert after(state, {"edit": {"-": ["a"], "+": ["a"]}}) == {"edit": ["b", "c", "a"]}
    assert after(state, {"edit": {"-": ["x"]}}) == state
    assert after(state, {"edit": {"+": ["z"]}}) == {"edit": ["a", "b", "a", "c", "z"]}
    assert after(state, {"edit": {}}) == state


def test_elements_are_equal_as_json() -> None:
    assert after({"numbers": [1, 0, 1]}, {"numbers": {"-": [True, False]}}) == {"numbers": [1, 0, 1]}
    assert after({"numbers": [1, 0, 1]}, {"numbers": {"-": [1]}}) == {"numbers": [0]}


def test_a_plain_list_replaces_in_every_mode() -> None:
    state = {"replace": ["a"], "append": ["a"], "edit": ["a"]}
    assert after(state, {name: ["b"] for name in state}) == {name: ["b"] for name in state}


def test_operations_start_from_nothing_where_the_list_is_absent() -> None:
    assert after({}, {"edit": {"+": ["a"], "-": ["b"]}}) == {"edit": ["a"]}
    assert after({"table": {}}, {"table": {"x": {"+": ["a"]}}}) == {"table": {"x": ["a"]}}


def test_operations_exist_only_where_the_mode_declares_them() -> None:
    assert after({"append": ["a"]}, {"append": {"+": ["b"]}}) == {"append": ["a", "b"]}
    assert after({"append": ["a"]}, {"append": {"-": ["a"]}}) == {"append": {"-": ["a"]}}
    assert after({"replace": ["a"]}, {"replace": {"+": ["b"]}}) == {"replace": {"+": ["b"]}}
    assert after({"replace": ["a"]}, {"replace": {}}) == {"replace": {}}
    assert after({"plain": {"+": "x"}}, {"plain": {"-": "y"}}) == {"plain": {"+": "x", "-": "y"}}


def test_lists_inside_tables_are_edited_entry_by_entry() -> None:
    state = {"table": {"x": ["a"], "y": ["b"]}}
    patch = {"table": {"x": {"+": ["c"]}, "y": None}}
    assert after(state, patch) == {"table": {"x": ["a", "c"]}}
    assert state == {"table": {"x": ["a"], "y": ["b"]}}


@pytest.mark.parametrize(
    "change", [{"+": 5}, {"-": "ab"}, {"+": {"-": []}}, {"+": ["a"], "x": ["b"]}, {"+": ["a"], "-": 1}]
)
def test_what_is_no_operation_merges_as_any_object(change: Json) -> None:
    assert after({"edit": ["a"]}, {"edit": change}) == {"edit": merge(None, change)}


def test_null_deletes_a_list_as_anything_else() -> None:
    assert after({"edit": ["a"], "append": []}, {"edit": None}) == {"append": []}


def test_shallow_replaces_a_table_and_starts_lists_anew() -> None:
    state = {"table": {"x": ["a"], "y": ["b"]}, "edit": ["a"]}
    patch = {"table": {"z": ["c"]}, "edit": {"+": ["b"]}}
    assert apply_patch(SCHEMA, state, patch, MergeMode.SHALLOW) == {"table": {"z": ["c"]}, "edit": ["b"]}


@LAW
@given(objects(nulls=False), objects(nulls=True))
def test_outside_declared_lists_it_is_merge(state: Json, patch: Json) -> None:
    """The fields of these documents are not the schema's."""
    before = copy.deepcopy((state, patch))
    assert equal(after(state, patch), merge(state, patch))
    assert (state, patch) == before


@LAW
@given(objects(nulls=False), objects(nulls=True))
def test_the_outcome_is_in_canonical_order_whatever_order_came_in(state: Json, patch: Json) -> None:
    state = {"edit": ["b"], "table": {"x10": ["a"], "x9": []}, **{k: v for k, v in state.items() if k != "table"}}
    turned = dict(reversed(state.items()))
    assert list(after(state, patch)) == list(after(turned, patch))
    assert dumps(after(state, {})["table"]) == '{"x9":[],"x10":["a"]}'
