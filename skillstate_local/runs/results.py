"""What an episode left behind, as the analysis reads it."""

from __future__ import annotations

from dataclasses import dataclass

from skillstate_local.records import StepRecord
from skillstate_local.runs.config import Condition


@dataclass(frozen=True, slots=True)
class EpisodeResult:
    """One episode out of a journal. ``wall_s`` sums the time from step to step and leaves out interruptions."""

    key: str
    condition: Condition
    seed: int
    repeat: int
    horizon: int
    steps: tuple[StepRecord, ...]
    wall_s: float

    @property
    def finished(self) -> bool:
        """Whether every step was played."""
        return len(self.steps) == self.horizon
