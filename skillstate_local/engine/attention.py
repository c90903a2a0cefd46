"""One forward pass over many rows without padding: tokens are packed, attention reads the slot cache.

The linear layers see one sequence of all tokens of the pass. Attention is computed per row: rows with few new tokens
together over the compact range of rows, rows with many (a prompt, a long forced run) each on their own.
The masks live in true position space, so sliding windows are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface

from skillstate_local.engine.kvcache import SlotCache
from skillstate_local.errors import EnvironmentProblem

ATTENTION_NAME = "skillstate_slots"
SHORT_TOKENS = 4


class Segment(NamedTuple):
    """New tokens of one row; the first of them stands at position ``start``."""

    row: int
    start: int
    tokens: Sequence[int]

    @property
    def end(self) -> int:
        """The row's length after this pass."""
        return self.start + len(self.tokens)


class Reach(NamedTuple):
    """The slots ``low``…``high - 1`` that a group of queries may see, and the additive mask over them (None: all)."""

    low: int
    high: int
    mask: Tensor | None


class Pass:
    """Where the packed tokens of one forward pass belong. ``segments[:compact]`` are rows 0…compact-1 in order."""

    def __init__(self, cache: SlotCache, segments: Sequence[Segment], compact: int, device: torch.device) -> None:
        self.cache = cache
        self.device = device
        self._segments = segments
        rows = [s.row for s in segments for _ in s.tokens]
        positions = [p for s in segments for p in range(s.start, s.end)]
        self.rows = torch.tensor(rows, device=device)
        self.positions = torch.tensor(positions, device=device)
        self.offsets = [0]
        for segment in segments:
            self.offsets.append(self.offsets[-1] + len(segment.tokens))
        self.short = [i for i in range(compact) if len(segments[i].tokens) <= SHORT_TOKENS]
        self.single = [i for i in range(len(segments)) if i >= compact or len(segments[i].tokens) > SHORT_TOKENS]
        self.compact = compact if self.short else 0
        self._reach: dict[tuple[int, int | None], Reach] = {}
        if self.compact:
            self._pad_short_rows()

    def _pad_short_rows(self) -> None:
        """Index packed tokens as ``[compact, width]``: short rows repeat their last token, long ones fill a place."""
        width = max(len(self._segments[i].tokens) for i in self.short)
        index: list[list[int]] = []
        source: list[int] = []
        target: list[int] = []
        for i in range(self.compact):
            first, last = self.offsets[i], self.offsets[i + 1] - 1
            index.append([min(first + j, last) for j in range(width)])
            if i in self.short:
                source += [i * width + j for j in range(last - first + 1)]
                target += range(first, last + 1)
        self.width = width
        self.packed_index = torch.tensor(index, device=self.device)
        self.padded_source = torch.tensor(source, device=self.device)
        self.packed_target = torch.tensor(target, device=self.device)
        self.padded_positions = self.positions[self.packed_index]

    def reach_of_short(self, window: int | None, dtype: torch.dtype) -> Reach:
        """What the padded short rows see: mask ``[compact, 1, width, slots]``."""
        key = (-1, window)
        if key not in self._reach:
            starts = [self._segments[i].end - len(self._segments[i].tokens) for i in range(self.compact)]
            high = max(self._segments[i].end for i in range(self.compact))
            low = 0 if window is None else max(0, min(starts) - window + 1)
            mask = _mask(self.padded_positions, low, high, window, dtype).unsqueeze(1)
            self._reach[key] = Reach(low, high, mask)
        return self._reach[key]

    def reach_of_single(self, i: int, window: int | None, dtype: torch.dtype) -> Reach:
        """What segment ``i`` sees on its own: mask ``[1, 1, tokens, slots]``."""
        key = (i, window)
        if key not in self._reach:
            segment = self._segments[i]
            low = 0 if window is None else max(0, segment.start - window + 1)
            positions = self.positions[self.offsets[i] : self.offsets[i + 1]].unsqueeze(0)
            mask = _mask(positions, low, segment.end, window, dtype).unsqueeze(1)
            self._reach[key] = Reach(low, segment.end, mask)
        return self._reach[key]

    def row_of(self, i: int) -> int:
        """The row of segment ``i``."""
        return self._segments[i].row


