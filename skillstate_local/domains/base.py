"""A domain: the shape of Σ, the actions, how to read O_t, and the words that explain all this to a model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from skillstate_local.domains.action import Action, ActionTemplate, legality, parse_action
from skillstate_local.domains.observation import Facts, ObservationFormat, read_observation
from skillstate_local.state.apply import apply_patch
from skillstate_local.state.canonical import Json
from skillstate_local.state.diff import nest, overlapping, pointers
from skillstate_local.state.merge import MergeMode
from skillstate_local.state.schema import Schema
from skillstate_local.state.source import World
from skillstate_local.state.validate import patch_problems


@dataclass(frozen=True, slots=True)
class Example:
    """One worked step for the prompt; its texts are written in exactly the spacing that the grammar allows."""

    state: Json
    observation: str
    patch: Json
    action: str
    reasoning: str = ""


@dataclass(frozen=True)
class Domain:
    """Authored once; everything else (grammar, validation, prompts) is derived from it."""

    name: str
    schema: Schema
    actions: tuple[ActionTemplate, ...]
    observations: ObservationFormat
    instructions: str
    examples: tuple[Example, ...] = ()
    initial_state: Json = field(default_factory=dict)

    @cached_property
    def closed(self) -> Mapping[str, tuple[str, ...]]:
        """Members of the closed vocabularies."""
        return {name: v.members for name, v in self.schema.vocabularies.items() if v.members}

    @cached_property
    def version(self) -> str:
        """Hash over everything authored; a run, a journal and a compiled grammar name it."""
        parts = (self.name, self.schema, self.actions, self.observations, self.instructions, self.examples)
        return hashlib.sha256(repr((*parts, self.initial_state)).encode()).hexdigest()[:16]

    def facts(self, observation: str) -> Facts:
        """What an observation names and reports; a report that Σ could not hold is dropped."""
        facts = read_observation(self.observations, observation)
        typed = tuple(f for f in facts.reported if not any(patch_problems(self.schema, nest(*f))))
        return Facts(facts.seen, typed, facts.events)

    def world(self, state: Json, facts: Facts) -> World:
        """What a step knows: Σ_t and O_t, for sources and policies."""
        return World(state, facts.seen, self.closed)

    def readings(self, text: str) -> tuple[Action, ...]:
        """All actions that ``text`` may mean; empty when it fits no template."""
        return parse_action(self.schema, self.actions, text)

    def legal_action(self, text: str, world: World, residual: Json = None) -> tuple[Action | None, str]:
        """The first legal reading of ``text`` whose effect leaves ``residual`` alone, or None and why there is none."""
        reason = "it fits no action template"
        for action in self.readings(text):
            reason = legality(action, world)
            if not reason and overlapping(pointers(residual), pointers(action.effect)):
                reason = "its own effect sets what the patch sets"
            if not reason:
                return action, ""
        return None, reason

    def apply(self, state: Json, patch: Json, mode: MergeMode = MergeMode.DEEP) -> Json:
        """Σ ⊕ patch in canonical order."""
        return apply_patch(self.schema, state, patch, mode)
