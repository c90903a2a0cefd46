"""Objects in any order: the parametric rules of Lark and the states of EBNF, against every member sequence there is."""

from __future__ import annotations

import itertools
from collections import Counter
from random import Random

import pytest

from skillstate_local.errors import UnsupportedConstraint
from skillstate_local.grammar.ir import Dialect, Grammar, Group, Lit, Number, Object, Quoted, Seq, Variant, Words
from skillstate_local.grammar.lark import PARAMETER_BITS
from skillstate_local.grammar.sample import sample
from skillstate_local.grammar.text import pattern_node
from tests.grammar.matching import matches
from tests.grammar.steps import seeds

Member = tuple[str, str]


def random_object(rng: Random, *, required: bool = True) -> Object:
    """Groups that share keys, with bounds below (if ``required``) and above; values tell variants apart."""
    keys = ("a", "ab", "é", 'q\\"', "x")
    groups = []
    for number in range(rng.randint(1, 3)):
        chosen = rng.sample(keys, rng.randint(1, 4))
        cut = rng.randint(1, len(chosen))
        parts = [part for part in (chosen[:cut], chosen[cut:]) if part]
        variants = tuple(Variant(Words(tuple(sorted(part))), Lit(f"{number}{at}1")) for at, part in enumerate(parts))
        maximum = rng.randint(1, 2)
        groups.append(Group(variants, rng.randint(0, 1) if maximum == 1 and required else 0, maximum))
    most = sum(group.maximum for group in groups)
    needed = sum(group.minimum for group in groups)
    return Object(tuple(groups), rng.randint(max(1, needed), most), nonempty=rng.random() < 0.3)


def allowed(node: Object, members: tuple[Member, ...]) -> bool:
    """By the words of ``Object`` and ``Group`` alone: some assignment of members to groups keeps all bounds."""
    if len({key for key, _ in members}) < len(members) or len(members) > node.maximum:
        return False
    if node.nonempty and not members:
        return False
    homes = [
        [
            index
            for index, group in enumerate(node.groups)
            for variant in group.variants
            if isinstance(variant.keys, Words) and key in variant.keys.words and variant.value.text == value  # type: ignore[union-attr]
        ]
        for key, value in members
    ]
    for choice in itertools.product(*homes):
        counts = Counter(choice)
        if all(group.minimum <= counts[index] <= group.maximum for index, group in enumerate(node.groups)):
            return True
    return False


def written(members: tuple[Member, ...]) -> str:
    return "{" + ",".join(f'"{key}":{value}' for key, value in members) + "}"


@pytest.mark.parametrize("dialect", [Dialect.LARK, Dialect.EBNF])
@seeds(40)
def test_every_sequence_of_members_is_decided_as_defined(dialect: Dialect, seed: int) -> None:
    rng = Random(seed)
    node = random_object(rng)
    grammar = Grammar(node)
    pool = sorted(
        {
            (key, variant.value.text)  # type: ignore[union-attr]
            for group in node.groups
            for variant in group.variants
            if isinstance(variant.keys, Words)
            for key in variant.keys.words
        }
    )
    sequences = [s for length in range(4) for s in itertools.product(pool, repeat=length)]
    for members in rng.sample(sequences, min(150, len(sequences))):
        repeated = len({key for key, _ in members}) < len(members)
        if dialect is Dialect.EBNF and repeated:
            continue  # documented
        assert matches(grammar, dialect, written(members)) is allowed(node, members), (node, members)


@seeds(40)
def test_samples_keep_the_bounds(seed: int) -> None:
    rng = Random(seed)
    node = random_object(rng, required=False)  # no domain makes a group that is required and shares its keys
    for _ in range(5):
        text = sample(node, rng)
        assert matches(Grammar(node), Dialect.LARK, text), (node, text)


def table(keys: int, inserts: int, deletes: int) -> Object:
    """A table of ``keys`` live entries that can be replaced or deleted, ``inserts`` + ``deletes`` in all."""
    words = Words(tuple(sorted(f"k{number}" for number in range(keys))))
    groups = (Group((Variant(words, Number(1, 9)),), 0, inserts), Group((Variant(words, Lit("null")),), 0, deletes))
    return Object(groups, inserts + deletes)


