"""The Warehouse world by the rules of the benchmark: stream, score, voids, and that the grammar hides no policy."""

from __future__ import annotations

import itertools
import os
import statistics
from collections import Counter
from random import Random

import pytest

from skillstate_local.domains.level import Level, Order, effective_order
from skillstate_local.domains.turn import write_turn
from skillstate_local.domains.validate import Accepted, Rules, validate
from skillstate_local.environments.warehouse import (
    MAX_HORIZON,
    MAX_PREFILL,
    WarehouseEnvironment,
    stocked_shelves,
    warehouse_events,
)
from skillstate_local.errors import UsageError
from skillstate_local.grammar.ir import Dialect
from skillstate_local.grammar.sample import sample
from skillstate_local.grammar.turn import GrammarBuilder, GrammarOptions
from skillstate_local.state.canonical import Json, equal
from skillstate_local.state.merge import merge
from tests.grammar.matching import matches

LONG = bool(os.environ.get("SKILLSTATE_EXACTNESS"))
CONSTRAINED = (Level.JSON, Level.SCHEMA, Level.DELTA, Level.EFFECTS)


def random_action(rng: Random, world: WarehouseEnvironment) -> str | None:
    """Anything from sensible to nonsense."""
    stock = world.projection()["inventory"]
    shelves = [*stock, *(f"shelf_{rng.randrange(510)}" for _ in range(3))]
    items = [*stock.values(), *(f"item_{rng.randrange(30)}" for _ in range(3)), "item_01", "x"]
    verb, shelf, item = rng.choice(("Store", "Ship", "Move", "Wait", "Drop")), rng.choice(shelves), rng.choice(items)
    right = world.oracle().action
    usual = {"Wait": "Wait", "Move": f"Move {item} {shelf} {rng.choice(shelves)}"}.get(verb, f"{verb} {item} {shelf}")
    return rng.choice((right, right, usual, usual, f"{usual} ", None, ""))


# -- the stream ---------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_events_do_not_depend_on_what_the_agent_does(seed: int) -> None:
    quiet, busy = WarehouseEnvironment(seed, 60, 5), WarehouseEnvironment(seed, 60, 5)
    rng = Random(seed)
    kinds: list[str] = []
    for _ in range(60):
        line = busy.observe().splitlines()[-1]
        kinds.append({"S": "receive", "C": "order", "M": "maintenance"}[line[0]])
        quiet.execute(None)
        busy.execute(random_action(rng, busy))
    assert quiet.events == busy.events
    assert kinds == [event.split(" ")[0] for event in busy.events]


def test_the_same_seed_and_actions_give_the_same_world() -> None:
    def history(seed: int) -> list[object]:
        world, rng, seen = WarehouseEnvironment(seed, 40, 3), Random(1), []
        for _ in range(40):
            seen += [world.observe(), world.observe(), world.execute(random_action(rng, world)), world.projection()]
        return seen

    assert history(3) == history(3)
    assert history(3) != history(4)


@pytest.mark.parametrize("prefill", [0, 7])
def test_items_are_fresh_and_named_only_while_they_are_live(prefill: int) -> None:
    for seed in range(20):
        live = {f"item_{number}" for number in range(1, prefill + 1)}
        ever = set(live)
        for kind, item in warehouse_events(seed, 200, prefill):
            if kind == "receive":
                assert item not in ever
                live.add(item)
                ever.add(item)
            else:
                assert item in live
                live -= {item} if kind == "order" else set()


def test_kinds_and_items_are_uniform() -> None:
    kinds = Counter(kind for seed in range(30) for kind, _ in warehouse_events(seed, 400, 50))
    total = sum(kinds.values())
    assert all(abs(count / total - 1 / 3) < 0.015 for count in kinds.values()), kinds
    first = Counter(warehouse_events(seed, 1, 2)[0].item for seed in range(3000))
    assert abs(first["item_1"] - first["item_2"]) < 200


def test_a_longer_horizon_continues_a_shorter_one() -> None:
    assert warehouse_events(5, 100)[:40] == warehouse_events(5, 40)


@pytest.mark.parametrize("seed", [5, 22])
def test_a_full_warehouse_never_asks_for_what_cannot_be(seed: int) -> None:
    """With 400 items at the start these streams once held 558 and 638 items on 500 shelves."""
    live = most = 400
    for kind, _ in warehouse_events(seed, MAX_HORIZON, 400):
        live += (kind == "receive") - (kind == "order")
        most = max(most, live)
    assert most == 499


