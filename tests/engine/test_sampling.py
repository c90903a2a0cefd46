"""Draws: greedy with the lowest id on a tie, nucleus within its bounds, and reproducible."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skillstate_local.engine.base import Sampling
from skillstate_local.engine.chooser import few_tokens
from skillstate_local.engine.sampling import Drawer, greedy_rows


def test_greedy_takes_the_lowest_index_on_a_tie() -> None:
    logits = torch.tensor([0.0, 3.0, 3.0, -1.0])
    assert Drawer(Sampling()).draw(logits) == 1
    assert greedy_rows(logits.unsqueeze(0).numpy()) == [1]


def test_the_same_seed_draws_the_same() -> None:
    logits = torch.randn(50, generator=torch.Generator().manual_seed(3))

    def draws(seed: int) -> list[int]:
        drawer = Drawer(Sampling(temperature=1.0, seed=seed))
        return [drawer.draw(logits) for _ in range(30)]

    assert draws(7) == draws(7)
    assert draws(7) != draws(8)


def test_frequencies_follow_the_probabilities() -> None:
    probabilities = torch.tensor([0.5, 0.3, 0.2])
    drawer = Drawer(Sampling(temperature=1.0, seed=1))
    counts = Counter(drawer.draw(probabilities.log()) for _ in range(4000))
    for index, probability in enumerate(probabilities.tolist()):
        assert counts[index] / 4000 == pytest.approx(probability, abs=0.03)


def test_top_p_keeps_the_smallest_set_that_reaches_it() -> None:
    logits = torch.tensor([0.5, 0.3, 0.2]).log()
    drawer = Drawer(Sampling(temperature=1.0, top_p=0.6, seed=1))
    assert {drawer.draw(logits) for _ in range(300)} == {0, 1}


@given(st.integers(0, 2**32), st.floats(0.05, 3.0), st.floats(0.01, 1.0), st.sets(st.integers(0, 19), min_size=1))
def test_a_forbidden_entry_is_never_drawn(seed: int, temperature: float, top_p: float, allowed: set[int]) -> None:
    logits = torch.full((20,), -torch.inf)
    for index in allowed:
        logits[index] = float(index % 3)
    drawer = Drawer(Sampling(temperature=temperature, top_p=top_p, seed=seed))
    assert {drawer.draw(logits) for _ in range(20)} <= allowed


@given(st.sets(st.integers(0, 319)))
def test_few_tokens_lists_the_bits_of_a_mask(ids: set[int]) -> None:
    mask = np.zeros(10, dtype=np.uint32)
    for token in ids:
        mask[token >> 5] |= np.uint32(1 << (token & 31))
    found = few_tokens(mask.view(np.int32), 20)
    if len(ids) > 20:
        assert found is None
    else:
        assert found is not None
        assert found.tolist() == sorted(ids)
