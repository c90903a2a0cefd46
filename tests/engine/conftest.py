"""Tiny random models for fast tests, the real ones where they are ready, and stand-ins for grammars."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("llguidance")
pytest.importorskip("xgrammar")

CORPUS = [
    '{"state_patch":{"inventory":{"S-01":"box-07"}},"action":"Store box-07 S-01"}',
    "You keep a warehouse. Items arrive; store each on a free shelf. Answer with one JSON object.",
    '<reasoning>the shelf is free, so the box goes there</reasoning>{"action":"Wait"}',
    "crate widget gadget box inventory shelf state patch action Store Ship Wait",
] * 4
SPECIAL = ["<pad>", "<bos>", "<eos>", "<end_of_turn>", "<start_of_turn>"]
CHAT_TEMPLATE = (
    "<bos>{% for m in messages %}<start_of_turn>{{ m.role }}\n{{ m.content | trim }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>assistant\n{% endif %}"
)


@dataclass
class FakeGrammar:
    """What engines need of a grammar, with its text given."""

    lark: str = ""
    ebnf: str = ""
    static: bool = False
    reasoning_tokens: int = 0

    @property
    def key(self) -> str:
        return f"{self.lark}|{self.ebnf}|{self.reasoning_tokens}"

    def write(self, dialect: str) -> str:
        return self.lark if dialect == "lark" else self.ebnf


STORE = FakeGrammar(
    lark=(
        'start: "{\\"state_patch\\":{\\"inventory\\":{\\"" SHELF "\\":\\"" ITEM "\\"}},'
        '\\"action\\":\\"Store " ITEM " " SHELF "\\"}"\n'
        "SHELF: /S-[0-9]{2}/\nITEM: /(box|crate|widget|gadget)-[0-9]{2}/\n"
    ),
    ebnf=(
        'root ::= "{\\"state_patch\\":{\\"inventory\\":{\\"" shelf "\\":\\"" item "\\"}},'
        '\\"action\\":\\"Store " item " " shelf "\\"}"\n'
        'shelf ::= "S-" [0-9] [0-9]\nitem ::= ("box" | "crate" | "widget" | "gadget") "-" [0-9] [0-9]\n'
    ),
)
STORE_PATTERN = (
    r'\{"state_patch":\{"inventory":\{"S-\d\d":"(box|crate|widget|gadget)-\d\d"\}\},'
    r'"action":"Store (box|crate|widget|gadget)-\d\d S-\d\d"\}'
)


def build_tokenizer(folder: Path, chat_template: str | None = None) -> Any:
    """A byte-level BPE tokenizer of about 400 tokens, trained in milliseconds."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(CORPUS, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<pad>",
        bos_token="<bos>",
        eos_token="<eos>",
        additional_special_tokens=["<end_of_turn>", "<start_of_turn>"],
        chat_template=chat_template,
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


def _configuration(kind: str) -> Any:
    from transformers import Gemma3TextConfig, LlamaConfig, Qwen3Config

    common = {
        "vocab_size": 416,  # more than the tokenizer has, as real models do
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 512,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "tie_word_embeddings": False,
        "initializer_range": 0.3,
    }
    if kind == "llama":
        return LlamaConfig(**common)
    if kind == "qwen3":
        return Qwen3Config(**common)
    layers = ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"]
    return Gemma3TextConfig(**common, sliding_window=8, layer_types=layers, query_pre_attn_scalar=16)


def build_model(folder: Path, kind: str, chat_template: str | None = None) -> Path:
    """Save a random model and its tokenizer."""
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    build_tokenizer(folder, chat_template)
    AutoModelForCausalLM.from_config(_configuration(kind)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``tiny("llama" | "gemma3" | "qwen3")``: the folder of a random model."""
    made: dict[str, Path] = {}

    def make(kind: str) -> Path:
        if kind not in made:
            template = CHAT_TEMPLATE if kind == "qwen3" else None
            made[kind] = build_model(tmp_path_factory.mktemp(kind), kind, template)
        return made[kind]

    return make


def ready_model_dir(name: str) -> Path | None:
    """Where a model lies ready: ``$SKILLSTATE_TEST_MODELS/NAME``, else what the registry says, else None."""
    folder = os.environ.get("SKILLSTATE_TEST_MODELS")
    if folder:
        return Path(folder) / name if (Path(folder) / name).is_dir() else None
    from skillstate_local.errors import SkillStateError
    from skillstate_local.registry import ready_path

    try:
        found: Path | None = ready_path(name)
    except SkillStateError:
        return None
    return found


@pytest.fixture(scope="session")
def model_dir() -> Callable[[str], Path]:
    """The folder of a real model; skips the test where it is not ready."""

    def find(name: str) -> Path:
        path = ready_model_dir(name)
        if path is None:
            pytest.skip(f"the model {name} is not ready; set SKILLSTATE_TEST_MODELS")
        return path

    return find


def plain_greedy(model: Any, prompt: Sequence[int], tokens: Sequence[int]) -> tuple[list[int], Any]:
    """What greedy decoding of one plain sequence draws at every place where ``tokens`` were drawn, and its logits.

    One forward over prompt and tokens: if the draws are the tokens, then step-by-step decoding gives them too.
    """
    with torch.inference_mode():
        logits = model(torch.tensor([[*prompt, *tokens]]), use_cache=False).logits[0].float()
    drawn = logits[len(prompt) - 1 : -1]
    return [int(row.argmax()) for row in drawn], drawn
