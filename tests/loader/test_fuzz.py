"""Whatever a file holds, reading it ends with a domain or with told mistakes, and a domain always yields grammars."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from skillstate_local.domains.catalog import BUNDLED_FILES
from skillstate_local.domains.level import Level
from skillstate_local.domains.loader import read_domain
from skillstate_local.errors import GrammarError, UnsupportedConstraint
from skillstate_local.grammar.ir import Dialect
from skillstate_local.grammar.turn import GrammarBuilder, GrammarOptions

from .authored import BASE

_BUNDLED = [(BUNDLED_FILES / f"{name}.yaml").read_text() for name in ("ticket-triage", "intercode-ctf")]
_SOURCES = [BASE, *_BUNDLED]
_SCRAPS = st.sampled_from(
    [*"[]{}\":|#'\n\té", "- ", "  ", "&a ", "*a", "!x ", "null", "5", "{part}", "(?P<"],
)
_VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(None, True, 0, -1, 10**30, 1.5, "", "x", "{part}", "part", "stock", "tickets", "a" * 300, "(a+)+"),
        *([], {}, ["x"], [[]], [{}], {"x": 1}, {"$ref": "#/$defs/x"}, {"type": "boolean"}, {"seen": "part"}),
    ]
)


def _read(text: str) -> None:
    loaded = read_domain(text)
    assert (loaded.domain is None) == any(finding.severity.value == "error" for finding in loaded.findings)
    assert all(finding.message for finding in loaded.findings)
    if loaded.domain is None:
        return
    for level in (Level.SCHEMA, Level.DELTA, Level.EFFECTS):
        try:
            grammar = GrammarBuilder(loaded.domain, GrammarOptions(level)).build(loaded.domain.initial_state)
            assert grammar is not None
            grammar.write(Dialect.LARK)
        except (GrammarError, UnsupportedConstraint):
            continue


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(_SOURCES), st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 12), _SCRAPS), max_size=4))
def test_scrambled_text(source: str, edits: list[tuple[int, int, str]]) -> None:
    for place, removed, scrap in edits:
        at = place % len(source)
        source = source[:at] + scrap + source[at + removed :]
    _read(source)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(_SOURCES), st.lists(st.tuples(st.integers(0, 10_000), _VALUES), min_size=1, max_size=3))
def test_scrambled_values(source: str, edits: list[tuple[int, Any]]) -> None:
    tree = yaml.safe_load(source)
    for place, value in edits:
        places = list(_places(tree))
        if not places:
            break
        container, key = places[place % len(places)]
        container[key] = deepcopy(value)
    _read(yaml.safe_dump(tree, allow_unicode=True, sort_keys=False))


def _places(value: Any) -> Any:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in members:
        yield value, key
        yield from _places(below)
