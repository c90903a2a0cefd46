"""Both grammar libraries behind the protocol: masks, ends, forced tokens, errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skillstate_local.engine.backends import GrammarBackend, GrammarCache, Matcher, make_backend
from skillstate_local.engine.base import EngineStats
from skillstate_local.engine.chooser import few_tokens
from skillstate_local.errors import GrammarError, UsageError
from tests.engine.conftest import STORE, STORE_PATTERN, FakeGrammar, build_tokenizer

VOCAB = 416
ENDS = (2, 3)  # <eos>, <end_of_turn>


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return build_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module", params=["llguidance", "xgrammar"])
def backend(request: pytest.FixtureRequest, tokenizer: Any) -> GrammarBackend:
    return make_backend(request.param, tokenizer, VOCAB, ENDS)


def allowed(matcher: Matcher) -> list[int]:
    mask = np.zeros(VOCAB // 32, dtype=np.int32)
    matcher.fill(mask)
    ids = few_tokens(mask, VOCAB)
    assert ids is not None
    return ids.tolist()


def walk(backend: GrammarBackend, matcher: Matcher, seed: int, steps: int = 200) -> tuple[str, bool]:
    """Draw allowed tokens at random until the language ends."""
    random = np.random.default_rng(seed)
    out = b""
    for _ in range(steps):
        token = int(random.choice(allowed(matcher)))
        if token in ENDS:
            return out.decode(), False
        matcher.accept(token)
        out += backend.token_bytes(token)
        if matcher.is_complete():
            return out.decode(), True
    raise AssertionError("the language does not end")


def test_random_walks_stay_in_the_language(backend: GrammarBackend) -> None:
    compiled = backend.compile(STORE)  # type: ignore[arg-type]
    for seed in range(20):
        text, complete = walk(backend, compiled.matcher(), seed)
        assert re.fullmatch(STORE_PATTERN, text)
        assert complete


def test_end_tokens_only_where_the_grammar_may_end_and_then_all_of_them(backend: GrammarBackend) -> None:
    grammar = FakeGrammar(lark='start: "ab" "c"?\n', ebnf='root ::= "ab" "c"?\n')
    matcher = backend.compile(grammar).matcher()  # type: ignore[arg-type]
    ends = set(ENDS)
    while not ends & set(allowed(matcher)):
        assert not matcher.is_complete()
        matcher.accept(allowed(matcher)[0])
    assert ends < set(allowed(matcher))
    assert not matcher.is_complete()
    matcher.accept(next(t for t in allowed(matcher) if t not in ends))
    assert matcher.is_complete()


def test_special_and_padded_tokens_are_never_allowed_inside(backend: GrammarBackend, tokenizer: Any) -> None:
    grammar = FakeGrammar(lark='start: /[^x]{3,200}/ "x"\n', ebnf='root ::= [^x] [^x] [^x]* "x"\n')
    matcher = backend.compile(grammar).matcher()  # type: ignore[arg-type]
    special = set(tokenizer.all_special_ids) | set(range(5)) | set(range(len(tokenizer), VOCAB))
    for _ in range(3):
        assert not special & set(allowed(matcher))
        matcher.accept(tokenizer("a", add_special_tokens=False)["input_ids"][0])


def test_a_refused_token_raises(backend: GrammarBackend) -> None:
    matcher = backend.compile(STORE).matcher()  # type: ignore[arg-type]
    forbidden = next(t for t in range(5, 300) if t not in allowed(matcher))
    with pytest.raises(GrammarError):
        matcher.accept(forbidden)


def test_a_bad_grammar_raises_with_the_librarys_message(backend: GrammarBackend) -> None:
    with pytest.raises(GrammarError, match=f"{backend.name} cannot compile.*missing"):
        backend.compile(FakeGrammar(lark="start: missing\n", ebnf="root ::= missing\n"))  # type: ignore[arg-type]


def test_non_ascii_words(backend: GrammarBackend) -> None:
    grammar = FakeGrammar(lark='start: "é€" | "日本"\n', ebnf='root ::= "é€" | "日本"\n')
    compiled = backend.compile(grammar)  # type: ignore[arg-type]
    assert {walk(backend, compiled.matcher(), seed)[0] for seed in range(20)} == {"é€", "日本"}


def test_reasoning_has_a_hard_budget_and_an_exact_frame(backend: GrammarBackend) -> None:
    budget = 6
    grammar = FakeGrammar(
        lark=f'start: "<reasoning>" r "</reasoning>" "{{}}"\nr[max_tokens={budget}]: /[^<]*/\n',
        ebnf='root ::= "{}"\n',
        reasoning_tokens=budget,
    )
    compiled = backend.compile(grammar)  # type: ignore[arg-type]
    for seed in range(15):
        matcher = compiled.matcher()
        random, inside, text = np.random.default_rng(seed), 0, b""
        while not matcher.is_complete():
            token = int(random.choice(allowed(matcher)))
            matcher.accept(token)
            piece = backend.token_bytes(token)
            inside += text.startswith(b"<reasoning>") and b"<" not in (text + piece)[1:]
            text += piece
        assert re.fullmatch(rb"<reasoning>[^<]*</reasoning>\{\}", text, re.DOTALL)
        assert inside <= budget


def test_where_tokens_are_forced_nothing_else_is_allowed(tokenizer: Any) -> None:
    """The ground for jump-forward: with it and without, the same tokens come out."""
    backend = make_backend("llguidance", tokenizer, VOCAB, ENDS)
    compiled = backend.compile(STORE)  # type: ignore[arg-type]
    seen = 0
    for seed in range(10):
        matcher, random = compiled.matcher(), np.random.default_rng(seed)
        while not matcher.is_complete():
            forced = matcher.forced_tokens()
            options = allowed(matcher)
            if forced:
                seen += 1
                assert options == forced[:1]
            matcher.accept(int(random.choice(options)))
    assert seen > 50


def test_forced_tokens_are_the_tokenizers_own_segmentation(tokenizer: Any) -> None:
    backend = make_backend("llguidance", tokenizer, VOCAB, ENDS)
    matcher = backend.compile(STORE).matcher()  # type: ignore[arg-type]
    forced = matcher.forced_tokens()
    text = b"".join(backend.token_bytes(t) for t in forced).decode()
    assert text.startswith('{"state_patch"')
    assert tokenizer(text, add_special_tokens=False)["input_ids"] == forced


def test_static_grammars_are_compiled_once_and_step_grammars_cannot_push_them_out(backend: GrammarBackend) -> None:
    stats = EngineStats()
    cache = GrammarCache(backend, stats)
    static = FakeGrammar(lark='start: "a"\n', ebnf='root ::= "a"\n', static=True)
    cache.matcher(static)  # type: ignore[arg-type]
    for i in range(40):
        cache.matcher(FakeGrammar(lark=f'start: "s{i}"\n', ebnf=f'root ::= "s{i}"\n'))  # type: ignore[arg-type]
    cache.matcher(static)  # type: ignore[arg-type]
    assert (stats.grammar_builds, stats.grammar_cache_hits) == (41, 1)


def test_unknown_backend(tokenizer: Any) -> None:
    with pytest.raises(UsageError, match="Unknown grammar backend 'llama'"):
        make_backend("llama", tokenizer, VOCAB, ENDS)


@pytest.mark.model
@pytest.mark.parametrize("name", ["gemma-3-270m", "smollm2-135m-instruct"])
@pytest.mark.parametrize("library", ["llguidance", "xgrammar"])
def test_real_vocabularies(model_dir: Callable[[str], Path], name: str, library: str) -> None:
    """End-of-turn tokens stay outside the mask although they spell plain text."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model_dir(name))
    vocab = 262144 if name.startswith("gemma") else 49152
    ends = [1, 106] if name.startswith("gemma") else [0, 2]
    backend = make_backend(library, tokenizer, vocab, ends)
    grammar = FakeGrammar(lark='start: /[^"]{1,30}/ "\\""\n', ebnf='root ::= [^"] [^"]* "\\""\n')
    matcher = backend.compile(grammar).matcher()  # type: ignore[arg-type]
    mask = np.zeros(-(-vocab // 32), dtype=np.int32)
    matcher.fill(mask)
    ids = few_tokens(mask, vocab)
    assert ids is not None
    special = {i for i, t in tokenizer.added_tokens_decoder.items() if t.special}
    assert len(ids) > vocab // 2
    assert not set(ids.tolist()) & (special | set(ends))
