"""The one validation pipeline: parse → envelope → types → policies → legality. It runs after every decoding.

What a level's grammar can decode is exactly what this pipeline accepts up to that level's stage, in canonical text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from skillstate_local.domains.action import Action
from skillstate_local.domains.base import Domain
from skillstate_local.domains.level import Level, Order, Validation, effective_order
from skillstate_local.domains.observation import Facts
from skillstate_local.domains.turn import (
    EnvelopeError,
    Turn,
    TurnTextError,
    find_object,
    open_envelope,
    parse_object,
    split_reasoning,
    write_turn,
)
from skillstate_local.state.canonical import Json, dumps, equal, is_canonical
from skillstate_local.state.diff import leaves, nest, overlapping, pointers
from skillstate_local.state.merge import MergeMode
from skillstate_local.state.policy import policy_problems
from skillstate_local.state.source import World
from skillstate_local.state.validate import Problem, patch_problems


class Stage(StrEnum):
    """Where validation ended; the stages in the order they are passed."""

    TRUNCATED = "truncated"
    SYNTAX = "syntax"
    ENVELOPE = "envelope"
    LIMITS = "limits"
    TYPES = "types"
    ACTION_SYNTAX = "action syntax"
    POLICIES = "policies"
    LEGALITY = "legality"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A valid turn, the action it means and the state it leads to."""

    turn: Turn
    action: Action
    patch: Json
    """What Σ was changed by: the turn's patch, and at `effects` the residual followed by the action's effect."""
    state: Json


@dataclass(frozen=True, slots=True)
class Rejected:
    """Why a turn was refused. ``turn`` is there once the envelope was readable."""

    stage: Stage
    pointer: str
    message: str
    turn: Turn | None = None

    @property
    def feedback(self) -> str:
        """One line for the model's next attempt."""
        where = f" at {self.pointer}" if self.pointer else ""
        return f"Rejected ({self.stage.value}{where}): {self.message}."


Verdict = Accepted | Rejected


_LATER: Mapping[Level, frozenset[Stage]] = {
    Level.JSON: frozenset({Stage.TYPES, Stage.ACTION_SYNTAX, Stage.POLICIES, Stage.LEGALITY}),
    Level.SCHEMA: frozenset({Stage.POLICIES, Stage.LEGALITY}),
}
"""Stages that come after what a level's grammar promises."""


def is_decodable(verdict: Verdict, level: Level) -> bool:
    """Whether the grammar of ``level`` lets a turn with this verdict through: the law that both sides are tested for.

    The verdict must come from the rules of the same level, the turn must be canonical text.
    """
    return isinstance(verdict, Accepted) or verdict.stage in _LATER.get(level, ())


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """Bounds of level `json`, where no schema gives any; every level shares them."""

    depth: int = 5
    members: int = 16
    string_chars: int = 200
    number_digits: int = 15


JSON_LIMITS = JsonLimits()


@dataclass(frozen=True, slots=True)
class Rules:
    """How turns are judged in one episode."""

    level: Level = Level.FREE
    order: Order = Order.PATCH_FIRST
    merge: MergeMode = MergeMode.DEEP
    validation: Validation = Validation.FULL


def validate(text: str, domain: Domain, state: Json, facts: Facts, rules: Rules) -> Verdict:
    """Judge what a model wrote, given Σ_t and the facts of O_t. Never raises for anything a model can write."""
    reasoning, _ = split_reasoning(text)
    try:
        value = parse_object(_object_text(text, rules))
        patch, action_text = open_envelope(value)
    except TurnTextError as error:
        return Rejected(Stage.SYNTAX, "", str(error))
    except EnvelopeError as error:
        return Rejected(Stage.ENVELOPE, "", str(error))
    turn = Turn(reasoning, patch, action_text)
    return judge(turn, domain, state, facts, rules)


def judge(turn: Turn, domain: Domain, state: Json, facts: Facts, rules: Rules) -> Verdict:
    """The stages after the envelope, for a turn that is already parsed."""
    for stage, problems in _stages(turn, domain, state, facts, rules):
        problem = next(problems, None)
        if problem is not None:
            return Rejected(stage, problem.pointer, problem.message, turn)
    world = domain.world(state, facts)
    action, reason = _action(turn, domain, world, facts, rules)
    if action is None:
        return Rejected(Stage.LEGALITY, "/action", reason, turn)
    if rules.level is Level.EFFECTS:
        return _with_effect(turn, action, domain, state)
    return Accepted(turn, action, turn.patch, domain.apply(state, turn.patch, rules.merge))


