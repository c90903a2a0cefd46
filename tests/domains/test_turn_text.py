"""Finding and reading a turn in what a model wrote."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillstate_local.domains.level import Level, Order, effective_order
from skillstate_local.domains.turn import (
    EnvelopeError,
    TurnTextError,
    find_object,
    open_envelope,
    parse_object,
    split_reasoning,
    write_turn,
)
from skillstate_local.state.canonical import Json
from tests.state.documents import objects

LAW = settings(derandomize=True, database=None, deadline=None, max_examples=150)
OBJECT = '{"state_patch":{},"action":"Wait"}'


@pytest.mark.parametrize(
    ("text", "reasoning", "rest"),
    [
        ("<reasoning>why</reasoning>{}", "why", "{}"),
        ("<reasoning></reasoning>{}", "", "{}"),
        ("why</reasoning>{}", "why", "{}"),
        ("<reasoning>a</reasoning>b</reasoning>{}", "a", "b</reasoning>{}"),
        ("<reasoning>never closed {}", "", "<reasoning>never closed {}"),
        ("{}", "", "{}"),
        ('{"a":"</reasoning>"}', "", '{"a":"</reasoning>"}'),
        ('\n {"a":"</reasoning>"}', "", '\n {"a":"</reasoning>"}'),
        ('<reasoning>x</reasoning>{"a":"</reasoning>"}', "x", '{"a":"</reasoning>"}'),
    ],
)
def test_reasoning_ends_at_the_first_closing_tag_outside_the_object(text: str, reasoning: str, rest: str) -> None:
    assert split_reasoning(text) == (reasoning, rest)


@LAW
@given(objects(nulls=True), st.text(max_size=20), st.sampled_from(tuple(Order)))
def test_what_is_written_is_found_and_read_back(patch: Json, action: str, order: Order) -> None:
    action = action.encode(errors="ignore").decode()
    text = write_turn(patch, action, order, 'because {} of "this"')
    bare = write_turn(patch, action, order)
    for around in (text, f"{text} and more {{}}", f"<reasoning>x</reasoning>\n```json\n{bare}\n```\nDone.", bare):
        assert open_envelope(parse_object(find_object(around))) == (patch, action)


@pytest.mark.parametrize(
    "text",
    [
        OBJECT,
        f"Sure! {OBJECT}",
        f"I use {{braces}} first. {OBJECT} trailing {{}}",
        f"```json\n{OBJECT}\n```",
        f"```\n{{}}\n```\ntext\n```json\n{OBJECT}\n```\n",
        f"```json\n{OBJECT}",
        f'<reasoning>{{"state_patch":{{}},"action":"x"}}</reasoning>{OBJECT}',
        f"\n\n  {OBJECT}\n",
    ],
)
def test_the_last_fenced_block_or_the_first_balanced_object(text: str) -> None:
    assert find_object(text).strip() == OBJECT


def test_a_cut_off_object_is_found_so_that_parsing_can_say_so() -> None:
    assert find_object('x {"state_patch":{"a') == '{"state_patch":{"a'
    with pytest.raises(TurnTextError, match="strict JSON"):
        parse_object('{"state_patch":{"a')
    with pytest.raises(TurnTextError, match="no JSON object"):
        find_object("nothing here, not even { a brace }")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "'state_patch' is missing"),
        ({"state_patch": {}}, "'action' is missing"),
        ({"action": "x"}, "'state_patch' is missing"),
        ({"state_patch": [], "action": "x"}, "'state_patch' must be an object"),
        ({"state_patch": None, "action": "x"}, "'state_patch' must be an object"),
        ({"state_patch": {}, "action": ["x"]}, "'action' must be a string"),
        ({"state_patch": {}, "action": "x", "why": 1}, "unexpected key 'why'"),
        ({"State_patch": {}, "action": "x"}, "unexpected key 'State_patch'"),
    ],
)
def test_an_envelope_has_exactly_two_keys(value: Json, message: str) -> None:
    with pytest.raises(EnvelopeError, match=message):
        open_envelope(value)


def test_effects_is_always_action_first() -> None:
    assert effective_order(Level.EFFECTS, Order.PATCH_FIRST) is Order.ACTION_FIRST
    assert effective_order(Level.DELTA, Order.PATCH_FIRST) is Order.PATCH_FIRST
