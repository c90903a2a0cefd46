"""What every bench prints first: the machine, the versions, the date."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

PACKAGES = ("skillstate-local", "torch", "transformers", "llguidance", "xgrammar", "outlines_core")


def describe() -> str:
    """One paragraph of facts."""
    versions = ", ".join(f"{name} {version}" for name in PACKAGES if (version := _version(name)))
    cores = len(os.sched_getaffinity(0))
    return f"{_processor()}, {cores} cores, no GPU used; Python {platform.python_version()}, {versions}; {_today()}"


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def percentile(values: Iterable[float], share: float) -> float:
    """The value below which ``share`` of the values lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def median_ms(seconds: Sequence[float]) -> float:
    """Median in milliseconds."""
    return 1e3 * statistics.median(seconds)
