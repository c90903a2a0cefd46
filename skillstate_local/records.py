"""What is kept of an episode: a record of each attempt and each step. Everything shown later is derived from them."""

from __future__ import annotations

from dataclasses import dataclass

from skillstate_local.engine.base import StopReason, Timing, Usage
from skillstate_local.state.canonical import Json


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One completion and how it was judged. ``stage`` is empty when it was accepted.

    ``text`` is the raw answer with its reasoning: archived here, never prompted again.
    """

    text: str
    stop_reason: StopReason
    stage: str
    pointer: str
    message: str
    usage: Usage
    timing: Timing
    grammar_hash: str
    forced_tokens: int = 0

    @property
    def accepted(self) -> bool:
        """Whether the turn passed validation."""
        return not self.stage


@dataclass(frozen=True, slots=True)
class StepIntent:
    """Everything decided in a step before its action runs; committed first."""

    step: int
    skill_hash: str
    state: Json
    """Σ_t."""
    observation: str
    """O_t."""
    attempts: tuple[AttemptRecord, ...]
    patch: Json
    """The accepted turn's patch (at `effects` the residual); None when no attempt was valid."""
    effect: Json
    """The patch that the accepted action's success means; None when no attempt was valid."""
    action: str | None
    next_state: Json
    """Σ_{t+1} as committed."""
    oracle_patch: Json
    oracle_action: str
    void: bool
    faithful: bool
    """Whether Σ_t equalled the projection of the world before the step."""


@dataclass(frozen=True, slots=True)
class StepReceipt:
    """What the world did with the action, and how Σ stands to it afterwards."""

    accepted: bool
    success: bool
    message: str
    faithful_after: bool
    """Whether Σ_{t+1} (after ``on_rejected``) equals the projection of the world after the step."""
    state_after: Json
    """Σ_{t+1} with which the next step begins; differs from the intent's after a rollback."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One finished step."""

    intent: StepIntent
    receipt: StepReceipt
