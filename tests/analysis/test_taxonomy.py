"""Each class by hand, and the border between each two that can be confused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillstate_local.analysis.taxonomy import Classified, Outcome, classify, final_outcome, first_outcome
from skillstate_local.domains.level import Level, Order, Validation
from skillstate_local.domains.validate import Rules
from skillstate_local.domains.warehouse import WAREHOUSE
from skillstate_local.records import StepReceipt, StepRecord
from skillstate_local.state.canonical import Json
from skillstate_local.state.merge import MergeMode
from tests.analysis.play import DONE, DRIFTED, MISSED, REFUSED, Step, turn

ARRIVED = Step()
ORDERED = Step(
    observation="Success: Waited.\nCustomer ordered item_3.",
    oracle_patch={"inventory": {"shelf_3": None}},
    oracle_action="Ship item_3 shelf_3",
)
PAPER = replace(ARRIVED, rules=Rules(validation=Validation.PAPER))
SHALLOW = replace(ARRIVED, rules=Rules(merge=MergeMode.SHALLOW))

STORE = "Store item_9 shelf_0"
STORED = {"inventory": {"shelf_0": "item_9"}}
RIGHT = turn(STORED, STORE)


def first(record: StepRecord, merge: MergeMode = MergeMode.DEEP) -> Outcome:
    return first_outcome(WAREHOUSE, record, merge)


def inventory(**entries: Json) -> Json:
    return {"inventory": entries}


# --- 1 and 2


@pytest.mark.parametrize("text", ['{"state_patch":{"inven', RIGHT, "no object", turn({"inventory": None}, "Wait")])
def test_whatever_stopped_at_the_limit_is_truncated(text: str) -> None:
    assert first(ARRIVED.record(text, cut=True)) is Outcome.TRUNCATED


@pytest.mark.parametrize(
    "text",
    [
        '{"state_patch":{"inven',
        "Wait",
        "[1,2]",
        RIGHT.replace("}}", "},}"),
        '{"state_patch":{},"state_patch":{},"action":"Wait"}',
        '{"state_patch":{"inventory":{"shelf_0":NaN}},"action":"Wait"}',
        '{"state_patch":{},"action":"\\ud800"}',
    ],
)
def test_no_strict_object_is_syntax(text: str) -> None:
    assert first(ARRIVED.record(text)) is Outcome.SYNTAX


def test_text_that_is_not_canonical_is_syntax_only_where_a_grammar_was_in_force() -> None:
    spaced = RIGHT.replace(":", ": ")
    assert first(ARRIVED.record(spaced)) is Outcome.RIGHT
    assert first(replace(ARRIVED, rules=Rules(Level.SCHEMA)).record(spaced)) is Outcome.SYNTAX


def test_syntax_goes_before_overwrite() -> None:
    assert first(ARRIVED.record('{"state_patch":{"inventory":null,},"action":"Wait"}')) is Outcome.SYNTAX
    assert first(ARRIVED.record('{"state_patch":{"inventory":null},"action":"Wait"}')) is Outcome.OVERWRITE


# --- 3


@pytest.mark.parametrize("value", [None, [], "shelf_0", 3, ["item_3", "item_4"]])
def test_a_container_nulled_or_replaced_is_an_overwrite(value: Json) -> None:
    assert first(ARRIVED.record(turn({"inventory": value}, STORE))) is Outcome.OVERWRITE
    empty = replace(ARRIVED, state={"inventory": {}})
    assert first(empty.record(turn({"inventory": value}, STORE))) is Outcome.OVERWRITE


@pytest.mark.parametrize("value", [None, "item_5", 7])
def test_an_entry_removed_or_changed_outside_c_is_an_overwrite(value: Json) -> None:
    assert first(ARRIVED.record(turn(inventory(shelf_0="item_9", shelf_4=value), STORE))) is Outcome.OVERWRITE


def test_the_same_value_again_changes_nothing_and_is_only_illegal() -> None:
    assert first(ARRIVED.record(turn(inventory(shelf_0="item_9", shelf_4="item_4"), STORE))) is Outcome.ILLEGAL


@pytest.mark.parametrize(
    ("step", "action"),
    [
        (replace(ARRIVED, observation="Customer ordered item_4."), "Wait"),  # named by the id it holds
        (replace(ARRIVED, observation="Maintenance required on shelf_4."), "Wait"),  # named by its key
        (ARRIVED, "Ship item_4 shelf_4"),  # the action's own effect
        (ARRIVED, "Ship item_8 shelf_4"),  # of an action that is illegal, too
        (replace(ARRIVED, oracle_patch=inventory(shelf_4=None)), "Wait"),
    ],
)
def test_entries_in_c_may_be_removed(step: Step, action: str) -> None:
    assert first(step.record(turn(inventory(shelf_4=None), action))) is not Outcome.OVERWRITE
    elsewhere = inventory(shelf_4=None, shelf_3=None)
    assert first(step.record(turn(elsewhere, action))) is Outcome.OVERWRITE


def test_a_result_line_names_nothing() -> None:
    step = replace(ARRIVED, observation="Success: Stored item_4 in shelf_4.\nShipment arrived containing item_9.")
    assert first(step.record(turn(inventory(shelf_4=None), "Wait"))) is Outcome.OVERWRITE


def test_overwrite_goes_before_type_malformed_action_and_illegal() -> None:
    lost = inventory(shelf_4=None)
    assert first(ARRIVED.record(turn({**lost, "stock": 1}, "Wait"))) is Outcome.OVERWRITE
    assert first(ARRIVED.record(turn(lost, "Throw item_4 away"))) is Outcome.OVERWRITE
    assert first(ARRIVED.record(turn(lost, "Ship item_3 shelf_499"))) is Outcome.OVERWRITE


@pytest.mark.parametrize("receipt", [DONE, REFUSED, MISSED, DRIFTED])
def test_overwrite_goes_before_what_the_world_says_when_validation_let_it_pass(receipt: StepReceipt) -> None:
    record = PAPER.record(turn(inventory(shelf_0="item_9", shelf_4=None), STORE), receipt=receipt)
    assert record.intent.action == STORE
    assert first(record) is Outcome.OVERWRITE


def test_a_shallow_merge_loses_what_the_patch_leaves_out() -> None:
    record = SHALLOW.record(RIGHT, receipt=DRIFTED)
    assert record.intent.next_state == STORED
    assert first(record, MergeMode.SHALLOW) is Outcome.OVERWRITE
    whole = SHALLOW.record(turn({"inventory": {**SHALLOW.state["inventory"], "shelf_0": "item_9"}}, STORE))
    assert first(whole, MergeMode.SHALLOW) is not Outcome.OVERWRITE


def test_a_shallow_merge_over_nothing_loses_nothing() -> None:
    record = replace(SHALLOW, state={"inventory": {}}).record(RIGHT)
    assert first(record, MergeMode.SHALLOW) is Outcome.RIGHT


# --- 4 and 5


@pytest.mark.parametrize(
    "text",
    [
        '{"state_patch":{}}',
        '{"state_patch":{},"action":"Wait","why":1}',
        '{"state_patch":[],"action":"Wait"}',
        '{"state_patch":{},"action":null}',
        '{"state_patch":{"inventory":null},"action":7}',
        turn({"stock": {}}, STORE),
        turn({"stock": []}, "Throw it away"),
        turn(inventory(shelf_500="item_9"), STORE),
        turn(inventory(shelf_0=9), STORE),
        turn(inventory(shelf_0="box"), STORE),
        turn(inventory(shelf_0="item_9", shelf_1="item_9", shelf_2="item_9"), STORE),
    ],
)
def test_wrong_envelope_field_type_bound_or_vocabulary_is_type(text: str) -> None:
    assert first(ARRIVED.record(text)) is Outcome.TYPE


def test_a_bound_of_level_json_is_type() -> None:
    step = replace(ARRIVED, rules=Rules(Level.JSON))
    assert first(step.record(turn({}, "W" * 201))) is Outcome.TYPE
    assert first(step.record(turn({}, "W" * 200))) is Outcome.MALFORMED_ACTION


@pytest.mark.parametrize("action", ["", "Wait.", "Store item_9", "store item_9 shelf_0", "Store item_9 shelf_500"])
def test_an_action_without_reading_is_malformed(action: str) -> None:
    assert first(ARRIVED.record(turn({}, action))) is Outcome.MALFORMED_ACTION
    assert first(ARRIVED.record(turn(inventory(shelf_3="item_9"), "Wait"))) is Outcome.OVERWRITE


# --- 6 and 7


@pytest.mark.parametrize(
    ("patch", "action"),
    [
        ({}, "Store item_9 shelf_3"),
        ({}, "Ship item_3 shelf_4"),
        ({}, "Store item_8 shelf_0"),
        (inventory(shelf_0="item_8"), STORE),
        (inventory(shelf_0="item_9", shelf_1="item_9"), STORE),
        (inventory(shelf_0=None), STORE),
    ],
)
def test_preconditions_of_action_and_patch_are_illegal(patch: Json, action: str) -> None:
    assert first(ARRIVED.record(turn(patch, action))) is Outcome.ILLEGAL


@pytest.mark.parametrize("receipt", [DONE, REFUSED, MISSED])
def test_an_illegal_action_stays_illegal_when_validation_let_it_run(receipt: StepReceipt) -> None:
    record = PAPER.record(turn({}, "Store item_9 shelf_3"), receipt=receipt)
    assert record.intent.action is not None
    assert first(record) is Outcome.ILLEGAL


def test_where_policies_are_not_in_force_a_patch_is_judged_by_what_it_leads_to() -> None:
    invented = turn(inventory(shelf_0="item_9", shelf_1="item_8"), STORE)
    assert first(ARRIVED.record(invented)) is Outcome.ILLEGAL
    assert first(PAPER.record(invented, receipt=DRIFTED)) is Outcome.WRONG_PATCH


@pytest.mark.parametrize("step", [ARRIVED, PAPER])
def test_legal_on_the_state_and_refused_by_the_world_is_rejected(step: Step) -> None:
    assert first(step.record(RIGHT, receipt=REFUSED)) is Outcome.REJECTED
    assert first(step.record(turn(STORED, "Store item_9 shelf_4"), receipt=REFUSED)) is not Outcome.REJECTED


# --- 8 to 10


def test_what_was_executed_is_classed_by_event_then_by_state() -> None:
    assert first(ARRIVED.record(turn({}, "Wait"), receipt=MISSED)) is Outcome.WRONG_ACTION
    missed_and_drifted = replace(MISSED, faithful_after=False)
    assert first(ARRIVED.record(turn({}, "Wait"), receipt=missed_and_drifted)) is Outcome.WRONG_ACTION
    assert first(ARRIVED.record(turn({}, STORE), receipt=DRIFTED)) is Outcome.WRONG_PATCH
    assert first(ARRIVED.record(RIGHT)) is Outcome.RIGHT
    assert first(ORDERED.record(turn(inventory(shelf_3=None), "Ship item_3 shelf_3"))) is Outcome.RIGHT


def test_at_effects_the_patch_is_only_the_residual() -> None:
    step = replace(ORDERED, rules=Rules(Level.EFFECTS))
    shipped = turn({}, "Ship item_3 shelf_3", Order.ACTION_FIRST)
    record = step.record(shipped)
    assert record.intent.next_state == inventory(shelf_4="item_4")
    assert first(record) is Outcome.RIGHT
    assert first(step.record(turn({}, "Wait", Order.ACTION_FIRST), receipt=MISSED)) is Outcome.WRONG_ACTION
    unreported = turn(inventory(shelf_0="item_3"), "Wait", Order.ACTION_FIRST)
    assert first(step.record(unreported)) is Outcome.ILLEGAL


# --- first and final, flags


def test_first_and_final_are_classed_apart() -> None:
    record = ARRIVED.record("nothing", turn({}, "Throw"), RIGHT)
    assert classify(WAREHOUSE, record) == Classified(Outcome.SYNTAX, Outcome.RIGHT, consequence=False, void=False)


def test_a_step_without_a_valid_attempt_has_the_class_of_its_last() -> None:
    record = ARRIVED.record("nothing", turn({"inventory": None}, "Wait"), turn({}, "Throw"))
    assert record.intent.action is None
    assert first(record) is Outcome.SYNTAX
    assert final_outcome(WAREHOUSE, record) is Outcome.MALFORMED_ACTION


@pytest.mark.parametrize(("faithful", "void", "root"), [(1, 0, 1), (0, 0, 0), (1, 1, 0), (0, 1, 0)])
def test_flags(faithful: int, void: int, root: int) -> None:
    step = replace(ARRIVED, faithful=bool(faithful), void=bool(void))
    found = classify(WAREHOUSE, step.record(turn({}, "Wait"), receipt=MISSED))
    assert (found.consequence, found.void, found.root) == (not faithful, bool(void), bool(root))


def test_reasoning_and_a_fence_do_not_hide_the_turn() -> None:
    text = f"<reasoning>{{}} first</reasoning>so:\n```json\n{turn({'inventory': None}, 'Wait')}\n```\nbye"
    assert first(ARRIVED.record(text)) is Outcome.OVERWRITE


SHELVES = st.sampled_from(["shelf_0", "shelf_3", "shelf_4", "shelf_500", "", "a/b", "~", "²"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["item_3", "item_9", "x", "²"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(SHELVES, inner, max_size=3),
    max_leaves=6,
)


@given(
    patch=st.dictionaries(st.sampled_from(["inventory", "stock", "²"]), VALUES, max_size=2) | VALUES,
    action=st.sampled_from([STORE, "Wait", "Ship item_3 shelf_3", "Store item_9 shelf_3", "", "Throw"]),
    merge=st.sampled_from(MergeMode),
    validation=st.sampled_from(Validation),
    receipt=st.sampled_from([DONE, REFUSED, MISSED, DRIFTED]),
)
def test_whatever_a_model_writes_has_exactly_one_class(
    patch: Json, action: str, merge: MergeMode, validation: Validation, receipt: StepReceipt
) -> None:
    step = replace(ARRIVED, rules=Rules(merge=merge, validation=validation))
    record = step.record(turn(patch, action), receipt=receipt)
    outcome = first(record, merge)
    refused = record.intent.action is None
    assert outcome in list(Outcome)[2:]
    assert refused == (outcome in (Outcome.TYPE, Outcome.MALFORMED_ACTION)) or outcome in (
        Outcome.OVERWRITE,
        Outcome.ILLEGAL,
    )
