"""The initial state and the examples: typed, valid at `delta`, spelled canonically."""

from __future__ import annotations

from skillstate_local.domains.base import Domain, Example
from skillstate_local.domains.findings import Findings, shown
from skillstate_local.domains.level import Level, Order
from skillstate_local.domains.limits import MAX_EXAMPLES
from skillstate_local.domains.turn import write_turn
from skillstate_local.domains.validate import Accepted, Rejected, Rules, Stage, validate
from skillstate_local.state.canonical import Json, StrictJsonError, dumps, equal, loads
from skillstate_local.state.diff import pointers, resolve
from skillstate_local.state.validate import state_problems


def check_examples(domain: Domain, findings: Findings) -> None:
    """Check the initial state and every example."""
    _state(domain, domain.initial_state, "/initial_state", findings)
    if len(domain.examples) > MAX_EXAMPLES:
        raise findings.limit("/examples", f"there are {len(domain.examples)} examples", MAX_EXAMPLES)
    if not domain.examples:
        findings.warn("/examples", "there are no examples; models follow a format better when they see one")
    for index, example in enumerate(domain.examples):
        _example(domain, example, f"/examples/{index}", findings)


def _state(domain: Domain, state: Json, pointer: str, findings: Findings) -> bool:
    found = list(state_problems(domain.schema, state))
    for problem in found:
        findings.error(pointer + problem.pointer, f"the state is not valid: {problem.message}")
    return not found


def _example(domain: Domain, example: Example, pointer: str, findings: Findings) -> None:
    if "<" in example.reasoning:
        findings.error(f"{pointer}/reasoning", "reasoning may not contain <", "It would end the reasoning section.")
    if not _state(domain, example.state, f"{pointer}/state", findings):
        return
    try:
        loads(dumps(example.patch))
    except (StrictJsonError, TypeError, ValueError) as error:
        findings.error(f"{pointer}/patch", f"the patch is not JSON: {error}")
        return
    facts = domain.facts(example.observation)
    state = domain.schema.canonical(example.state)
    text = write_turn(example.patch, example.action, Order.PATCH_FIRST, example.reasoning)
    verdict = validate(text, domain, state, facts, Rules(Level.DELTA))
    if isinstance(verdict, Rejected):
        findings.error(*_place(verdict, pointer, example, domain))
    else:
        _effect(domain, state, verdict, pointer, findings)


def _place(verdict: Rejected, pointer: str, example: Example, domain: Domain) -> tuple[str, str, str]:
    seen = domain.facts(example.observation)
    named = ", ".join(f"{name} {word}" for name, words in seen.seen.items() for word in sorted(words))
    hint = f"The observation names {named}." if named else "No event pattern matches a line of the observation."
    if verdict.stage in (Stage.ACTION_SYNTAX, Stage.LEGALITY):
        return f"{pointer}/action", f"the action is refused: {verdict.message}", hint
    if verdict.stage in (Stage.TYPES, Stage.POLICIES):
        return f"{pointer}/patch{verdict.pointer}", f"the patch is refused: {verdict.message}", hint
    return pointer, f"the turn is refused ({verdict.stage.value}): {verdict.message}", ""


def _effect(domain: Domain, state: Json, verdict: Accepted, pointer: str, findings: Findings) -> None:
    """Warn when the action's effect and the example's patch disagree on what the effect sets."""
    after = domain.apply(state, verdict.action.effect)
    for place in sorted(pointers(verdict.action.effect)):
        if not equal(resolve(after, place), resolve(verdict.state, place)):
            said = f"patch and effect of {shown(verdict.action.text)} disagree at {place}"
            findings.warn(f"{pointer}/patch", said, "At level effects the runtime applies the effect.")
