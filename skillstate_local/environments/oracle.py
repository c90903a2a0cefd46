"""The oracle: an engine that answers with the environment's own right turn, so the whole pipeline can be checked."""

from __future__ import annotations

from skillstate_local.domains.level import Level, Order, effective_order
from skillstate_local.domains.turn import write_turn
from skillstate_local.engine.base import Request
from skillstate_local.engine.scripted import ScriptedEngine
from skillstate_local.environments.base import Environment


def oracle_engine(environment: Environment, level: Level, order: Order) -> ScriptedEngine:
    """Answers with the environment's own right turn."""

    def answer(_: Request) -> str:
        turn = environment.oracle()
        patch = {} if level is Level.EFFECTS else turn.patch
        return write_turn(patch, turn.action, effective_order(level, order))

    return ScriptedEngine("oracle", answer)
