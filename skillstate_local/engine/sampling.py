"""Draw the next token: greedy with the lowest id on a tie, or temperature and top-p with a generator of its own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from skillstate_local.engine.base import Sampling


class Drawer:
    """Draws for one request; what it draws depends on its seed and its logits, never on the rest of the batch."""

    def __init__(self, sampling: Sampling) -> None:
        self.greedy = sampling.temperature <= 0.0
        self._temperature = sampling.temperature
        self._top_p = sampling.top_p
        self._generator = torch.Generator().manual_seed(sampling.seed)

    def draw(self, logits: Tensor) -> int:
        """Index drawn from ``logits`` (``[n]``, float32; forbidden entries are -inf). One uniform number a draw."""
        if self.greedy:
            return int(torch.argmax(logits).item())
        uniform = torch.rand((), generator=self._generator, dtype=torch.float64).item()
        order, cumulated = _nucleus(logits / self._temperature, self._top_p)
        place = int(torch.searchsorted(cumulated, uniform * float(cumulated[-1])).item())
        return int(order[min(place, len(order) - 1)].item())


def _nucleus(logits: Tensor, top_p: float) -> tuple[Tensor, Tensor]:
    """The likeliest entries that together reach ``top_p``, best first, and their cumulated probabilities."""
    ranked, order = torch.sort(logits, descending=True, stable=True)
    cumulated = torch.softmax(ranked.double(), dim=-1).cumsum(dim=-1)
    reached = int(torch.searchsorted(cumulated, min(top_p, 1.0)).item()) + 1
    allowed = max(1, int(torch.isfinite(ranked).sum().item()))
    keep = min(reached, allowed, len(order))
    return order[:keep], cumulated[:keep]


def greedy_rows(logits: npt.NDArray[np.float32]) -> list[int]:
    """Index of the largest entry of every row; the lowest index on a tie."""
    return [int(i) for i in np.argmax(logits, axis=-1)]
