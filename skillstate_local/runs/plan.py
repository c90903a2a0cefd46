"""From a configuration to its episodes, and to what they need: worlds, prompts, grammars, token limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from skillstate_local.domains.level import Level
from skillstate_local.domains.validate import Rules
from skillstate_local.engine.base import Engine, Sampling
from skillstate_local.environments.base import Environment
from skillstate_local.episode import Episode
from skillstate_local.errors import UnsupportedConstraint
from skillstate_local.grammar.ir import Dialect
from skillstate_local.grammar.turn import GrammarBuilder, GrammarOptions
from skillstate_local.runs.config import Condition, RunConfig
from skillstate_local.runs.worlds import make_environment
from skillstate_local.runtimes.skill import Skill
from skillstate_local.runtimes.skill_state import SkillStateRuntime

DIALECTS = {"llguidance": Dialect.LARK, "xgrammar": Dialect.EBNF, "outlines": Dialect.REGEX}


@dataclass(frozen=True, slots=True)
class EpisodePlan:
    """One episode to play. ``key`` names it in the journal, in messages and in the seed of every draw."""

    key: str
    condition: Condition
    seed: int
    repeat: int


def plan_episodes(config: RunConfig) -> tuple[EpisodePlan, ...]:
    """All episodes of a run, seed by seed, so that every condition progresses at the same pace."""
    return tuple(
        EpisodePlan(_key(condition, seed, repeat), condition, seed, repeat)
        for seed in config.seeds
        for condition in config.conditions
        for repeat in range(condition.repeats)
    )


def _key(condition: Condition, seed: int, repeat: int) -> str:
    suffix = f"/repeat-{repeat}" if condition.repeats > 1 else ""
    return f"{condition.label}/seed-{seed}{suffix}"


class Workshop:
    """Builds the parts of a run's episodes; what conditions have in common is built once."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.domain = self.world(config.seeds[0]).domain
        self._builders: dict[Level, GrammarBuilder] = {}

    def world(self, seed: int) -> Environment:
        """A fresh world."""
        return make_environment(self.config.env, seed, self.config.horizon, self.config.prefill)

    def runtime(self, condition: Condition) -> SkillStateRuntime:
        """A fresh runtime."""
        return SkillStateRuntime(self.domain, condition.level, self.config.order, self.config.reasoning_tokens)

    def skill(self, condition: Condition) -> Skill:
        """P of a condition."""
        return self.runtime(condition).skill

    def builder(self, condition: Condition) -> GrammarBuilder:
        """The grammar builder of a condition's level."""
        if condition.level not in self._builders:
            options = GrammarOptions(condition.level, self.config.order, self.config.reasoning_tokens)
            self._builders[condition.level] = GrammarBuilder(self.domain, options)
        return self._builders[condition.level]

    def episode(self, plan: EpisodePlan, environment: Environment, engine: Engine) -> Episode:
        """Everything of one episode put together."""
        config, condition = self.config, plan.condition
        return Episode(
            key=plan.key,
            environment=environment,
            runtime=self.runtime(condition),
            builder=self.builder(condition),
            engine=engine,
            rules=Rules(condition.level, config.order, condition.merge, config.validation),
            max_tokens=config.max_tokens,
            sampling=Sampling(config.temperature, config.top_p, config.sampling_seed),
            max_retries=config.max_retries,
            on_rejected=config.on_rejected,
        )

    def prefixes(self, conditions: Iterable[Condition]) -> tuple[str, ...]:
        """Every P as the engine sees it, each once."""
        prompts = (self.runtime(condition).prompt({}, "", "").prefix for condition in conditions)
        return tuple(dict.fromkeys(prompts))

    def static_grammars(self) -> dict[str, str]:
        """Hash of the grammar of every condition whose grammar is the same at every step."""
        found = {}
        for condition in self.config.conditions:
            grammar = self.builder(condition).build({}) if condition.level.static else None
            if grammar is not None:
                found[condition.label] = grammar.key
        return found

    def check_grammars(self) -> None:
        """Write the first step's grammar of every condition in the dialect that will be used.

        Raises UnsupportedConstraint or GrammarError before any episode when a level cannot be enforced.
        """
        world = self.world(self.config.seeds[0])
        facts = self.domain.facts(world.observe())
        for condition in self.config.conditions:
            grammar = self.builder(condition).build(world.initial_state, facts)
            if grammar is not None and not self.config.scripted:
                self._check_backend(condition)
                grammar.write(DIALECTS[self.config.grammar_backend])

    def _check_backend(self, condition: Condition) -> None:
        if self.config.grammar_backend == "outlines" and not condition.level.static:
            raise UnsupportedConstraint(
                f"outlines takes seconds to index a grammar; at {condition.level.value} every step has another one.",
                "Use --grammar-backend llguidance, or the levels json and schema only.",
            )
