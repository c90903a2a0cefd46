"""Intervals: against tables, against their coverage, and without scipy."""

from __future__ import annotations

import subprocess
import sys

import numpy
import pytest

from skillstate_local.analysis.statistics import Estimate, Interval, estimate, ratio, t_quantile, wilson
from skillstate_local.errors import EXIT_ENVIRONMENT, EnvironmentProblem


def test_mean_sample_sd_and_t_interval_of_known_values() -> None:
    found = estimate([2.0, 4.0, 9.0])
    assert found.n == 3
    assert found.mean == 5.0
    assert found.sd == pytest.approx(3.605551)
    assert found.interval == pytest.approx((5 - 8.956686, 5 + 8.956686), abs=1e-5)  # t(.975, 2) = 4.302653


@pytest.mark.parametrize(("degrees", "table"), [(1, 12.706), (4, 2.776), (9, 2.262), (30, 2.042)])
def test_t_quantile_is_the_one_in_the_tables(degrees: int, table: float) -> None:
    assert t_quantile(0.975, degrees) == pytest.approx(table, abs=5e-4)


def test_one_value_has_no_interval_and_no_values_have_no_mean() -> None:
    assert estimate([0.5]) == Estimate(1, 0.5, None, None)
    with pytest.raises(ValueError, match="at least one"):
        estimate([])


def test_equal_values_have_an_interval_without_width() -> None:
    assert estimate([1.0, 1.0]).interval == Interval(1.0, 1.0)


@pytest.mark.parametrize("n", [5, 10, 20])
def test_coverage_on_normal_data(n: int) -> None:
    draws = numpy.random.default_rng(n).normal(0.6, 0.2, (2000, n))
    intervals = [estimate(row.tolist()).interval for row in draws]
    covered = sum(found is not None and found.low <= 0.6 <= found.high for found in intervals)
    assert 0.93 <= covered / 2000 <= 0.97


@pytest.mark.parametrize(
    ("interval", "cut"), [((-0.5, 1.5), (0, 1)), ((0.2, 0.4), (0.2, 0.4)), ((-3, -2), (0, 0)), ((2, 3), (1, 1))]
)
def test_an_interval_is_cut_to_what_can_be(interval: tuple[float, float], cut: tuple[float, float]) -> None:
    assert Interval(*interval).within(0, 1) == cut


def test_wilson_of_known_shares() -> None:
    assert wilson(0, 0) is None
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=5e-4)
    low, high = wilson(0, 10) or (1, 0)
    assert low == pytest.approx(0, abs=1e-12)
    assert high == pytest.approx(0.2775, abs=5e-4)


def test_a_ratio_to_nothing_is_nothing() -> None:
    assert ratio(1, 4) == 0.25
    assert ratio(0, 0) is None


def test_without_scipy_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    assert estimate([0.5]).interval is None
    with pytest.raises(EnvironmentProblem, match=r"skillstate-local\[analysis\]") as caught:
        estimate([0.5, 0.6])
    assert caught.value.exit_code == EXIT_ENVIRONMENT


def test_importing_the_package_loads_neither_scipy_nor_torch() -> None:
    code = (
        "import sys; import skillstate_local.analysis as a; assert 'rich' not in sys.modules; a.summarise, a.render;"
        "sys.exit(any(name in sys.modules for name in ('scipy', 'torch', 'numpy')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
