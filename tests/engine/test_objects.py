"""When the first balanced object of a completion has closed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillstate_local.engine.objects import ObjectDetector

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=6), JSON, max_size=4).filter(lambda o: "</reasoning>" not in json.dumps(o))


def closed_after(text: str, size: int = 1) -> int | None:
    """How many characters were fed when the detector closed."""
    detector = ObjectDetector()
    for at in range(0, len(text), size):
        if detector.feed(text[at : at + size]):
            return min(at + size, len(text))
    return None


@pytest.mark.parametrize(
    ("before", "obj"),
    [
        ("", '{"a":1}'),
        ("Here it is: ", '{"a":{"b":{}}}'),
        ("set {x} and {1} first, then ", '{ \n"a":"}"}'),
        ("", "{}"),
        ("", '{"a":"\\"}{"}'),
        ('<reasoning>{"no":1}</reasoning>', '{"yes":2}'),
        (' \n<reasoning>a { " b</reasoning> then ', '{"yes":2}'),
        ('{"half": </reasoning>', '{"yes":2}'),
    ],
)
def test_closes_exactly_at_the_brace(before: str, obj: str) -> None:
    text = before + obj + ' {"later":1}'
    assert closed_after(text) == len(before) + len(obj)


@pytest.mark.parametrize("text", ["", "{", "{ ", '{"a":1', "{x}", '<reasoning>{"a":1}', "<reas", '{"a":"}', "{[]}"])
def test_stays_open(text: str) -> None:
    assert closed_after(text) is None


@given(OBJECTS, st.booleans(), st.integers(1, 9))
def test_any_object_closes_at_its_end_however_it_is_cut(value: dict[str, object], spaced: bool, size: int) -> None:
    text = json.dumps(value, indent=1 if spaced else None, ensure_ascii=False)
    detector = ObjectDetector()
    for at in range(0, len(text), size):
        assert not detector.closed
        detector.feed(text[at : at + size])
    assert detector.closed
