"""A written world: a YAML file of observations with the right action for each, for a domain without a simulator.

It is open-loop: every step shows its written observation whatever the agent did before. An action is accepted if it is
legal in the world, and succeeds if it is the right one; free-text arguments may be worded differently. The world then
becomes what the successful action, or else the right turn, makes of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from skillstate_local.domains.action import Action
from skillstate_local.domains.base import Domain
from skillstate_local.domains.catalog import find_domain
from skillstate_local.domains.findings import Finding, Findings, Stop
from skillstate_local.domains.loader.load import as_error
from skillstate_local.domains.loader.observations import object_of
from skillstate_local.domains.loader.section import Section
from skillstate_local.domains.loader.yaml_tree import Node, line_at, read_text, read_tree
from skillstate_local.environments.base import OracleTurn, Receipt
from skillstate_local.errors import UsageError
from skillstate_local.state.canonical import Json
from skillstate_local.state.schema import Text
from skillstate_local.state.validate import patch_problems

MAX_STEPS = 1_000


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """One observation and the right turn for it. ``patch`` None: the action's own effect."""

    observation: str
    action: str
    patch: Json = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A domain and the steps of its written world."""

    domain: Domain
    steps: tuple[ScenarioStep, ...]
    text: str
    """The file as it was read; it belongs to a run's configuration."""


def load_scenario(file: Path) -> Scenario:
    """Read a scenario file. Raises DomainError with file, line and pointer of the first mistake."""
    text = read_text(file)
    roots: list[Node] = []
    findings = Findings(lambda pointer: line_at(roots[0], pointer) if roots else 0)
    try:
        root = read_tree(text, findings)
        if root is None:
            findings.error("", "the file is empty", "Write `domain: NAME` and `steps:`.", 1)
            raise Stop
        roots.append(root)
        scenario = _read(root, findings, file, text)
    except Stop:
        scenario = None
    if scenario is None or findings.failed:
        raise as_error(file, _first(findings))
    return scenario


def _first(findings: Findings) -> list[Finding]:
    return sorted(findings, key=lambda finding: finding.line)[:1]


def _read(root: Node, findings: Findings, file: Path, text: str) -> Scenario | None:
    top = Section(root, findings, "a scenario", ("domain", "steps"))
    top.need("domain", "Name a bundled domain, or a domain file relative to this one.")
    top.need("steps")
    name = top.text("domain")
    nodes = top.items("steps", MAX_STEPS)
    if not nodes:
        top.error("a scenario needs at least one step")
    if not name or findings.failed:
        return None
    beside = file.parent / name
    domain = find_domain(str(beside) if beside.is_file() else name)
    steps = tuple(_step(node, findings) for node in nodes)
    if not findings.failed:
        _check(domain, steps, nodes, findings)
    return Scenario(domain, steps, text)


def _step(node: Node, findings: Findings) -> ScenarioStep:
    section = Section(node, findings, "a step", ("observation", "action", "patch"))
    section.need("observation")
    section.need("action", "Write the right action; the score counts it.")
    patch = object_of(section, "patch") if "patch" in section else None
    return ScenarioStep(section.text("observation"), section.text("action"), patch)


def _check(domain: Domain, steps: tuple[ScenarioStep, ...], nodes: tuple[Node, ...], findings: Findings) -> None:
    """Play the right turns once: each must be legal in the world that those before it lead to."""
    state = domain.initial_state
    for step, node in zip(steps, nodes, strict=True):
        for problem in patch_problems(domain.schema, step.patch or {}):
            findings.error(f"{node.pointer}/patch{problem.pointer}", problem.message, line=node.line)
        action, reason = domain.legal_action(step.action, domain.world(state, domain.facts(step.observation)))
        if action is None:
            findings.error(f"{node.pointer}/action", f"the right action {step.action!r} is not legal here: {reason}")
            return
        state = domain.apply(state, action.effect if step.patch is None else step.patch)


class ScenarioEnvironment:
    """Plays a scenario; ``horizon`` None means all of it. Raises UsageError for a horizon beyond its end."""

    def __init__(self, scenario: Scenario, horizon: int | None = None) -> None:
        length = len(scenario.steps)
        if horizon is not None and not 1 <= horizon <= length:
            raise UsageError(
                f"--horizon {horizon} is out of range.", f"This scenario has {length} steps: 1 to {length}."
            )
        self._scenario = scenario
        self._horizon = horizon or length
        self._step = 0
        self._state = scenario.domain.schema.canonical(scenario.domain.initial_state)

    @property
    def domain(self) -> Domain:
        return self._scenario.domain

    @property
    def horizon(self) -> int:
        return self._horizon

    @property
    def initial_state(self) -> Json:
        return self.domain.schema.canonical(self.domain.initial_state)

    @property
    def events(self) -> tuple[str, ...]:
        return tuple(step.observation for step in self._scenario.steps[: self._horizon])

    @property
    def void(self) -> bool:
        """Never: what is written happens."""
        return False

    def observe(self) -> str:
        return self._now.observation

    def oracle(self) -> OracleTurn:
        step = self._now
        return OracleTurn(self._effect(step.action) if step.patch is None else step.patch, step.action)

    def projection(self) -> Json:
        return self._state

    def execute(self, action: str | None) -> Receipt:
        done, refusal = self._legal(action) if action is not None else (None, "no valid action was given")
        right, _ = self._legal(self._now.action)
        success = done is not None and right is not None and _same(done, right)
        own = success and done is not None and self._now.patch is None
        self._state = self.domain.apply(self._state, done.effect if own and done else self.oracle().patch)
        self._step += 1
        return Receipt(done is not None, success, refusal or "accepted")

    @property
    def _now(self) -> ScenarioStep:
        return self._scenario.steps[self._step]

    def _legal(self, text: str) -> tuple[Action | None, str]:
        world = self.domain.world(self._state, self.domain.facts(self._now.observation))
        return self.domain.legal_action(text, world)

    def _effect(self, text: str) -> Json:
        action, _ = self._legal(text)
        return {} if action is None else action.effect


def _same(done: Action, right: Action) -> bool:
    """The same command with the same arguments, free text apart."""
    fixed = [name for name, argument in right.template.arguments.items() if not isinstance(argument.type, Text)]
    return done.template is right.template and all(done.words[name] == right.words[name] for name in fixed)
