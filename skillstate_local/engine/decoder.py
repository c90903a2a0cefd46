"""The model behind two calls: push tokens of many rows through it, and read logits where they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from skillstate_local.engine.attention import ATTENTION_NAME, Pass, Segment, register
from skillstate_local.engine.kvcache import PrefixStore, SavedPrefix, SlotCache

CHUNK_TOKENS = 2048


class Decoder:
    """Runs a transformers model over packed rows; owns its slot cache and the prefixes computed so far.

    ``model`` is any causal language model of transformers whose attention goes through ``AttentionInterface``.
    ``head`` is the output layer; it may be replaced by an equal one. Not thread-safe: one scheduler thread owns it,
    and calls it under ``torch.inference_mode``.
    """

    def __init__(self, model: Any, max_rows: int) -> None:
        register()
        model.set_attn_implementation(ATTENTION_NAME)
        self._body = model.get_decoder()
        self.head = model.get_output_embeddings()
        config = model.config.get_text_config()
        self._softcap: float | None = getattr(config, "final_logit_softcapping", None)
        self._scale = _logit_scale(config)
        self.device: torch.device = self.head.weight.device
        self.vocab_size: int = self.head.weight.shape[0]
        self.cache = SlotCache(max_rows)
        self.prefixes = PrefixStore()
        self.forward_passes = 0

    @torch.inference_mode()
    def forward(self, segments: Sequence[Segment], compact: int) -> Tensor:
        """Push new tokens; returns the hidden state behind each segment's last token, ``[segments, hidden]``.

        ``segments[:compact]`` must be rows 0…compact-1 in order; the others are rows that join.
        """
        self.cache.reserve(max(s.end for s in segments))
        slot_pass = Pass(self.cache, segments, compact, self.device)
        tokens = torch.tensor([[t for s in segments for t in s.tokens]], device=self.device)
        out = self._body(
            input_ids=tokens,
            position_ids=slot_pass.positions.unsqueeze(0),
            use_cache=False,
            slot_pass=slot_pass,
        )
        self.forward_passes += 1
        last = torch.tensor([offset - 1 for offset in slot_pass.offsets[1:]], device=self.device)
        hidden: Tensor = out.last_hidden_state[0, last]
        return hidden

    def fill(self, row: int, start: int, tokens: Sequence[int]) -> int:
        """Push all but the last chunk of a long prompt; returns how many tokens went in."""
        done = 0
        while len(tokens) - done > CHUNK_TOKENS:
            self.forward([Segment(row, start + done, tokens[done : done + CHUNK_TOKENS])], compact=0)
            done += CHUNK_TOKENS
        return done

    def prefix(self, tokens: tuple[int, ...], row: int) -> tuple[SavedPrefix, bool]:
        """The keys and values of a prefix, and whether they were there; a free ``row`` is used to compute them."""
        saved = self.prefixes.get(tokens)
        if saved is not None:
            return saved, True
        done = self.fill(row, 0, tokens)
        self.forward([Segment(row, done, tokens[done:])], compact=0)
        saved = self.cache.save(row, len(tokens))
        self.prefixes.put(tokens, saved)
        return saved, False

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Logits over the whole vocabulary, ``[rows, vocab]`` in the model's own dtype."""
        logits: Tensor = self.head(hidden)
        return self._finish(logits)

    @torch.inference_mode()
    def logits_of(self, hidden: Tensor, ids: npt.NDArray[np.int64]) -> Tensor:
        """Logits in float32 of a few tokens for one hidden state ``[hidden]``: reads their rows of the head only."""
        chosen = torch.from_numpy(ids)
        rows = self.head.weight[chosen].float()
        logits = rows @ hidden.float()
        bias = getattr(self.head, "bias", None)
        if bias is not None:
            logits = logits + bias[chosen].float()
        return self._finish(logits)

    def _finish(self, logits: Tensor) -> Tensor:
        if self._scale != 1.0:
            logits = logits * self._scale
        if self._softcap is not None:
            logits = torch.tanh(logits / self._softcap) * self._softcap
        return logits


def _logit_scale(config: Any) -> float:
    """Cohere multiplies its logits, Granite divides them; other heads are plain. Checked at start-up (loading.py)."""
    if getattr(config, "logit_scale", None) is not None:
        return float(config.logit_scale)
    if getattr(config, "logits_scaling", None) is not None:
        return 1.0 / float(config.logits_scaling)
    return 1.0
