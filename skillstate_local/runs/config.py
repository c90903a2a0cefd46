"""What a run is: everything a user chose that influences a result, in a form that can be stored and compared."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import PurePath
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from skillstate_local.domains.level import Level, Order, Validation
from skillstate_local.episode import OnRejected
from skillstate_local.state.merge import MergeMode

SCRIPTED = "scripted"
ORACLE = "oracle"
CHANCE = "chance"
SCRIPTED_MODELS = (CHANCE, ORACLE)


class Kind(StrEnum):
    """Who answers in a condition. ``MODEL`` is whatever ``--model`` names."""

    MODEL = "model"
    ORACLE = "oracle"
    CHANCE = "chance"


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Condition(_Frozen):
    """One line of a comparison. ``repeats`` is the number of episodes for each seed."""

    label: str
    kind: Kind
    level: Level
    merge: MergeMode = MergeMode.DEEP
    repeats: int = Field(default=1, ge=1)

    def __str__(self) -> str:
        times = f" x{self.repeats}" if self.repeats > 1 else ""
        return f"{self.label} ({self.kind.value}, {self.level.value}, {self.merge.value}){times}"


class RunConfig(_Frozen):
    """The configuration of a run. Two runs with equal configurations do the same work.

    How many episodes run at once is not part of it; the run's record names that.
    """

    command: Literal["run", "compare"]
    model: str
    engine: str
    grammar_backend: str
    env: str
    conditions: tuple[Condition, ...]
    seeds: tuple[int, ...]
    horizon: int
    prefill: int
    order: Order
    validation: Validation
    on_rejected: OnRejected
    reasoning_tokens: int
    max_retries: int
    max_tokens: int
    temperature: float
    top_p: float
    sampling_seed: int

    @property
    def scripted(self) -> bool:
        """Whether ``model`` is one of the scripts rather than a language model."""
        return self.engine == SCRIPTED

    @property
    def digest(self) -> str:
        """Eight hex digits that name this configuration."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    @property
    def folder_name(self) -> str:
        """The name of the run's folder unless the user gives another one."""
        what = self.conditions[0].label if self.command == "run" else self.command
        return f"{PurePath(self.env).stem}-{self.model.replace('/', '--')}-{what}-{self.digest}"


def config_differences(was: RunConfig, now: RunConfig) -> tuple[str, ...]:
    """One line ``field: was → is`` for each field that differs."""
    return tuple(
        f"{field}: {_shown(getattr(was, field))} → {_shown(getattr(now, field))}"
        for field in RunConfig.model_fields
        if getattr(was, field) != getattr(now, field)
    )


def nested_differences(was: Mapping[str, object], now: Mapping[str, object], at: str = "") -> tuple[str, ...]:
    """One line ``dotted.name: was → is`` for each leaf of two nested mappings that differs."""
    lines: list[str] = []
    for key in dict.fromkeys([*was, *now]):
        left, right = was.get(key), now.get(key)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            lines += nested_differences(left, right, f"{at}{key}.")
        elif left != right:
            lines.append(f"{at}{key}: {_shown(left)} → {_shown(right)}")
    return tuple(lines)


def _shown(value: object) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(str(item) for item in value)
    return "nothing" if value is None else str(value)
