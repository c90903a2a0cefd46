"""A GGUF made here, tiny but whole, becomes a bf16 model folder that loads and starts with the right token."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillstate_local.errors import EnvironmentProblem
from skillstate_local.registry import Phase
from skillstate_local.registry.convert import convert_gguf, package_versions, read_metadata

from .conftest import Recorder

pytest.importorskip("transformers")

WIDTH, INNER, HEADS = 32, 64, 4


def write_gguf(path: Path, *, add_bos: bool, extra_tokens: int = 0) -> None:
    """A one-layer llama with a byte tokenizer: three special tokens, the bytes, and "ab"."""
    import numpy as np
    from gguf import GGUFWriter
    from tokenizers.pre_tokenizers import ByteLevel

    tokens = ["<|endoftext|>", "</s>", "<end>", *sorted(ByteLevel.alphabet()), "ab"]
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(128)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens + [f"<extra{i}>" for i in range(extra_tokens)])
    writer.add_token_types([3, 3, 3] + [1] * (len(tokens) - 3) + [3] * extra_tokens)
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_eot_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(add_bos)
    random = np.random.default_rng(0)
    shapes = {
        "token_embd": (len(tokens), WIDTH),
        "output": (len(tokens), WIDTH),
        "output_norm": (WIDTH,),
        "blk.0.attn_norm": (WIDTH,),
        "blk.0.ffn_norm": (WIDTH,),
        **{f"blk.0.attn_{part}": (WIDTH, WIDTH) for part in ("q", "k", "v", "output")},
        "blk.0.ffn_gate": (INNER, WIDTH),
        "blk.0.ffn_up": (INNER, WIDTH),
        "blk.0.ffn_down": (WIDTH, INNER),
    }
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", random.normal(0, 0.1, shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def convert(tmp_path: Path, **options: Any) -> tuple[Path, Recorder]:
    gguf, folder, recorder = tmp_path / "model.gguf", tmp_path / "out", Recorder()
    write_gguf(gguf, **options)
    folder.mkdir()
    convert_gguf(gguf, folder, recorder)
    return folder, recorder


@pytest.mark.parametrize("add_bos", [True, False])
def test_folder_loads_and_starts_as_the_file_says(
    tmp_path: Path, add_bos: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, recorder = convert(tmp_path, add_bos=add_bos)
    assert capfd.readouterr() == ("", "")
    assert recorder.phases == [Phase.CONVERT]
    assert recorder.done == recorder.totals
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer.encode("ab")
    assert (ids[0] == 0) is add_bos
    assert tokenizer.decode(ids, skip_special_tokens=True) == "ab"
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert model.dtype == torch.bfloat16
    assert model(torch.tensor([ids])).logits.shape[-1] == 260


def test_every_declared_end_token_is_kept(tmp_path: Path) -> None:
    folder, _ = convert(tmp_path, add_bos=True)
    assert json.loads((folder / "generation_config.json").read_text())["eos_token_id"] == [1, 2]


def test_metadata_is_scalars_only(tmp_path: Path) -> None:
    write_gguf(tmp_path / "model.gguf", add_bos=True)
    metadata = read_metadata(tmp_path / "model.gguf")
    assert metadata["tokenizer.ggml.add_bos_token"] is True
    assert metadata["tokenizer.ggml.eot_token_id"] == 2
    assert "tokenizer.ggml.tokens" not in metadata


def test_more_tokens_than_logits_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="more tokens than the model has logits"):
        convert(tmp_path, add_bos=True, extra_tokens=8)


def test_missing_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {**package_versions(), "gguf": "missing"}
    monkeypatch.setattr("skillstate_local.registry.convert.package_versions", lambda: versions)
    with pytest.raises(EnvironmentProblem, match="needs gguf") as caught:
        convert_gguf(tmp_path / "model.gguf", tmp_path, Recorder())
    assert "[transformers]" in caught.value.hint
