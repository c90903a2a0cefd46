"""Small runs for tests: a configuration, and a progress that says nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from skillstate_local.records import StepIntent, StepReceipt
from skillstate_local.registry import Registry
from skillstate_local.runs.config import RunConfig
from skillstate_local.runs.journal import Journal
from skillstate_local.runs.options import Options, make_config
from skillstate_local.runs.plan import Workshop
from skillstate_local.runs.progress import Tally
from skillstate_local.runs.results import EpisodeResult
from skillstate_local.runs.session import Outcome, execute

NO_MODELS = Registry({})
SMALL = Options(command="run", model="oracle", env="warehouse", levels="delta", horizon=6, seeds="1,2")


class Quiet:
    """Counts steps and shows nothing."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        yield

    @contextmanager
    def steps(self, tallies: Mapping[str, Tally]) -> Iterator[None]:
        yield

    def started(self, label: str) -> None:
        pass

    def step(self, label: str, intent: StepIntent, receipt: StepReceipt) -> None:
        self.count += 1


def config_of(**changes: object) -> RunConfig:
    """SMALL with changes, checked."""
    return make_config(replace(SMALL, **changes), NO_MODELS)  # type: ignore[arg-type]


def begin(folder: Path, config: RunConfig) -> Journal:
    """A fresh journal."""
    workshop = Workshop(config)
    return Journal.create(folder, config, {}, [workshop.skill(condition) for condition in config.conditions])


def play(folder: Path, config: RunConfig, progress: Quiet | None = None, at_once: int = 4) -> Outcome:
    """Bring a run to its end."""
    return execute(config, NO_MODELS, folder, at_once, progress or Quiet())


def timeless(results: list[EpisodeResult]) -> list[EpisodeResult]:
    """Results without what differs between two runs of the same thing: the seconds."""
    return [replace(result, wall_s=0.0) for result in results]
