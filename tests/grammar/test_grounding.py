"""Level `delta`, built by hand: what each policy lets through, by validator and by both libraries."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from skillstate_local.domains.action import ActionTemplate
from skillstate_local.domains.base import Domain
from skillstate_local.domains.level import Level, Order
from skillstate_local.domains.observation import Facts, ObservationFormat
from skillstate_local.domains.turn import write_turn
from skillstate_local.grammar.ir import Dialect
from skillstate_local.state.canonical import Json
from skillstate_local.state.schema import (
    Choice,
    FieldKind,
    Id,
    Integer,
    ListField,
    ListMode,
    Mutability,
    Permission,
    Record,
    Scalar,
    Schema,
    Table,
    Text,
    Vocabulary,
)
from skillstate_local.state.source import KeysOf, Seen
from tests.grammar.steps import Step, step_at

IDS = Vocabulary("id", members=("item_1", "item_12", "item_2", 'x"y', "漢", ""))
OPEN = Vocabulary("open", pattern="[a-c]{1,2}")


def step(field: FieldKind, held: Json = None, seen: Iterable[str] = (), level: Level = Level.DELTA) -> Step:
    """A domain whose state is one field ``f`` and which can only wait."""
    schema = Schema(Record({"f": field}), {"id": IDS, "open": OPEN})
    domain = Domain("one field", schema, (ActionTemplate("Wait"),), ObservationFormat(()), "")
    facts = Facts({name: frozenset(word for word in seen if word in v) for name, v in schema.vocabularies.items()})
    return step_at(domain, {} if held is None else {"f": held}, facts, level)


def decided(at: Step, change: Json) -> bool:
    """What the validator and both libraries say of a change of ``f``; they must not differ."""
    text = write_turn({"f": change}, "Wait", Order.PATCH_FIRST)
    for dialect in (Dialect.LARK, Dialect.EBNF):
        assert not at.disagreement(dialect, text)
    return at.valid(text)


def table(value: FieldKind | None = None, **how: object) -> Table:
    return Table("id", value or Scalar(Integer(0, 9)), **({"max_entries": 6} | how))  # type: ignore[arg-type]


def test_only_absent_keys_are_inserted_and_only_present_ones_deleted() -> None:
    at = step(table(), {"item_1": 1})
    assert decided(at, {"item_12": 2})
    assert decided(at, {"item_1": 2})
    assert decided(at, {"item_1": None})
    assert decided(at, {"item_1": None, "item_12": 2})
    assert not decided(at, {"item_2": None})
    assert not decided(at, {"item_3": 2})
    assert not decided(at, {"item_12": 2, "item_2": 2})
    assert not decided(at, None)


def test_grounded_entries_are_named_by_key_or_by_an_id_they_hold() -> None:
    kind = table(Scalar(Id("id")), insert=Permission.GROUNDED, update=Permission.GROUNDED, delete=Permission.GROUNDED)
    at = step(kind, {"item_1": "漢", "item_12": "item_2", "item_2": ""}, seen=["item_2", 'x"y'])
    assert decided(at, {"item_12": None})
    assert decided(at, {"item_2": "item_1"})
    assert decided(at, {'x"y': "item_1"})
    assert not decided(at, {"item_1": None})
    assert not decided(at, {"漢": "item_1"})


def test_a_full_table_takes_nothing_more_even_while_it_loses_an_entry() -> None:
    at = step(table(max_entries=2), {"item_1": 1, "item_2": 2})
    assert not decided(at, {"漢": 1})
    assert not decided(at, {"漢": 1, "item_1": None})
    assert decided(at, {"item_1": None})


def test_an_open_vocabulary_loses_the_words_that_are_taken() -> None:
    at = step(Table("open", Scalar(Integer(0, 9)), 9, update=Permission.NEVER), {"a": 1, "bc": 2})
    assert decided(at, {"ab": 3})
    assert not decided(at, {"a": 3})
    assert not decided(at, {"bc": 3})
    assert not decided(at, {"abc": 3})
    assert decided(at, {"cc": 3, "bc": None})


def test_an_open_vocabulary_with_every_word_taken() -> None:
    full = {a + b: 0 for a in ("", "a", "b", "c") for b in "abc"}
    at = step(Table("open", Scalar(Integer(0, 9)), 99), full)
    assert decided(at, {"a": 1})
    assert not decided(at, {"d": 1})
    assert not decided(at, {"a": 1, "b": 1})


def test_transitions_bind_what_is_there_and_leave_what_is_absent() -> None:
    kind = Scalar(
        Choice(("todo", "doing", "done")), transitions={"todo": ("doing",), "doing": ("todo", "done")}, optional=True
    )
    assert decided(step(kind, "todo"), "doing")
    assert not decided(step(kind, "todo"), "done")
    assert not decided(step(kind, "todo"), "todo")
    assert not decided(step(kind, "done"), "todo")
    assert decided(step(kind), "done")


def test_entries_in_different_states_of_a_transition_have_different_updates() -> None:
    kind = table(Record({"s": Scalar(Choice(("a", "b", "c")), transitions={"a": ("b",), "b": ("c",)})}))
    at = step(kind, {"item_1": {"s": "a"}, "item_12": {"s": "b"}, "item_2": {"s": "c"}})
    assert decided(at, {"item_1": {"s": "b"}})
    assert decided(at, {"item_12": {"s": "c"}})
    assert not decided(at, {"item_12": {"s": "b"}})
    assert not decided(at, {"item_2": {"s": "a"}})
    assert decided(at, {"item_2": {}})


@pytest.mark.parametrize(
    ("mutability", "absent", "present"), [("write-once", True, False), ("protected", False, False)]
)
def test_write_once_and_protected(mutability: str, absent: bool, present: bool) -> None:
    kind = Scalar(Integer(0, 9), Mutability(mutability), optional=True)
    assert decided(step(kind), 3) is absent
    assert decided(step(kind, 2), 3) is present


def test_only_what_is_optional_deletable_and_there_is_deleted() -> None:
    assert decided(step(Scalar(Text(3), optional=True, deletable=True), "x"), None)
    assert not decided(step(Scalar(Text(3), optional=True, deletable=True)), None)
    assert not decided(step(Scalar(Text(3), optional=True), "x"), None)
    assert not decided(step(Scalar(Text(3), deletable=True), "x"), None)
    assert decided(step(Scalar(Text(3), Mutability.WRITE_ONCE, optional=True, deletable=True), "x"), None)


def test_an_absent_record_is_set_whole_and_a_present_one_in_parts() -> None:
    inner = Record(
        {"a": Scalar(Integer(0, 9)), "b": Scalar(Integer(0, 9), optional=True, deletable=True)}, optional=True
    )
    assert decided(step(inner), {"a": 1})
    assert decided(step(inner), {"b": 2, "a": 1})
    assert not decided(step(inner), {"b": 2})
    assert not decided(step(inner), {"a": 1, "b": None})
    assert decided(step(inner, {"a": 1, "b": 2}), {"b": None})
    assert decided(step(inner, {"a": 1}), {})


def test_an_inserted_record_with_a_member_that_nothing_grounds_cannot_be_inserted() -> None:
    inner = Record({"a": Scalar(Id("id"), values=Seen("id"))}, optional=True)
    assert not decided(step(inner), {"a": "item_1"})
    assert decided(step(inner, seen=["item_1"]), {"a": "item_1"})
    assert not decided(step(inner, seen=["item_12"]), {"a": "item_1"})


def test_tables_inside_an_inserted_record_keep_their_own_permissions() -> None:
    nested = table(insert=Permission.GROUNDED, max_inserts=2)
    inner = Record({"t": nested}, optional=True)
    at = step(inner, seen=["item_1", "item_12", "漢"])
    assert decided(at, {"t": {}})
    assert decided(at, {"t": {"item_1": 1, "漢": 2}})
    assert not decided(at, {"t": {"item_2": 1}})
    assert not decided(at, {"t": {"item_1": 1, "item_12": 2, "漢": 2}})
    assert not decided(at, {"t": {"item_1": None}})
    never = Record({"t": table(insert=Permission.NEVER)}, optional=True)
    assert decided(step(never), {"t": {}})
    assert not decided(step(never), {"t": {"item_1": 1}})


@pytest.mark.parametrize("mode", list(ListMode))
def test_lists_change_as_their_mode_says(mode: ListMode) -> None:
    at = step(ListField(Id("id"), 4, mode, max_changes=2), ["item_1", "item_2", "item_1"])
    replace, edit = mode is ListMode.REPLACE, mode is not ListMode.REPLACE
    assert decided(at, ["漢"]) is replace
    assert decided(at, []) is replace
    assert decided(at, {"+": ["漢"]}) is edit
    assert not decided(at, {"+": ["漢", "漢"]})
    assert not decided(at, {"+": []})
    assert decided(at, {"-": ["item_1"]}) is (mode is ListMode.ADD_REMOVE)
    assert decided(at, {"-": ["item_1", "item_2"], "+": ["漢"]}) is (mode is ListMode.ADD_REMOVE)
    assert not decided(at, {"-": ["item_12"]})
    assert not decided(at, {"-": ["item_1", "item_2", "item_1"]})
    assert not decided(at, ["漢"] * 5)


def test_list_items_of_many_types_are_removed_by_type_and_value() -> None:
    from skillstate_local.state.schema import Boolean, OneOf

    kind = ListField(OneOf((Integer(0, 9), Boolean(), Text(3))), 9, ListMode.ADD_REMOVE)
    at = step(kind, [1, True, "1", "é"])
    for gone in (1, True, "1", "é"):
        assert decided(at, {"-": [gone]})
    for other in (0, False, "true", "e"):
        assert not decided(at, {"-": [other]})


def test_a_grounded_list_with_nothing_to_take_can_only_be_emptied() -> None:
    at = step(ListField(Id("id"), 4, values=KeysOf("nothing")), ["item_1"])
    assert decided(at, [])
    assert not decided(at, ["item_1"])


def test_schema_is_blind_to_the_state() -> None:
    at = step(table(), {"item_1": 1}, level=Level.SCHEMA)
    assert decided(at, {"item_2": None})
    assert decided(at, {"item_1": 1, "item_2": 2, "漢": None})
    assert not decided(at, {"item_3": 1})
    assert not decided(at, {"item_1": 10})
    assert not decided(at, dict.fromkeys(IDS.members[:4], 1))
