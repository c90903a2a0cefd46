"""The law for GBNF and regular expressions, each through its real library: llama.cpp, and outlines_core beside `re`."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from random import Random

import outlines_core
import pytest

from skillstate_local.domains.level import Level, Order
from skillstate_local.domains.turn import write_turn
from skillstate_local.domains.validate import Rejected
from skillstate_local.domains.warehouse import WAREHOUSE
from skillstate_local.errors import UnsupportedConstraint
from skillstate_local.grammar.ir import Chars, Dialect, Excluding, Grammar, Group, Lit, Object, Repeat, Variant, Words
from skillstate_local.grammar.regular import regex_size
from skillstate_local.grammar.turn import GrammarBuilder, GrammarOptions
from tests.grammar.llama_cpp import LlamaGrammar
from tests.grammar.steps import Step, authored, mutations, nodes, random_step, seeds, walks

END = 256
DIALECTS = (Dialect.GBNF, Dialect.REGEX)


@lru_cache(maxsize=8)
def llama_grammar(text: str) -> LlamaGrammar:
    """A parsed GBNF grammar."""
    return LlamaGrammar(text)


@lru_cache(maxsize=8)
def byte_index(text: str) -> outlines_core.Index:
    """An index over the vocabulary of single bytes."""
    vocabulary = outlines_core.Vocabulary(END, {bytes([byte]): [byte] for byte in range(256)})
    return outlines_core.Index(text, vocabulary)


def outlines_matches(text: str, turn: str) -> bool:
    """Whether outlines_core lets every byte through and may end there."""
    guide = outlines_core.Guide(byte_index(text))
    for byte in turn.encode():
        if not guide.accepts_tokens([byte]):
            return False
        guide.advance(byte, return_tokens=False)
    return bool(guide.is_finished())


def python_matches(text: str, turn: str) -> bool:
    """Whether Python's own engine matches the same expression; only code points are spelled otherwise."""
    spelled = re.sub(r"\\x\{([0-9a-f]+)\}", lambda m: f"\\U{int(m.group(1), 16):08x}", text)
    return re.fullmatch(spelled.replace(r"\/", "/"), turn) is not None


def decodable(dialect: Dialect, text: str, turn: str) -> bool:
    """The library's word; for regular expressions both engines must agree."""
    if dialect is Dialect.GBNF:
        return llama_grammar(text).matches(turn)
    accepted = outlines_matches(text, turn)
    assert accepted == python_matches(text, turn), (text, turn)
    return accepted


def excepted(step: Step, dialect: Dialect, turn: str) -> bool:
    """What the dialect's documentation says it lets through: repeated keys, and in GBNF words that are taken."""
    verdict = step.verdict(turn)
    assert isinstance(verdict, Rejected)
    assert step.grammar is not None
    if "duplicate key" in verdict.message:
        return True
    return dialect is Dialect.GBNF and any(isinstance(node, Excluding) for node in nodes(step.grammar.root))


def text_of(step: Step, dialect: Dialect) -> str:
    """The written grammar, or nothing where the step has none or the dialect refuses it."""
    try:
        return "" if step.grammar is None else step.grammar.write(dialect)
    except UnsupportedConstraint:
        return ""


def agree(step: Step, dialect: Dialect, text: str, turns: list[str]) -> None:
    """Library and validator give the same verdict on every turn, the exceptions aside."""
    for turn in turns:
        valid, decoded = step.valid(turn), decodable(dialect, text, turn)
        assert valid == decoded or (decoded and excepted(step, dialect, turn)), (
            f"{dialect} {decoded} {turn!r}: {step.verdict(turn)}\n{step}\n{text[:4000]}"
        )


@pytest.mark.parametrize("dialect", DIALECTS)
@seeds(80)
def test_walks_turns_and_mutations_are_decodable_exactly_when_they_are_valid(dialect: Dialect, seed: int) -> None:
    rng = Random(seed)
    step = random_step(rng)
    text = text_of(step, dialect)
    if text:
        turns = [*walks(rng, step, 4), *authored(rng, step, 8)]
        agree(step, dialect, text, [*turns, *mutations(rng, step, turns, 20)])


def test_most_random_steps_can_be_written_in_either_dialect() -> None:
    """Otherwise the property above would say little."""
    written = dict.fromkeys(DIALECTS, 0)
    for seed in range(100):
        step = random_step(Random(seed))
        for dialect in DIALECTS:
            written[dialect] += bool(text_of(step, dialect))
    assert written[Dialect.GBNF] > 80, written
    assert written[Dialect.REGEX] > 50, written


