"""The canonical order of a state, and the words of a vocabulary."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillstate_local.state.canonical import Json, dumps, equal
from skillstate_local.state.schema import Integer, Record, Scalar, Schema, Table, Vocabulary, natural_key
from skillstate_local.state.source import KeysOf, Members, Minus, Seen, Union, ValuesOf, Words, World

LAW = settings(derandomize=True, database=None, deadline=None, max_examples=200)
NAMES = st.text("shelf_0129²٣é-", max_size=8)


def test_numbers_inside_words_sort_by_value() -> None:
    words = ["shelf_10", "shelf_9", "shelf_1", "x", "shelf_", "shelf_1a", "2", "10", ""]
    assert sorted(words, key=natural_key) == [
        "",
        "2",
        "10",
        "shelf_",
        "shelf_1",
        "shelf_1a",
        "shelf_9",
        "shelf_10",
        "x",
    ]


@pytest.mark.parametrize("word", ["²", "٣", "item_²", "0" * 5000 + "1", "9" * 5000, "½", "𝟙"])
def test_any_word_can_be_sorted(word: str) -> None:
    """Characters that only look like digits, and more digits than Python converts."""
    assert sorted([word, "a", "1"], key=natural_key)


@LAW
@given(st.lists(NAMES, unique=True, max_size=8), st.randoms())
def test_the_order_of_words_does_not_depend_on_how_they_came(words: list[str], rng: Random) -> None:
    shuffled = words.copy()
    rng.shuffle(shuffled)
    assert sorted(words, key=natural_key) == sorted(shuffled, key=natural_key)


def test_words_that_are_equal_as_numbers_still_have_an_order() -> None:
    assert sorted(["item_01", "item_1"], key=natural_key) == sorted(["item_1", "item_01"], key=natural_key)


SCHEMA = Schema(
    Record(
        {
            "z": Scalar(Integer(0, 9)),
            "table": Table("id", Record({"q": Scalar(Integer(0, 9)), "a": Scalar(Integer(0, 9))}), 99),
        }
    ),
    {"id": Vocabulary("id", pattern=r"\w{1,9}")},
)


@LAW
@given(st.dictionaries(NAMES, st.permutations([("q", 1), ("a", 2)]).map(dict), max_size=6), st.randoms())
def test_one_value_has_one_canonical_text(entries: Json, rng: Random) -> None:
    state = {"table": entries, "unknown": 1, "z": 3, "also": 2}
    items = list(entries.items())
    rng.shuffle(items)
    turned = {"also": 2, "z": 3, "unknown": 1, "table": dict(items)}
    canonical = SCHEMA.canonical(state)
    assert equal(canonical, state)
    assert dumps(canonical) == dumps(SCHEMA.canonical(turned))
    assert list(canonical) == ["z", "table", "also", "unknown"]
    assert all(list(entry) == ["q", "a"] for entry in canonical["table"].values())


def test_a_vocabulary_is_closed_by_members_or_open_by_a_pattern() -> None:
    closed = Vocabulary("v", ("a", "b"))
    assert "a" in closed
    assert "c" not in closed
    assert 1 not in closed
    opened = Vocabulary("v", pattern=r"\d{1,2}|x")
    assert "12" in opened
    assert "123" not in opened
    assert "٣" not in opened
    assert "1\n" not in opened


WORLD = World(
    {
        "t": {"k1": "a", "k2": "b", "k3": 4},
        "r": {"k1": {"m": "x", "ok": True}, "k2": {"m": "y"}},
        "s": "one",
        "l": ["p", 1],
    },
    {"id": frozenset({"k1", "new"})},
    {"id": ("k1", "k9")},
)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (Seen("id"), {"k1", "new"}),
        (Seen("other"), set()),
        (Members("id"), {"k1", "k9"}),
        (Words(("a", "b")), {"a", "b"}),
        (KeysOf("t"), {"k1", "k2", "k3"}),
        (KeysOf("s"), set()),
        (KeysOf("absent"), set()),
        (KeysOf("r", (("ok", True),)), {"k1"}),
        (KeysOf("t", (("ok", True),)), set()),
        (ValuesOf("t"), {"a", "b"}),
        (ValuesOf("r", "m"), {"x", "y"}),
        (ValuesOf("r", "absent"), set()),
        (ValuesOf("t", at=Seen("id")), {"a"}),
        (ValuesOf("s"), {"one"}),
        (ValuesOf("l"), {"p"}),
        (Union((Seen("id"), KeysOf("t"))), {"k1", "k2", "k3", "new"}),
        (Minus(KeysOf("t"), Seen("id")), {"k2", "k3"}),
        (Union(()), set()),
    ],
)
def test_sources_resolve(source: Members, words: set[str]) -> None:
    assert source.resolve(WORLD) == words
