"""`domain check` tells the truth: exceptions it lists are real, and limits it names are the dialects' own."""

from __future__ import annotations

from pathlib import Path

import llguidance
import pytest

from skillstate_local.authoring.report import CheckReport, check_file, render_report
from skillstate_local.domains.base import Domain
from skillstate_local.domains.level import Level, Order
from skillstate_local.domains.loader import load_domain
from skillstate_local.domains.turn import write_turn
from skillstate_local.domains.validate import Rejected, Rules, Stage, validate
from skillstate_local.grammar.ir import Dialect
from skillstate_local.grammar.turn import GrammarBuilder, GrammarOptions

from .authored import BASE, changed, with_field


def _written(text: str, tmp_path: Path) -> tuple[Domain, CheckReport]:
    file = tmp_path / "shop.yaml"
    file.write_text(text)
    return load_domain(file), check_file(file)


def _validation_alone(report: CheckReport, path: str) -> str:
    (found,) = [guarantee for guarantee in report.guarantees if guarantee.path == path]
    return " | ".join(found.validation_alone)


def _lark_accepts(domain: Domain, level: Level, turn: str) -> bool:
    grammar = GrammarBuilder(domain, GrammarOptions(level)).build(domain.initial_state)
    assert grammar is not None
    tokenizer = llguidance.LLTokenizer("byte")
    lark = llguidance.grammar_from("lark", grammar.write(Dialect.LARK))
    matcher = llguidance.LLMatcher(tokenizer, lark, log_level=0)
    tokens = tokenizer.tokenize_str(turn)
    return bool(matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting())


def _twice(key: str) -> str:
    return write_turn({"stock": {key: 1, "\0": 2}}, "wait", Order.PATCH_FIRST).replace("\\u0000", key)


def test_repeated_keys_of_an_open_vocabulary(tmp_path: Path) -> None:
    domain, report = _written(changed("x-max-entries: 20", "x-max-entries: 20\n      x-max-inserts: 2"), tmp_path)
    said = _validation_alone(report, "/stock")
    for level, name in ((Level.SCHEMA, "Lark at schema"), (Level.DELTA, "Lark at delta")):
        assert name in said
        assert _lark_accepts(domain, level, _twice("p1"))
        verdict = validate(_twice("p1"), domain, domain.initial_state, domain.facts(""), Rules(level))
        assert isinstance(verdict, Rejected)
        assert verdict.stage is Stage.SYNTAX


@pytest.mark.parametrize(("size", "exact"), [(40, True), (80, False)])
def test_repeated_keys_of_a_closed_vocabulary(size: int, exact: bool, tmp_path: Path) -> None:
    text = changed('pattern: "p[0-9]{1,3}"', f'range: "p{{0..{size}}}"')
    domain, report = _written(text, tmp_path)
    assert ("Lark: one key named twice" in _validation_alone(report, "/stock")) is not exact
    assert _lark_accepts(domain, Level.SCHEMA, _twice("p1")) is not exact


def test_nine_members_are_too_many_for_ebnf(tmp_path: Path) -> None:
    for count in (8, 9):
        members = ", ".join(f"m{i}: {{type: boolean}}" for i in range(count))
        text = with_field(f"{{type: object, required: [], properties: {{{members}}}}}", ", extra: {}")
        _, report = _written(text, tmp_path)
        assert report.ok
        said = [(place.level, place.dialect) for place in report.unwritable]
        expected = [("schema", "ebnf"), ("schema", "gbnf"), ("delta", "ebnf"), ("delta", "gbnf")]
        assert said == (expected if count == 9 else [])
        assert ("EBNF and GBNF cannot write 9" in _validation_alone(report, "/extra")) is (count == 9)
        assert ("Not in EBNF at schema" in render_report(report)) is (count == 9)


def test_a_table_inserted_whole_must_be_small(tmp_path: Path) -> None:
    inner = "{type: object, x-keys: part, x-max-entries: 64, additionalProperties: {type: boolean}}"
    record = f"{{type: object, required: [], properties: {{parts: {inner}}}}}"
    file = tmp_path / "shop.yaml"
    file.write_text(with_field(record))
    assert [(error.pointer, error.line) for error in check_file(file).errors] == [
        ("/state/properties/extra/properties/parts/x-max-entries", 15)
    ]
    file.write_text(with_field(record.replace("64", "63")))
    assert check_file(file).ok


def test_a_state_without_legal_action_is_told(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(BASE.replace("  - template: wait\n", ""))
    (error, *_) = check_file(file).errors
    assert error.pointer == "/initial_state"
    assert "no action of shop is legal" in error.message


def test_effects_name_their_authors(tmp_path: Path) -> None:
    _, report = _written(BASE, tmp_path)
    said = {guarantee.path: guarantee.effects for guarantee in report.guarantees}
    assert said["/stock/{part}"] == "set by take"
    assert said["/open"].startswith("never changes")
