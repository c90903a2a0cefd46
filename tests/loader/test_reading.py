"""What each keyword becomes."""

from __future__ import annotations

from decimal import Decimal

import pytest

from skillstate_local.domains.check import check_domain
from skillstate_local.domains.findings import Findings
from skillstate_local.domains.loader import read_domain
from skillstate_local.domains.loader.sources import read_source
from skillstate_local.domains.loader.yaml_tree import read_tree
from skillstate_local.state.schema import (
    Boolean,
    Choice,
    FieldKind,
    Fixed,
    Id,
    Integer,
    ListField,
    ListMode,
    Mutability,
    OneOf,
    Pattern,
    Permission,
    Record,
    Scalar,
    Table,
    Text,
)
from skillstate_local.state.source import KeysOf, Members, Minus, Seen, Source, Union, ValuesOf, Words

from .authored import BASE, domain_of, with_field


def _field(schema: str) -> FieldKind:
    return domain_of(with_field(schema)).schema.root.members["extra"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("{type: string, maxLength: 9}", Text(9)),
        ("{type: string, minLength: 2, maxLength: 9}", Text(9, 2)),
        ("{type: string, enum: [on, off, yes]}", Choice(("on", "off", "yes"))),
        ("{type: string, pattern: '^a{1,3}$'}", Pattern("a{1,3}")),
        ("{type: string, x-vocabulary: bin}", Id("bin")),
        ("{type: integer, minimum: -5, maximum: 5}", Integer(-5, 5)),
        ("{type: number, x-scale: 2, minimum: -1, maximum: 9.5}", Fixed(-100, 950, 2)),
        ("{type: boolean}", Boolean()),
        ("{anyOf: [{type: boolean}, {type: string, maxLength: 3}]}", OneOf((Boolean(), Text(3)))),
    ],
)
def test_scalars(schema: str, expected: object) -> None:
    field = _field(schema)
    assert isinstance(field, Scalar)
    assert field == Scalar(expected, optional=True)  # type: ignore[arg-type]


def test_policies_of_a_scalar() -> None:
    field = _field(
        "{type: string, enum: [a, b], x-mutability: write-once, x-transitions: {a: [b]}, x-deletable: true,"
        " x-values: {words: [a]}, description: d}"
    )
    assert isinstance(field, Scalar)
    assert (field.mutability, dict(field.transitions)) == (Mutability.WRITE_ONCE, {"a": ("b",)})
    assert (field.deletable, field.values, field.description) == (True, Words(("a",)), "d")


def test_lists() -> None:
    shown = _field("{type: array, items: {type: string, x-vocabulary: bin}, maxItems: 5, x-list: append-only}")
    assert shown == ListField(Id("bin"), 5, ListMode.APPEND, 5, optional=True)
    edited = "{type: array, items: {type: boolean}, maxItems: 50, x-list: add-and-remove, x-max-changes: 3}"
    assert _field(edited) == ListField(Boolean(), 50, ListMode.ADD_REMOVE, 3, optional=True)


def test_records_and_references() -> None:
    text = with_field("{$ref: '#/$defs/one', description: mine}").replace(
        "observations:",
        "  $defs:\n    one: {type: object, required: [a], properties: {a: {$ref: '#/$defs/two'}, b: {type: boolean}},"
        " description: yours}\n    two: {type: string, maxLength: 3}\nobservations:",
        1,
    )
    record = domain_of(text).schema.root.members["extra"]
    members = {"a": Scalar(Text(3)), "b": Scalar(Boolean(), optional=True)}
    assert record == Record(members, optional=True, description="mine")


def test_tables() -> None:
    table = _field(
        "{type: object, x-keys: bin, additionalProperties: {type: boolean}, x-max-entries: 3, x-insert: grounded,"
        " x-update: never, x-delete: allowed, x-max-inserts: 2, x-max-deletes: 3}"
    )
    assert table == Table(
        "bin",
        Scalar(Boolean()),
        3,
        Permission.GROUNDED,
        Permission.NEVER,
        max_inserts=2,
        max_deletes=3,
        optional=True,
    )


def test_pattern_properties_name_a_vocabulary() -> None:
    schema = "{type: object, patternProperties: {'PATTERN': {type: boolean}}, x-max-entries: 3}"
    known = domain_of(with_field(schema.replace("PATTERN", "p[0-9]{1,3}")))
    assert known.schema.root.members["extra"] == Table("part", Scalar(Boolean()), 3, optional=True)
    new = domain_of(with_field(schema.replace("PATTERN", "^q[0-9]$")))
    table = new.schema.root.members["extra"]
    assert isinstance(table, Table)
    assert new.schema.vocabularies[table.keys].pattern == "q[0-9]"


def test_decimals_keep_their_scale() -> None:
    text = with_field("{type: number, x-scale: 2, minimum: 0, maximum: 5}", ", extra: 1.50")
    assert domain_of(text).initial_state["extra"] == Decimal("1.50")
    assert str(domain_of(text).initial_state["extra"]) == "1.50"
    assert read_domain(text.replace("extra: 1.50", "extra: 1.5")).domain is None


def test_ranges_keep_leading_zeros() -> None:
    text = BASE.replace("members: [b1, b2, b3]", 'range: "b{08..11}x"').replace("take p1 b1", "take p1 b09x")
    assert domain_of(text).schema.vocabularies["bin"].members == ("b08x", "b09x", "b10x", "b11x")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{seen: item}", Seen("item")),
        ("{members: shelf}", Members("shelf")),
        ("{words: [a, b]}", Words(("a", "b"))),
        ("{keys_of: t, where: {s: open, n: 3}}", KeysOf("t", (("s", "open"), ("n", 3)))),
        ("{values_of: t, member: m, at: {seen: x}}", ValuesOf("t", "m", Seen("x"))),
        ("{any_of: [{seen: a}, {seen: b}]}", Union((Seen("a"), Seen("b")))),
        ("{members: shelf, except: {keys_of: t}}", Minus(Members("shelf"), KeysOf("t"))),
    ],
)
def test_sources(text: str, expected: Source) -> None:
    findings = Findings()
    root = read_tree(text, findings)
    assert root is not None
    assert read_source(root, findings) == expected
    assert len(findings) == 0


def test_plain_scalars_follow_yaml_1_2() -> None:
    root = read_tree("{a: yes, b: on, c: null, d: true, e: '5', f: 5, g: 2024-01-01, h: -0.50}", Findings())
    assert root is not None
    assert isinstance(root.value, dict)
    values = {key: node.value for key, node in root.value.items()}
    assert values == {
        "a": "yes", "b": "on", "c": None, "d": True, "e": "5", "f": 5, "g": "2024-01-01", "h": Decimal("-0.50"),
    }  # fmt: skip


def test_python_domains_are_checked_too() -> None:
    from dataclasses import replace

    from skillstate_local.domains.warehouse import WAREHOUSE

    assert check_domain(WAREHOUSE) == []
    found = check_domain(replace(WAREHOUSE, initial_state={"inventory": {"shelf_1": "thing"}}))
    assert [finding.pointer for finding in found] == ["/initial_state/inventory/shelf_1"]
