"""The ten classes of BENCH.md: what became of a step, and of its first attempt. Pure functions of the records.

Classes 1 to 6 are about a turn's text on (Σ_t, O_t), 7 to 10 about what the world did with it. The first that matches
counts, so a patch that destroys state is *overwrite/deletion* whether it was refused, executed or even successful:
the score is counted from receipts, never from classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from skillstate_local.analysis.losses import Situation, destroys
from skillstate_local.domains.base import Domain
from skillstate_local.domains.observation import Facts
from skillstate_local.domains.turn import (
    EnvelopeError,
    Turn,
    TurnTextError,
    find_object,
    open_envelope,
    parse_object,
    split_reasoning,
)
from skillstate_local.domains.validate import Stage, reported_world
from skillstate_local.engine.base import StopReason
from skillstate_local.records import AttemptRecord, StepReceipt, StepRecord
from skillstate_local.state.merge import MergeMode


class Outcome(StrEnum):
    """The classes in the order in which they are tried."""

    TRUNCATED = "truncated"
    """The completion stopped at the token limit."""
    SYNTAX = "syntax"
    """No strict JSON object could be read."""
    OVERWRITE = "overwrite/deletion"
    """The envelope is valid and the patch destroys state that the step does not concern (`losses.destroys`)."""
    TYPE = "type"
    """Wrong envelope, unknown field, wrong type, bound or vocabulary."""
    MALFORMED_ACTION = "malformed action"
    """The action fits no template."""
    ILLEGAL = "illegal"
    """Violates preconditions on (Σ_t, O_t): the action's legality, or a policy that refused the patch, such as an
    insertion that is not grounded. Policies are the patch's preconditions; no later class could hold what never ran."""
    REJECTED = "rejected"
    """Legal on Σ_t, refused by the world."""
    WRONG_ACTION = "wrong action"
    """Executed, but the event was not satisfied."""
    WRONG_PATCH = "wrong patch"
    """The event was satisfied, but Σ_{t+1} is not the projection of the world."""
    RIGHT = "right"

    @property
    def failure(self) -> bool:
        """Whether this is anything but right."""
        return self is not Outcome.RIGHT


MALFORMED = (Outcome.TRUNCATED, Outcome.SYNTAX, Outcome.TYPE, Outcome.MALFORMED_ACTION)
"""The classes that a grammar of level `schema` makes impossible."""

_BY_STAGE = {
    Stage.ENVELOPE: Outcome.TYPE,
    Stage.LIMITS: Outcome.TYPE,
    Stage.TYPES: Outcome.TYPE,
    Stage.ACTION_SYNTAX: Outcome.MALFORMED_ACTION,
    Stage.POLICIES: Outcome.ILLEGAL,
    Stage.LEGALITY: Outcome.ILLEGAL,
}


@dataclass(frozen=True, slots=True)
class Classified:
    """A step's two classes and its two flags."""

    first: Outcome
    final: Outcome
    consequence: bool
    """Σ_t was already unlike the world when the step began."""
    void: bool
    """Nothing could satisfy the event, because an earlier one was missed."""

    @property
    def root(self) -> bool:
        """Whether a failure of this step is its own: neither a consequence nor void."""
        return not (self.consequence or self.void)


def classify(domain: Domain, record: StepRecord, merge: MergeMode = MergeMode.DEEP) -> Classified:
    """Class of a step's first attempt and of its end, under the merge mode that its episode ran with."""
    intent = record.intent
    first = first_outcome(domain, record, merge)
    final = first if len(intent.attempts) == 1 else final_outcome(domain, record, merge)
    return Classified(first, final, not intent.faithful, intent.void)


def first_outcome(domain: Domain, record: StepRecord, merge: MergeMode = MergeMode.DEEP) -> Outcome:
    """Class of the first attempt: by its text if it was refused, by text and receipt if it was accepted."""
    return _outcome(domain, record, record.intent.attempts[0], merge)


def final_outcome(domain: Domain, record: StepRecord, merge: MergeMode = MergeMode.DEEP) -> Outcome:
    """Class of the last attempt; a step without any valid attempt, in which the world got no action, has its class."""
    return _outcome(domain, record, record.intent.attempts[-1], merge)


def _outcome(domain: Domain, record: StepRecord, attempt: AttemptRecord, merge: MergeMode) -> Outcome:
    if attempt.stop_reason is StopReason.LENGTH:
        return Outcome.TRUNCATED
    if attempt.stage == Stage.SYNTAX:
        return Outcome.SYNTAX
    facts = domain.facts(record.intent.observation)
    turn = _turn(record, attempt)
    situation = Situation(record.intent.state, facts, record.intent.oracle_patch)
    if turn is not None and destroys(domain, situation, turn, merge):
        return Outcome.OVERWRITE
    if not attempt.accepted:
        return _BY_STAGE[Stage(attempt.stage)]
    return _executed(record.receipt) if _legal(domain, record, facts) else Outcome.ILLEGAL


def _turn(record: StepRecord, attempt: AttemptRecord) -> Turn | None:
    """The turn of an attempt whose object is strict JSON; None when its envelope is wrong.

    A refused one is read again from its text. `find_object` serves every level: constrained text is canonical, so
    the object it finds there is all that follows the reasoning.
    """
    intent = record.intent
    if attempt.accepted:
        return Turn("", intent.patch, str(intent.action))
    try:
        patch, action = open_envelope(parse_object(find_object(attempt.text)))
    except (TurnTextError, EnvelopeError):
        return None
    return Turn(split_reasoning(attempt.text)[0], patch, action)


def _legal(domain: Domain, record: StepRecord, facts: Facts) -> bool:
    """Whether the accepted action is legal on Σ_t, or on Σ_t with what O_t reports.

    Asked again here, because `--validation paper` never asked. The policies of the patch are not: where they are not
    in force a patch against them is judged by what it leads to, classes 3 and 9.
    """
    world = domain.world(record.intent.state, facts)
    worlds = (world, reported_world(domain, world, facts)) if facts.reported else (world,)
    return any(domain.legal_action(str(record.intent.action), known)[0] is not None for known in worlds)


def _executed(receipt: StepReceipt) -> Outcome:
    if not receipt.accepted:
        return Outcome.REJECTED
    if not receipt.success:
        return Outcome.WRONG_ACTION
    return Outcome.RIGHT if receipt.faithful_after else Outcome.WRONG_PATCH