@pytest.mark.parametrize("keys", [1, 5, 60, 61, 62, 200, 500])
def test_two_changes_of_one_key_are_refused_in_every_layout(keys: int) -> None:
    """Up to 61 keys by a bit each, beyond by the number of the first."""
    grammar = Grammar(table(keys, 1, 1))
    last = f"k{keys - 1}"
    assert matches(grammar, Dialect.LARK, "{}")
    assert matches(grammar, Dialect.LARK, f'{{"{last}":null}}')
    assert not matches(grammar, Dialect.LARK, f'{{"{last}":null,"{last}":1}}')
    assert not matches(grammar, Dialect.LARK, f'{{"{last}":1,"{last}":null}}')
    if keys > 1:
        for first, second in (("k0", last), (last, "k0")):
            assert matches(grammar, Dialect.LARK, f'{{"{first}":null,"{second}":1}}')
            assert not matches(grammar, Dialect.LARK, f'{{"{first}":null,"{second}":null}}')


def test_beyond_both_layouts_a_repetition_is_the_documented_exception() -> None:
    grammar = Grammar(table(200, 2, 2))
    assert matches(grammar, Dialect.LARK, '{"k0":1,"k1":null,"k2":2}')
    assert not matches(grammar, Dialect.LARK, '{"k0":1,"k1":1,"k2":2}')
    assert matches(grammar, Dialect.LARK, '{"k0":1,"k0":null}')


def test_more_members_than_parameter_bits_are_refused_not_weakened() -> None:
    fields = [Group((Variant(Words((f"f{number}",)), Number(0, 1)),)) for number in range(PARAMETER_BITS + 1)]
    assert '"f62"' in Grammar(Object(tuple(fields[:-1]), PARAMETER_BITS)).write(Dialect.LARK).replace("\\", "")
    with pytest.raises(UnsupportedConstraint, match="63"):
        Grammar(Object(tuple(fields), PARAMETER_BITS + 1)).write(Dialect.LARK)


def test_ebnf_writes_eight_members_in_any_order_and_refuses_nine() -> None:
    fields = [Group((Variant(Words((f"f{number}",)), Number(0, 1)),)) for number in range(9)]
    grammar = Grammar(Object(tuple(fields[:8]), 8))
    text = "{" + ",".join(f'"f{number}":1' for number in reversed(range(8))) + "}"
    assert matches(grammar, Dialect.EBNF, text)
    assert matches(grammar, Dialect.EBNF, '{"f3":1,"f0":0}')
    assert not matches(grammar, Dialect.EBNF, '{"f3":1,"f3":0}')
    with pytest.raises(UnsupportedConstraint, match="512"):
        Grammar(Object(tuple(fields), 9)).write(Dialect.EBNF)


def test_open_and_closed_keys_stand_side_by_side() -> None:
    """Keys of an open vocabulary are a terminal that also matches the literal keys."""
    insert = Group((Variant(Quoted(pattern_node("[a-c]{1,2}")), Number(5, 7)),))
    delete = Group((Variant(Words(("a", "ab")), Lit("null")),))
    grammar = Grammar(Object((insert, delete), 2))
    for text in ("{}", '{"a":null}', '{"cc":5,"a":null}', '{"ab":null,"b":7}', '{"a":6}'):
        assert matches(grammar, Dialect.LARK, text), text
    for text in ('{"b":null}', '{"a":8}', '{"cc":5,"b":6}', '{"abc":5}', '{"a":null,}'):
        assert not matches(grammar, Dialect.LARK, text), text


def test_objects_inside_objects_keep_their_own_counts() -> None:
    inner = Object(
        (Group((Variant(Words(("x",)), Number(0, 9)),), 1, 1), Group((Variant(Words(("y",)), Number(0, 9)),))), 2
    )
    outer = Object((Group((Variant(Words(("p", "q")), inner),), 0, 2),), 2)
    grammar = Grammar(Seq((Lit("["), outer, Lit("]"))))
    for dialect in (Dialect.LARK, Dialect.EBNF):
        assert matches(grammar, dialect, '[{"p":{"y":1,"x":2},"q":{"x":3}}]')
        assert not matches(grammar, dialect, '[{"p":{"y":1},"q":{"x":3}}]')
        assert not matches(grammar, dialect, '[{"p":{"x":1,"x":2}}]')
