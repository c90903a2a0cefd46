"""Builds the grammar of one turn from the domain, Σ_t and O_t. This is where the project's idea lives.

`json` and `schema` depend on the domain alone. `delta` and `effects` are written anew for each step: only entries
that exist can be deleted, only absent ones inserted, only what the step concerns changed, and only actions that are
legal on Σ_t named. Both sides of every rule, decoding here and validation there, ask the same `state.policy`.
"""

from __future__ import annotations

from dataclasses import dataclass

from skillstate_local.domains.base import Domain
from skillstate_local.domains.level import Level, Order, effective_order
from skillstate_local.domains.observation import NO_FACTS, Facts
from skillstate_local.domains.turn import ACTION_KEY, PATCH_KEY
from skillstate_local.domains.validate import JSON_LIMITS, reported_world
from skillstate_local.errors import GrammarError
from skillstate_local.grammar.action import legal_actions, well_formed_actions
from skillstate_local.grammar.check import check_limits
from skillstate_local.grammar.ir import (
    Alt,
    Array,
    Chars,
    Grammar,
    Group,
    Lit,
    Node,
    Object,
    Quoted,
    Repeat,
    Seq,
    Token,
    Variant,
)
from skillstate_local.grammar.patch import delta_patch, schema_patch
from skillstate_local.grammar.residual import effects_turn
from skillstate_local.grammar.text import any_character
from skillstate_local.state.canonical import Json


@dataclass(frozen=True, slots=True)
class GrammarOptions:
    """What of a grammar an experiment chooses; the rest follows from the domain and the step."""

    level: Level
    order: Order = Order.PATCH_FIRST
    reasoning_tokens: int = 0


class GrammarBuilder:
    """Builds the grammars of one domain; static ones are built once.

    Both raise GrammarError, naming the limit, for a grammar that is too large (``check.py``); ``build`` also when the
    step allows no turn at all.
    """

    def __init__(self, domain: Domain, options: GrammarOptions) -> None:
        self.domain = domain
        self.options = options
        self._static = self._build_static() if options.level.static else None

    def build(self, state: Json, facts: Facts = NO_FACTS) -> Grammar | None:
        """The grammar of the step at (Σ_t, O_t); None at level `free`, and only there."""
        if not self.options.level.constrained:
            return None
        return self._static if self._static is not None else self._build_step(state, facts)

    def _build_static(self) -> Grammar:
        if self.options.level is Level.JSON:
            body = self._ordered(json_object(JSON_LIMITS.depth), json_string())
        else:
            body = self._ordered(schema_patch(self.domain), well_formed_actions(self.domain))
        return self._grammar(body, static=True)

    def _build_step(self, state: Json, facts: Facts) -> Grammar:
        world = self.domain.world(state, facts)
        worlds = (world, reported_world(self.domain, world, facts)) if facts.reported else (world,)
        if self.options.level is Level.EFFECTS:
            return self._grammar(effects_turn(self.domain, worlds, facts))
        action = legal_actions(self.domain, worlds)
        if action is None:
            raise GrammarError(f"no action of {self.domain.name} is legal in this state")
        return self._grammar(self._ordered(delta_patch(self.domain, world), action))

    def _ordered(self, patch: Node, action: Node) -> Node:
        first = effective_order(self.options.level, self.options.order) is Order.PATCH_FIRST
        (a, left), (b, right) = (
            ((PATCH_KEY, patch), (ACTION_KEY, action)) if first else ((ACTION_KEY, action), (PATCH_KEY, patch))
        )
        return Seq((Lit(f'{{"{a}":'), left, Lit(f',"{b}":'), right, Lit("}")))

    def _grammar(self, root: Node, *, static: bool = False) -> Grammar:
        label = f"{self.domain.name} {self.options.level.value}"
        grammar = Grammar(root, self.options.reasoning_tokens, static, label, self.options.level is Level.JSON)
        check_limits(grammar)
        return grammar


def json_string() -> Quoted:
    """Any JSON string within the limits of level `json`."""
    return Quoted(Repeat(any_character(), 0, JSON_LIMITS.string_chars))


def json_object(depth: int) -> Node:
    """Any JSON object nested at most ``depth`` deep, within the limits of level `json`."""
    members = JSON_LIMITS.members
    return Object((Group((Variant(json_string(), _json_value(depth - 1)),), 0, members),), members)


def _json_value(depth: int) -> Node:
    """Scalars, and at ``depth`` above 0 containers whose own values nest one level less."""
    options: list[Node] = [json_string(), _json_number(), Lit("true"), Lit("false"), Lit("null")]
    if depth > 0:
        options += [json_object(depth), Array(_json_value(depth - 1), 0, JSON_LIMITS.members)]
    return Alt(tuple(options))


def _json_number() -> Node:
    """Canonical integers and decimals without exponent; never minus zero."""
    digits = JSON_LIMITS.number_digits
    digit, nonzero = Chars(((48, 57),)), Chars(((49, 57),))
    whole = Seq((nonzero, Repeat(digit, 0, digits - 1)))
    fraction = Repeat(Seq((Lit("."), Repeat(digit, 1, digits))), 0, 1)
    below_one = [
        Seq((Lit("0." + "0" * zeros), nonzero, Repeat(digit, 0, digits - zeros - 1))) for zeros in range(digits)
    ]
    negative = Alt((Seq((whole, fraction)), *below_one))
    return Token(Alt((Seq((Alt((Lit("0"), whole)), fraction)), Seq((Lit("-"), negative)))))
