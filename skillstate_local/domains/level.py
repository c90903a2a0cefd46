"""The ladder of constraint, and the order of a turn's two keys."""

from __future__ import annotations

from enum import StrEnum


class Level(StrEnum):
    """What the grammar guarantees; each level includes the one before it, `effects` stands beside `delta`."""

    FREE = "free"
    JSON = "json"
    SCHEMA = "schema"
    DELTA = "delta"
    EFFECTS = "effects"

    @property
    def constrained(self) -> bool:
        """Whether there is a grammar at all."""
        return self is not Level.FREE

    @property
    def static(self) -> bool:
        """Whether the grammar is the same at every step, so that its compiled form can be kept."""
        return self in (Level.JSON, Level.SCHEMA)


class Order(StrEnum):
    """Which of the two keys the object begins with. `effects` is always action-first."""

    PATCH_FIRST = "patch-first"
    ACTION_FIRST = "action-first"


class Validation(StrEnum):
    """``FULL``: parse, types, policies, legality. ``PAPER``: parse and types only, as the paper's runtime."""

    FULL = "full"
    PAPER = "paper"


def effective_order(level: Level, order: Order) -> Order:
    """The order a level really uses."""
    return Order.ACTION_FIRST if level is Level.EFFECTS else order
