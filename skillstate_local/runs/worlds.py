"""Environments by the name that ``--env`` gives them: a bundled world, or a scenario file."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from skillstate_local.environments.base import Environment
from skillstate_local.environments.scenario import Scenario, ScenarioEnvironment, load_scenario
from skillstate_local.environments.warehouse import WarehouseEnvironment
from skillstate_local.errors import UsageError, unknown_name
from skillstate_local.runtimes.skill import short_hash

ENVIRONMENTS: dict[str, Callable[[int, int, int], Environment]] = {"warehouse": WarehouseEnvironment}
DEFAULT_HORIZON = 10


def make_environment(name: str, seed: int, horizon: int | None, prefill: int) -> Environment:
    """The world of one episode; without a horizon, ten steps or the whole scenario.

    Raises UsageError for an unknown name or a horizon or prefill out of range, DomainError for a wrong scenario file.
    """
    if is_scenario(name):
        if prefill:
            raise UsageError("--prefill is for the bundled worlds.", "Give a scenario its stock by `initial_state`.")
        return ScenarioEnvironment(_scenario(name), horizon)
    if name not in ENVIRONMENTS:
        raise unknown_name("environment", name, ENVIRONMENTS)
    return ENVIRONMENTS[name](seed, DEFAULT_HORIZON if horizon is None else horizon, prefill)


def is_scenario(name: str) -> bool:
    """Whether ``--env`` names a scenario file."""
    return Path(name).suffix in (".yaml", ".yml")


def world_identity(name: str) -> str:
    """What of a world its name does not say: the hash of a scenario's text."""
    return short_hash(_scenario(name).text) if is_scenario(name) else ""


@lru_cache(maxsize=8)
def _scenario(name: str) -> Scenario:
    return load_scenario(Path(name))
