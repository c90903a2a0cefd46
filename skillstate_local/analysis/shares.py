"""How failures are shared among the classes: over all, over root failures, and among the paper's three."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from skillstate_local.analysis.statistics import ratio
from skillstate_local.analysis.taxonomy import Classified, Outcome

FAILURES = tuple(outcome for outcome in Outcome if outcome.failure)

PAPER: Mapping[Outcome, float] = MappingProxyType({Outcome.OVERWRITE: 0.68, Outcome.TYPE: 0.20, Outcome.SYNTAX: 0.12})
"""Shares of the failures of Gemma-4-31B on Warehouse, T = 100 (§5.7). The paper names no other class."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Counts of ``n`` failures by class, and each class's share; a share is None when there is no failure."""

    n: int
    counts: Mapping[Outcome, int]

    def share(self, outcome: Outcome) -> float | None:
        """The share of one class."""
        return ratio(self.counts[outcome], self.n)


@dataclass(frozen=True, slots=True)
class ThreeShares:
    """The three ways in which BENCH.md prints shares."""

    all: Shares
    root: Shares
    paper: Shares
    """Among overwrite/deletion, type and syntax alone, over all failures."""


def first_shares(steps: Iterable[Classified]) -> ThreeShares:
    """Shares of the first attempts' failures."""
    return _three(list(steps), lambda step: step.first)


def final_shares(steps: Iterable[Classified]) -> ThreeShares:
    """Shares of the steps' final failures."""
    return _three(list(steps), lambda step: step.final)


def _three(steps: list[Classified], which: Callable[[Classified], Outcome]) -> ThreeShares:
    """Root failures leave out whole steps, whatever their class.

    A step that starts with Σ unlike the world fails even with the best answer to what is shown, so its class tells
    about an earlier step. A void step has no right answer at all: a model that does nothing wrong is counted as
    *wrong action* there. Its syntax errors are the model's own, but to keep them while its other answers are dropped
    would tilt the shares towards the early classes.
    """
    return ThreeShares(
        all=_shares(map(which, steps), FAILURES),
        root=_shares((which(step) for step in steps if step.root), FAILURES),
        paper=_shares(map(which, steps), tuple(PAPER)),
    )


def _shares(outcomes: Iterable[Outcome], classes: tuple[Outcome, ...]) -> Shares:
    counts = Counter(outcomes)
    chosen = {outcome: counts[outcome] for outcome in classes}
    return Shares(sum(chosen.values()), MappingProxyType(chosen))
