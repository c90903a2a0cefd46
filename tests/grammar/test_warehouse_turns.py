"""The law on Warehouse: the oracle's turns, chance, and single mutations of both, at every level, in both dialects."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

import pytest

from skillstate_local.domains.level import Level, Order, effective_order
from skillstate_local.domains.turn import write_turn
from skillstate_local.domains.validate import Stage
from skillstate_local.environments.warehouse import WarehouseEnvironment
from skillstate_local.grammar.ir import Dialect
from tests.grammar.steps import Step, mutations, seeds, step_at, walks

LEVELS = (Level.JSON, Level.SCHEMA, Level.DELTA, Level.EFFECTS)


def oracle_text(world: WarehouseEnvironment, step: Step) -> str:
    turn = world.oracle()
    patch = {} if step.level is Level.EFFECTS else turn.patch
    return write_turn(patch, turn.action, effective_order(step.level, step.order))


def step_of(world: WarehouseEnvironment, level: Level, order: Order = Order.PATCH_FIRST) -> Step:
    return step_at(world.domain, world.projection(), world.domain.facts(world.observe()), level, order)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dialect", [Dialect.LARK, Dialect.EBNF])
@seeds(4)
def test_oracle_chance_and_mutations(dialect: Dialect, level: Level, seed: int) -> None:
    rng = Random(seed)
    world = WarehouseEnvironment(seed, 8, rng.choice((0, 3, 30)))
    for _ in range(rng.randint(0, 6)):
        world.execute(world.oracle().action)
    step = step_of(world, level, rng.choice(tuple(Order)))
    assert step.grammar is not None
    right = oracle_text(world, step)
    assert step.valid(right)
    turns = [right, *walks(rng, step, 4)]
    for text in [*turns, *mutations(rng, step, turns, 25)]:
        assert not step.disagreement(dialect, text)


Change = Callable[[dict[str, str], str], tuple[dict[str, str | None], str]]


def moving_step() -> tuple[Step, dict[str, str], str]:
    """A step that asks for a move, with a right turn."""
    for seed in range(100):
        world = WarehouseEnvironment(seed, 3, 12)
        turn = world.oracle()
        if turn.action.startswith("Move"):
            return step_of(world, Level.DELTA), turn.patch["inventory"], turn.action
    raise AssertionError("no maintenance in a hundred first steps")


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        ("as it is", None),
        ("deletes an empty shelf", Stage.POLICIES),
        ("deletes a shelf that the step does not concern", Stage.POLICIES),
        ("inserts on an occupied shelf", Stage.POLICIES),
        ("inserts an item that nothing names", Stage.POLICIES),
        ("inserts twice", Stage.POLICIES),
        ("nulls the inventory", Stage.TYPES),
        ("an unknown shelf", Stage.TYPES),
        ("a number for an item", Stage.TYPES),
        ("an unknown field", Stage.TYPES),
        ("moves to an occupied shelf", Stage.LEGALITY),
        ("moves to the same shelf", Stage.LEGALITY),
        ("ships from the wrong shelf", Stage.LEGALITY),
        ("stores what is not on the dock", Stage.LEGALITY),
        ("an unknown verb", Stage.ACTION_SYNTAX),
        ("an item with a leading zero", Stage.ACTION_SYNTAX),
        ("two spaces", Stage.ACTION_SYNTAX),
    ],
)
def test_each_kind_of_wrong_turn_is_refused_where_it_belongs(name: str, stage: Stage | None) -> None:
    step, patch, action = moving_step()
    _, item, old, new = action.split(" ")
    stock = step.state["inventory"]
    other, resident = next((shelf, thing) for shelf, thing in stock.items() if shelf != old)
    empty = next(f"shelf_{n}" for n in range(500) if f"shelf_{n}" not in stock and f"shelf_{n}" != new)
    wrong: dict[str, tuple[object, str]] = {
        "as it is": (patch, action),
        "deletes an empty shelf": ({empty: None}, action),
        "deletes a shelf that the step does not concern": ({other: None}, action),
        "inserts on an occupied shelf": ({other: item}, action),
        "inserts an item that nothing names": ({empty: "item_999"}, action),
        "inserts twice": ({empty: item, new: item}, action),
        "nulls the inventory": (None, action),
        "an unknown shelf": ({"shelf_500": item}, action),
        "a number for an item": ({new: 7}, action),
        "an unknown field": ({"stock": {}}, action),
        "moves to an occupied shelf": (patch, f"Move {item} {old} {other}"),
        "moves to the same shelf": (patch, f"Move {item} {old} {old}"),
        "ships from the wrong shelf": (patch, f"Ship {resident} {old}"),
        "stores what is not on the dock": (patch, f"Store {item} {empty}"),
        "an unknown verb": (patch, f"Take {item} {old}"),
        "an item with a leading zero": (patch, "Ship item_01 shelf_0"),
        "two spaces": (patch, f"Ship  {item} {old}"),
    }
    change, command = wrong[name]
    inside = change if name == "an unknown field" else {"inventory": change}
    text = write_turn(inside, command, Order.PATCH_FIRST)
    for dialect in (Dialect.LARK, Dialect.EBNF):
        assert not step.disagreement(dialect, text)
    verdict = step.verdict(text)
    assert getattr(verdict, "stage", None) is stage, verdict


def test_json_with_spaces_or_in_the_other_order_is_not_canonical() -> None:
    step, patch, action = moving_step()
    value = {"state_patch": {"inventory": patch}, "action": action}
    for text in (json.dumps(value), json.dumps(value, indent=1), write_turn({}, action, Order.ACTION_FIRST)):
        assert not step.valid(text)
        assert not step.disagreement(Dialect.LARK, text)
