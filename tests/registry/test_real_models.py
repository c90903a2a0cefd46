"""The two packaged models, as pulled on this machine, continue plain English sensibly."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from skillstate_local.registry import load_registry, model_identity, ready_path, status

pytestmark = pytest.mark.model


@cache
def load(name: str) -> tuple[Any, Any]:
    """Tokenizer and model; skips the test if the model was not pulled here."""
    folder = ready_path(name)
    if folder is None:
        pytest.skip(f"run `skillstate-local models pull {name}`")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)


def continuation(name: str, prompt: str) -> str:
    """Sixteen greedy tokens after ``prompt``."""
    tokenizer, model = load(name)
    inputs = tokenizer(prompt, return_tensors="pt")
    output = model.generate(**inputs, max_new_tokens=16, do_sample=False)
    text: str = tokenizer.decode(output[0][inputs["input_ids"].shape[1] :])
    return text


@pytest.mark.parametrize(
    ("name", "prompt", "expected"),
    [
        ("gemma-3-270m", "The Eiffel Tower is in the city of", "Paris"),
        ("gemma-3-270m", "Question: What is the capital of France?\nAnswer:", "Paris"),
        ("gemma-3-270m", "1, 2, 3, 4,", "5, 6, 7"),
        ("smollm2-135m-instruct", "The capital of France is", "Paris"),
        ("smollm2-135m-instruct", "1, 2, 3, 4,", "5, 6, 7"),
    ],
)
def test_greedy_continuation(name: str, prompt: str, expected: str) -> None:
    assert expected in continuation(name, prompt)


@pytest.mark.parametrize(
    ("name", "first", "end", "has_template"),
    [("gemma-3-270m", 2, "<eos>", False), ("smollm2-135m-instruct", None, "<|im_end|>", True)],
)
def test_special_tokens(name: str, first: int | None, end: str, has_template: bool) -> None:
    tokenizer, model = load(name)
    ids = tokenizer.encode("Hello")
    assert (ids[0] == first) if first is not None else (ids[0] != tokenizer.bos_token_id)
    assert tokenizer.eos_token == end
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id == tokenizer.convert_tokens_to_ids(end)
    assert bool(tokenizer.chat_template) is has_template


@pytest.mark.parametrize("name", ["gemma-3-270m", "smollm2-135m-instruct"])
def test_checksums_hold(name: str) -> None:
    if ready_path(name) is None:
        pytest.skip(f"run `skillstate-local models pull {name}`")
    state = status(name, verify=True)
    assert state.ready, state.why
    identity = model_identity(name)
    package = load_registry().get(name).source.package
    assert package is not None
    assert (identity["weights_sha256"], identity["revision"]) == (state.checksum, package.sha256)
