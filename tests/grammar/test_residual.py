"""Level `effects`, where action and patch meet: what an effect sets itself, the residual may not."""

from __future__ import annotations

from typing import Any

import pytest

from skillstate_local.domains.action import ActionTemplate, Argument
from skillstate_local.domains.base import Domain
from skillstate_local.domains.level import Level
from skillstate_local.domains.observation import Event, ObservationFormat
from skillstate_local.domains.turn import write_turn
from skillstate_local.domains.validate import Accepted
from skillstate_local.grammar.ir import Dialect
from skillstate_local.state.canonical import Json
from skillstate_local.state.schema import (
    Choice,
    Id,
    ListField,
    ListMode,
    Permission,
    Record,
    Scalar,
    Schema,
    Table,
    Text,
    Vocabulary,
)
from tests.grammar.steps import Step, step_at


def domain(*actions: ActionTemplate, events: tuple[Event, ...], key_pattern: str = r"\w{1,3}", **table: Any) -> Domain:
    """A table of tickets by an open vocabulary, a note and a log."""
    ticket = Record(
        {"status": Scalar(Choice(("open", "done"))), "owner": Scalar(Text(8), optional=True, deletable=True)}
    )
    members = {
        "tickets": Table("ticket", ticket, max_entries=9, **table),
        "note": Scalar(Text(8)),
        "log": ListField(Text(8), 9, ListMode.APPEND),
    }
    vocabularies = {"ticket": Vocabulary("ticket", pattern=key_pattern)}
    return Domain("desk", Schema(Record(members), vocabularies), actions, ObservationFormat(events), "")


STATE: Json = {"tickets": {"t1": {"status": "open"}, "t2": {"status": "open"}}, "note": "", "log": []}
WAIT = ActionTemplate("Wait")
STATUS = Event(
    "status", r"(?P<ticket>\S+) is (?P<status>done|open)\.", {"tickets": {"{ticket}": {"status": "{status}"}}}
)
OWNER = Event("owner", r"(?P<ticket>\S+) belongs to (?P<owner>\S+)\.", {"tickets": {"{ticket}": {"owner": "{owner}"}}})
GONE = Event("gone", r"(?P<ticket>\S+) is gone\.", {"tickets": {"{ticket}": None}})
KEY = Argument(Id("ticket"))


def effects(desk: Domain, observation: str, state: Json = STATE) -> Step:
    return step_at(desk, state, desk.facts(observation), Level.EFFECTS)


def decided(step: Step, patch: Json, action: str) -> bool:
    """What validator and Lark say; they must not differ."""
    text = write_turn(patch, action, step.order.ACTION_FIRST)
    assert not step.disagreement(Dialect.LARK, text)
    return step.valid(text)


def test_facts_are_recorded_each_or_none() -> None:
    step = effects(domain(WAIT, events=(STATUS, OWNER)), "t1 is done.\nt2 belongs to ann.")
    done, owner = {"t1": {"status": "done"}}, {"t2": {"owner": "ann"}}
    for patch in ({}, {"tickets": done}, {"tickets": owner}, {"tickets": owner | done}):
        assert decided(step, patch, "Wait")
    for patch in ({"tickets": {}}, {"tickets": {"t1": {}}}, {"tickets": {"t2": {"status": "done"}}}, {"note": "x"}):
        assert not decided(step, patch, "Wait")


def test_a_fact_beside_a_fact_about_what_lies_below_it() -> None:
    """`t1` is reported as gone and as done: each may be recorded, together they are no patch."""
    step = effects(domain(WAIT, events=(STATUS, GONE)), "t1 is done.\nt1 is gone.")
    assert decided(step, {"tickets": {"t1": None}}, "Wait")
    assert decided(step, {"tickets": {"t1": {"status": "done"}}}, "Wait")
    assert not decided(step, {"tickets": {"t1": {}}}, "Wait")


def test_a_table_takes_no_more_facts_than_a_patch_may_change_entries() -> None:
    desk = domain(WAIT, events=(STATUS,), insert=Permission.NEVER, delete=Permission.NEVER)
    step = effects(desk, "t1 is done.\nt2 is done.")
    assert decided(step, {"tickets": {"t1": {"status": "done"}}}, "Wait")
    assert not decided(step, {"tickets": {name: {"status": "done"} for name in ("t1", "t2")}}, "Wait")


@pytest.mark.parametrize("action", ["Close t1", "Close t2", "Close abc"])
def test_a_free_argument_meets_reported_entries(action: str) -> None:
    """The argument is any word of an open vocabulary; the entries that O_t reports are cut out of it."""
    close = ActionTemplate("Close {key}", {"key": KEY}, effect={"tickets": {"{key}": {"status": "done"}}})
    step = effects(domain(close, events=(STATUS,)), "t1 is open.\nt2 is open.")
    for name in ("t1", "t2"):
        assert decided(step, {"tickets": {name: {"status": "open"}}}, action) is (action != f"Close {name}")
    assert decided(step, {}, action)


