"""One step of one domain as the exactness tests see it: its grammar, the validator's word, and the exceptions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from skillstate_local.domains.base import Domain
from skillstate_local.domains.level import Level, Order
from skillstate_local.domains.observation import Facts
from skillstate_local.domains.validate import Rejected, Rules, Verdict, is_decodable, validate
from skillstate_local.errors import GrammarError, UnsupportedConstraint
from skillstate_local.grammar.ir import (
    Alt,
    Array,
    Dialect,
    Excluding,
    Grammar,
    Node,
    Object,
    Quoted,
    Repeat,
    Seq,
    Token,
)
from skillstate_local.grammar.lark import PARAMETER_BITS
from skillstate_local.grammar.sample import sample
from skillstate_local.grammar.turn import GrammarBuilder, GrammarOptions
from skillstate_local.state.canonical import Json
from tests.grammar.matching import matches
from tests.grammar.random_domains import random_domain, random_observation, random_state
from tests.grammar.random_turns import TurnAuthor, mutated

LONG = int(os.environ.get("SKILLSTATE_EXACTNESS", "0"))
"""Examples of each property in the long profile; 0: the quick one, always the same examples."""


def seeds(quick: int) -> Callable[[Any], Any]:
    """Run a property for many seeds: ``quick`` fixed ones, or as many fresh ones as the environment asks for."""

    def decorate(test: Any) -> Any:
        profile = settings(
            max_examples=LONG or quick,
            derandomize=not LONG,
            database=None,
            deadline=None,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=list(HealthCheck),
        )
        return profile(given(seed=st.integers(0, 2**40))(test))

    return decorate


@dataclass(slots=True)
class Step:
    """What is fixed when a turn is decoded. ``grammar`` is None where the step allows no turn."""

    domain: Domain
    state: Json
    facts: Facts
    level: Level
    order: Order
    grammar: Grammar | None

    def verdict(self, text: str) -> Verdict:
        """The validator's judgement under the rules of the step's level."""
        return validate(text, self.domain, self.state, self.facts, Rules(self.level, self.order))

    def valid(self, text: str) -> bool:
        """Whether ``text`` is in V_level and canonical."""
        return is_decodable(self.verdict(text), self.level)

    def disagreement(self, dialect: Dialect, text: str) -> str:
        """What is wrong when the library and the validator differ beyond the documented exceptions; else empty."""
        assert self.grammar is not None
        verdict = self.verdict(text)
        valid, decoded = is_decodable(verdict, self.level), matches(self.grammar, dialect, text)
        if valid == decoded or (decoded and self.excepted(dialect, verdict)):
            return ""
        return f"{dialect} {'accepts' if decoded else 'refuses'} {text!r}, but: {verdict}\n{self}"

    def excepted(self, dialect: Dialect, verdict: Verdict) -> bool:
        """Whether the dialect's documentation says that it lets this through."""
        assert self.grammar is not None
        assert isinstance(verdict, Rejected)
        if "duplicate key" in verdict.message:
            return dialect is Dialect.EBNF or any(map(may_repeat, objects(self.grammar.root)))
        if dialect is Dialect.EBNF:
            endless = self.level is Level.JSON and "more than 200 characters" in verdict.message
            return endless or any(isinstance(node, Excluding) for node in nodes(self.grammar.root))
        return False

    def __str__(self) -> str:
        return f"{self.level} {self.order}\nΣ = {self.state}\nfacts = {self.facts}\n{self.domain}"


def step_at(domain: Domain, state: Json, facts: Facts, level: Level, order: Order = Order.PATCH_FIRST) -> Step:
    """The step of a domain at (Σ_t, O_t)."""
    try:
        grammar = GrammarBuilder(domain, GrammarOptions(level, order)).build(state, facts)
    except GrammarError as error:
        if "no action" not in str(error):
            raise
        grammar = None
    return Step(domain, state, facts, level, order, grammar)


LEVELS = (Level.SCHEMA, Level.DELTA, Level.DELTA, Level.EFFECTS)


def random_step(rng: Random) -> Step:
    """A random domain with a random state and observation, at a random level; rarely `json`, which is slow."""
    domain = random_domain(rng)
    state = random_state(rng, domain)
    facts = domain.facts(random_observation(rng, domain, state))
    level = Level.JSON if rng.random() < 0.02 else rng.choice(LEVELS)
    return step_at(domain, state, facts, level, rng.choice(tuple(Order)))


def authored(rng: Random, step: Step, count: int) -> list[str]:
    """Turns by an author who knows the policies but no grammar."""
    author = TurnAuthor(rng, step.domain, step.state, step.facts)
    return [author.text(step.level, step.order) for _ in range(count)]


def walks(rng: Random, step: Step, count: int) -> list[str]:
    """Random walks through the step's grammar; at level `json` most are too long to be worth their time."""
    assert step.grammar is not None
    texts = (sample(step.grammar.root, rng) for _ in range(count))
    return [text for text in texts if step.level is not Level.JSON or len(text) < 3000]


def mutations(rng: Random, step: Step, texts: list[str], count: int) -> Iterator[str]:
    """Turns with one thing changed; only such as a decoder could produce at all."""
    for _ in range(count):
        text = mutated(rng, rng.choice(texts), step.domain)
        if text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text):
            yield text


def written(step: Step, dialect: Dialect) -> bool:
    """Whether the dialect can express the step's grammar; a refusal is allowed, a weaker grammar is not."""
    assert step.grammar is not None
    try:
        step.grammar.write(dialect)
    except UnsupportedConstraint:
        return False
    return True


def nodes(root: Node) -> Iterator[Node]:
    """Every node of a grammar, each once."""
    seen: set[int] = set()
    waiting: list[Node] = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        match node:
            case Seq(parts) | Alt(parts):
                waiting += parts
            case Quoted(inner) | Token(inner) | Repeat(inner) | Array(inner) | Excluding(inner):
                waiting.append(inner)
            case Object():
                waiting += [variant.value for group in node.groups for variant in group.variants]
                waiting += [variant.keys for group in node.groups for variant in group.variants]


def objects(root: Node) -> Iterator[Object]:
    """Every object of a grammar."""
    return (node for node in nodes(root) if isinstance(node, Object))


def may_repeat(node: Object) -> bool:
    """Whether Lark's documentation says that an object may repeat a key: an open vocabulary, or too many keys."""
    opened = sum(g.maximum for g in node.groups if any(isinstance(v.keys, Quoted) for v in g.variants))
    counts: dict[str, int] = {}
    for group in node.groups:
        for key in group.closed_keys():
            counts[key] = counts.get(key, 0) + group.maximum
    shared = {key for key, count in counts.items() if count > 1}
    flags = sum(group.maximum for group in node.groups)
    colliding = sum(group.maximum for group in node.groups if shared & set(group.closed_keys()))
    return opened > 1 or (len(shared) + flags > PARAMETER_BITS and min(colliding, node.maximum) > 2)
