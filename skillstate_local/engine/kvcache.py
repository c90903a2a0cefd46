"""Keys and values of many rows, where the token at position p of a row lives in slot p.

A row is one running completion. Rows are kept compact (0…n-1), so that a batch reads a view and never gathers.
What lies behind a row's length is stale but finite; the attention masks it and the row overwrites it later.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

import torch
from torch import Tensor

GROWTH_SLOTS = 256


class SavedPrefix(NamedTuple):
    """Keys and values of one prefix: per layer ``[kv_heads, length, head_dim]``."""

    keys: list[Tensor]
    values: list[Tensor]
    length: int


class SlotCache:
    """Buffers per layer, ``[max_rows, kv_heads, capacity, head_dim]``, allocated at first use and grown in chunks."""

    def __init__(self, max_rows: int) -> None:
        self.max_rows = max_rows
        self.capacity = 0
        self._keys: dict[int, Tensor] = {}
        self._values: dict[int, Tensor] = {}

    @property
    def layers(self) -> list[int]:
        """Indices of the layers written so far."""
        return sorted(self._keys)

    def reserve(self, slots: int) -> None:
        """Make room for ``slots`` tokens a row; what is there stays."""
        if slots <= self.capacity:
            return
        wanted = max(slots, self.capacity + self.capacity // 4)
        self.capacity = -(-wanted // GROWTH_SLOTS) * GROWTH_SLOTS
        for buffers in (self._keys, self._values):
            for layer, old in buffers.items():
                buffers[layer] = self._grown(old)

    def write(self, layer: int, rows: Tensor, positions: Tensor, keys: Tensor, values: Tensor) -> None:
        """Store a packed pass: rows and positions ``[tokens]``, keys and values ``[1, heads, tokens, dim]``."""
        if layer not in self._keys:
            self._keys[layer] = self._empty(keys)
            self._values[layer] = self._empty(values)
        self._keys[layer][rows, :, positions] = keys[0].transpose(0, 1)
        self._values[layer][rows, :, positions] = values[0].transpose(0, 1)

    def view(self, layer: int, first_row: int, last_row: int, low: int, high: int) -> tuple[Tensor, Tensor]:
        """Keys and values of rows ``first_row``…``last_row - 1`` in slots ``low``…``high - 1``, without a copy."""
        return (
            self._keys[layer][first_row:last_row, :, low:high],
            self._values[layer][first_row:last_row, :, low:high],
        )

    def save(self, row: int, length: int) -> SavedPrefix:
        """A copy of the first ``length`` slots of a row."""
        return SavedPrefix(
            keys=[self._keys[layer][row, :, :length].clone() for layer in self.layers],
            values=[self._values[layer][row, :, :length].clone() for layer in self.layers],
            length=length,
        )

    def load(self, row: int, prefix: SavedPrefix) -> None:
        """Put a saved prefix at the start of a row."""
        self.reserve(prefix.length)
        for layer, keys, values in zip(self.layers, prefix.keys, prefix.values, strict=True):
            self._keys[layer][row, :, : prefix.length] = keys
            self._values[layer][row, :, : prefix.length] = values

    def move(self, source: int, target: int, length: int) -> None:
        """Copy a row onto another one; used to fill the hole that a finished row leaves."""
        for buffers in (self._keys, self._values):
            for buffer in buffers.values():
                buffer[target, :, :length] = buffer[source, :, :length]

    def _empty(self, like: Tensor) -> Tensor:
        # Zeros, not uninitialised memory: a NaN in a masked slot would still poison the weighted sum.
        _, heads, _, dim = like.shape
        return torch.zeros((self.max_rows, heads, self.capacity, dim), dtype=like.dtype, device=like.device)

    def _grown(self, old: Tensor) -> Tensor:
        rows, heads, slots, dim = old.shape
        new = old.new_zeros((rows, heads, self.capacity, dim))
        new[:, :, :slots] = old
        return new


class PrefixStore:
    """The prefixes computed so far, by their tokens; the one used longest ago leaves first."""

    def __init__(self, limit: int = 16) -> None:
        self._limit = limit
        self._saved: OrderedDict[tuple[int, ...], SavedPrefix] = OrderedDict()

    def __len__(self) -> int:
        return len(self._saved)

    def get(self, tokens: tuple[int, ...]) -> SavedPrefix | None:
        """The saved prefix of exactly these tokens, or None."""
        saved = self._saved.get(tokens)
        if saved is not None:
            self._saved.move_to_end(tokens)
        return saved

    def put(self, tokens: tuple[int, ...], saved: SavedPrefix) -> None:
        """Keep a prefix."""
        self._saved[tokens] = saved
        while len(self._saved) > self._limit:
            self._saved.popitem(last=False)
