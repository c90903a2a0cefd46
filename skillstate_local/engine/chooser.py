"""From hidden states to the next token of every row, through grammar masks.

On a CPU the head over a large vocabulary and the search in it cost as much as the model's body. So a row whose mask
leaves few tokens reads only their rows of the head, a row with one token left reads nothing, and only rows with an
open mask or none at all pay for the whole vocabulary.
"""

from __future__ import annotations

import time
from collections.abc import Sequence as Items

import numpy as np
import numpy.typing as npt
import torch
import xgrammar
from torch import Tensor

from skillstate_local.engine.backends import Mask
from skillstate_local.engine.decoder import Decoder
from skillstate_local.engine.sampling import greedy_rows
from skillstate_local.engine.sequence import Sequence
from skillstate_local.errors import EngineDied, GrammarError

FEW_TOKENS = 1024


class Choice:
    """What one row may take: ``ids`` when they are few, else all that its mask (or no mask) allows."""

    __slots__ = ("ids", "masked")

    def __init__(self, masked: bool, ids: npt.NDArray[np.int64] | None) -> None:
        self.masked = masked
        self.ids = ids


class Chooser:
    """Draws one token a row. Owns the mask buffers; used by the scheduler thread only."""

    def __init__(self, decoder: Decoder, max_rows: int) -> None:
        self._decoder = decoder
        self._on_cpu = decoder.device.type == "cpu"
        words = -(-decoder.vocab_size // 32)
        self._masks = torch.full((max_rows, words), -1, dtype=torch.int32, pin_memory=not self._on_cpu)
        self._mask_rows: Mask = self._masks.numpy()
        self._logits = torch.empty((max_rows, decoder.vocab_size)) if self._on_cpu else None

    def choose(self, hidden: Tensor, rows: Items[Sequence]) -> list[int | GrammarError]:
        """The token of every row, or the error that ends this row alone; ``hidden`` is ``[rows, hidden]``."""
        chosen: dict[int, int | GrammarError] = {}
        wide: list[int] = []
        for i, sequence in enumerate(rows):
            try:
                choice = self._allowed(i, sequence)
            except GrammarError as error:
                chosen[i] = error
                continue
            if choice.ids is None:
                wide.append(i)
            elif len(choice.ids) == 1:
                chosen[i] = int(choice.ids[0])
            else:
                logits = self._decoder.logits_of(hidden[i], choice.ids)
                chosen[i] = int(choice.ids[sequence.drawer.draw(logits)])
        if wide:
            chosen.update(zip(wide, self._draw_wide(hidden, rows, wide), strict=True))
        return [chosen[i] for i in range(len(rows))]

    def _allowed(self, i: int, sequence: Sequence) -> Choice:
        if sequence.matcher is None:
            return Choice(masked=False, ids=None)
        started = time.perf_counter()
        mask = self._mask_rows[i]
        sequence.matcher.fill(mask)
        ids = few_tokens(mask, FEW_TOKENS if self._on_cpu else 1)
        sequence.clock.mask_s += time.perf_counter() - started
        if ids is not None and not len(ids):
            raise GrammarError(f"The grammar of {sequence.request.id} allows no token at all here.")
        return Choice(masked=True, ids=ids)

    def _draw_wide(self, hidden: Tensor, rows: Items[Sequence], wide: list[int]) -> list[int]:
        logits = self._decoder.logits(hidden[wide])
        if self._logits is not None:
            scores = self._logits[: len(wide)]
            scores.copy_(logits)
        else:
            scores = logits.float()
        self._mask_wide(scores, rows, wide)
        if self._on_cpu:
            best = greedy_rows(scores.numpy())
        else:
            best = [int(i) for i in scores.argmax(dim=-1).tolist()]
        drawn = []
        for place, i in enumerate(wide):
            drawer = rows[i].drawer
            drawn.append(best[place] if drawer.greedy else drawer.draw(scores[place]))
        self._check(scores, best)
        return drawn

    def _mask_wide(self, scores: Tensor, rows: Items[Sequence], wide: list[int]) -> None:
        masked = [place for place, i in enumerate(wide) if rows[i].matcher is not None]
        if not masked:
            return
        masks = self._masks[wide].to(scores.device, non_blocking=True)
        xgrammar.apply_token_bitmask_inplace(scores, masks, vocab_size=self._decoder.vocab_size, indices=masked)

    def _check(self, scores: Tensor, best: list[int]) -> None:
        top = scores[torch.arange(len(best)), torch.tensor(best)]
        if not bool(torch.isfinite(top).all().item()):
            raise EngineDied("The model produced logits that are not numbers.", "Try `--dtype float32`.")


def few_tokens(mask: Mask, limit: int) -> npt.NDArray[np.int64] | None:
    """The allowed tokens in ascending order, or None if there are more than ``limit``."""
    words = np.flatnonzero(mask)
    if len(words) > limit:
        return None
    bits = np.unpackbits(mask[words].view(np.uint8).reshape(-1, 4), axis=1, bitorder="little")
    place, bit = np.nonzero(bits)
    if len(place) > limit:
        return None
    ids: npt.NDArray[np.int64] = words[place].astype(np.int64) * 32 + bit
    return ids
