"""Types, by the schema alone: what each scalar takes, and where a problem is said to be."""

from __future__ import annotations

import pytest

from skillstate_local.state.canonical import Json, loads
from skillstate_local.state.schema import (
    Boolean,
    Choice,
    Fixed,
    Id,
    Integer,
    OneOf,
    Pattern,
    Record,
    Scalar,
    ScalarType,
    Schema,
    Table,
    Text,
    Vocabulary,
)
from skillstate_local.state.validate import patch_problems, scalar_problems, state_problems

SCHEMA = Schema(
    Record({"t": Table("id", Record({"n": Scalar(Integer(0, 9)), "o": Scalar(Text(2), optional=True)}), 2)}),
    {"id": Vocabulary("id", ("a/b", "c~d", "e"))},
)
LARGE = 10**35


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (Integer(-3, 12), ["-3", "0", "12"], ["-4", "13", "1.0", "true", '"1"', "null", "[]", "1e0"]),
        (Integer(0, 1), ["0", "1"], ["true", "false"]),
        (Fixed(-150, 150, 2), ["-1.50", "0.00", "1.50"], ["1.51", "-1.51", "1.5", "1.500", "1", '"1.50"', "true"]),
        (Fixed(0, LARGE, 2), ["1" + "0" * 33 + ".00"], ["1" + "0" * 33 + ".01", "1" + "0" * 33 + ".49"]),
        (Boolean(), ["true", "false"], ["0", "1", '"true"', "null"]),
        (Text(2, 1), ['"a"', '"😀😀"', '"\\u0000"'], ['""', '"abc"', "1"]),
        (Choice(("a", "")), ['"a"', '""'], ['"b"', "null"]),
        (Pattern("[a-c]{2}"), ['"ab"'], ['"a"', '"abc"', '"ab\\n"', "12"]),
        (Id("id"), ['"a/b"', '"e"'], ['"a"', '"a~1b"', "1"]),
        (OneOf((Integer(0, 5), Text(1))), ["3", '"3"'], ["6", '"33"', "true", "3.0"]),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, list) else "",
)
def test_a_scalar_takes_its_own_values_only(kind: ScalarType, good: list[str], bad: list[str]) -> None:
    for text in good:
        assert not list(scalar_problems(SCHEMA, kind, loads(text), "")), text
    for text in bad:
        assert len(list(scalar_problems(SCHEMA, kind, loads(text), "/at"))) == 1, text


@pytest.mark.parametrize(
    ("patch", "pointers"),
    [
        ({}, []),
        ({"t": {"a/b": {"n": 1}, "c~d": None}}, []),
        ({"t": {"a/b": {"n": 10}}}, ["/t/a~1b/n"]),
        ({"t": {"c~d": {"n": None}}}, ["/t/c~0d/n"]),
        ({"t": {"e": {"o": None}}}, []),
        ({"t": {"x": None}}, ["/t/x"]),
        ({"t": {"a/b": 1, "e": []}}, ["/t/a~1b", "/t/e"]),
        ({"t": None}, ["/t"]),
        ({"u/v": 1}, ["/u~1v"]),
        ([], [""]),
    ],
)
def test_a_patch_problem_points_at_its_place(patch: Json, pointers: list[str]) -> None:
    assert [problem.pointer for problem in patch_problems(SCHEMA, patch)] == pointers


def test_a_state_is_complete_and_holds_no_null() -> None:
    assert not list(state_problems(SCHEMA, {"t": {"e": {"n": 1}}}))
    for state in ({}, {"t": {"e": {}}}, {"t": {"e": None}}, {"t": {"e": {"n": 1, "o": None}}}, {"t": {"x": {"n": 1}}}):
        assert list(state_problems(SCHEMA, state)), state
    assert list(state_problems(SCHEMA, {"t": {key: {"n": 1} for key in ("a/b", "c~d", "e")}}))
