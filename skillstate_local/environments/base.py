"""The contract of an environment: a world that shows observations, takes actions and keeps the score."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from skillstate_local.domains.base import Domain
from skillstate_local.state.canonical import Json


class Receipt(NamedTuple):
    """What the world answered to one action.

    ``accepted``: the action happened. ``success``: it satisfied the step's event. ``message`` is the result line that
    the next observation begins with.
    """

    accepted: bool
    success: bool
    message: str


class OracleTurn(NamedTuple):
    """The right patch and action for the current step."""

    patch: Json
    action: str


class Environment(Protocol):
    """One world, one seed. Deterministic: the same seed and actions give the same observations and receipts."""

    @property
    def domain(self) -> Domain:
        """The domain its observations and actions belong to."""
        ...

    @property
    def horizon(self) -> int:
        """Number of steps T."""
        ...

    @property
    def initial_state(self) -> Json:
        """Σ_0."""
        ...

    def observe(self) -> str:
        """O_t: the result line of the previous action, then this step's event. Does not change the world."""
        ...

    def execute(self, action: str | None) -> Receipt:
        """Carry out the step's action (None: there was no valid one) and go to the next step."""
        ...

    def oracle(self) -> OracleTurn:
        """What a perfect agent with a perfect Σ does in this step."""
        ...

    def projection(self) -> Json:
        """The world as a perfect Σ would describe it now."""
        ...

    @property
    def void(self) -> bool:
        """Whether nothing can satisfy this step's event, because an earlier one was missed."""
        ...

    @property
    def events(self) -> tuple[str, ...]:
        """The item-level event stream, the same for every runtime, level and model under one seed."""
        ...
