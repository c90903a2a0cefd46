"""The command line's options: read, checked and made into a configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeVar

from skillstate_local.domains.level import Level, Order, Validation
from skillstate_local.episode import OnRejected
from skillstate_local.errors import UnsupportedConstraint, UsageError, unknown_name
from skillstate_local.registry import Registry
from skillstate_local.runs.config import CHANCE, ORACLE, SCRIPTED, SCRIPTED_MODELS, Condition, Kind, RunConfig
from skillstate_local.runs.limits import needed_tokens
from skillstate_local.runs.plan import DIALECTS
from skillstate_local.runs.worlds import make_environment
from skillstate_local.state.merge import MergeMode

ENGINES = ("transformers", SCRIPTED)
MAX_SEED = 2**31 - 1
MAX_SEEDS = 1000

Choice = TypeVar("Choice", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Options:
    """What a user typed for `run` or `compare`; names are still text, numbers not yet checked."""

    command: Literal["run", "compare"]
    model: str
    env: str
    levels: str
    horizon: int | None
    seeds: str
    prefill: int = 0
    engine: str | None = None
    grammar_backend: str = "llguidance"
    reasoning_tokens: int = 0
    order: str = Order.PATCH_FIRST.value
    max_retries: int = 2
    merge: str = MergeMode.DEEP.value
    validation: str = Validation.FULL.value
    on_rejected: str = OnRejected.KEEP.value
    temperature: float = 0.0
    top_p: float = 1.0
    sampling_seed: int = 0
    max_tokens: int | None = None
    chance_repeats: int = 5


def make_config(options: Options, registry: Registry) -> RunConfig:
    """Check every option. Raises UsageError naming the flag and its range or the nearest match."""
    _check_ranges(options)
    engine = _engine(options, registry)
    levels = _levels(options.levels)
    seeds = parse_seeds(options.seeds)
    world = make_environment(options.env, seeds[0], options.horizon, options.prefill)
    validation = _choice("--validation", options.validation, Validation)
    merge = _choice("--merge", options.merge, MergeMode)
    _check_levels(options, levels, merge, validation)
    compare = options.command == "compare"
    return RunConfig(
        command=options.command,
        model=options.model,
        engine=engine,
        grammar_backend=_name("--grammar-backend", options.grammar_backend, DIALECTS),
        env=options.env,
        conditions=_compared(levels, options.chance_repeats) if compare else (_model_condition(levels[0], merge),),
        seeds=seeds,
        horizon=world.horizon,
        prefill=options.prefill,
        order=_choice("--order", options.order, Order),
        validation=validation,
        on_rejected=_choice("--on-rejected", options.on_rejected, OnRejected),
        reasoning_tokens=options.reasoning_tokens,
        max_retries=options.max_retries,
        max_tokens=_token_limit(options, levels, needed_tokens(world.domain, levels, options.reasoning_tokens)),
        temperature=options.temperature,
        top_p=options.top_p,
        sampling_seed=options.sampling_seed,
    )


def parse_seeds(text: str) -> tuple[int, ...]:
    """Seeds out of ``1,2,3``, ``1-10`` or a mixture. Raises UsageError."""
    hint = f"Write numbers and ranges such as 1,2,3 or 1-10, each from 0 to {MAX_SEED}, no seed twice."
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,10})(?:\s*-\s*([0-9]{1,10}))?\s*", part, re.ASCII)
        if match is None:
            raise UsageError(f"--seeds: {part.strip()!r} is neither a number nor a range.", hint)
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last > MAX_SEED:
            raise UsageError(f"--seeds: {part.strip()!r} is out of range.", hint)
        if len(seeds) + last - first + 1 > MAX_SEEDS:
            raise UsageError(f"--seeds names more than {MAX_SEEDS} seeds.", f"A run takes 1 to {MAX_SEEDS} seeds.")
        seeds.extend(range(first, last + 1))
    twice = sorted({seed for seed in seeds if seeds.count(seed) > 1})
    if twice:
        raise UsageError(f"--seeds names {twice[0]} twice.", hint)
    return tuple(seeds)


def check_range(flag: str, value: float, low: float, high: float) -> None:
    """Raise UsageError unless ``low <= value <= high``."""
    if not low <= value <= high:
        raise UsageError(f"{flag} {value} is out of range.", f"Give a number from {low} to {high}.")


def _check_ranges(options: Options) -> None:
    check_range("--reasoning-tokens", options.reasoning_tokens, 0, 4096)
    check_range("--max-retries", options.max_retries, 0, 20)
    check_range("--temperature", options.temperature, 0, 5)
    check_range("--top-p", options.top_p, 0.001, 1)
    check_range("--sampling-seed", options.sampling_seed, 0, MAX_SEED)
    check_range("--chance-repeats", options.chance_repeats, 1, 1000)
    if options.max_tokens is not None:
        check_range("--max-tokens", options.max_tokens, 1, 1_000_000)


def _name(flag: str, name: str, known: Iterable[str]) -> str:
    if name not in known:
        raise unknown_name(f"value for {flag}", name, known)
    return name


def _choice(flag: str, name: str, kind: type[Choice]) -> Choice:
    return kind(_name(flag, name, [member.value for member in kind]))


def _levels(text: str) -> tuple[Level, ...]:
    known = [level.value for level in Level]
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise unknown_name("level", name, known)
    if len(set(names)) != len(names):
        raise UsageError(f"A level is named twice in {text!r}.", "Name each level once.")
    return tuple(Level(name) for name in names)


def _engine(options: Options, registry: Registry) -> str:
    """The engine to use. Raises UsageError if the model or the engine is unknown, or the two do not go together."""
    scripted = options.model in SCRIPTED_MODELS
    if not scripted and options.model not in registry.models:
        raise unknown_name("model", options.model, [*registry.models, *SCRIPTED_MODELS])
    able = (SCRIPTED,) if scripted else tuple(e for e in registry.get(options.model).engines if e in ENGINES)
    if options.engine is not None and options.engine not in ENGINES:
        raise unknown_name("engine", options.engine, ENGINES)
    if options.engine not in (None, *able) or not able:
        raise UsageError(
            f"Model {options.model!r} does not run on engine {options.engine!r}.",
            f"It runs on: {', '.join(able) or 'none of the engines of this version'}.",
        )
    return options.engine or able[0]


def _check_levels(options: Options, levels: Sequence[Level], merge: MergeMode, validation: Validation) -> None:
    if options.command == "run" and len(levels) != 1:
        raise UsageError(f"--level takes one level, not {options.levels!r}.", "Use `compare --levels` for several.")
    if merge is MergeMode.SHALLOW and levels[0] is not Level.FREE:
        raise UsageError("--merge shallow is an ablation at level free.", f"{levels[0].value} merges deep.")
    if validation is Validation.PAPER and Level.EFFECTS in levels:
        raise UsageError("--validation paper means nothing at level effects.", "Leave one of the two out.")
    without = [level.value for level in levels if level in (Level.FREE, Level.JSON)]
    if options.model == CHANCE and without:
        raise UnsupportedConstraint(
            f"There is no chance at level {without[0]}: it has no grammar of turns to draw from.",
            "Use schema, delta or effects.",
        )


def _token_limit(options: Options, levels: Sequence[Level], needed: int) -> int:
    given = options.max_tokens
    if given is None:
        return needed
    bounded = [level.value for level in levels if level not in (Level.FREE, Level.JSON)]
    if given < needed and bounded:
        raise UsageError(
            f"--max-tokens {given} is less than the {needed} tokens that a turn at {bounded[0]} may need.",
            f"Give at least {needed}, or leave the flag out: the limit is then {needed} at every level.",
        )
    return given


def _model_condition(level: Level, merge: MergeMode) -> Condition:
    label = f"{level.value}-{merge.value}" if level is Level.FREE else level.value
    return Condition(label=label, kind=Kind.MODEL, level=level, merge=merge)


def _compared(levels: Sequence[Level], chance_repeats: int) -> tuple[Condition, ...]:
    """The lines of a comparison in the table's order; chance where there is a grammar of turns to draw from."""
    found: list[Condition] = []
    for level in sorted(levels, key=list(Level).index):
        if level is Level.FREE:
            found.append(_model_condition(level, MergeMode.SHALLOW))
        found.append(_model_condition(level, MergeMode.DEEP))
    floors = {Level.SCHEMA if level in (Level.FREE, Level.JSON) else level for level in levels}
    for level in sorted(floors, key=list(Level).index):
        found.append(Condition(label=f"{CHANCE}-{level.value}", kind=Kind.CHANCE, level=level, repeats=chance_repeats))
    found.append(Condition(label=ORACLE, kind=Kind.ORACLE, level=Level.DELTA))
    return tuple(found)
