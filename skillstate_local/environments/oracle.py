"""The oracle: an engine that answers with the environment's own right turn, so the whole pipeline can be checked."""

from __future__ import annotations

from skillstate_local.domains.level import Level, Order, effective_order
from skillstate_local.domains.turn import write_turn
from skillstate_local.engine.base import Request
from skillstate_local.engine.scripted import ScriptedEngine
from skillstate_local.environments.base import Environment
from skillstate_local.state.canonical import Json
from skillstate_local.state.diff import nest, overlapping, pointers


def oracle_engine(environment: Environment, level: Level, order: Order) -> ScriptedEngine:
    """Answers with the environment's own right turn."""

    def answer(_: Request) -> str:
        turn = environment.oracle()
        patch = _residual(environment, turn.action) if level is Level.EFFECTS else turn.patch
        return write_turn(patch, turn.action, effective_order(level, order))

    return ScriptedEngine("oracle", answer)


def _residual(environment: Environment, action: str) -> Json:
    """The facts that O_t reports and the action's own effect does not set."""
    domain = environment.domain
    touched = frozenset(pointer for reading in domain.readings(action) for pointer in pointers(reading.effect))
    residual: Json = {}
    for pointer, value in domain.facts(environment.observe()).reported:
        if not overlapping(frozenset((pointer,)), touched):
            residual = _joined(residual, nest(pointer, value))
    return residual


def _joined(left: Json, right: Json) -> Json:
    """Two patches with different pointers as one; unlike ⊕ it keeps nulls."""
    if not (isinstance(left, dict) and isinstance(right, dict)):
        return right
    return left | {key: _joined(left[key], value) if key in left else value for key, value in right.items()}
