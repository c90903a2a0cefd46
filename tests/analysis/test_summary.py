"""Summaries of real Warehouse episodes: scores, floors, what must repeat exactly, and what is kept apart from it."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from skillstate_local.analysis.summary import ConditionSummary, Summary, summarise, to_json
from skillstate_local.analysis.taxonomy import Outcome
from skillstate_local.domains.level import Level, Validation
from skillstate_local.domains.warehouse import WAREHOUSE
from skillstate_local.engine.base import Timing
from skillstate_local.environments.warehouse import WarehouseEnvironment
from skillstate_local.errors import UsageError
from skillstate_local.records import StepRecord
from skillstate_local.runs.config import Kind
from skillstate_local.runs.results import EpisodeResult
from skillstate_local.state.merge import MergeMode
from tests.analysis.play import condition, oracle_answer, play, turn

SEEDS = (1, 2, 3)
HORIZON = 12
LEVELS = {level: condition(Kind.MODEL, level) for level in Level}
CHANCE = [condition(Kind.CHANCE, level, repeats=2) for level in (Level.SCHEMA, Level.DELTA, Level.EFFECTS)]
CLASSES_OF_TEXT = list(Outcome)[:6]


def timed(result: EpisodeResult, scale: float) -> EpisodeResult:
    """The same episode as another machine would have timed it."""

    def step(record: StepRecord) -> StepRecord:
        timing = Timing(*(scale * share for share in (0.1, 0.2, 0.3, 0.3, 0.1)))
        attempts = tuple(replace(attempt, timing=timing) for attempt in record.intent.attempts)
        return StepRecord(replace(record.intent, attempts=attempts), record.receipt)

    return replace(result, steps=tuple(map(step, result.steps)), wall_s=scale)


@pytest.fixture(scope="module")
def results() -> list[EpisodeResult]:
    """Three seeds of every level answered by the oracle's text, `free` under both merges, the oracle, and chance."""
    free = condition(Kind.MODEL, Level.FREE, MergeMode.SHALLOW)
    models = [free, *LEVELS.values()]
    oracle = condition(Kind.ORACLE, Level.DELTA)
    played = [play(one, seed, HORIZON, oracle_answer(one.level)) for seed in SEEDS for one in models]
    played += [play(oracle, seed, HORIZON) for seed in SEEDS]
    played += [play(one, seed, HORIZON, repeat=r) for one in CHANCE for seed in SEEDS for r in range(2)]
    return [timed(result, 2.0) for result in played]


@pytest.fixture(scope="module")
def summary(results: list[EpisodeResult]) -> Summary:
    return summarise(results, WAREHOUSE, "nobody on warehouse")


def of(summary: Summary, label: str) -> ConditionSummary:
    return next(one for one in summary.conditions if one.label == label)


def test_conditions_stand_in_the_order_of_the_ladder(summary: Summary) -> None:
    assert [one.label for one in summary.conditions] == [
        "free-shallow",
        "free-deep",
        "json",
        "schema",
        "delta",
        "effects",
        "oracle",
        "chance-schema",
        "chance-delta",
        "chance-effects",
    ]


@pytest.mark.parametrize("label", ["oracle", "free-deep", "json", "schema", "delta", "effects"])
def test_the_oracle_is_right_at_every_level(summary: Summary, label: str) -> None:
    found = of(summary, label)
    assert found.score.estimate.mean == 1.0
    assert found.first.counts[Outcome.RIGHT] == found.attempts.steps == len(SEEDS) * HORIZON
    assert (found.score.void, found.score.non_void, found.attempts.per_step) == (0, 1.0, 1.0)


def test_a_shallow_merge_alone_turns_the_oracle_into_overwrites(summary: Summary) -> None:
    found = of(summary, "free-shallow")
    assert found.first.counts[Outcome.OVERWRITE] > 0
    assert found.first.shares.paper.share(Outcome.OVERWRITE) == 1.0
    assert found.first.consequences > 0


@pytest.mark.parametrize("label", ["chance-delta", "chance-effects"])
def test_chance_at_delta_and_effects_meets_none_of_the_first_six_classes(summary: Summary, label: str) -> None:
    found = of(summary, label)
    assert [found.first.counts[outcome] for outcome in CLASSES_OF_TEXT] == [0] * 6
    assert found.first.counts[Outcome.WRONG_ACTION] > 0


def test_the_floor_is_the_chance_of_the_own_level_and_of_schema_below_it(summary: Summary) -> None:
    for level, chance in (("schema", "schema"), ("delta", "delta"), ("effects", "effects"), ("json", "schema")):
        assert of(summary, level).chance == of(summary, f"chance-{chance}").score.estimate.mean
    assert of(summary, "free-shallow").chance == of(summary, "schema").chance
    assert of(summary, "oracle").chance is None


def test_repeats_of_a_seed_are_averaged_before_the_interval(summary: Summary, results: list[EpisodeResult]) -> None:
    found = of(summary, "chance-delta")
    assert (found.episodes, found.score.estimate.n) == (6, 3)
    means = [
        sum(s.receipt.success for r in results if r.key.startswith("chance-delta") and r.seed == seed for s in r.steps)
        for seed in SEEDS
    ]
    assert found.score.estimate.mean == pytest.approx(sum(means) / (2 * HORIZON * 3))


