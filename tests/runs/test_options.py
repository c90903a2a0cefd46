"""Options become a configuration, or a message that names the flag."""

from __future__ import annotations

import pytest

from skillstate_local.domains.level import Level
from skillstate_local.domains.warehouse import WAREHOUSE
from skillstate_local.errors import UnsupportedConstraint, UsageError
from skillstate_local.grammar.measure import longest_bytes
from skillstate_local.grammar.turn import GrammarBuilder, GrammarOptions
from skillstate_local.registry import load_registry
from skillstate_local.runs.config import Kind, config_differences
from skillstate_local.runs.limits import needed_tokens
from skillstate_local.runs.options import MAX_SEED, Options, make_config, parse_seeds
from skillstate_local.runs.plan import plan_episodes
from skillstate_local.state.merge import MergeMode
from tests.runs.making import config_of

ALL = "free,json,schema,delta,effects"


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("7", (7,)), ("1,2,3", (1, 2, 3)), ("1-4", (1, 2, 3, 4)), (" 0 , 5-6", (0, 5, 6)), (str(MAX_SEED), (MAX_SEED,))],
)
def test_seeds(text: str, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    "text", ["", "1,,2", "a", "-1", "1.5", "3-1", "1,1", "1-3,2", str(MAX_SEED + 1), "1-2000", "١"]
)
def test_bad_seeds_name_the_flag(text: str) -> None:
    with pytest.raises(UsageError, match="--seeds"):
        parse_seeds(text)


@pytest.mark.parametrize(
    ("change", "flag", "bounds"),
    [
        ({"horizon": 0}, "--horizon 0", "1 to 10000"),
        ({"horizon": 10_001}, "--horizon 10001", "1 to 10000"),
        ({"prefill": -1}, "--prefill -1", "0 to 400"),
        ({"reasoning_tokens": 5000}, "--reasoning-tokens 5000", "0 to 4096"),
        ({"max_retries": -1}, "--max-retries -1", "0 to 20"),
        ({"temperature": float("nan")}, "--temperature nan", "0 to 5"),
        ({"top_p": 0.0}, "--top-p 0.0", "to 1"),
        ({"sampling_seed": -3}, "--sampling-seed -3", "0 to"),
        ({"chance_repeats": 0}, "--chance-repeats 0", "1 to 1000"),
        ({"max_tokens": 0}, "--max-tokens 0", "1 to"),
    ],
)
def test_out_of_range_names_flag_and_range(change: dict[str, object], flag: str, bounds: str) -> None:
    with pytest.raises(UsageError) as caught:
        config_of(**change)
    assert flag in caught.value.message
    assert bounds in caught.value.hint


@pytest.mark.parametrize(
    ("change", "near"),
    [
        ({"model": "orcale"}, "oracle"),
        ({"env": "warehouze"}, "warehouse"),
        ({"levels": "detla"}, "delta"),
        ({"engine": "script"}, "scripted"),
        ({"order": "patch_first"}, "patch-first"),
        ({"merge": "shalow"}, "shallow"),
        ({"validation": "ful"}, "full"),
        ({"on_rejected": "rolback"}, "rollback"),
        ({"grammar_backend": "xgramar"}, "xgrammar"),
    ],
)
def test_unknown_names_get_the_nearest_match(change: dict[str, object], near: str) -> None:
    with pytest.raises(UsageError) as caught:
        config_of(**change)
    assert f"Did you mean {near!r}?" in caught.value.hint


