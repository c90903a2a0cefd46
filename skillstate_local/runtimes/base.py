"""The contract of a runtime: what goes into the prompt."""

from __future__ import annotations

from typing import Protocol

from skillstate_local.domains.turn import Turn
from skillstate_local.engine.base import Prompt
from skillstate_local.runtimes.skill import Skill
from skillstate_local.state.canonical import Json


class Runtime(Protocol):
    """Builds prompts. One instance serves one episode."""

    @property
    def name(self) -> str:
        """The runtime's name on the command line and in tables."""
        ...

    @property
    def skill(self) -> Skill:
        """P; never changes during an episode."""
        ...

    def prompt(self, state: Json, observation: str, feedback: str) -> Prompt:
        """The prompt of one attempt. ``feedback`` says why the step's previous attempt was refused, or is empty."""
        ...

    def remember(self, observation: str, turn: Turn | None) -> None:
        """A step is over; a runtime that keeps a transcript appends to it here."""
        ...
