"""Limits before any compile: each is named in its error, and the check costs little."""

from __future__ import annotations

import time

import pytest

from skillstate_local.domains.level import Level
from skillstate_local.domains.warehouse import WAREHOUSE
from skillstate_local.errors import GrammarError
from skillstate_local.grammar import check
from skillstate_local.grammar.check import check_limits, check_text
from skillstate_local.grammar.ir import Alt, Grammar, Lit, Node, Quoted, Seq, Words
from skillstate_local.grammar.turn import GrammarBuilder, GrammarOptions

STATE = {"inventory": {f"shelf_{n}": f"item_{n}" for n in range(500)}}


def vocabulary(count: int, prefix: str = "w") -> Words:
    """A vocabulary of ``count`` words."""
    return Words(tuple(sorted(f"{prefix}{number}" for number in range(count))))


@pytest.mark.parametrize("level", [Level.JSON, Level.SCHEMA, Level.DELTA, Level.EFFECTS])
def test_the_grammars_of_a_full_warehouse_are_within_every_limit(level: Level) -> None:
    grammar = GrammarBuilder(WAREHOUSE, GrammarOptions(level)).build(STATE, WAREHOUSE.facts("Customer ordered item_1."))
    assert grammar is not None
    check_limits(grammar)


def test_a_check_costs_less_than_a_fifth_of_a_millisecond_a_step() -> None:
    builder = GrammarBuilder(WAREHOUSE, GrammarOptions(Level.DELTA))
    grammar = builder.build(STATE, WAREHOUSE.facts("Customer ordered item_1."))
    assert grammar is not None
    times = []
    for _ in range(50):
        started = time.perf_counter()
        check_limits(grammar)
        times.append(time.perf_counter() - started)
    assert sorted(times)[25] < 0.0002


def test_too_many_words_in_one_vocabulary() -> None:
    check_limits(Grammar(Quoted(vocabulary(check.MAX_LIVE_WORDS))))
    with pytest.raises(GrammarError, match="MAX_LIVE_WORDS"):
        check_limits(Grammar(Quoted(vocabulary(check.MAX_LIVE_WORDS + 1)), label="big delta"))


def test_too_many_words_altogether_where_a_shared_vocabulary_counts_once() -> None:
    shared = vocabulary(check.MAX_LIVE_WORDS)
    check_limits(Grammar(Seq((shared,) * 50)))
    with pytest.raises(GrammarError, match="MAX_WORDS"):
        check_limits(Grammar(Seq(tuple(vocabulary(check.MAX_LIVE_WORDS, f"{n}_") for n in range(11)))))


def test_nested_too_deeply_and_too_many_parts() -> None:
    node: Node = Lit("x")
    for _ in range(check.MAX_DEPTH):
        node = Quoted(node)
    with pytest.raises(GrammarError, match="MAX_DEPTH"):
        check_limits(Grammar(node))
    with pytest.raises(GrammarError, match="MAX_NODES"):
        check_limits(Grammar(Alt(tuple(Lit("x") for _ in range(check.MAX_NODES)))))


def test_a_graph_that_shares_at_every_depth_is_checked_without_expanding_it() -> None:
    node: Node = Lit("x")
    for _ in range(100):
        node = Seq((node, node))
    check_limits(Grammar(node))


def test_a_written_grammar_that_is_too_large_names_its_size() -> None:
    check_text("x" * check.MAX_TEXT_BYTES)
    with pytest.raises(GrammarError, match=r"4,194,306 bytes, more than 4,194,304"):
        check_text("é" * (check.MAX_TEXT_BYTES // 2 + 1))


def test_the_builder_checks_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "MAX_LIVE_WORDS", 100)
    builder = GrammarBuilder(WAREHOUSE, GrammarOptions(Level.DELTA))
    with pytest.raises(GrammarError, match="warehouse delta has a vocabulary of 500 words, more than 100"):
        builder.build({"inventory": {}}, WAREHOUSE.facts("Shipment arrived containing item_1."))