def test_llama_cpp_refuses_what_is_no_grammar_and_judges_by_bytes() -> None:
    """The judge itself: it can say no, to a grammar and to a text."""
    with pytest.raises(AssertionError):
        LlamaGrammar("root ::= missing")
    judge = LlamaGrammar('root ::= "a" [b-dé]{1,3} ("x" | "")')
    assert [judge.matches(turn) for turn in ("ab", "aéx", "abcd", "a", "abcdb", "aè", "abxx")] == [True] * 3 + [
        False
    ] * 4


def test_level_json_in_gbnf_keeps_its_bounds() -> None:
    """Unlike in EBNF, whose strings are unbounded there."""
    grammar = GrammarBuilder(WAREHOUSE, GrammarOptions(Level.JSON)).build({"inventory": {}})
    assert grammar is not None
    judge = LlamaGrammar(grammar.write(Dialect.GBNF))
    for chars, accepted in ((199, True), (200, True), (201, False)):
        patch = {"é" * chars: ["\n" * chars, {"a": [{}]}, Decimal("-0.5"), None]}
        assert judge.matches(write_turn(patch, "é" * chars, Order.PATCH_FIRST)) is accepted
    assert not judge.matches(write_turn({"a": [[[[[]]]]]}, "", Order.PATCH_FIRST))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_reasoning_section_is_bounded_by_four_characters_a_token(dialect: Dialect) -> None:
    """Neither dialect can count tokens."""
    grammar = GrammarBuilder(WAREHOUSE, GrammarOptions(Level.SCHEMA, reasoning_tokens=5)).build({"inventory": {}})
    assert grammar is not None
    text = grammar.write(dialect)
    for reasoning, accepted in (("", True), ("é" * 20, True), ("é" * 21, False), ("a<b", False)):
        turn = f"<reasoning>{reasoning}</reasoning>" + write_turn({}, "Wait", Order.PATCH_FIRST)
        assert decodable(dialect, text, turn) is accepted
    assert not decodable(dialect, text, write_turn({}, "Wait", Order.PATCH_FIRST))


@pytest.mark.parametrize(("minimum", "maximum"), [(0, 1999), (0, 2000), (3, 2500), (2100, 4200), (2000, 2000)])
def test_gbnf_writes_repetitions_that_llama_cpp_would_refuse_as_chains(minimum: int, maximum: int) -> None:
    """From 2,000 on llama.cpp refuses a repetition, or takes its bound for none."""
    judge = LlamaGrammar(Grammar(Repeat(Chars(((97, 122),)), minimum, maximum)).write(Dialect.GBNF))
    counts = {minimum - 1, minimum, maximum, maximum + 1} - {-1}
    assert {count for count in counts if judge.matches("a" * count)} == {minimum, maximum}


def test_gbnf_refuses_a_repetition_beyond_its_longest_chain() -> None:
    """It never weakens a bound."""
    with pytest.raises(UnsupportedConstraint, match="10,001"):
        Grammar(Repeat(Chars(((97, 122),)), 0, 10_001)).write(Dialect.GBNF)


def test_gbnf_folds_thousands_of_words_that_end_where_others_go_on() -> None:
    """`(…)?` around a large group is one of the things llama.cpp refuses."""
    words = tuple(sorted({"a", *(f"a{number * 7919 % 100_003:05d}x{number}" for number in range(3000))}))
    judge = LlamaGrammar(Grammar(Words(words)).write(Dialect.GBNF))
    assert judge.matches("a")
    assert judge.matches(words[1234])
    assert not judge.matches(words[1234][:-1] + "_")


def test_a_regular_expression_that_would_be_too_long_is_refused_with_its_size() -> None:
    """Eight fields have 40,320 orders; the size is worked out, not written."""
    keys = [Group((Variant(Words((f"field_{number}",)), Lit("true")),)) for number in range(8)]
    grammar = Grammar(Object(tuple(keys), 8), label="eight fields")
    assert regex_size(grammar) > 1_000_000
    with pytest.raises(UnsupportedConstraint, match=rf"eight fields has {regex_size(grammar):,} characters"):
        grammar.write(Dialect.REGEX)
    small = Grammar(Object(tuple(keys[:4]), 4))
    assert len(small.write(Dialect.REGEX)) == regex_size(small)