def test_prefill_is_the_stock_at_the_start() -> None:
    world = WarehouseEnvironment(9, 10, 250)
    stock = world.initial_state["inventory"]
    assert stock == stocked_shelves(9, 250)
    assert sorted(stock.values(), key=lambda item: int(item[5:])) == [f"item_{number}" for number in range(1, 251)]
    assert equal(world.initial_state, world.domain.schema.canonical(world.initial_state))
    assert WarehouseEnvironment(9, 10).initial_state == {"inventory": {}}


@pytest.mark.parametrize(("horizon", "prefill"), [(0, 0), (-1, 0), (MAX_HORIZON + 1, 0), (5, -1), (5, MAX_PREFILL + 1)])
def test_a_horizon_or_prefill_out_of_range_says_which_and_what_range(horizon: int, prefill: int) -> None:
    with pytest.raises(UsageError, match=r"--(horizon|prefill) -?\d+ is out of range") as error:
        WarehouseEnvironment(1, horizon, prefill)
    assert error.value.hint


# -- the score ----------------------------------------------------------------


def play_oracle(world: WarehouseEnvironment, level: Level, order: Order) -> int:
    """Successes of the oracle's turns, each of them through validation at the level."""
    state, score = world.initial_state, 0
    for _ in range(world.horizon):
        turn = world.oracle()
        facts = world.domain.facts(world.observe())
        patch = {} if level is Level.EFFECTS else turn.patch
        text = write_turn(patch, turn.action, effective_order(level, order))
        verdict = validate(text, world.domain, state, facts, Rules(level, order))
        assert isinstance(verdict, Accepted), verdict
        receipt = world.execute(verdict.action.text)
        state = verdict.state
        assert equal(state, world.projection())
        assert receipt.accepted
        score += receipt.success
    return score


HORIZONS = (10, 20, 50, 100, 200)


@pytest.mark.parametrize("level", list(Level))
def test_the_oracle_is_perfect_at_every_level(level: Level) -> None:
    seeds = range(1, 51) if LONG else range(1, 51, 12)
    for seed, horizon in itertools.product(seeds, HORIZONS if LONG else (10, 60)):
        order = Order.ACTION_FIRST if seed % 2 else Order.PATCH_FIRST
        assert play_oracle(WarehouseEnvironment(seed, horizon), level, order) == horizon


def test_the_oracle_is_perfect_at_every_horizon_and_seed() -> None:
    for seed, horizon in itertools.product(range(1, 51), HORIZONS):
        world = WarehouseEnvironment(seed, horizon, prefill=seed % 7)
        assert all(world.execute(world.oracle().action).success for _ in range(horizon))


def test_the_oracle_is_perfect_where_the_warehouse_is_full() -> None:
    world = WarehouseEnvironment(22, 3000, MAX_PREFILL)
    assert all(world.execute(world.oracle().action).success for _ in range(3000))


def test_a_missed_delivery_makes_later_events_void_and_the_denominator_stays() -> None:
    """Nothing is ever done: every Order and Maintenance is void, and none succeeds."""
    world = WarehouseEnvironment(4, 50)
    for event in world.events:
        kind = event.split(" ")[0]
        assert world.void is (kind != "receive")
        if kind == "maintenance":
            assert world.observe().splitlines()[-1] == "Maintenance required on shelf_0."
        if world.void:
            assert world.oracle() == ({}, "Wait")
        assert not world.execute("Wait").success
    assert world.projection() == {"inventory": {}}


def first_step(kind: str, prefill: int = 3) -> WarehouseEnvironment:
    for seed in range(200):
        world = WarehouseEnvironment(seed, 6, prefill)
        if world.events[0].startswith(kind):
            return world
    raise AssertionError(kind)


def test_success_is_what_the_event_asks_for_and_only_in_its_step() -> None:
    world = first_step("receive")
    item = world.events[0].split(" ")[1]
    taken = next(iter(world.projection()["inventory"]))
    refused = world.execute(f"Store {item} {taken}")
    assert refused == (False, False, f"Error: {taken} is not empty.")
    late = world.execute(f"Store {item} shelf_499")
    assert late.accepted
    assert late.success is (world.events[1] == f"receive {item}")