def test_the_score_counts_void_steps_and_the_one_beside_it_does_not() -> None:
    what = LEVELS[Level.FREE]
    lazy = [play(what, seed, HORIZON, lambda _: turn({}, "Wait")) for seed in SEEDS]
    score = summarise(lazy, WAREHOUSE).conditions[0].score
    voids = sum(event.split()[0] != "receive" for seed in SEEDS for event in WarehouseEnvironment(seed, HORIZON).events)
    assert (score.successes, score.events, score.void) == (0, len(SEEDS) * HORIZON, voids)
    assert score.non_void == 0.0
    found = summarise(lazy, WAREHOUSE).conditions[0].first
    assert found.void_failures == voids
    assert found.shares.root.n == found.counts[Outcome.WRONG_ACTION] - voids


def test_one_missed_arrival_costs_its_void_events_in_one_score_only() -> None:
    right = oracle_answer(Level.FREE)
    late = [
        play(
            LEVELS[Level.FREE],
            seed,
            HORIZON,
            lambda world: turn({}, "Wait") if "item_1." in world.observe() else right(world),
        )
        for seed in SEEDS
    ]
    score = summarise(late, WAREHOUSE).conditions[0].score
    assert score.void > 0
    assert 0 < score.estimate.mean < (score.non_void or 0) < 1
    assert score.non_void == pytest.approx(score.successes / (score.events - score.void))


def test_the_interval_of_a_score_ends_at_one() -> None:
    what = LEVELS[Level.DELTA]
    mixed = [play(what, seed, HORIZON) for seed in (1, 2)]
    mixed.append(play(what, 3, HORIZON, lambda _: turn({}, "Wait")))
    interval = summarise(mixed, WAREHOUSE).conditions[0].score.estimate.interval
    assert interval == (0.0, 1.0)


def test_retries_count_as_attempts_and_tokens() -> None:
    answers = iter(["nothing", turn({}, "Throw"), turn({}, "Wait")])
    found = summarise([play(LEVELS[Level.FREE], 1, 1, lambda _: next(answers))], WAREHOUSE).conditions[0]
    assert (found.attempts.attempts, found.attempts.first_accepted, found.attempts.per_step) == (3, 0, 3.0)
    assert found.first.counts[Outcome.SYNTAX] == found.final.counts[Outcome.WRONG_ACTION] == 1
    assert found.tokens.output == len("nothing") + len(turn({}, "Throw")) + len(turn({}, "Wait"))


def test_paper_validation_lets_illegal_actions_run_and_still_calls_them_illegal() -> None:
    answer = turn({}, "Ship item_77 shelf_0")
    found = summarise(
        [play(LEVELS[Level.FREE], 1, 5, lambda _: answer, validation=Validation.PAPER)], WAREHOUSE
    ).conditions[0]
    assert found.attempts.first_accepted == 5
    assert found.first.counts[Outcome.ILLEGAL] == 5


def test_results_repeat_whatever_the_order_and_the_clock(summary: Summary, results: list[EpisodeResult]) -> None:
    others = [timed(result, 5.0) for result in results]
    random.Random(3).shuffle(others)
    was, now = to_json(summary), to_json(summarise(others, WAREHOUSE, "nobody on warehouse"))
    assert json.dumps(was["results"]) == json.dumps(now["results"])
    assert was["timings"] != now["timings"]
    assert set(was["timings"]) == set(was["results"]["conditions"])
    assert "timings" not in was["results"]["conditions"]["delta"]


def test_json_holds_plain_values_only(summary: Summary) -> None:
    text = json.dumps(to_json(summary), allow_nan=False)
    delta = json.loads(text)["results"]["conditions"]["delta"]
    assert (delta["kind"], delta["level"], delta["merge"], delta["seeds"]) == ("model", "delta", "deep", [1, 2, 3])
    assert delta["score"]["estimate"]["interval"] == {"low": 1.0, "high": 1.0}
    assert delta["first"]["shares"]["paper"]["shares"] == {"overwrite/deletion": None, "type": None, "syntax": None}


def test_time_by_part_and_speed_against_free_under_the_same_merge(summary: Summary) -> None:
    found = of(summary, "delta").timings
    assert found.step_s.mean == found.step_s.median == pytest.approx(2.0)
    assert found.parts_s["prefill"].median == pytest.approx(0.6)
    assert list(found.parts_s) == ["queue", "grammar", "prefill", "decode", "mask"]
    free = of(summary, "free-deep")
    steps = len(SEEDS) * HORIZON
    assert free.timings.output_tokens_per_s == pytest.approx(free.tokens.output / (0.8 * steps))
    assert free.timings.versus_free == 1.0
    assert found.versus_free == pytest.approx(1.0)
    assert of(summary, "effects").timings.versus_free < 0.9  # the oracle writes no patch there


def test_without_time_or_free_there_is_no_speed() -> None:
    timings = summarise([play(LEVELS[Level.DELTA], 1, 3)], WAREHOUSE).conditions[0].timings
    assert (timings.output_tokens_per_s, timings.versus_free) == (None, None)


def test_unfinished_episodes_are_left_out_and_counted(results: list[EpisodeResult]) -> None:
    cut = replace(results[0], steps=results[0].steps[:-1])
    found = summarise([cut, *results[1:]], WAREHOUSE)
    assert found.unfinished == 1
    assert of(found, cut.condition.label).seeds == (2, 3)
    with pytest.raises(UsageError, match="no finished episode"):
        summarise([cut], WAREHOUSE)
