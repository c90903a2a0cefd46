"""Strict on the way in, one spelling on the way out."""

from __future__ import annotations

import json
import time
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillstate_local.state.canonical import (
    MAX_DEPTH,
    MAX_NUMBER_CHARS,
    Json,
    StrictJsonError,
    digest,
    dumps,
    equal,
    escape,
    is_canonical,
    loads,
)
from tests.state.documents import documents

LAW = settings(derandomize=True, database=None, deadline=None, max_examples=200)
ANY = documents(nulls=True)


@LAW
@given(ANY)
def test_what_is_written_is_canonical_and_reads_back(value: Json) -> None:
    text = dumps(value)
    assert is_canonical(text)
    assert equal(loads(text), value)
    assert dumps(loads(text)) == text


@LAW
@given(ANY)
def test_canonical_text_is_json_to_everyone_else(value: Json) -> None:
    assert equal(json.loads(dumps(value), parse_float=Decimal), value)


@LAW
@given(ANY)
def test_other_spellings_of_the_same_value_are_not_canonical(value: Json) -> None:
    plain = json.dumps(value, default=str)
    for text in (json.dumps(value, default=str, indent=1), plain, json.dumps(value, default=str, ensure_ascii=False)):
        if text != dumps(value) and not _holds_decimal(value):
            assert not is_canonical(text), text


def _holds_decimal(value: Json) -> bool:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, Decimal) or any(map(_holds_decimal, members))


@LAW
@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=30))
def test_escape_is_the_inside_of_a_canonical_string(text: str) -> None:
    assert dumps(text) == f'"{escape(text)}"'
    assert loads(f'"{escape(text)}"') == text


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2}',
        '{"a":1,"\\u0061":2}',
        '{"b":{"a":1,"x":0,"a":1}}',
        "NaN",
        "[Infinity]",
        "-Infinity",
        '"\\ud800"',
        '{"\\udfff":1}',
        '"\\ud800\\ud800"',
        "01",
        "+1",
        "1.",
        ".5",
        "'a'",
        "[1,]",
        '{"a":1,}',
        "{a:1}",
        "",
        " ",
        "nul",
        '"a',
        '"\t"',
        '"\\x41"',
        "{}{}",
        "[] x",
        "\ufeff{}",
        "// x\n{}",
        "9" * (MAX_NUMBER_CHARS + 1),
        f"1.{'0' * MAX_NUMBER_CHARS}",
        "1e65",
        "1e-65",
        "1e999999999",
        "1E+9999999999999999999999",
        "-0e99999999999",
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        '{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1),
    ],
)
def test_what_is_not_strict_json_is_refused(text: str) -> None:
    with pytest.raises(StrictJsonError):
        loads(text)


@pytest.mark.parametrize(
    "text", ["[" * 1_000_000, '{"a":' * 500_000, '"' + "\\\\" * 500_000, '["[[[' * 100_000, "9" * 10**6]
)
def test_a_bomb_is_refused_quickly(text: str) -> None:
    start = time.monotonic()
    with pytest.raises(StrictJsonError):
        loads(text)
    assert time.monotonic() - start < 10


def test_brackets_inside_strings_are_not_depth() -> None:
    text = dumps("[{" * 1000 + '"\\')
    assert loads(f"[{text}]") == ["[{" * 1000 + '"\\']
    deepest = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert dumps(loads(deepest)) == deepest


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("-0", "0"),
        ("-0.00", "0.00"),
        ("-0e3", "0"),
        ("1e3", "1000"),
        ("1.5e2", "150"),
        ("1.50", "1.50"),
        ("0.10e-2", "0.0010"),
        ("123456789012345678901234567890.5", "123456789012345678901234567890.5"),
        ('"\\u0041\\/\\u00e9\\ud83d\\ude00"', '"A/é😀"'),
        ('"\\u000a\\u001F"', '"\\n\\u001f"'),
        (' { "b" : [ 1 , 2 ] , "a" : null } ', '{"b":[1,2],"a":null}'),
    ],
)
def test_strict_json_in_another_spelling_is_read_and_written_canonically(text: str, spelled: str) -> None:
    assert not is_canonical(text) or text == spelled
    assert dumps(loads(text)) == spelled
    assert is_canonical(spelled)


@pytest.mark.parametrize(
    "text",
    ['"\\u0041"', '"\\/"', '"\\u001F"', '"\\u000a"', '"\\u0008"', "-0", "-0.0", "1e1", "1E1", "[1, 2]", "{} ", "\n{}"],
)
def test_single_tokens_that_are_not_canonical(text: str) -> None:
    assert not is_canonical(text)
    loads(text)


def test_equality_is_of_json_not_of_python() -> None:
    assert not equal(1, True)
    assert not equal([0], [False])
    assert not equal({"a": 1}, {"a": True})
    assert not equal(1, Decimal(1))
    assert not equal({"a": 1}, {"a": 1, "b": None})
    assert not equal([], {})
    assert equal({"a": 1, "b": [2, {"c": None}]}, {"b": [2, {"c": None}], "a": 1})


def test_a_digest_ignores_the_order_of_members_and_nothing_else() -> None:
    assert digest({"a": 1, "b": {"d": 1, "c": 2}}) == digest({"b": {"c": 2, "d": 1}, "a": 1})
    assert len({digest(value) for value in ([1, 2], [2, 1], 1, True, "1", Decimal("1.0"), None, {}, [])}) == 9