def _mask(positions: Tensor, low: int, high: int, window: int | None, dtype: torch.dtype) -> Tensor:
    slots = torch.arange(low, high, device=positions.device)
    distance = positions.unsqueeze(-1) - slots
    hidden = distance < 0
    if window is not None:
        hidden |= distance >= window
    return torch.zeros(hidden.shape, dtype=dtype, device=positions.device).masked_fill_(hidden, torch.finfo(dtype).min)


def slot_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    slot_pass: Pass | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """The attention function that transformers calls in every layer; ``query`` is ``[1, heads, tokens, head_dim]``."""
    if slot_pass is None or kwargs.get("s_aux") is not None:
        raise EnvironmentProblem(
            f"The attention of {type(module).__name__} cannot run in the embedded engine.", "Use `--engine vllm`."
        )
    layer = int(module.layer_idx)  # type: ignore[arg-type]
    slot_pass.cache.write(layer, slot_pass.rows, slot_pass.positions, key, value)
    out = query.new_empty((query.shape[2], query.shape[1], value.shape[3]))
    if slot_pass.compact:
        _attend_short(slot_pass, layer, query, out, scaling, sliding_window, softcap)
    for i in slot_pass.single:
        reach = slot_pass.reach_of_single(i, sliding_window, query.dtype)
        row = slot_pass.row_of(i)
        keys, values = slot_pass.cache.view(layer, row, row + 1, reach.low, reach.high)
        first, last = slot_pass.offsets[i], slot_pass.offsets[i + 1]
        part = _attend(query[:, :, first:last], keys, values, reach.mask, scaling, softcap)
        out[first:last] = part[0].transpose(0, 1)
    return out.unsqueeze(0), None


def _attend_short(
    slot_pass: Pass,
    layer: int,
    query: Tensor,
    out: Tensor,
    scaling: float | None,
    window: int | None,
    softcap: float | None,
) -> None:
    reach = slot_pass.reach_of_short(window, query.dtype)
    keys, values = slot_pass.cache.view(layer, 0, slot_pass.compact, reach.low, reach.high)
    padded = query[0][:, slot_pass.packed_index].transpose(0, 1)
    part = _attend(padded, keys, values, reach.mask, scaling, softcap)
    flat = part.transpose(1, 2).reshape(-1, out.shape[1], out.shape[2])
    out[slot_pass.packed_target] = flat[slot_pass.padded_source]


def _attend(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scaling: float | None, softcap: float | None
) -> Tensor:
    """Grouped-query attention; shapes ``[rows, heads, queries, dim]`` and ``[rows, kv_heads, slots, dim]``."""
    groups = query.shape[1] // keys.shape[1]
    if softcap is not None:
        return _attend_softcapped(query, keys, values, mask, scaling, softcap, groups)
    if query.device.type != "cpu" and groups > 1:
        return _attend_folded(query, keys, values, mask, scaling, groups)
    return functional.scaled_dot_product_attention(
        query, keys, values, attn_mask=mask, scale=scaling, enable_gqa=groups > 1
    )


def _attend_folded(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scaling: float | None, groups: int
) -> Tensor:
    """Heads that share a key become queries of it: fused GPU kernels take a mask only without grouped heads."""
    rows, heads, width, dim = query.shape
    folded = query.reshape(rows, keys.shape[1], groups * width, dim)
    wide = None if mask is None else mask.repeat(1, 1, groups, 1)
    part = functional.scaled_dot_product_attention(folded, keys, values, attn_mask=wide, scale=scaling)
    return part.reshape(rows, heads, width, values.shape[3])


def _attend_softcapped(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    scaling: float | None,
    softcap: float,
    groups: int,
) -> Tensor:
    rows, heads, width, dim = query.shape
    folded = query.reshape(rows, keys.shape[1], groups * width, dim)
    scores = folded @ keys.transpose(2, 3) * (scaling if scaling is not None else dim**-0.5)
    scores = softcap * torch.tanh(scores / softcap)
    if mask is not None:
        scores = scores + mask.repeat(1, 1, groups, 1)
    weights = scores.softmax(dim=-1, dtype=torch.float32).to(query.dtype)
    return (weights @ values).reshape(rows, heads, width, values.shape[3])


def register() -> None:
    """Make the function known to transformers under ``ATTENTION_NAME``. Safe to call twice."""
    AttentionInterface.register(ATTENTION_NAME, slot_attention)
