"""The law: L(G_level) = V_level ∩ canonical text, over random domains, states, observations and turns.

``SKILLSTATE_EXACTNESS=2000 pytest tests/grammar/test_exactness.py`` tries as many fresh domains for each property.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from skillstate_local.domains.level import Level
from skillstate_local.grammar.ir import Dialect
from skillstate_local.grammar.measure import longest_bytes
from skillstate_local.state.validate import state_problems
from tests.grammar.steps import authored, mutations, random_step, seeds, walks, written

LIBRARIES = (Dialect.LARK, Dialect.EBNF)


@seeds(120)
def test_random_walks_are_valid_and_within_the_longest_sentence(seed: int) -> None:
    rng = Random(seed)
    step = random_step(rng)
    if step.grammar is None:
        return
    longest = longest_bytes(step.grammar.root)
    for text in walks(rng, step, 12):
        assert step.valid(text), f"{text!r}: {step.verdict(text)}\n{step}"
        assert len(text.encode()) <= longest


@pytest.mark.parametrize("dialect", LIBRARIES)
@seeds(60)
def test_random_walks_are_decodable(dialect: Dialect, seed: int) -> None:
    rng = Random(seed)
    step = random_step(rng)
    if step.grammar is not None and written(step, dialect):
        for text in walks(rng, step, 6):
            assert not step.disagreement(dialect, text)


@pytest.mark.parametrize("dialect", LIBRARIES)
@seeds(120)
def test_turns_are_decodable_exactly_when_they_are_valid(dialect: Dialect, seed: int) -> None:
    rng = Random(seed)
    step = random_step(rng)
    turns = authored(rng, step, 10)
    if step.grammar is None:
        assert not any(map(step.valid, turns)), step
    elif written(step, dialect):
        for text in turns:
            assert not step.disagreement(dialect, text)


@pytest.mark.parametrize("dialect", LIBRARIES)
@seeds(120)
def test_mutations_are_decodable_exactly_when_they_are_valid(dialect: Dialect, seed: int) -> None:
    rng = Random(seed)
    step = random_step(rng)
    if step.grammar is not None and written(step, dialect):
        turns = [*authored(rng, step, 6), *walks(rng, step, 6)]
        for text in mutations(rng, step, turns, 30):
            assert not step.disagreement(dialect, text)


@seeds(120)
def test_an_accepted_patch_leads_to_a_state_that_the_schema_allows(seed: int) -> None:
    rng = Random(seed)
    step = random_step(rng)
    if step.level is Level.DELTA and step.grammar is not None:
        for text in [*authored(rng, step, 10), *walks(rng, step, 5)]:
            verdict = step.verdict(text)
            if step.valid(text):
                problems = list(state_problems(step.domain.schema, verdict.state))  # type: ignore[union-attr]
                assert not problems, f"{text}: {problems}\n{step}"


def test_the_generators_meet_both_outcomes_at_every_level() -> None:
    """Otherwise the properties above would say nothing."""
    outcomes: Counter[tuple[Level, str, bool]] = Counter()
    for seed in range(60):
        rng = Random(seed)
        step = random_step(rng)
        turns = authored(rng, step, 10)
        for text in turns:
            outcomes[step.level, "authored", step.valid(text)] += 1
        for text in mutations(rng, step, turns, 20):
            outcomes[step.level, "mutated", step.valid(text)] += 1
    for level in (Level.SCHEMA, Level.DELTA, Level.EFFECTS):
        for origin in ("authored", "mutated"):
            kept, refused = outcomes[level, origin, True], outcomes[level, origin, False]
            assert kept > 0.05 * (kept + refused), (level, origin, kept, refused)
            assert refused > 0.05 * (kept + refused), (level, origin, kept, refused)
