"""What is measured of one condition: score, classes, tokens (the same for a resumed run), and time (never the same)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from types import MappingProxyType

from skillstate_local.analysis.shares import ThreeShares, final_shares, first_shares
from skillstate_local.analysis.statistics import Estimate, Interval, estimate, ratio, wilson
from skillstate_local.analysis.taxonomy import Classified, Outcome, classify
from skillstate_local.domains.base import Domain
from skillstate_local.engine.base import Timing
from skillstate_local.records import AttemptRecord, StepRecord
from skillstate_local.runs.results import EpisodeResult


@dataclass(frozen=True, slots=True)
class Score:
    """Successes over T, which counts void events as missed."""

    estimate: Estimate
    """Over seeds: repeats of a seed meet the same events, so they are averaged first. The interval is cut to 0…1."""
    successes: int
    events: int
    void: int
    non_void: float | None
    """Successes over the events that were not void, all episodes together."""


@dataclass(frozen=True, slots=True)
class Classes:
    """Steps by class, those of each class that began with a Σ unlike the world, and the three kinds of shares."""

    counts: Mapping[Outcome, int]
    consequence: Mapping[Outcome, int]
    void: Mapping[Outcome, int]
    shares: ThreeShares

    @property
    def failures(self) -> int:
        """Steps that are not right."""
        return sum(count for outcome, count in self.counts.items() if outcome.failure)

    @property
    def consequences(self) -> int:
        """Failures that began with a Σ unlike the world."""
        return sum(count for outcome, count in self.consequence.items() if outcome.failure)

    @property
    def void_failures(self) -> int:
        """Failures in steps with a void event."""
        return sum(count for outcome, count in self.void.items() if outcome.failure)


@dataclass(frozen=True, slots=True)
class Attempts:
    """How many attempts steps took."""

    steps: int
    attempts: int
    first_accepted: int
    first_accepted_rate: float | None
    first_accepted_interval: Interval | None
    per_step: float | None


@dataclass(frozen=True, slots=True)
class Tokens:
    """Totals over all attempts, refused ones included."""

    prompt: int
    output: int
    forced: int
    """Of the output, those that the grammar left no choice about."""

    @property
    def total(self) -> int:
        """Prompt and output."""
        return self.prompt + self.output


@dataclass(frozen=True, slots=True)
class Spread:
    """Seconds per step."""

    mean: float
    median: float


@dataclass(frozen=True, slots=True)
class Timings:
    """Where the time of a step goes, all its attempts together. Cached tokens are here: they depend on what ran when.

    Under concurrency a completion's seconds include waiting for the others of its batch, so tokens per second are
    those of one completion at that batch, not the engine's throughput.
    """

    step_s: Spread
    parts_s: Mapping[str, Spread]
    cached_tokens: int
    output_tokens_per_s: float | None
    """Output tokens, forced ones included, per second of decoding and masking."""
    versus_free: float | None
    """The same as a multiple of `free`'s."""
    wall_s: float


def measure_score(episodes: Sequence[EpisodeResult]) -> Score:
    """Score over finished episodes of one condition; needs at least one."""
    by_seed: dict[int, list[float]] = {}
    for episode in episodes:
        by_seed.setdefault(episode.seed, []).append(_successes(episode) / episode.horizon)
    over_seeds = estimate([fmean(by_seed[seed]) for seed in sorted(by_seed)])
    successes = sum(map(_successes, episodes))
    events = sum(episode.horizon for episode in episodes)
    void = sum(step.intent.void for step in _steps(episodes))
    return Score(_within_score(over_seeds), successes, events, void, ratio(successes, events - void))


def classify_steps(domain: Domain, episodes: Iterable[EpisodeResult]) -> list[Classified]:
    """The classes of all steps."""
    return [classify(domain, step, episode.condition.merge) for episode in episodes for step in episode.steps]


def first_classes(steps: Sequence[Classified]) -> Classes:
    """Counts and shares of first attempts."""
    return _classes([(step.first, step) for step in steps], first_shares(steps))


def final_classes(steps: Sequence[Classified]) -> Classes:
    """Counts and shares of final outcomes."""
    return _classes([(step.final, step) for step in steps], final_shares(steps))


def measure_attempts(episodes: Iterable[EpisodeResult]) -> Attempts:
    """First-attempt acceptance and retries."""
    tries = [step.intent.attempts for step in _steps(episodes)]
    accepted = sum(attempts[0].accepted for attempts in tries)
    total, steps = sum(map(len, tries)), len(tries)
    return Attempts(steps, total, accepted, ratio(accepted, steps), wilson(accepted, steps), ratio(total, steps))


def measure_tokens(episodes: Iterable[EpisodeResult]) -> Tokens:
    """Token totals."""
    attempts = _attempts(episodes)
    return Tokens(
        prompt=sum(attempt.usage.prompt_tokens for attempt in attempts),
        output=sum(attempt.usage.output_tokens for attempt in attempts),
        forced=sum(attempt.forced_tokens for attempt in attempts),
    )


def measure_time(episodes: Sequence[EpisodeResult], free: float | None) -> Timings:
    """Seconds per step and decoding speed; ``free`` is the speed to compare with, None when there is none."""
    steps = [[attempt.timing for attempt in step.intent.attempts] for step in _steps(episodes)]
    parts = {
        name.removesuffix("_s"): _spread([sum(getattr(timing, name) for timing in step) for step in steps])
        for name in Timing._fields
    }
    speed = decoding_speed(episodes)
    return Timings(
        step_s=_spread([sum(sum(timing) for timing in step) for step in steps]),
        parts_s=MappingProxyType(parts),
        cached_tokens=sum(attempt.usage.cached_tokens for attempt in _attempts(episodes)),
        output_tokens_per_s=speed,
        versus_free=ratio(speed, free) if speed is not None and free is not None else None,
        wall_s=sum(episode.wall_s for episode in episodes),
    )


def decoding_speed(episodes: Iterable[EpisodeResult]) -> float | None:
    """Output tokens per second of decoding and masking; None when no time was measured."""
    attempts = _attempts(episodes)
    seconds = sum(attempt.timing.decode_s + attempt.timing.mask_s for attempt in attempts)
    return ratio(sum(attempt.usage.output_tokens for attempt in attempts), seconds)


def _classes(steps: Sequence[tuple[Outcome, Classified]], shares: ThreeShares) -> Classes:
    return Classes(
        counts=_counts(outcome for outcome, _ in steps),
        consequence=_counts(outcome for outcome, step in steps if step.consequence),
        void=_counts(outcome for outcome, step in steps if step.void),
        shares=shares,
    )


def _counts(outcomes: Iterable[Outcome]) -> Mapping[Outcome, int]:
    counted = Counter(outcomes)
    return MappingProxyType({outcome: counted[outcome] for outcome in Outcome})


def _spread(seconds: Sequence[float]) -> Spread:
    return Spread(fmean(seconds), median(seconds))


def _within_score(found: Estimate) -> Estimate:
    interval = found.interval.within(0.0, 1.0) if found.interval is not None else None
    return Estimate(found.n, found.mean, found.sd, interval)


def _successes(episode: EpisodeResult) -> int:
    return sum(step.receipt.success for step in episode.steps)


def _steps(episodes: Iterable[EpisodeResult]) -> list[StepRecord]:
    return [step for episode in episodes for step in episode.steps]


def _attempts(episodes: Iterable[EpisodeResult]) -> list[AttemptRecord]:
    return [attempt for step in _steps(episodes) for attempt in step.intent.attempts]
