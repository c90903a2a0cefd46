"""Means with t intervals over episodes, and Wilson intervals for shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev
from typing import NamedTuple

from skillstate_local.errors import EnvironmentProblem

CONFIDENCE = 0.95


class Interval(NamedTuple):
    """Lower and upper bound."""

    low: float
    high: float

    def within(self, low: float, high: float) -> Interval:
        """The part inside a parameter's range; cutting off what cannot be does not change the coverage."""
        return Interval(min(max(self.low, low), high), max(min(self.high, high), low))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over ``n`` independent values. ``sd`` (sample) and ``interval`` are None where n is below 2."""

    n: int
    mean: float
    sd: float | None
    interval: Interval | None


def estimate(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """Mean, sample SD and t interval.

    Raises ValueError without values, EnvironmentProblem if scipy is needed and missing.
    """
    mean, n = fmean(values), len(values)
    if n < 2:
        return Estimate(n, mean, None, None)
    sd = stdev(values)
    half = t_quantile((1 + confidence) / 2, n - 1) * sd / math.sqrt(n)
    return Estimate(n, mean, sd, Interval(mean - half, mean + half))


def t_quantile(probability: float, degrees: int) -> float:
    """Quantile of Student's t. Raises EnvironmentProblem if scipy is missing."""
    try:
        from scipy.special import stdtrit
    except ImportError:
        raise EnvironmentProblem(
            "Confidence intervals need scipy, which is not installed.",
            "Install the extra: pip install 'skillstate-local[analysis]'",
        ) from None
    return float(stdtrit(degrees, probability))


def wilson(hits: int, n: int, confidence: float = CONFIDENCE) -> Interval | None:
    """Wilson score interval of a share; None when n is 0. Steps of one episode depend on each other: it is too narrow
    then, and only a guide."""
    if n == 0:
        return None
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = hits / n
    center = share + z * z / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return Interval((center - half) / scale, (center + half) / scale)


def ratio(part: float, whole: float) -> float | None:
    """``part / whole``, or None when there is no whole."""
    return part / whole if whole else None
