"""The packed, prefix-cached decoder against transformers' own forward, token for token."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from skillstate_local.engine.attention import Segment
from skillstate_local.engine.decoder import Decoder
from skillstate_local.engine.loading import checked_decoder, pack_linears, refuse_hybrids
from skillstate_local.errors import EnvironmentProblem
from tests.engine.conftest import plain_greedy


def reference(folder: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def random_tokens(count: int, seed: int, vocab: int = 390) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randint(5, vocab, (count,), generator=generator)).tolist()


class Rows:
    """A small scheduler by hand: rows join and leave, greedy tokens and their logits are kept."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.names: list[str] = []
        self.length: dict[str, int] = {}
        self.pending: dict[str, list[int]] = {}
        self.out: dict[str, list[int]] = {}
        self.logits: dict[str, list[torch.Tensor]] = {}

    def join(self, name: str, prefix: list[int], tail: list[int]) -> None:
        row = len(self.names)
        if prefix:
            saved, _ = self.decoder.prefix(tuple(prefix), row)
            self.decoder.cache.load(row, saved)
        self.names.append(name)
        self.length[name], self.pending[name] = len(prefix), list(tail)
        self.out[name], self.logits[name] = [], []

    def step(self, compact: int) -> None:
        segments = [Segment(r, self.length[n], self.pending[n]) for r, n in enumerate(self.names)]
        logits = self.decoder.logits(self.decoder.forward(segments, compact))
        for name, row in zip(self.names, logits, strict=True):
            self.length[name] += len(self.pending[name])
            token = int(row.argmax())
            self.pending[name] = [token]
            self.out[name].append(token)
            self.logits[name].append(row.float())

    def leave(self, name: str) -> None:
        row = self.names.index(name)
        last = self.names.pop()
        if last != name:
            self.decoder.cache.move(len(self.names), row, self.length[last])
            self.names[row] = last


def run_joining_and_leaving(
    decoder: Decoder, prompts: dict[str, tuple[list[int], list[int]]], steps: int
) -> dict[str, tuple[list[int], list[torch.Tensor]]]:
    """Admit the prompts two at a time; drop the first ones early, so that rows move."""
    rows, waiting = Rows(decoder), list(prompts)
    for step in range(steps):
        compact = len(rows.names)
        for name in waiting[:2]:
            rows.join(name, *prompts[name])
        del waiting[:2]
        rows.step(compact)
        if step == 3:
            rows.leave(next(iter(prompts)))
    return {n: (rows.out[n], rows.logits[n]) for n in prompts}


def assert_same_as_plain(model: Any, plain: Any, prompts: dict[str, tuple[list[int], list[int]]], steps: int) -> None:
    with torch.inference_mode():
        found = run_joining_and_leaving(Decoder(model, len(prompts)), prompts, steps)
    for name, (prefix, tail) in prompts.items():
        tokens, logits = found[name]
        expected, expected_logits = plain_greedy(plain, prefix + tail, tokens)
        assert tokens == expected, name
        for mine, theirs in zip(logits, expected_logits, strict=True):
            assert (mine - theirs).abs().max() < 1e-3 * max(1.0, float(theirs.abs().max()))


@pytest.mark.parametrize("kind", ["llama", "gemma3", "qwen3"])
def test_batched_prefix_cached_greedy_equals_plain_forward(tiny: Callable[[str], Path], kind: str) -> None:
    folder = tiny(kind)
    prefix_a, prefix_b = random_tokens(40, 1), random_tokens(7, 2)
    prompts = {
        "a1": (prefix_a, random_tokens(3, 3)),
        "a2": (prefix_a, random_tokens(30, 4)),
        "b1": (prefix_b, random_tokens(1, 5)),
        "none": ([], random_tokens(55, 6)),
        "b2": (prefix_b, random_tokens(9, 7)),
    }
    assert_same_as_plain(reference(folder), reference(folder), prompts, steps=14)