def test_a_docked_item_can_be_stored_later_but_not_shipped_from_the_dock() -> None:
    world = first_step("receive")
    item = world.events[0].split(" ")[1]
    world.execute("Wait")
    assert not world.execute(f"Ship {item} shelf_0").accepted
    assert not world.execute(f"Move {item} shelf_0 shelf_1").accepted
    assert world.execute(f"Store {item} shelf_400").accepted
    assert world.projection()["inventory"]["shelf_400"] == item
    assert not world.execute(f"Store {item} shelf_401").accepted


def test_maintenance_is_satisfied_by_a_move_and_not_by_shipping() -> None:
    world = first_step("maintenance")
    item = world.events[0].split(" ")[1]
    shelf = next(s for s, i in world.projection()["inventory"].items() if i == item)
    assert world.observe() == f"Maintenance required on {shelf}."
    assert not world.execute(f"Move {item} {shelf} {shelf}").accepted
    other = first_step("maintenance")
    assert other.execute(f"Ship {item} {shelf}") == (True, False, f"Success: Shipped {item} from {shelf}.")
    third = first_step("maintenance")
    assert third.execute(f"Move {item} {shelf} shelf_499") == (
        True,
        True,
        f"Success: Moved {item} from {shelf} to shelf_499.",
    )


def test_the_result_line_comes_before_the_next_event() -> None:
    world = first_step("order")
    assert len(world.observe().splitlines()) == 1
    world.execute("Wait")
    assert world.observe().splitlines()[0] == "Success: Waited."
    world.execute("Dance")
    assert world.observe().splitlines()[0].startswith("Error: unknown action ")
    world.execute(None)
    assert world.observe().splitlines()[0] == "Error: no valid action was given."
    assert len(world.observe().splitlines()) == 2


def test_an_action_cannot_write_an_event_into_the_next_observation() -> None:
    world = WarehouseEnvironment(1, 5, 3)
    for action in ("x\nCustomer ordered item_3.", "Ship a\nCustomer ordered", "Store item_3\nMaintenance shelf_0"):
        assert len(world.domain.facts(world.observe()).events) == 1
        world.execute(action)
    assert len(world.domain.facts(world.observe()).events) == 1


@pytest.mark.parametrize("seed", range(10))
def test_what_is_refused_changes_nothing_and_what_is_done_is_what_the_action_means(seed: int) -> None:
    """The effect that the domain states is the change that the world makes."""
    world, rng = WarehouseEnvironment(seed, 80, 5), Random(seed)
    for _ in range(80):
        before, action = world.projection(), random_action(rng, world)
        receipt = world.execute(action)
        if receipt.accepted:
            (reading,) = world.domain.readings(str(action))
            assert equal(world.projection(), world.domain.schema.canonical(merge(before, reading.effect)))
        else:
            assert equal(world.projection(), before)
            assert not receipt.success
        assert receipt.message.startswith("Success:" if receipt.accepted else "Error:")


# -- no policy in the grammar -------------------------------------------------


def known_words(state: Json, observation: str) -> tuple[list[str], list[str]]:
    """Items of Σ_t ∪ O_t's event, and a few shelves of every kind."""
    stock = state["inventory"]
    named = [word.strip(".") for word in observation.splitlines()[-1].split(" ")]
    items = sorted({*stock.values(), *(word for word in named if word.startswith("item_"))})
    shelves = sorted(
        {*stock, *(word for word in named if word.startswith("shelf_")), "shelf_0", "shelf_250", "shelf_499"}
    )
    return items, shelves


def accepted_actions(world: WarehouseEnvironment, state: Json) -> list[str]:
    """Every action with arguments in Σ_t ∪ O_t that the world would carry out now."""
    items, shelves = known_words(state, world.observe())
    actions = ["Wait"]
    actions += [f"{verb} {i} {s}" for verb in ("Store", "Ship") for i in items for s in shelves]
    actions += [f"Move {i} {a} {b}" for i in items for a in shelves for b in shelves]
    return [action for action in actions if not world._refusal(action.split(" "))]


