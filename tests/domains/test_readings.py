"""Reading an action's text by its templates, and whether a reading is legal."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from skillstate_local.domains.action import ActionTemplate, Argument, Entry, legality, parse_action
from skillstate_local.domains.observation import fill
from skillstate_local.domains.warehouse import WAREHOUSE
from skillstate_local.state.schema import Id, Pattern, Record, Schema, Text, Vocabulary
from skillstate_local.state.source import Seen, World
from tests.grammar.random_domains import random_domain, random_scalar
from tests.grammar.steps import seeds

SCHEMA = Schema(Record({}), {"n": Vocabulary("n", pattern="[0-9]{1,3}")})


def words(template: str, text: str, **types: object) -> list[dict[str, str]]:
    arguments = {name: Argument(kind) for name, kind in types.items()}  # type: ignore[arg-type]
    found = parse_action(SCHEMA, (ActionTemplate(template, arguments),), text)
    return sorted((dict(action.words) for action in found), key=str)


def test_literals_are_matched_exactly() -> None:
    assert words("Go {a}!", "Go 12!", a=Id("n")) == [{"a": "12"}]
    for text in ("go 12!", "Go 12", " Go 12!", "Go 12! ", "Go  12!", "Go !", "Go 1234!", "Go x!", ""):
        assert not words("Go {a}!", text, a=Id("n")), text
    assert words("Wait", "Wait") == [{}]
    assert not words("Wait", "Wait ")


def test_free_text_may_contain_what_follows_it() -> None:
    assert words("Say {t}. End", "Say a. End. End", t=Text(20)) == [{"t": "a. End"}]
    assert words("{a} {b}", "x y z", a=Text(9), b=Text(9)) == [{"a": "x y", "b": "z"}, {"a": "x", "b": "y z"}]


def test_arguments_side_by_side_are_split_in_every_way() -> None:
    assert words("{a}{b}", "123", a=Pattern("[0-9]{1,2}"), b=Id("n")) == [{"a": "1", "b": "23"}, {"a": "12", "b": "3"}]
    assert words("{a}{b}", "", a=Text(3), b=Text(3)) == [{"a": "", "b": ""}]


def test_an_argument_named_twice_has_one_value() -> None:
    assert words("{a}={a}", "1=1", a=Id("n")) == [{"a": "1"}]
    assert not words("{a}={a}", "1=2", a=Id("n"))


@seeds(60)
def test_an_instance_of_a_template_has_the_words_it_was_made_of_among_its_readings(seed: int) -> None:
    rng = Random(seed)
    domain = random_domain(rng)
    template = rng.choice(domain.actions)
    bound = {name: random_scalar(rng, domain.schema, a.type) for name, a in template.arguments.items()}
    text = "".join(bound[part] if i % 2 else part for i, part in enumerate(template.parts))
    readings = domain.readings(text)
    assert any(action.template is template and action.words == bound for action in readings)
    for action in readings:
        again = "".join(action.words[p] if i % 2 else p for i, p in enumerate(action.template.parts))
        assert again == text


STOCK = {"t": {"k1": "a", "k2": "b"}, "r": {"k1": {"m": "a", "ok": True}, "k2": {"m": "b", "ok": False}}}


def test_legality_asks_sources_and_joint_entries() -> None:
    ship = ActionTemplate(
        "Ship {x} {k}", {"x": Argument(Text(2)), "k": Argument(Text(2), Seen("k"))}, (Entry("t", key="k", value="x"),)
    )
    world = World(STOCK, {"k": frozenset({"k1", "k2"})}, {})

    def reason(text: str, at: World = world) -> str:
        (action,) = parse_action(SCHEMA, (ship,), text)
        return legality(action, at)

    assert reason("Ship a k1") == ""
    assert "not under" in reason("Ship b k1")
    assert "cannot be k" in reason("Ship a k1", World(STOCK, {}, {}))
    assert "not under" in reason("Ship a k1", World({}, world.seen, {}))


def test_a_joint_entry_can_look_into_records_and_ask_for_more() -> None:
    entry = Entry("r", key="k", value="x", member="m", where=(("ok", True),))
    assert entry.pairs(World(STOCK, {}, {})) == {("k1", "a")}
    assert Entry("r", key="k", value="x", member="m").pairs(World(STOCK, {}, {})) == {("k1", "a"), ("k2", "b")}
    assert Entry("r", key="k", value="x").pairs(World(STOCK, {}, {})) == frozenset()
    assert Entry("absent", key="k", value="x").pairs(World(STOCK, {}, {})) == frozenset()


def test_effects_are_filled_with_the_words_once() -> None:
    template = {"{a}": {"x": "{b}", "list": ["{a}{b}"], "n": 1, "gone": None}, "{c}": "{}"}
    assert fill(template, {"a": "{b}", "b": "{a}"}) == {
        "{b}": {"x": "{a}", "list": ["{b}{a}"], "n": 1, "gone": None},
        "{c}": "{}",
    }


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ("Store item_1 shelf_2", {"inventory": {"shelf_2": "item_1"}}),
        ("Ship item_1 shelf_2", {"inventory": {"shelf_2": None}}),
        ("Move item_1 shelf_2 shelf_3", {"inventory": {"shelf_2": None, "shelf_3": "item_1"}}),
        ("Wait", {}),
    ],
)
def test_warehouse_actions_mean_what_they_do(text: str, effect: object) -> None:
    (action,) = WAREHOUSE.readings(text)
    assert action.effect == effect


def test_each_warehouse_action_has_one_reading() -> None:
    texts = [
        f"{verb} {' '.join(rest)}"
        for verb in ("Store", "Ship", "Move")
        for rest in itertools.product(("item_1", "shelf_1"), repeat=3)
    ]
    assert all(len(WAREHOUSE.readings(text)) <= 1 for text in texts)
