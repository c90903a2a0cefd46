"""The pipeline: each stage in its turn, no exception for anything a model can write, Σ never touched."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillstate_local.domains.level import Level, Order, Validation
from skillstate_local.domains.turn import write_turn
from skillstate_local.domains.validate import Accepted, Rejected, Rules, Stage, is_decodable, validate
from skillstate_local.domains.warehouse import WAREHOUSE
from skillstate_local.state.canonical import Json
from skillstate_local.state.merge import MergeMode
from tests.state.documents import objects

LAW = settings(derandomize=True, database=None, deadline=None, max_examples=150)
STATE: Json = {"inventory": {"shelf_3": "item_8", "shelf_4": "item_5"}}
ORDERED = WAREHOUSE.facts("Customer ordered item_8.")
SHIP = '{"state_patch":{"inventory":{"shelf_3":null}},"action":"Ship item_8 shelf_3"}'
DELTA = Rules(Level.DELTA)


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        (SHIP, None),
        ("", Stage.SYNTAX),
        ("[]", Stage.SYNTAX),
        (SHIP[:-1], Stage.SYNTAX),
        (f" {SHIP}", Stage.SYNTAX),
        (f"{SHIP}\n", Stage.SYNTAX),
        (SHIP.replace(":", ": "), Stage.SYNTAX),
        (SHIP.replace("null", "null,"), Stage.SYNTAX),
        ('{"action":"Wait","state_patch":{}}', Stage.SYNTAX),
        ('{"state_patch":{},"state_patch":{},"action":"Wait"}', Stage.SYNTAX),
        ('{"state_patch":{},"action":"\\u0057ait"}', Stage.SYNTAX),
        ('{"state_patch":{},"action":"Wait","x":1}', Stage.ENVELOPE),
        ('{"state_patch":null,"action":"Wait"}', Stage.ENVELOPE),
        ('{"state_patch":{"inventory":null},"action":"Wait"}', Stage.TYPES),
        ('{"state_patch":{"inventory":{"shelf_0":1}},"action":"Wait"}', Stage.TYPES),
        ('{"state_patch":{"inventory":{"shelf_999":null}},"action":"wait"}', Stage.TYPES),
        ('{"state_patch":{"inventory":{"shelf_9":null}},"action":"wait"}', Stage.ACTION_SYNTAX),
        ('{"state_patch":{"inventory":{"shelf_9":null}},"action":"Ship item_8 shelf_9"}', Stage.POLICIES),
        ('{"state_patch":{"inventory":{"shelf_4":null}},"action":"Wait"}', Stage.POLICIES),
        ('{"state_patch":{},"action":"Ship item_8 shelf_9"}', Stage.LEGALITY),
    ],
)
def test_stages_come_in_their_order(text: str, stage: Stage | None) -> None:
    verdict = validate(text, WAREHOUSE, STATE, ORDERED, DELTA)
    assert getattr(verdict, "stage", None) is stage, verdict
    if isinstance(verdict, Rejected):
        assert verdict.feedback.startswith(f"Rejected ({verdict.stage.value}")
        assert "\n" not in verdict.feedback


def test_an_accepted_turn_says_what_it_means() -> None:
    verdict = validate(SHIP, WAREHOUSE, STATE, ORDERED, DELTA)
    assert isinstance(verdict, Accepted)
    assert verdict.action.effect == verdict.patch == {"inventory": {"shelf_3": None}}
    assert verdict.state == {"inventory": {"shelf_4": "item_5"}}


def test_at_effects_the_runtime_completes_the_patch() -> None:
    text = '{"action":"Ship item_8 shelf_3","state_patch":{}}'
    verdict = validate(text, WAREHOUSE, STATE, ORDERED, Rules(Level.EFFECTS))
    assert isinstance(verdict, Accepted)
    assert verdict.state == {"inventory": {"shelf_4": "item_5"}}
    refused = validate(
        text.replace("{}}", '{"inventory":{"shelf_3":null}}}'), WAREHOUSE, STATE, ORDERED, Rules(Level.EFFECTS)
    )
    assert isinstance(refused, Rejected)
    assert refused.stage is Stage.POLICIES


def test_free_takes_any_strict_json_around_and_inside() -> None:
    text = f"Let me see.</reasoning> ```json\n{SHIP.replace(',', ' , ').replace('W', chr(92) + 'u0057')}\n``` done"
    for validation in Validation:
        verdict = validate(text, WAREHOUSE, STATE, ORDERED, Rules(Level.FREE, validation=validation))
        assert isinstance(verdict, Accepted), verdict


def test_paper_validation_stops_after_types() -> None:
    rules = Rules(Level.FREE, validation=Validation.PAPER)
    text = write_turn({"inventory": {"shelf_4": None}}, "Ship item_1 shelf_9", Order.PATCH_FIRST)
    verdict = validate(text, WAREHOUSE, STATE, ORDERED, rules)
    assert isinstance(verdict, Accepted)
    assert verdict.state == {"inventory": {"shelf_3": "item_8"}}
    shallow = validate(
        text, WAREHOUSE, STATE, ORDERED, Rules(Level.FREE, merge=MergeMode.SHALLOW, validation=Validation.PAPER)
    )
    assert isinstance(shallow, Accepted)
    assert shallow.state == {"inventory": {}}


@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"state_patch":' * 5_000,
        '{"state_patch":{"inventory":{"shelf_1":1e999999999}},"action":"Wait"}',
        '{"state_patch":{"inventory":{"shelf_1":1e99999999999999999999}},"action":"Wait"}',
        f'{{"state_patch":{{"inventory":{{"shelf_1":{"9" * 100_000}}}}},"action":"Wait"}}',
        '{"state_patch":{"²":1},"action":"Wait"}',
        '{"state_patch":{"inventory":{"²":null}},"action":"Wait"}',
        '{"state_patch":{},"action":"\\ud800"}',
        '{"state_patch":{},"action":"\ud800"}',
        f'{{"state_patch":{{}},"action":"Move {"item_1 " * 3_000}"}}',
        "\x00",
        "```json\n```",
        "</reasoning>" * 1000,
        '{"state_patch":{"inventory":{"shelf_1":{"+":["x"]}}},"action":"Wait"}',
    ],
)
def test_hostile_text_is_refused_and_never_raises(level: Level, text: str) -> None:
    verdict = validate(text, WAREHOUSE, STATE, ORDERED, Rules(level))
    assert isinstance(verdict, Rejected)
    assert len(verdict.feedback) < 2000


@LAW
@given(st.text(max_size=60), objects(nulls=True), st.sampled_from(tuple(Level)), st.sampled_from(tuple(Order)))
def test_nothing_raises_and_the_state_is_never_touched(text: str, patch: Json, level: Level, order: Order) -> None:
    before = copy.deepcopy(STATE)
    action = text.encode(errors="ignore").decode()
    for answer in (text, write_turn(patch, action, order), write_turn({"inventory": patch}, "Wait", order)):
        validate(answer, WAREHOUSE, STATE, ORDERED, Rules(level, order))
    assert before == STATE


def test_a_verdict_is_decodable_up_to_the_stage_of_its_level() -> None:
    def refused(stage: Stage) -> Rejected:
        return Rejected(stage, "", "")

    for level in (Level.JSON, Level.SCHEMA, Level.DELTA, Level.EFFECTS):
        assert not is_decodable(refused(Stage.SYNTAX), level)
        assert not is_decodable(refused(Stage.ENVELOPE), level)
        assert not is_decodable(refused(Stage.LIMITS), level)
    assert is_decodable(refused(Stage.TYPES), Level.JSON)
    assert not is_decodable(refused(Stage.TYPES), Level.SCHEMA)
    assert not is_decodable(refused(Stage.ACTION_SYNTAX), Level.SCHEMA)
    assert is_decodable(refused(Stage.POLICIES), Level.SCHEMA)
    assert not is_decodable(refused(Stage.LEGALITY), Level.DELTA)
    assert not is_decodable(refused(Stage.POLICIES), Level.EFFECTS)