def test_an_effect_above_or_below_a_fact_touches_it() -> None:
    drop = ActionTemplate("Drop {key}", {"key": KEY}, effect={"tickets": {"{key}": None}})
    assign = ActionTemplate("Own {key}", {"key": KEY}, effect={"tickets": {"{key}": {"owner": "me"}}})
    step = effects(domain(drop, assign, events=(STATUS, GONE)), "t1 is open.")
    fact = {"tickets": {"t1": {"status": "open"}}}
    assert not decided(step, fact, "Drop t1")
    assert decided(step, fact, "Own t1")
    gone = effects(domain(drop, assign, events=(STATUS, GONE)), "t1 is gone.")
    assert not decided(gone, {"tickets": {"t1": None}}, "Own t1")
    assert decided(gone, {"tickets": {"t1": None}}, "Own t2")


def test_an_argument_that_is_only_part_of_a_key() -> None:
    close = ActionTemplate("Close {number}", {"number": Argument(Text(2))}, effect={"tickets": {"t{number}": None}})
    both = ActionTemplate("Pair {a} {b}", {"a": KEY, "b": KEY}, effect={"tickets": {"{a}{b}": None}})
    step = effects(domain(close, both, events=(STATUS,), key_pattern=r"\w{0,3}"), "t1 is open.")
    fact = {"tickets": {"t1": {"status": "open"}}}
    assert not decided(step, fact, "Close 1")
    assert decided(step, fact, "Close 2")
    assert not decided(step, fact, "Pair t 1")
    assert decided(step, fact, "Pair t 2")
    assert decided(step, fact, "Pair 1 t")


@pytest.mark.parametrize("key", ["a/b", "a~b", "~1", "{key}", "{x}", "{", 'q"', "\\", "é", "漢😀", "-", "+"])
def test_keys_with_meaning_elsewhere(key: str) -> None:
    """Slashes and tildes of JSON pointers, braces of templates, operations of lists."""
    close = ActionTemplate("Close {key}", {"key": KEY}, effect={"tickets": {"{key}": {"status": "done"}}})
    desk = domain(close, WAIT, events=(STATUS,), key_pattern=r"\S{1,5}")
    state = STATE | {"tickets": {key: {"status": "open"}, "t1": {"status": "open"}}}
    step = effects(desk, f"{key} is open.", state)
    fact = {"tickets": {key: {"status": "open"}}}
    assert decided(step, fact, "Wait")
    assert decided(step, fact, "Close t1")
    assert not decided(step, fact, f"Close {key}")
    verdict = step.verdict(write_turn({}, f"Close {key}", step.order.ACTION_FIRST))
    assert isinstance(verdict, Accepted)
    assert verdict.state["tickets"] == {key: {"status": "done"}, "t1": {"status": "open"}}


def test_a_word_that_looks_like_a_placeholder_is_filled_in_once() -> None:
    say = ActionTemplate(
        "Say {a} {b}", {"a": Argument(Text(4)), "b": Argument(Text(4))}, effect={"log": {"+": ["{a}", "{b}"]}}
    )
    step = effects(domain(say, events=()), "")
    verdict = step.verdict(write_turn({}, "Say {b} x", step.order.ACTION_FIRST))
    assert isinstance(verdict, Accepted)
    assert verdict.state["log"] == ["{b}", "x"]


def test_an_ambiguous_action_passes_by_the_reading_that_leaves_the_facts_alone() -> None:
    """`Do t1` closes t1 or notes "t1". Beside the fact about t1 it can only be the note, and that is carried out."""
    close = ActionTemplate("Do {key}", {"key": KEY}, effect={"tickets": {"{key}": {"status": "done"}}})
    note = ActionTemplate("Do {text}", {"text": Argument(Text(8))}, effect={"note": "{text}"})
    step = effects(domain(close, note, events=(STATUS,)), "t1 is open.")
    assert decided(step, {"tickets": {"t1": {"status": "open"}}}, "Do t1")
    verdict = step.verdict(write_turn({"tickets": {"t1": {"status": "open"}}}, "Do t1", step.order.ACTION_FIRST))
    assert isinstance(verdict, Accepted)
    assert verdict.state["note"] == "t1"
    alone = step.verdict(write_turn({}, "Do t1", step.order.ACTION_FIRST))
    assert isinstance(alone, Accepted)
    assert alone.state["tickets"]["t1"] == {"status": "done"}


def test_an_action_is_legal_where_the_reported_facts_make_it_so() -> None:
    from skillstate_local.state.source import KeysOf

    known = Argument(Id("ticket"), KeysOf("tickets", (("status", "done"),)))
    archive = ActionTemplate("Archive {key}", {"key": known}, effect={"log": {"+": ["{key}"]}})
    desk = domain(archive, WAIT, events=(STATUS,))
    assert decided(effects(desk, "t1 is done."), {"tickets": {"t1": {"status": "done"}}}, "Archive t1")
    assert decided(effects(desk, "t1 is done."), {}, "Archive t1")
    assert not decided(effects(desk, "t2 is done."), {}, "Archive t1")
    assert not decided(effects(desk, ""), {}, "Archive t1")


def test_an_event_that_reports_nothing_reports_nothing() -> None:
    step = effects(domain(WAIT, events=(Event("empty", "Nothing new.", {}),)), "Nothing new.")
    assert step.facts.reported == ()
    assert decided(step, {}, "Wait")
