"""Load a model folder, refuse what the embedded engine cannot run, and check that it runs it right."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from skillstate_local.engine.attention import Segment
from skillstate_local.engine.decoder import Decoder
from skillstate_local.errors import EnvironmentProblem, ModelNotReady, UsageError

SUPPORTED_LAYERS = frozenset({"full_attention", "sliding_attention"})
END_OF_TURN = (
    "<end_of_turn>",
    "<turn|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "</s>",
    "<eos>",
)
CHECK_TOKENS = 12


class Loaded(NamedTuple):
    """A model ready to decode, and what the engine needs to know about it."""

    decoder: Decoder
    tokenizer: Any
    end_tokens: tuple[int, ...]
    context_tokens: int
    needs_bos: bool


def pick_device(device: str) -> torch.device:
    """``auto`` is CUDA where there is one. Raises EnvironmentProblem for a device that is not there."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        picked = torch.device(device)
    except RuntimeError as error:
        raise UsageError(f"Unknown device {device!r}.", "Use auto, cpu, cuda or cuda:N.") from error
    if picked.type == "cuda" and not torch.cuda.is_available():
        raise EnvironmentProblem("No CUDA device is available here.", "Use `--device cpu`.")
    return picked


def pick_dtype(dtype: str) -> torch.dtype:
    """The torch dtype of a name such as ``bfloat16``. Raises UsageError for another one."""
    known = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
    if dtype not in known:
        raise UsageError(f"Unknown dtype {dtype!r}.", f"Known: {', '.join(known)}.")
    return known[dtype]


def load(model_dir: Path, *, dtype: torch.dtype, device: torch.device, max_batch: int) -> Loaded:
    """Read a transformers model folder. Raises ModelNotReady or EnvironmentProblem."""
    if not (model_dir / "config.json").is_file():
        raise ModelNotReady(
            f"{model_dir} holds no config.json.", "Fetch the model with `skillstate-local models pull NAME`."
        )
    transformers_logging.disable_progress_bar()
    try:
        config = AutoConfig.from_pretrained(model_dir, local_files_only=True)
        refuse_hybrids(config.get_text_config())
        tokenizer = load_tokenizer(model_dir)
        model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=dtype, local_files_only=True).to(device).eval()
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise EnvironmentProblem(
            f"The model in {model_dir} cannot be loaded: {error}", "Fetch it again, or choose another model."
        ) from error
    decoder = checked_decoder(model, max_batch)
    if device.type == "cpu" and dtype is torch.bfloat16:
        pack_linears(model)
        decoder.head = packed(decoder.head)
    return Loaded(
        decoder, tokenizer, find_end_tokens(model, tokenizer), context_of(config), needs_bos(config, tokenizer)
    )


def load_tokenizer(model_dir: Path) -> Any:
    """The folder's fast tokenizer; grammars need the fast kind."""
    tokenizer = AutoTokenizer.from_pretrained(model_dir, local_files_only=True)
    if not getattr(tokenizer, "is_fast", False):
        raise EnvironmentProblem(f"{model_dir} has no fast tokenizer.", "A tokenizer.json is needed to build masks.")
    return tokenizer


def refuse_hybrids(config: Any) -> None:
    """Raise EnvironmentProblem for layers whose state is not keys and values by position."""
    kinds: Iterable[str] = getattr(config, "layer_types", None) or ()
    strange = sorted(set(kinds) - SUPPORTED_LAYERS)
    if strange:
        raise EnvironmentProblem(
            f"The embedded engine cannot run layers of type {', '.join(strange)} (model type {config.model_type}).",
            "Use `--engine vllm`.",
        )


def checked_decoder(model: Any, max_batch: int) -> Decoder:
    """Compare our packed pass with the model's own forward; a model family we misread is refused, not guessed."""
    vocab = model.get_output_embeddings().weight.shape[0]
    tokens = [1 + (7 * i) % (vocab - 1) for i in range(CHECK_TOKENS)]
    device = model.get_output_embeddings().weight.device
    with torch.inference_mode():
        expected = model(torch.tensor([tokens], device=device), use_cache=False).logits[0, -1].float()
    decoder = Decoder(model, max_batch)
    half = CHECK_TOKENS // 2
    try:
        decoder.forward([Segment(0, 0, tokens[:half])], compact=0)
        hidden = decoder.forward([Segment(0, half, tokens[half:])], compact=1)
        found = decoder.logits(hidden)[0].float()
    except (TypeError, AttributeError, KeyError, RuntimeError) as error:
        raise _misread(model, f"{type(error).__name__}: {error}") from error
    difference = (found - expected).abs().max().item()
    if not difference <= 0.1 * expected.std().item() + 1e-3:
        raise _misread(model, f"logits differ by {difference:.3g}")
    return decoder


def _misread(model: Any, what: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"The embedded engine does not reproduce {type(model).__name__} ({what}).", "Use `--engine vllm`."
    )


def context_of(config: Any) -> int:
    """The model's context length in tokens."""
    return int(config.get_text_config().max_position_embeddings)


def needs_bos(config: Any, tokenizer: Any) -> bool:
    """Is this a family that is unusable without its begin token?"""
    return str(config.model_type).startswith("gemma") and tokenizer.bos_token_id is not None


def find_end_tokens(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """All tokens that end a turn: both configs', the tokenizer's, and the known ones among its special tokens."""
    found: set[int] = set()
    for source in (model.generation_config, model.config, model.config.get_text_config(), tokenizer):
        value = getattr(source, "eos_token_id", None)
        found.update(value if isinstance(value, (list, tuple)) else () if value is None else (value,))
    for token, added in tokenizer.added_tokens_decoder.items():
        if added.special and str(added) in END_OF_TURN:
            found.add(token)
    vocab = model.get_output_embeddings().weight.shape[0]
    ends = tuple(sorted(int(t) for t in found if 0 <= int(t) < vocab))
    if not ends:
        raise EnvironmentProblem("The model names no end token.", "Set eos_token_id in its generation_config.json.")
    return ends


class PackedLinear(nn.Module):
    """A linear layer whose bfloat16 weight lies in the layout of the CPU's matrix units; the results are the same bits.

    Stock ``nn.Linear`` reorders the weight in every call: 1.6 times slower at small batches on a CPU with AMX.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight = linear.weight
        self.bias = linear.bias
        self.packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``x @ weight.T + bias``."""
        out: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")
        return out


def pack_linears(model: Any) -> None:
    """Pack every linear layer of the decoder in place; the plain weights are dropped."""
    for parent in model.get_decoder().modules():
        for name, child in parent.named_children():
            if type(child) is nn.Linear and (replacement := packed(child)) is not child:
                replacement.weight = None  # type: ignore[assignment]
                setattr(parent, name, replacement)


def packed(layer: nn.Module) -> nn.Module:
    """The packed form of a bfloat16 linear layer; anything else, or a build of torch that cannot, stays as it is."""
    able = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()  # type: ignore[no-untyped-call]
    if able and type(layer) is nn.Linear and layer.weight.dtype is torch.bfloat16:
        return PackedLinear(layer)
    return layer


def template_text(model_dir: Path) -> str:
    """The chat template that a model folder ships, or an empty string."""
    own = model_dir / "chat_template.jinja"
    if own.is_file():
        return own.read_text(encoding="utf-8")
    settings = model_dir / "tokenizer_config.json"
    if not settings.is_file():
        return ""
    template = json.loads(settings.read_text(encoding="utf-8")).get("chat_template")
    return template if isinstance(template, str) else ""
