"""YAML and Python authoring give the same domain: the Warehouse written twice."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from skillstate_local.domains.level import Level, Order
from skillstate_local.domains.loader import load_domain
from skillstate_local.domains.turn import write_turn
from skillstate_local.domains.validate import Rules, validate
from skillstate_local.domains.warehouse import WAREHOUSE
from skillstate_local.grammar.ir import Dialect
from skillstate_local.grammar.turn import GrammarBuilder, GrammarOptions

WRITTEN = load_domain(Path(__file__).with_name("warehouse.yaml"))


def test_the_same_domain() -> None:
    assert WRITTEN == WAREHOUSE


def _steps(count: int) -> list[tuple[dict[str, dict[str, str]], str]]:
    rng = Random(7)
    steps = []
    for _ in range(count):
        shelves = rng.sample(range(500), rng.randint(0, 6))
        inventory = {f"shelf_{shelf}": f"item_{rng.randint(0, 12)}" for shelf in shelves}
        line = rng.choice(
            [
                f"Shipment arrived containing item_{rng.randint(0, 12)}.",
                f"Customer ordered item_{rng.randint(0, 12)}.",
                f"Maintenance required on shelf_{rng.choice([*shelves, 3])}.",
            ]
        )
        steps.append(({"inventory": inventory}, line))
    return steps


@pytest.mark.parametrize("level", [level for level in Level if level.constrained])
@pytest.mark.parametrize("dialect", [Dialect.LARK, Dialect.EBNF])
def test_the_same_grammars(level: Level, dialect: Dialect) -> None:
    builders = [GrammarBuilder(domain, GrammarOptions(level)) for domain in (WRITTEN, WAREHOUSE)]
    for state, line in _steps(5):
        texts = []
        for builder in builders:
            grammar = builder.build(state, builder.domain.facts(line))
            assert grammar is not None
            texts.append(grammar.write(dialect))
        assert texts[0] == texts[1]


@pytest.mark.parametrize("level", list(Level))
def test_the_same_verdicts(level: Level) -> None:
    rng = Random(11)
    accepted = 0
    for state, line in _steps(200):
        shelf, item = f"shelf_{rng.randint(0, 4)}", f"item_{rng.randint(0, 12)}"
        held = list(state["inventory"].items()) or [(shelf, item)]
        old, thing = rng.choice(held)
        turn = rng.choice(
            [
                ({"inventory": {shelf: item}}, f"Store {item} {shelf}"),
                ({"inventory": {old: None}}, f"Ship {thing} {old}"),
                ({}, "Wait"),
                ({"inventory": {old: None, shelf: thing}}, f"Move {thing} {old} {shelf}"),
                ({"inventory": None}, "Wait"),
            ]
        )
        order = Order.ACTION_FIRST if level is Level.EFFECTS else Order.PATCH_FIRST
        text = write_turn({} if level is Level.EFFECTS else turn[0], turn[1], order)
        verdicts = [validate(text, domain, state, domain.facts(line), Rules(level)) for domain in (WRITTEN, WAREHOUSE)]
        assert verdicts[0] == verdicts[1]
        accepted += hasattr(verdicts[0], "state")
    assert 20 < accepted <= 200
