"""Turn a GGUF into a model folder in bf16 that transformers and vLLM load, and check what was written."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partialmethod
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from skillstate_local.errors import EnvironmentProblem
from skillstate_local.registry.progress import Phase, Progress

STEPS = 4
_SAMPLES = (
    "The capital of France is",
    '{"state_patch":{"shelf_12":null},"action":"Ship crate_4 shelf_12"}',
    "  two spaces\n\n\ttab, Ünïcödé, 日本語, 😀",
)
_END_TOKEN_KEYS = ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id")


def convert_gguf(gguf: Path, folder: Path, progress: Progress) -> None:
    """Write config, weights, tokenizer and generation config of ``gguf`` into ``folder``.

    Raises EnvironmentProblem if the extra is missing, or if the result does not agree with the GGUF's own metadata.
    """
    _need_extra()
    progress.start(Phase.CONVERT, STEPS, "steps")
    progress.advance(0, "tokenizer")
    metadata = read_metadata(gguf)
    with _no_bars():
        tokenizer = _load_tokenizer(gguf, metadata)
        progress.advance(1, "weights")
        model = _load_model(gguf)
        _set_end_tokens(model, tokenizer, metadata)
        progress.advance(1, "save")
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        for path in folder.iterdir():
            path.chmod(0o644)
        progress.advance(1, "check")
        _check_tokenizer(folder, tokenizer, metadata)
        _check_logits(model, tokenizer)
    progress.advance(1)


def read_metadata(gguf: Path) -> dict[str, Any]:
    """The scalar ``tokenizer.ggml`` fields of a GGUF (token ids, flags, model), without its token lists."""
    from gguf import GGUFReader, GGUFValueType

    fields = GGUFReader(gguf).fields.items()
    return {
        name: field.contents()
        for name, field in fields
        if name.startswith("tokenizer.ggml.") and field.types[0] is not GGUFValueType.ARRAY
    }


def package_versions() -> dict[str, str]:
    """Versions of everything that shapes the converted folder."""
    found = {}
    for name in ("torch", "transformers", "tokenizers", "gguf", "accelerate", "safetensors"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found


def _need_extra() -> None:
    missing = [name for name, found in package_versions().items() if found == "missing"]
    if missing:
        raise EnvironmentProblem(
            f"Converting a packaged model needs {', '.join(missing)}.", "Install skillstate-local[transformers]."
        )


@contextmanager
def _no_bars() -> Iterator[None]:
    """Keep progress bars off stderr: the GGUF reader's heeds no switch of transformers, so tqdm itself is told."""
    bar: Any = importlib.import_module("tqdm").tqdm
    original = bar.__init__
    bar.__init__ = partialmethod(original, disable=True)
    try:
        yield
    finally:
        bar.__init__ = original


def _load_tokenizer(gguf: Path, metadata: dict[str, Any]) -> Any:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    # transformers drops this flag; Gemma without its first token loops ("France of France of France").
    tokenizer.add_bos_token = bool(metadata.get("tokenizer.ggml.add_bos_token", False))
    return tokenizer


def _load_model(gguf: Path) -> Any:
    import torch
    from transformers import AutoModelForCausalLM, GgufConfig

    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
    )
    return model.eval()


def _set_end_tokens(model: Any, tokenizer: Any, metadata: dict[str, Any]) -> None:
    """Every end token the GGUF declares goes into the generation config, where the engines read them."""
    ends = list(dict.fromkeys(metadata[key] for key in _END_TOKEN_KEYS if key in metadata))
    if not ends or tokenizer.eos_token_id not in ends:
        raise EnvironmentProblem(
            f"The tokenizer's end token {tokenizer.eos_token_id} is not among the file's {ends}.", _REPORT
        )
    if max(*ends, len(tokenizer) - 1) >= model.config.vocab_size:
        raise EnvironmentProblem("The tokenizer has more tokens than the model has logits.", _REPORT)
    model.generation_config.eos_token_id = ends[0] if len(ends) == 1 else ends


def _check_tokenizer(folder: Path, original: Any, metadata: dict[str, Any]) -> None:
    """The saved tokenizer encodes as the original, decodes to the same text, and starts as the GGUF says."""
    from transformers import AutoTokenizer

    saved = AutoTokenizer.from_pretrained(folder)
    for text in _SAMPLES:
        plain = saved.encode(text, add_special_tokens=False)
        if saved.decode(plain) != text or saved.encode(text) != original.encode(text):
            raise EnvironmentProblem(f"The saved tokenizer does not keep {text!r}.", _REPORT)
        begins = saved.encode(text)[0] == saved.bos_token_id
        if begins != bool(metadata.get("tokenizer.ggml.add_bos_token", False)):
            raise EnvironmentProblem("The saved tokenizer treats the first token differently from the file.", _REPORT)


def _check_logits(model: Any, tokenizer: Any) -> None:
    import torch

    with torch.inference_mode():
        logits = model(**tokenizer(_SAMPLES[0], return_tensors="pt")).logits
    if not bool(torch.isfinite(logits).all()):
        raise EnvironmentProblem("The converted model computes no finite logits.", _REPORT)


_REPORT = "The conversion with these versions of transformers and gguf is not usable; report it with `pip list`."
