"""Environments by the name that ``--env`` gives them."""

from __future__ import annotations

from collections.abc import Callable

from skillstate_local.environments.base import Environment
from skillstate_local.environments.warehouse import WarehouseEnvironment
from skillstate_local.errors import unknown_name

ENVIRONMENTS: dict[str, Callable[[int, int, int], Environment]] = {"warehouse": WarehouseEnvironment}


def make_environment(name: str, seed: int, horizon: int, prefill: int) -> Environment:
    """The world of one episode. Raises UsageError for an unknown name or a horizon or prefill out of range."""
    if name not in ENVIRONMENTS:
        raise unknown_name("environment", name, ENVIRONMENTS)
    return ENVIRONMENTS[name](seed, horizon, prefill)
