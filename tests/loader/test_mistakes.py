"""Every mistake of an author is told with its line, its pointer and what to do; none raises anything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillstate_local.authoring.report import check_file
from skillstate_local.domains.findings import Severity
from skillstate_local.domains.loader import load_domain, read_domain
from skillstate_local.errors import DomainError

from .authored import BASE, changed, errors_of, with_field

_VALUE = "/state/properties/stock/additionalProperties"


def test_the_base_is_right() -> None:
    assert read_domain(BASE).findings == ()


@pytest.mark.parametrize(
    ("old", "new", "line", "pointer", "message", "hint"),
    [
        ("x-max-entries", "x-max-entrys", 12, "/state/properties/stock/x-max-entrys", "unknown", "x-max-entries"),
        ("instructions: K", "instruction: K", 25, "/instruction", "unknown keyword", "instructions"),
        ("x-keys: part", "x-keys: parts", 11, "/state/properties/stock/x-keys", "no vocabulary 'parts'", "'part'"),
        ("x-keys: part", "x-keys: 5", 11, "/state/properties/stock/x-keys", "must be text", "quotes"),
        ("maximum: 99", "maximun: 99", 13, _VALUE + "/maximun", "unknown", "maximum"),
        (", maximum: 99", "", 13, _VALUE, "maximum is missing", "minimum and max"),
        ("[stock, open]", "[stock, opn]", 7, "/state/required/1", "no property", "'open'"),
        ("  required: [stock, open]\n", "", 5, "/state", "required is missing", "always there"),
        ("{type: boolean}", "{type: bool}", 14, "/state/properties/open/type", "no type 'bool'", "boolean"),
        ("{type: boolean}", "{type: string}", 14, "/state/properties/open", "no bound", "maxLength"),
        ("{type: boolean}", "yes", 14, "/state/properties/open", "must be a mapping", ""),
        ("{seen: part}", "{seen: prat}", 21, "/actions/0/arguments/part/from/seen", "no vocabulary 'prat'", "'part'"),
        ("{seen: part}", "{keys_of: stok}", 21, "/actions/0/arguments/part/from/keys_of", "names no table", "'stock'"),
        ("{seen: part}", "{sen: part}", 21, "/actions/0/arguments/part/from/sen", "unknown keyword", "seen"),
        ("{seen: part}", "{members: part}", 21, "/actions/0/arguments/part/from/members", "open", "seen"),
        ("{vocabulary: bin}", "{vocabulary: bim}", 22, "/actions/0/arguments/bin/vocabulary", "no vocabulary", "'bin'"),
        ("{vocabulary: bin}", "{type: integer}", 22, "/actions/0/arguments/bin", "minimum is missing", ""),
        ('"take {part} {bin}"', '"take {part} {box}"', 19, "/actions/0/template", "{box}", "bin, part"),
        ('"take {part} {bin}"', '"take {part}"', 22, "/actions/0/arguments/bin", "does not stand", ""),
        ('"take {part} {bin}"', '"take {part} {part} {bin}"', 19, "/actions/0/template", "twice", "own name"),
        ('"take {part} {bin}"', '"take {part {bin}"', 19, "/actions/0/template", "brace", "{name}"),
        ('{"{part}": 1}', '{"{prat}": 1}', 23, "/actions/0/effect/stock/{prat}", "no argument", "'part'"),
        ('{"{part}": 1}', '{"{part}": many}', 23, "/actions/0/effect/stock/{part}", "does not fit", ""),
        ('{stock: {"{part}": 1}}', '{stok: {"{part}": 1}}', 23, "/actions/0/effect/stok", "unknown field", ""),
        ("(?P<part>", "(?P<prt>", 17, "/observations/events/0/pattern", "no vocabulary", "'part'"),
        ("(?P<part>p[0-9]{1,3})", "(?P<part>([a-z0-9]+)+)", 17, "/observations/events/0/pattern", "stall", "nest"),
        ("observation: Part p1 came.", "observation: Nothing.", 28, "/examples/0/action", "refused", "No event"),
        ("action: take p1 b1", "action: take p1 b9", 28, "/examples/0/action", "fits no action", "names part p1"),
        ("patch: {stock: {p1: 1}}", "patch: {stock: {p1: 100}}", 28, "/examples/0/patch/stock/p1", "integer from", ""),
        ("state: {stock: {}, open: true}\ne", "state: {open: true}\ne", 26, "/initial_state/stock", "missing", ""),
        ("wait", "take p1 {bin}", 24, "/actions/1/template", "{bin}", ""),
        ("name: shop", "name: Shop!", 1, "/name", "cannot name", "lower-case"),
        ("name: shop", "name: shop\nname: shop", 2, "/name", "twice", "Remove"),
        ("name: shop", "1: x\nname: shop", 1, "", "a key must be text", "quotes"),
        ("name: shop", "name: !!str shop", 1, "/name", "tags", "plain"),
        ("name: shop", "name: &n shop", 1, "/name", "anchors", "$ref"),
        ("name: shop", "name: [shop", 2, "", "not valid YAML", "indentation"),
        ("[b1, b2, b3]", "[b1, b2, b1]", 4, "/vocabularies/bin/members/2", "twice", "Remove"),
        ("[b1, b2, b3]", "[b1, 2]", 4, "/vocabularies/bin/members/1", "must be text", "quotes"),
        ("members: [b1, b2, b3]", 'range: "b{9..1}"', 4, "/vocabularies/bin/range", "counts down", "smaller"),
        ("p[0-9]{1,3}\"", "p[0-9]+\"", 3, "/vocabularies/part", "without a bound", "{m,n}"),
        ("maximum: 99", "maximum: 1e2", 13, _VALUE + "/maximum", "not a number", "plain"),
    ],
)  # fmt: skip
def test_mistakes(old: str, new: str, line: int, pointer: str, message: str, hint: str) -> None:
    found = errors_of(changed(old, new) if BASE.count(old) == 1 else BASE.replace(old, new, 1))
    assert [
        finding
        for finding in found
        if finding.pointer == pointer and finding.line == line and message in finding.message and hint in finding.hint
    ], found


@pytest.mark.parametrize(
    ("schema", "message", "hint"),
    [
        ("{type: [string, 'null'], maxLength: 5}", "one word", "anyOf"),
        ("{type: 'null'}", "no type 'null'", "required"),
        ("{type: string, maxLength: 5, pattern: a}", "stand together", "exactly one"),
        ("{type: string, enum: [a], minLength: 1}", "minLength", "Remove"),
        ("{type: string, maxLength: 1000000}", "from 1 to 100,000", ""),
        ("{type: integer, minimum: 5, maximum: 1}", "larger", ""),
        ("{type: integer, minimum: 0, maximum: 5, maxLength: 3}", "says nothing", "Remove"),
        ("{type: number, minimum: 0, maximum: 1}", "x-scale", "digits"),
        ("{type: number, x-scale: 2, minimum: 0.001, maximum: 1}", "more digits", ""),
        ("{type: number, x-scale: 0, minimum: 0, maximum: 1}", "x-scale", ""),
        ("{type: string, format: date}", "unknown keyword 'format'", "pattern"),
        ("{type: string, enum: []}", "empty", ""),
        ("{type: string, enum: [a, b], x-transitions: {a: [c]}}", "x-transitions names 'c'", ""),
        ("{type: string, enum: [a, b], x-mutability: frozen}", "x-mutability", "protected"),
        ("{type: boolean, x-values: {words: [a]}}", "gives text", ""),
        ("{type: string, maxLength: 9, x-values: {values_of: stock, member: x}}", "no records", ""),
        ("{type: string, maxLength: 9, x-values: {keys_of: stock, member: x}}", "belongs to values_of", ""),
        ("{type: string, maxLength: 9, x-values: {keys_of: stock, where: {x: 1}}}", "no records", ""),
        ("{type: array, items: {type: boolean}}", "maxItems is missing", "bound"),
        ("{type: array, maxItems: 5}", "items is missing", ""),
        ("{type: array, maxItems: 5, items: {type: object}}", "object cannot stand here", ""),
        ("{type: array, maxItems: 5, items: {type: boolean}, minItems: 1}", "minItems", "lower bound"),
        ("{type: array, maxItems: 5, items: {type: boolean}, x-list: growing}", "x-list", "append-only"),
        ("{type: object, additionalProperties: {type: boolean}, x-max-entries: 3}", "x-keys is missing", "bin, part"),
        ("{type: object, x-keys: bin, additionalProperties: {type: boolean}}", "x-max-entries is missing", "bound"),
        ("{type: object, properties: {}, required: []}", "properties is empty", ""),
        ("{type: object, properties: {a: {type: boolean}}, required: [], additionalProperties: true}", "together", ""),
        (
            "{type: object, patternProperties: {a: {type: boolean}, b: {type: boolean}}, x-max-entries: 2}",
            "one pattern",
            "",
        ),
        ("{$ref: '#/$defs/x'}", "names nothing", ""),
        ("{anyOf: [{type: boolean}]}", "two options", ""),
        ("{anyOf: [{type: boolean}, {type: array}]}", "array cannot stand here", ""),
        ("{type: string, maxLength: 3, x-deletable: 1}", "true or false", ""),
        (
            "{type: object, x-keys: bin, x-max-entries: 3, x-insert: never, x-max-inserts: 2,"
            " additionalProperties: {type: boolean}}",
            "says nothing",
            "Remove",
        ),
    ],
)
def test_schema_mistakes(schema: str, message: str, hint: str) -> None:
    found = errors_of(with_field(schema))
    place = [finding for finding in found if message in finding.message and hint in finding.hint]
    assert place, found
    assert place[0].line == 15
    assert place[0].pointer.startswith("/state/properties/extra")


def test_cycle_is_named() -> None:
    text = with_field("{$ref: '#/$defs/a'}").replace(
        "observations:",
        "  $defs:\n"
        "    a: {type: object, required: [], properties: {b: {$ref: '#/$defs/b'}}}\n"
        "    b: {type: object, required: [], properties: {a: {$ref: '#/$defs/a'}}}\n"
        "observations:",
        1,
    )
    assert any("a → b → a" in finding.message for finding in errors_of(text))


def test_all_mistakes_are_told_at_once() -> None:
    text = BASE.replace("maximum: 99", "maximum: many").replace("{seen: part}", "{seeen: part}").replace("wait", "")
    assert len({finding.line for finding in errors_of(text)}) == 3


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (["say {a} to {b}"], "nothing tells where a ends and b begins"),
        (["say {a}{b}"], "nothing tells where a ends and b begins"),
        (["say {a}", "say it"], ""),
        (["{a}", "wait"], "can also be read as"),
    ],
)
def test_ambiguous_templates(actions: list[str], message: str) -> None:
    lines = []
    for template in actions:
        names = [name for name in "ab" if f"{{{name}}}" in template]
        arguments = ", ".join(f"{name}: {{type: string, minLength: 1, maxLength: 9}}" for name in names)
        lines.append(f'  - {{template: "{template}", arguments: {{{arguments}}}}}')
    before, _, after = BASE.partition("actions:\n")
    text = (
        before + "actions:\n" + "\n".join(lines) + "\n" + after[after.index("instructions") : after.index("examples")]
    )
    found = errors_of(text)
    assert any((message or "can also be read as") in finding.message for finding in found), found


def test_load_domain_raises_with_place(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(changed("x-keys: part", "x-keys: prat"))
    with pytest.raises(DomainError) as raised:
        load_domain(file)
    assert f"{file}:11: there is no vocabulary 'prat'" in str(raised.value)
    assert raised.value.pointer == "/state/properties/stock/x-keys"
    assert "Did you mean 'part'?" in raised.value.hint


def test_unused_definition_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(BASE.replace("observations:", "  $defs: {spare: {type: boolean}}\nobservations:", 1))
    report = check_file(file)
    assert report.ok
    assert [(finding.severity, finding.line) for finding in report.findings] == [(Severity.WARNING, 15)]
