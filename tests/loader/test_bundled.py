"""Bundled domains and the starting file: right by `domain check`, and their examples decodable at every level."""

from __future__ import annotations

import re

import llguidance
import pytest

from skillstate_local.authoring.report import check_built
from skillstate_local.domains.base import Domain, Example
from skillstate_local.domains.catalog import bundled_domain, bundled_names
from skillstate_local.domains.level import Level, Order, effective_order
from skillstate_local.domains.template import new_domain_text
from skillstate_local.domains.turn import write_turn
from skillstate_local.errors import UsageError
from skillstate_local.grammar.ir import Dialect
from skillstate_local.grammar.turn import GrammarBuilder, GrammarOptions
from skillstate_local.state.policy import policy_problems
from skillstate_local.state.validate import state_problems

from .authored import domain_of

NAMES = ("warehouse", "ticket-triage", "intercode-ctf")
_TOKENIZER = llguidance.LLTokenizer("byte")


def _domain(name: str) -> Domain:
    return domain_of(new_domain_text("my-tasks")) if name == "new" else bundled_domain(name)


def _accepts(domain: Domain, example: Example, level: Level, order: Order, turn: str) -> bool:
    builder = GrammarBuilder(domain, GrammarOptions(level, order))
    grammar = builder.build(domain.schema.canonical(example.state), domain.facts(example.observation))
    assert grammar is not None
    lark = llguidance.grammar_from("lark", grammar.write(Dialect.LARK))
    matcher = llguidance.LLMatcher(_TOKENIZER, lark, log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    tokens = _TOKENIZER.tokenize_str(turn)
    return bool(matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting())


def test_catalog() -> None:
    assert set(NAMES) <= set(bundled_names())
    with pytest.raises(UsageError, match="ticket-triage"):
        bundled_domain("ticket-triag")


@pytest.mark.parametrize("name", [*NAMES, "new"])
def test_check_finds_nothing(name: str) -> None:
    report = check_built(_domain(name), name)
    assert report.findings == ()
    assert report.guarantees


@pytest.mark.parametrize("name", [*NAMES, "new"])
@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("level", [level for level in Level if level.constrained])
def test_examples_are_decodable(name: str, level: Level, order: Order) -> None:
    domain = _domain(name)
    assert domain.examples
    for example in domain.examples:
        patch = {} if level is Level.EFFECTS else example.patch
        turn = write_turn(patch, example.action, effective_order(level, order))
        assert _accepts(domain, example, level, order, turn)
        assert not _accepts(domain, example, level, order, turn.replace('"action":', '"acton":'))


def test_paper_fields() -> None:
    members = bundled_domain("intercode-ctf").schema.root.members
    assert list(members) == ["discovered_flags", "tested_hypotheses", "active_files", "working_dir", "cmd_summary"]


def test_a_ticket_lives_by_its_actions() -> None:
    """At `effects` the actions alone carry a ticket from its arrival to the archive, and Σ stays valid."""
    domain = bundled_domain("ticket-triage")
    state = domain.initial_state
    for line, action in (
        ("New ticket T-104 from acme: printer on fire.", "file T-104 acme urgent Printer on fire"),
        ("ben is free and can take T-104.", "triage T-104 printer"),
        ("ben is free and can take T-104.", "assign T-104 ben"),
        ("acme wrote on T-104: still smoking", "ask T-104 Is it unplugged?"),
        ("acme wrote on T-104: yes", "resume T-104"),
        ("ben reports T-104 fixed: new printer", "resolve T-104 ben"),
    ):
        legal, why = domain.legal_action(action, domain.world(state, domain.facts(line)))
        assert legal is not None, why
        state = domain.apply(state, legal.effect)
        assert not list(state_problems(domain.schema, state))
    assert state["tickets"]["T-104"]["log"] == ["Is it unplugged?"]
    assert domain.legal_action("archive T-104", domain.world(state, domain.facts("")))[0] is not None
    assert domain.legal_action("resolve T-104 ana", domain.world(state, domain.facts("")))[0] is None


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ({"tickets": {"T-9": {"status": "resolved"}}}, "not allowed here"),
        ({"tickets": {"T-9": {"customer": "zeta"}}}, "write-once"),
        ({"tickets": {"T-9": {"log": ["replaced"]}}}, "append-only"),
        ({"tickets": {"T-9": {"log": {"+": ["a", "b"]}}}}, ""),
        ({"tickets": {"T-9": {"tags": {"-": ["network"]}}}}, "not in the list"),
        ({"tickets": {"T-8": {"owner": "ana"}}}, "not named"),
        ({"tickets": {"T-9": {"duplicate_of": "T-7"}}}, "not allowed here"),
    ],
)
def test_policies_of_tickets(patch: dict[str, object], why: str) -> None:
    domain = bundled_domain("ticket-triage")
    ticket = {"customer": "acme", "subject": "x", "status": "open", "owner": "ben", "tags": [], "log": []}
    state = {"tickets": {"T-9": ticket, "T-8": ticket | {"customer": "zeta"}}, "handoff": ""}
    world = domain.world(state, domain.facts("acme wrote on T-9: hello"))
    found = [problem.message for problem in policy_problems(domain.schema, patch, world)]
    if why:
        assert re.search(why, " ".join(found))
    else:
        assert found == []  # one item too many is a matter of types, not of policies