@pytest.mark.parametrize("wild", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_every_action_that_the_world_accepts_is_decodable(seed: int, wild: bool) -> None:
    """Σ is faithful; the agent is the oracle, or does what it likes."""
    world, rng = WarehouseEnvironment(seed, 25, 4), Random(seed)
    for step in range(25):
        state = world.projection()
        facts = world.domain.facts(world.observe())
        accepted = accepted_actions(world, state)
        at = world.domain.world(state, facts)
        assert accepted
        for action in accepted:
            assert world.domain.legal_action(action, at)[0] is not None, (action, world.observe(), state)
        for level in (Level.DELTA, Level.EFFECTS) if step % 5 == 0 else ():
            grammar = GrammarBuilder(world.domain, GrammarOptions(level)).build(state, facts)
            assert grammar is not None
            for action in rng.sample(accepted, min(10, len(accepted))):
                text = write_turn({}, action, effective_order(level, Order.PATCH_FIRST))
                assert matches(grammar, Dialect.LARK, text), text
        world.execute(rng.choice(accepted) if wild else world.oracle().action)


def test_the_effect_of_what_the_step_concerns_is_decodable_as_its_patch() -> None:
    """At `delta` the right patch of the oracle's action is in the language, whatever happened before."""
    world, rng = WarehouseEnvironment(8, 60, 6), Random(8)
    for _ in range(60):
        state, turn = world.projection(), world.oracle()
        text = write_turn(turn.patch, turn.action, Order.PATCH_FIRST)
        facts = world.domain.facts(world.observe())
        assert isinstance(validate(text, world.domain, state, facts, Rules(Level.DELTA)), Accepted)
        world.execute(rng.choice(accepted_actions(world, state)))


# -- chance -------------------------------------------------------------------

SEEDS = range(60)
HORIZON = 50


def chance_score(seed: int, level: Level) -> float:
    """A random sentence of each step's grammar, through validation, as the engine `chance` answers."""
    world, rng = WarehouseEnvironment(seed, HORIZON), Random(f"chance {seed}")
    builder = GrammarBuilder(world.domain, GrammarOptions(level))
    state, score = world.initial_state, 0
    for _ in range(HORIZON):
        facts = world.domain.facts(world.observe())
        grammar = builder.build(state, facts)
        assert grammar is not None
        verdict = validate(sample(grammar.root, rng), world.domain, state, facts, Rules(level))
        state = verdict.state if isinstance(verdict, Accepted) else state
        score += world.execute(verdict.action.text if isinstance(verdict, Accepted) else None).success
    return score / HORIZON


@pytest.mark.parametrize(("level", "about"), [(Level.DELTA, 0.11), (Level.EFFECTS, 0.16)])
def test_chance_stays_below_the_bar(level: Level, about: float) -> None:
    mean = statistics.mean(chance_score(seed, level) for seed in SEEDS)
    assert mean < 0.35
    assert abs(mean - about) < 0.04, mean


def reference_chance(choose: str) -> float:
    """Chance without any grammar, on a faithful Σ: over kinds, over strings, or with arguments that O_t names."""
    scores = []
    for seed in SEEDS:
        world, rng = WarehouseEnvironment(seed, HORIZON), Random(f"reference {seed}")
        score = 0
        for _ in range(HORIZON):
            score += world.execute(_drawn(world, rng, choose)).success
        scores.append(score / HORIZON)
    return statistics.mean(scores)


def _drawn(world: WarehouseEnvironment, rng: Random, choose: str) -> str:
    stock = world.projection()["inventory"]
    named = {word.strip(".") for word in world.observe().splitlines()[-1].split(" ")}
    docked = sorted(word for word in named if word.startswith("item_") and word not in stock.values())
    pairs = [(item, shelf) for shelf, item in stock.items()]
    if choose == "grounded":
        pairs = [pair for pair in pairs if named & set(pair)]
    empty = [f"shelf_{number}" for number in range(500) if f"shelf_{number}" not in stock]
    kinds = ["Wait"] + ["Store"] * bool(docked) + ["Ship", "Move"] * bool(pairs)
    if choose == "strings":
        store, move = len(docked) * len(empty), len(pairs) * len(empty)
        strings = {"Wait": 1, "Store": store, "Ship": len(pairs), "Move": move}
        kind = rng.choices(kinds, [strings[kind] for kind in kinds])[0]
    else:
        kind = rng.choice(kinds)
    if kind == "Store":
        return f"Store {rng.choice(docked)} {rng.choice(empty)}"
    if kind == "Wait":
        return "Wait"
    item, shelf = rng.choice(pairs)
    return f"Ship {item} {shelf}" if kind == "Ship" else f"Move {item} {shelf} {rng.choice(empty)}"


@pytest.mark.parametrize(("choose", "about"), [("kinds", 0.17), ("strings", 0.145), ("grounded", 0.28)])
def test_reference_values_of_chance(choose: str, about: float) -> None:
    assert abs(reference_chance(choose) - about) < 0.04, reference_chance(choose)
