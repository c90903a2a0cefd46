"""The same language when tokens are several bytes long: a byte-pair vocabulary, walked mask by mask."""

from __future__ import annotations

import json
from functools import lru_cache
from random import Random
from typing import Any

import numpy as np
import pytest
from llguidance import LLMatcher, LLTokenizer

from skillstate_local.grammar.ir import Dialect
from tests.grammar.matching import matches
from tests.grammar.steps import authored, mutations, random_step, seeds, walks

tokenizers = pytest.importorskip("tokenizers")


@lru_cache(maxsize=1)
def vocabulary() -> tuple[Any, Any]:
    """A byte-pair tokenizer learned from turns, and the same one as llguidance reads it."""
    rng = Random(0)
    corpus: list[str] = []
    while len(corpus) < 300:
        step = random_step(rng)
        if step.grammar is not None:
            corpus += [*walks(rng, step, 1), *authored(rng, step, 2)]
    model = tokenizers.Tokenizer(tokenizers.models.BPE())
    model.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    model.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=900, special_tokens=["<eos>"], initial_alphabet=alphabet, show_progress=False
    )
    model.train_from_iterator(corpus, trainer)
    assert json.loads(model.to_str())["model"]["merges"]
    return model, LLTokenizer(model.to_str(), eos_token=0)


def walk(lark: str, text: str) -> bool:
    """Whether ``text`` can be reached through the masks: at each place an allowed token that fits, at last the end.

    Where bytes are forced, llguidance allows only the tokens that it would force, which need not be the tokenizer's own
    segmentation; so any allowed token that continues the text will do.
    """
    model, inner = vocabulary()
    spelled = pieces()
    matcher = LLMatcher(inner, LLMatcher.grammar_from_lark(lark), log_level=0)
    rest = text.encode()
    while rest:
        mask = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
        fitting = [t for t, piece in spelled.items() if rest.startswith(piece) and mask[t // 8] >> (t % 8) & 1]
        own = model.encode(rest.decode(errors="ignore")).ids[:1]
        if not fitting:
            return False
        token = own[0] if own and own[0] in fitting else max(fitting, key=lambda t: len(spelled[t]))
        assert matcher.consume_token(token), matcher.get_error()
        rest = rest[len(spelled[token]) :]
    mask = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
    return bool(mask[0] & 1)


@lru_cache(maxsize=1)
def pieces() -> dict[int, bytes]:
    """The bytes of every token but the end token."""
    model, inner = vocabulary()
    return {token: bytes(inner.decode_bytes([token])) for token in range(1, model.get_vocab_size())}


@seeds(12)
def test_masks_over_long_tokens_decide_as_bytes_do(seed: int) -> None:
    rng = Random(seed)
    step = random_step(rng)
    if step.grammar is None:
        return
    turns = [*authored(rng, step, 3), *walks(rng, step, 4)]
    for text in [*turns, *mutations(rng, step, turns, 6)]:
        assert walk(step.grammar.write(Dialect.LARK), text) is matches(step.grammar, Dialect.LARK, text), text
