"""outlines_core as a grammar backend: static levels in its own library, and clear refusals of the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from skillstate_local.domains.level import Level
from skillstate_local.domains.observation import NO_FACTS
from skillstate_local.domains.validate import Rules, is_decodable, validate
from skillstate_local.domains.warehouse import WAREHOUSE
from skillstate_local.engine import backend_outlines
from skillstate_local.engine.backend_outlines import OutlinesBackend
from skillstate_local.engine.backends import Matcher
from skillstate_local.engine.chooser import few_tokens
from skillstate_local.errors import EnvironmentProblem, GrammarError, UnsupportedConstraint
from skillstate_local.grammar.ir import Chars, Grammar, Lit, Quoted, Repeat, Seq
from skillstate_local.grammar.sample import sample
from skillstate_local.grammar.text import pattern_node
from skillstate_local.grammar.turn import GrammarBuilder, GrammarOptions
from tests.engine.conftest import build_tokenizer

VOCAB = 416
ENDS = (2, 3)  # <eos>, <end_of_turn>
EMPTY = {"inventory": {}}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return build_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module")
def backend(tokenizer: Any) -> OutlinesBackend:
    return OutlinesBackend(tokenizer, VOCAB, ENDS)


def built(level: Level, reasoning_tokens: int = 0) -> Grammar:
    """Warehouse with nothing stored."""
    grammar = GrammarBuilder(WAREHOUSE, GrammarOptions(level, reasoning_tokens=reasoning_tokens)).build(EMPTY)
    assert grammar is not None
    return grammar


def allowed(matcher: Matcher, vocab: int = VOCAB) -> list[int]:
    mask = np.full(-(-vocab // 32), -1, dtype=np.int32)
    matcher.fill(mask)
    ids = few_tokens(mask, vocab)
    assert ids is not None
    return ids.tolist()


def test_random_walks_over_tokens_are_valid_turns(backend: OutlinesBackend) -> None:
    compiled = backend.compile(built(Level.SCHEMA))
    for seed in range(30):
        rng, matcher, out = Random(seed), compiled.matcher(), b""
        while not matcher.is_complete():
            token = rng.choice(allowed(matcher))
            assert token not in ENDS
            matcher.accept(token)
            out += backend.token_bytes(token)
        assert allowed(matcher) == list(ENDS)
        assert is_decodable(validate(out.decode(), WAREHOUSE, EMPTY, NO_FACTS, Rules(Level.SCHEMA)), Level.SCHEMA)


def test_every_sentence_can_be_decoded_in_the_tokenizers_own_segmentation(
    backend: OutlinesBackend, tokenizer: Any
) -> None:
    grammar = built(Level.SCHEMA, reasoning_tokens=10)
    compiled = backend.compile(grammar)
    for seed in range(20):
        matcher = compiled.matcher()
        text = f"<reasoning>é 漢😀</reasoning>{sample(grammar.root, Random(seed))}"
        for token in tokenizer(text, add_special_tokens=False).input_ids:
            assert token in allowed(matcher)
            matcher.accept(token)
        assert matcher.is_complete()
        assert matcher.forced_tokens() == []


def test_end_tokens_only_where_the_grammar_may_end(backend: OutlinesBackend) -> None:
    grammar = Grammar(Seq((Lit("ab"), Repeat(Lit("c"), 0, 1))), static=True)
    matcher = backend.compile(grammar).matcher()
    while not set(ENDS) & set(allowed(matcher)):
        matcher.accept(allowed(matcher)[0])
    assert set(ENDS) < set(allowed(matcher))
    assert not matcher.is_complete()


def test_a_token_that_is_not_allowed_is_an_error(backend: OutlinesBackend, tokenizer: Any) -> None:
    matcher = backend.compile(Grammar(Lit("a"), static=True)).matcher()
    with pytest.raises(GrammarError, match="rejected token"):
        matcher.accept(tokenizer.convert_tokens_to_ids("b"))


@pytest.mark.parametrize(
    ("level", "reasoning_tokens", "said"),
    [(Level.DELTA, 0, "at every step"), (Level.EFFECTS, 0, "at every step"), (Level.JSON, 0, "characters, at most")],
)
def test_what_it_cannot_serve_it_refuses_and_says_why(
    backend: OutlinesBackend, level: Level, reasoning_tokens: int, said: str
) -> None:
    with pytest.raises(UnsupportedConstraint, match=said) as caught:
        backend.compile(built(level, reasoning_tokens))
    assert "llguidance" in caught.value.hint


def test_free_text_is_counted_before_anything_is_built(
    backend: OutlinesBackend, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = 30 * (len(tokenizer) - 5)  # five special tokens
    grammar = Grammar(Quoted(Repeat(Chars(((0x23, 0xD7FF),)), 0, 30)), static=True, label="much text")
    monkeypatch.setattr(backend_outlines, "MAX_INDEX_ENTRIES", entries)
    backend.compile(grammar)
    monkeypatch.setattr(backend_outlines, "MAX_INDEX_ENTRIES", entries - 1)
    with pytest.raises(UnsupportedConstraint, match="much text holds 30 characters of free text"):
        backend.compile(grammar)


def test_an_automaton_that_explodes_is_found_out_in_another_process(
    backend: OutlinesBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend_outlines, "TRIAL_LIMIT_S", 1.0)
    explosive = Grammar(Quoted(pattern_node("(a|b){0,40}a(a|b){40}")), static=True, label="explosive")
    with pytest.raises(GrammarError, match="automaton of explosive for outlines takes longer than 1 s"):
        backend.compile(explosive)


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch, tokenizer: Any) -> None:
    def missing(_: str) -> Any:
        raise ImportError

    monkeypatch.setattr(backend_outlines.importlib, "import_module", missing)
    with pytest.raises(EnvironmentProblem, match=r"outlines\]"):
        OutlinesBackend(tokenizer, VOCAB, ENDS)


@pytest.mark.slow
@pytest.mark.model
def test_the_vocabulary_of_a_real_model(model_dir: Callable[[str], Path]) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model_dir("smollm2-135m-instruct"))
    backend = OutlinesBackend(tokenizer, 49_152, [tokenizer.eos_token_id])
    grammar = built(Level.SCHEMA)
    matcher = backend.compile(grammar).matcher()
    for token in tokenizer(sample(grammar.root, Random(1)), add_special_tokens=False).input_ids:
        assert token in allowed(matcher, 49_152)
        matcher.accept(token)
    assert matcher.is_complete()
    with pytest.raises(UnsupportedConstraint, match="29,481,000 entries"):
        backend.compile(built(Level.SCHEMA, reasoning_tokens=150))