@pytest.mark.parametrize(
    "change",
    [
        {"levels": "json,delta"},
        {"levels": "delta", "merge": "shallow"},
        {"levels": "effects", "validation": "paper"},
        {"command": "compare", "levels": "delta,delta"},
        {"engine": "transformers"},
    ],
)
def test_options_that_do_not_go_together(change: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        config_of(**change)


@pytest.mark.parametrize("level", ["free", "json"])
def test_chance_needs_a_grammar_of_turns(level: str) -> None:
    with pytest.raises(UnsupportedConstraint, match=level):
        config_of(model="chance", levels=level)


def test_a_model_picks_its_engine() -> None:
    options = Options(command="run", model="gemma-3-270m", env="warehouse", levels="delta", horizon=2, seeds="1")
    assert make_config(options, load_registry()).engine == "transformers"


def test_lines_of_a_comparison() -> None:
    config = config_of(command="compare", levels="effects,free,json,schema,delta", chance_repeats=3)
    labels = [condition.label for condition in config.conditions]
    levels = ["free-shallow", "free-deep", "json", "schema", "delta", "effects"]
    assert labels == [*levels, "chance-schema", "chance-delta", "chance-effects", "oracle"]
    assert config.conditions[0].merge is MergeMode.SHALLOW
    assert all(condition.merge is MergeMode.DEEP for condition in config.conditions[1:])
    assert [c.repeats for c in config.conditions if c.kind is Kind.CHANCE] == [3, 3, 3]


def test_chance_of_free_is_that_of_schema() -> None:
    labels = [condition.label for condition in config_of(command="compare", levels="free").conditions]
    assert labels == ["free-shallow", "free-deep", "chance-schema", "oracle"]


def test_every_episode_has_its_own_key_and_conditions_take_turns() -> None:
    config = config_of(command="compare", levels=ALL, seeds="1-3", chance_repeats=2)
    plans = plan_episodes(config)
    assert len({plan.key for plan in plans}) == len(plans) == 3 * (6 + 3 * 2 + 1)
    first = plans[: len(plans) // 3]
    assert {plan.condition.label for plan in first} == {condition.label for condition in config.conditions}


def test_a_run_plays_what_a_comparison_plays() -> None:
    alone = {plan.key for plan in plan_episodes(config_of(levels="free"))}
    assert alone <= {plan.key for plan in plan_episodes(config_of(command="compare", levels=ALL))}


def test_token_limit_is_no_less_than_the_longest_sentence_and_the_same_at_every_level() -> None:
    grammar = GrammarBuilder(WAREHOUSE, GrammarOptions(Level.SCHEMA)).build({})
    assert grammar is not None
    limits = {config_of(levels=level).max_tokens for level in ALL.split(",") if level != "effects"}
    assert limits == {longest_bytes(grammar.root)}


def test_effects_alone_needs_the_longest_action_only() -> None:
    longest = '{"action":"Move item_999999 shelf_499 shelf_499","state_patch":{}}'
    assert len(longest) <= config_of(levels="effects").max_tokens <= len(longest) + 4
    assert config_of(levels="delta,effects", command="compare").max_tokens == config_of(levels="delta").max_tokens


def test_reasoning_and_its_tags_come_on_top() -> None:
    plain = needed_tokens(WAREHOUSE, [Level.DELTA], 0)
    assert needed_tokens(WAREHOUSE, [Level.DELTA], 50) == plain + 50 + len("<reasoning></reasoning>")


def test_a_limit_that_would_truncate_is_refused_with_both_numbers() -> None:
    needed = config_of().max_tokens
    with pytest.raises(UsageError) as caught:
        config_of(max_tokens=needed - 1)
    assert str(needed - 1) in caught.value.message
    assert str(needed) in caught.value.message
    assert config_of(max_tokens=needed).max_tokens == needed


def test_free_alone_may_have_any_limit() -> None:
    assert config_of(levels="free", max_tokens=5).max_tokens == 5


def test_differences_name_each_field_once() -> None:
    lines = config_differences(config_of(), config_of(horizon=7, levels="schema"))
    assert "horizon: 6 → 7" in lines
    assert [line.split(":")[0] for line in lines] == ["conditions", "horizon"]
    assert config_differences(config_of(), config_of()) == ()


def test_the_folder_name_tells_runs_apart() -> None:
    names = {config_of(horizon=horizon, levels=level).folder_name for horizon in (3, 4) for level in ("delta", "free")}
    assert len(names) == 4
    assert all(name.startswith("warehouse-oracle-") for name in names)