@pytest.mark.parametrize("kind", ["llama", "gemma3"])
def test_long_and_short_runs_in_one_pass(tiny: Callable[[str], Path], kind: str) -> None:
    """Forced runs give rows different numbers of new tokens; none may see another's padding."""
    plain, model = reference(tiny(kind)), reference(tiny(kind))
    decoder = Decoder(model, 4)
    first = [random_tokens(n, n) for n in (20, 33, 5, 12)]
    runs = [random_tokens(n, 50 + n) for n in (1, 9, 3, 2)]
    with torch.inference_mode():
        decoder.forward([Segment(r, 0, t) for r, t in enumerate(first)], compact=0)
        segments = [Segment(r, len(a), b) for r, (a, b) in enumerate(zip(first, runs, strict=True))]
        logits = decoder.logits(decoder.forward(segments, compact=4))
        for row, (a, b) in enumerate(zip(first, runs, strict=True)):
            expected = plain(torch.tensor([a + b]), use_cache=False).logits[0, -1]
            torch.testing.assert_close(logits[row], expected, rtol=1e-3, atol=1e-3)


def test_growing_the_cache_keeps_what_is_in_it(tiny: Callable[[str], Path]) -> None:
    model = reference(tiny("llama"))
    decoder = Decoder(model, 2)
    tokens = random_tokens(300, 9)
    with torch.inference_mode():
        decoder.forward([Segment(0, 0, tokens[:250])], compact=0)
        before = decoder.cache.capacity
        logits = decoder.logits(decoder.forward([Segment(0, 250, tokens[250:])], compact=1))
        assert decoder.cache.capacity > before
        model.set_attn_implementation("sdpa")
        expected = model(torch.tensor([tokens]), use_cache=False).logits[0, -1]
    torch.testing.assert_close(logits[0], expected, rtol=1e-3, atol=1e-3)


def test_logits_of_a_few_tokens_equal_the_whole_head(tiny: Callable[[str], Path]) -> None:
    decoder = Decoder(reference(tiny("gemma3")), 1)
    with torch.inference_mode():
        hidden = decoder.forward([Segment(0, 0, [5, 6, 7])], compact=0)
        ids = torch.tensor([3, 17, 400]).numpy()
        torch.testing.assert_close(decoder.logits_of(hidden[0], ids), decoder.logits(hidden)[0, ids])


def test_a_model_family_that_we_misread_is_refused(tiny: Callable[[str], Path]) -> None:
    model = reference(tiny("llama"))
    model.config.logits_scaling = 3.0  # the model does not divide, we would
    with pytest.raises(EnvironmentProblem, match="does not reproduce LlamaForCausalLM"):
        checked_decoder(model, 1)


def test_hybrid_layers_are_refused_by_name() -> None:
    class Config:
        layer_types = ("full_attention", "linear_attention")
        model_type = "qwen3_next"

    with pytest.raises(EnvironmentProblem, match=r"linear_attention[\s\S]*--engine vllm"):
        refuse_hybrids(Config())


def test_packed_linear_layers_give_the_same_bits(tiny: Callable[[str], Path]) -> None:
    model = AutoModelForCausalLM.from_pretrained(tiny("llama"), dtype=torch.bfloat16).eval()
    tokens = torch.tensor([random_tokens(20, 1)])
    with torch.inference_mode():
        before = model(tokens, use_cache=False).logits
        pack_linears(model)
        assert torch.equal(model(tokens, use_cache=False).logits, before)


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize("name", ["gemma-3-270m", "smollm2-135m-instruct"])
def test_real_models_beyond_the_sliding_window(model_dir: Callable[[str], Path], name: str) -> None:
    folder = model_dir(name)
    prefix, other = random_tokens(530, 1, 40000), random_tokens(60, 2, 40000)
    prompts = {
        "early": (prefix, random_tokens(5, 3, 40000)),
        "long": (prefix, random_tokens(70, 4, 40000)),
        "short": (other, random_tokens(2, 5, 40000)),
        "late": (other, random_tokens(500, 6, 40000)),
    }
    assert_same_as_plain(reference(folder), reference(folder), prompts, steps=6)
