"""Where a turn leaves the language: the position and what was allowed there, the same word from all four dialects."""

from __future__ import annotations

from random import Random

import pytest

from skillstate_local.domains.level import Level
from skillstate_local.domains.warehouse import WAREHOUSE
from skillstate_local.errors import EnvironmentProblem, GrammarError, UnsupportedConstraint
from skillstate_local.grammar import walker
from skillstate_local.grammar.ir import Alt, Chars, Dialect, Grammar, Lit, Quoted, Repeat, Words
from skillstate_local.grammar.match import MatchResult, match
from skillstate_local.grammar.text import any_character, pattern_node
from skillstate_local.grammar.trial import try_out
from skillstate_local.grammar.turn import GrammarBuilder, GrammarOptions
from tests.grammar.steps import authored, mutations, random_step, seeds, walks

STATE = {"inventory": {"shelf_2": "item_14", "shelf_4": "item_28"}}
SHIP = '{"state_patch":{"inventory":{"shelf_2":null}},"action":"Ship item_14 shelf_2"}'


def delta(reasoning_tokens: int = 0) -> Grammar:
    """Warehouse at `delta`, one item ordered."""
    builder = GrammarBuilder(WAREHOUSE, GrammarOptions(Level.DELTA, reasoning_tokens=reasoning_tokens))
    grammar = builder.build(STATE, WAREHOUSE.facts("Customer ordered item_14."))
    assert grammar is not None
    return grammar


def wrong(text: str, at: str, instead: str) -> tuple[str, int]:
    """``text`` with ``at`` replaced, and where that is."""
    return text.replace(at, instead), text.index(at)


@pytest.mark.parametrize("dialect", Dialect)
def test_a_legal_turn_is_accepted(dialect: Dialect) -> None:
    assert match(delta(), SHIP, dialect) == MatchResult(True, len(SHIP), "")


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize(
    ("text", "position", "allowed"),
    [
        (*wrong(SHIP, "inventory", "stock"), "only 'inventory\":{'"),
        (SHIP.replace("item_14 shelf_2", "item_14 shelf_4"), SHIP.index('2"}'), "only '2\"}'"),
        (SHIP + " ", len(SHIP), "the end of the text"),
        (SHIP[:-1], len(SHIP) - 1, "'}'"),
        (*wrong(SHIP, "Ship", "Xhip"), "'M', 'S', 'W'"),
        ("", 0, "only '{\"state_patch\":{'"),
        ("é", 0, "only '{\"state_patch\":{'"),
        ("\ud800", 0, "only '{\"state_patch\":{'"),
    ],
)
def test_a_refused_turn_says_where_and_what_was_allowed(
    dialect: Dialect, text: str, position: int, allowed: str
) -> None:
    assert match(delta(), text, dialect) == MatchResult(False, position, allowed)


@pytest.mark.parametrize("dialect", Dialect)
def test_positions_are_characters_and_a_character_is_refused_as_a_whole(dialect: Dialect) -> None:
    """é and è share their first byte, so a library stops in the middle of the second."""
    grammar = Grammar(Quoted(Words(("aéb", "aéé", "é"))))
    assert match(grammar, '"aéè', dialect) == MatchResult(False, 3, "'b', characters outside ASCII")


@pytest.mark.parametrize("dialect", Dialect)
def test_many_characters_are_told_as_ranges(dialect: Dialect) -> None:
    grammar = Grammar(Quoted(Repeat(Chars(((48, 57), (95, 95), (97, 122))), 0, 5)))
    assert match(grammar, '"a-', dialect) == MatchResult(False, 2, "'\"', '0' to '9', '_', 'a' to 'z'")
    grammar = Grammar(Quoted(Repeat(any_character(), 0, 9)))
    assert match(grammar, '"\x00', dialect) == MatchResult(False, 1, "' ' to '\\x7f', characters outside ASCII")


@pytest.mark.parametrize("dialect", Dialect)
def test_reasoning_comes_first_and_has_no_angle_bracket(dialect: Dialect) -> None:
    grammar = delta(reasoning_tokens=20)
    assert match(grammar, f"<reasoning>é ships{' ' * 60}</reasoning>{SHIP}", dialect).accepted
    assert match(grammar, SHIP, dialect) == MatchResult(False, 0, "only '<reasoning>'")
    cut = match(grammar, f"<reasoning>a<b</reasoning>{SHIP}", dialect)
    assert cut == MatchResult(False, 13, "only '/reasoning>{\"state_patch\":{'")
    assert not match(grammar, f"<reasoning>{' ' * 400}</reasoning>{SHIP}", dialect).accepted


@seeds(40)
def test_all_dialects_agree_on_the_position(seed: int) -> None:
    """What can still follow depends on the text so far alone, where no dialect is an exception."""
    rng = Random(seed)
    step = random_step(rng)
    if step.grammar is None or step.level is Level.JSON:
        return
    turns = [*walks(rng, step, 2), *authored(rng, step, 2)]
    for text in [*turns, *mutations(rng, step, turns, 4)]:
        if "duplicate" in str(step.verdict(text)):
            continue
        found = {}
        for dialect in Dialect:
            try:
                found[dialect] = match(step.grammar, text, dialect)
            except UnsupportedConstraint:
                continue
        exact = {result[:2] for dialect, result in found.items() if dialect in (Dialect.LARK, Dialect.REGEX)}
        assert len(exact) <= 1, (text, found, str(step))
        assert all(result.position >= max(p for _, p in exact) for result in found.values()), (text, found, str(step))


def test_a_report_is_for_people() -> None:
    assert match(delta(), SHIP).report(SHIP) == "accepted"
    text = SHIP.replace("Ship", "Xhip")
    assert match(delta(), text).report(text) == (
        'refused at character 56: \'X\' after \'…inventory":{"shelf_2":null}},"action":"\'\n'
        "allowed there: 'M', 'S', 'W'"
    )
    assert "ends too early" in match(delta(), SHIP[:9]).report(SHIP[:9])


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walker.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(EnvironmentProblem, match="transformers"):
        try_out(delta(), Dialect.LARK)


@pytest.mark.parametrize("dialect", Dialect)
def test_a_trial_in_another_process_says_the_same(dialect: Dialect) -> None:
    trial = try_out(delta(), dialect, SHIP)
    assert trial.result == match(delta(), SHIP, dialect)
    assert 0 < trial.compile_s < 10


def test_a_trial_that_takes_too_long_is_ended() -> None:
    """xgrammar takes minutes over a repetition of repetitions that can be read in many ways."""
    grammar = Grammar(Quoted(pattern_node("(a{0,100}){0,100}")))
    with pytest.raises(GrammarError, match="TRIAL_LIMIT_S"):
        try_out(grammar, Dialect.EBNF, f'"{"a" * 100}"', limit_s=0.5)


def test_a_grammar_that_the_library_refuses_is_no_traceback() -> None:
    """llguidance has limits of its own."""
    endless = Alt((Lit("a"), Repeat(Repeat(Chars(((97, 98),)), 1, 9999), 1, 9999)))
    with pytest.raises(GrammarError, match="llguidance"):
        try_out(Grammar(Quoted(endless)), Dialect.LARK, '"' + "a" * 2000)
