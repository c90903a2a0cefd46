"""SKILL.state: the model sees P, Σ_t and O_t, and nothing older."""

from __future__ import annotations

from skillstate_local.domains.base import Domain, Example
from skillstate_local.domains.level import Level, Order, effective_order
from skillstate_local.domains.turn import REASONING_CLOSE, REASONING_OPEN, Turn, write_turn
from skillstate_local.engine.base import Prompt
from skillstate_local.runtimes.skill import Skill
from skillstate_local.state.canonical import Json, dumps

CUE = "Turn:\n"

_PATCH = '"state_patch" (the changes to the state, {} if there are none)'
_RESIDUAL = '"state_patch" (facts that the observation reports and the action does not itself bring about, else {})'
_ACTION = '"action" (the exact command)'


class SkillStateRuntime:
    """Prompts of constant size: compact canonical Σ and the latest observation after the immutable P."""

    name = "skill-state"

    def __init__(self, domain: Domain, level: Level, order: Order, reasoning_tokens: int) -> None:
        self._domain = domain
        self._skill = Skill(domain.instructions, contract(domain, level, order, reasoning_tokens))

    @property
    def skill(self) -> Skill:
        return self._skill

    def prompt(self, state: Json, observation: str, feedback: str) -> Prompt:
        shown = f"{observation}\n{feedback}" if feedback else observation
        return Prompt(self._skill.text + "\n\n", situation(state, shown), CUE)

    def remember(self, observation: str, turn: Turn | None) -> None:
        """Nothing: that is the point."""


def situation(state: Json, observation: str) -> str:
    """Σ_t and O_t as the prompt shows them."""
    return f"State:\n{dumps(state)}\nObservation:\n{observation}\n"


def contract(domain: Domain, level: Level, order: Order, reasoning_tokens: int) -> str:
    """The output contract and the examples, which are spelled exactly as the grammar spells them."""
    order = effective_order(level, order)
    patch = _RESIDUAL if level is Level.EFFECTS else _PATCH
    keys = (patch, _ACTION) if order is Order.PATCH_FIRST else (_ACTION, patch)
    lines = [f"Answer with one JSON object on one line with exactly two keys: {keys[0]} and {keys[1]}."]
    if reasoning_tokens:
        lines.insert(0, f"First reason in one or two sentences between {REASONING_OPEN} and {REASONING_CLOSE}.")
    examples = "\n\n".join(_example(domain, example, level, order, reasoning_tokens) for example in domain.examples)
    return "\n".join(lines) + (f"\n\n{examples}" if examples else "")


def _example(domain: Domain, example: Example, level: Level, order: Order, reasoning_tokens: int) -> str:
    patch = {} if level is Level.EFFECTS else example.patch
    reasoning = example.reasoning if reasoning_tokens else ""
    turn = write_turn(patch, example.action, order, reasoning)
    return situation(domain.schema.canonical(example.state), example.observation) + CUE + turn