def _stages(
    turn: Turn, domain: Domain, state: Json, facts: Facts, rules: Rules
) -> Iterator[tuple[Stage, Iterator[Problem]]]:
    if rules.level is Level.JSON:
        yield Stage.LIMITS, limit_problems(turn)
    yield Stage.TYPES, patch_problems(domain.schema, turn.patch)
    yield Stage.ACTION_SYNTAX, _malformed(turn, domain)
    if rules.level is Level.EFFECTS:
        yield Stage.POLICIES, residual_problems(turn, domain, facts)
    elif rules.validation is Validation.FULL:
        yield Stage.POLICIES, policy_problems(domain.schema, turn.patch, domain.world(state, facts))


def _malformed(turn: Turn, domain: Domain) -> Iterator[Problem]:
    if not domain.readings(turn.action):
        names = ", ".join(template.template for template in domain.actions)
        yield Problem("/action", f"{turn.action[:80]!r} fits no action; known: {names}")


def _action(turn: Turn, domain: Domain, world: World, facts: Facts, rules: Rules) -> tuple[Action | None, str]:
    if rules.validation is Validation.PAPER and rules.level is not Level.EFFECTS:
        return domain.readings(turn.action)[0], ""
    residual = turn.patch if rules.level is Level.EFFECTS else None
    action, reason = domain.legal_action(turn.action, world, residual)
    if action is None and facts.reported:
        action, _ = domain.legal_action(turn.action, reported_world(domain, world, facts), residual)
    return action, reason


def reported_world(domain: Domain, world: World, facts: Facts) -> World:
    """The step as O_t's reported facts would have it: an action that is legal there can be known to be."""
    state = world.state
    for pointer, value in facts.reported:
        state = domain.apply(state, nest(pointer, value))
    return World(state, world.seen, world.closed)


def residual_problems(turn: Turn, domain: Domain, facts: Facts) -> Iterator[Problem]:
    """At `effects` the patch may hold only facts that O_t reports, none of which the action's effect touches.

    An action that can be read in several ways passes if one reading does; that reading is the one carried out.
    """
    reported = dict(facts.reported)
    for pointer, value in leaves(turn.patch):
        if pointer and not (pointer in reported and equal(reported[pointer], value)):
            yield Problem(pointer, "the observation does not report this")
    residual = pointers(turn.patch)
    clashes = [overlapping(residual, pointers(action.effect)) for action in domain.readings(turn.action)]
    for pointer in sorted(clashes[0]) if clashes and all(clashes) else ():
        yield Problem(pointer, "the action's own effect sets this")


def limit_problems(turn: Turn) -> Iterator[Problem]:
    """Violations of the bounds of level `json`."""
    if len(turn.action) > JSON_LIMITS.string_chars:
        yield Problem("/action", f"more than {JSON_LIMITS.string_chars} characters")
    yield from _over(turn.patch, JSON_LIMITS.depth, "")


def _over(value: Json, depth: int, at: str) -> Iterator[Problem]:
    if isinstance(value, (dict, list)):
        if depth == 0:
            yield Problem(at, f"nested deeper than {JSON_LIMITS.depth} levels")
        elif len(value) > JSON_LIMITS.members:
            yield Problem(at, f"more than {JSON_LIMITS.members} members")
        else:
            for key, member in value.items() if isinstance(value, dict) else enumerate(value):
                if len(str(key)) > JSON_LIMITS.string_chars:
                    yield Problem(at, f"a key of more than {JSON_LIMITS.string_chars} characters")
                yield from _over(member, depth - 1, f"{at}/{key}")
    elif isinstance(value, str):
        if len(value) > JSON_LIMITS.string_chars:
            yield Problem(at, f"more than {JSON_LIMITS.string_chars} characters")
    elif value is not None and not isinstance(value, bool):
        whole, _, fraction = dumps(value).lstrip("-").partition(".")
        if max(len(whole), len(fraction)) > JSON_LIMITS.number_digits:
            yield Problem(at, f"a number of more than {JSON_LIMITS.number_digits} digits")


def _object_text(text: str, rules: Rules) -> str:
    if not rules.level.constrained:
        return find_object(text)
    _, rest = split_reasoning(text)
    if not is_canonical(rest):
        raise TurnTextError("the text is not canonical, although a grammar was in force")
    value = parse_object(rest)
    try:
        patch, action = open_envelope(value)
    except EnvelopeError:
        return rest
    if rest != write_turn(patch, action, effective_order(rules.level, rules.order)):
        raise TurnTextError("the keys are not in the agreed order, although a grammar was in force")
    return rest


def _with_effect(turn: Turn, action: Action, domain: Domain, state: Json) -> Accepted:
    informed = domain.apply(state, turn.patch)
    final = domain.apply(informed, action.effect)
    return Accepted(turn, action, {"residual": turn.patch, "effect": action.effect}, final)
