"""Expressions that are accepted run in bounded time; those that could stall the process are refused."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillstate_local.domains.regex import RegexProblem, bounded_shape_of, shape_of
from skillstate_local.domains.warehouse import OBSERVATIONS
from skillstate_local.grammar.measure import longest_bytes
from skillstate_local.grammar.text import pattern_node


@pytest.mark.parametrize(
    "pattern",
    [
        *(event.pattern for event in OBSERVATIONS.events),
        r"([a-z]{1,9}-){1,5}x",
        r"([a-z]+, )*[a-z]+\.",
        r"(.{1,80}) said (.{1,80}) to (.{1,80})",
        r"(urgent )?ticket T-(0|[1-9][0-9]{0,5})",
        r"(?P<a>[^:]{1,40}): .*",
        r"(a|ab)*c",
    ],
)
def test_safe(pattern: str) -> None:
    shape_of(pattern)


@pytest.mark.parametrize(
    "pattern",
    [r"(a+)+", r"(a*)*", r"(a|a)*", r"(a|b|ab)*c", r"(a{1,9}){1,9}b", r".*.*x", r"(a?){30}a{30}", "a?" * 60,
     r"(x+x+)+y", r"([a-z]+)*!", r"(.*)\1", r"(?=a)a", r"(?<!a)b", r"(?i)a", r"(?i:a)", r"^a", r"a$", r"\ba", r"a*+",
     r"(?>a)b", r"[[a]", r"(", r"a{2,1}", "a" * 501, "(" * 41 + ")" * 41],
)  # fmt: skip
def test_refused(pattern: str) -> None:
    with pytest.raises(RegexProblem):
        shape_of(pattern)


@pytest.mark.parametrize("pattern", ["a+", "a*", "a{3,}", "(a{1,200}b){1,99}", "a{1,3}?"])
def test_unbounded_is_refused_for_a_grammar(pattern: str) -> None:
    shape_of(pattern)
    with pytest.raises(RegexProblem):
        bounded_shape_of(pattern)


_ATOMS = st.sampled_from(["a", "b", "[ab]", "[a-c]", "[^a]", ".", "\\d", "1", "ab"])
_PATTERNS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,9}"])).map(lambda p: f"({p[0]}){p[1]}"),
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(_PATTERNS, st.lists(st.sampled_from(["a", "b", "ab", "1", "aab"]), min_size=1, max_size=3))
def test_accepted_expressions_are_quick(pattern: str, unit: list[str]) -> None:
    """Whatever is accepted reads an adversarial line of two thousand characters at once."""
    try:
        shape = shape_of(pattern)
    except RegexProblem:
        return
    if shape.choices > 2_000:
        return
    compiled = re.compile(pattern, re.ASCII)
    line = ("".join(unit) * 2_000)[:2_000] + "!"
    started = time.process_time()
    compiled.fullmatch(line)
    assert time.process_time() - started < 1.0


@settings(max_examples=300, deadline=None)
@given(_PATTERNS)
def test_what_is_known_of_an_accepted_expression_is_true(pattern: str) -> None:
    try:
        shape = bounded_shape_of(pattern)
    except RegexProblem:
        return
    assert re.fullmatch(pattern, shape.shortest, re.ASCII)
    assert shape.nullable == (re.fullmatch(pattern, "", re.ASCII) is not None)
    assert len(shape.shortest) <= shape.longest
    assert longest_bytes(pattern_node(pattern)) >= shape.longest  # every character is a byte or more
