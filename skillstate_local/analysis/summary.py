"""A run in figures: one entry for each condition, with what repeats exactly kept apart from what was timed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import groupby
from typing import Any

from skillstate_local.analysis.measures import (
    Attempts,
    Classes,
    Score,
    Timings,
    Tokens,
    classify_steps,
    decoding_speed,
    final_classes,
    first_classes,
    measure_attempts,
    measure_score,
    measure_time,
    measure_tokens,
)
from skillstate_local.analysis.shares import PAPER, Shares
from skillstate_local.analysis.statistics import Interval
from skillstate_local.analysis.taxonomy import Outcome
from skillstate_local.domains.base import Domain
from skillstate_local.domains.level import Level
from skillstate_local.errors import UsageError
from skillstate_local.runs.config import Condition, Kind
from skillstate_local.runs.results import EpisodeResult
from skillstate_local.state.merge import MergeMode


@dataclass(frozen=True, slots=True)
class ConditionSummary:
    """One line of a comparison. ``chance`` is the mean score of chance at the level whose floor counts here."""

    label: str
    kind: Kind
    level: Level
    merge: MergeMode
    episodes: int
    seeds: tuple[int, ...]
    horizons: tuple[int, ...]
    score: Score
    chance: float | None
    first: Classes
    final: Classes
    attempts: Attempts
    tokens: Tokens
    timings: Timings


@dataclass(frozen=True, slots=True)
class Summary:
    """A whole run. ``title`` names model and environment, and says so if the model was tuned."""

    title: str
    conditions: tuple[ConditionSummary, ...]
    unfinished: int
    """Episodes left out because they are not at their end."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """All seeds."""
        return tuple(sorted({seed for one in self.conditions for seed in one.seeds}))

    @property
    def horizons(self) -> tuple[int, ...]:
        """All T."""
        return tuple(sorted({horizon for one in self.conditions for horizon in one.horizons}))


def summarise(results: Sequence[EpisodeResult], domain: Domain, title: str = "") -> Summary:
    """Summarise finished episodes; the order of ``results`` does not matter.

    Raises UsageError when no episode is finished, EnvironmentProblem when scipy is missing.
    """
    groups = _by_condition([result for result in results if result.finished])
    if not groups:
        raise UsageError("There is no finished episode to summarise.", "Run the same command again to go on.")
    floors = {c.level: measure_score(g).estimate.mean for c, g in groups if c.kind is Kind.CHANCE}
    free = _free_speed(groups)
    conditions = tuple(_summary(domain, condition, group, floors, free) for condition, group in groups)
    return Summary(title, conditions, sum(not result.finished for result in results))


def to_json(summary: Summary) -> dict[str, Any]:
    """``results`` is the same for a resumed run and an uninterrupted one; ``timings`` is of this run alone."""
    return {
        "title": summary.title,
        "results": {
            "seeds": list(summary.seeds),
            "horizons": list(summary.horizons),
            "unfinished_episodes": summary.unfinished,
            "paper_shares": _plain(PAPER),
            "conditions": {one.label: _plain(one, without="timings") for one in summary.conditions},
        },
        "timings": {one.label: _plain(one.timings) for one in summary.conditions},
    }


def _summary(
    domain: Domain,
    condition: Condition,
    episodes: list[EpisodeResult],
    floors: Mapping[Level, float],
    free: float | None,
) -> ConditionSummary:
    steps = classify_steps(domain, episodes)
    return ConditionSummary(
        label=condition.label,
        kind=condition.kind,
        level=condition.level,
        merge=condition.merge,
        episodes=len(episodes),
        seeds=tuple(sorted({episode.seed for episode in episodes})),
        horizons=tuple(sorted({episode.horizon for episode in episodes})),
        score=measure_score(episodes),
        chance=floors.get(_floor_level(condition.level)) if condition.kind is Kind.MODEL else None,
        first=first_classes(steps),
        final=final_classes(steps),
        attempts=measure_attempts(episodes),
        tokens=measure_tokens(episodes),
        timings=measure_time(episodes, free),
    )


def _by_condition(results: Sequence[EpisodeResult]) -> list[tuple[Condition, list[EpisodeResult]]]:
    ordered = sorted(results, key=lambda result: _place(result.condition))
    return [
        (group[0].condition, group) for _, found in groupby(ordered, lambda r: r.condition) if (group := list(found))
    ]


def _place(condition: Condition) -> tuple[int, int, bool, str]:
    """The ladder from `free` under both merges upwards, then the oracle, then chance."""
    kinds, levels = list(Kind), list(Level)
    deep = condition.merge is MergeMode.DEEP
    return kinds.index(condition.kind), levels.index(condition.level), deep, condition.label


def _floor_level(level: Level) -> Level:
    """`free` and `json` have no chance of their own: `schema`'s stands for them."""
    return Level.SCHEMA if level in (Level.FREE, Level.JSON) else level


def _free_speed(groups: list[tuple[Condition, list[EpisodeResult]]]) -> float | None:
    """Decoding speed of `free`, under ⊕ if that ran: constrained levels merge so too."""
    free = [group for condition, group in groups if condition.kind is Kind.MODEL and condition.level is Level.FREE]
    return decoding_speed(free[-1]) if free else None


def _plain(value: object, without: str = "") -> Any:
    """JSON of dataclasses, named tuples and mappings."""
    if isinstance(value, Shares):
        shares = {outcome.value: value.share(outcome) for outcome in value.counts}
        return {"n": value.n, "counts": _plain(value.counts), "shares": shares}
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value) if f.name != without}
    if isinstance(value, Interval):
        return _plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): _plain(member) for key, member in value.items()}
    if isinstance(value, tuple):
        return [_plain(member) for member in value]
    return str(value) if isinstance(value, Outcome | Kind | Level | MergeMode) else value
