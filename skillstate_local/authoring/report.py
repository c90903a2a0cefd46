"""`domain check`: everything found in a domain, and what its grammars guarantee."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from skillstate_local.authoring.guarantees import Guarantee, guarantees, oversized
from skillstate_local.domains.base import Domain
from skillstate_local.domains.catalog import bundled_domain, domain_file
from skillstate_local.domains.check import check_domain
from skillstate_local.domains.findings import Finding, Findings, Severity, Stop
from skillstate_local.domains.level import Level
from skillstate_local.domains.limits import MAX_JOINT_PAIRS
from skillstate_local.domains.loader.load import read_domain
from skillstate_local.domains.loader.yaml_tree import line_at, read_text, read_tree
from skillstate_local.errors import SkillStateError, UnsupportedConstraint
from skillstate_local.grammar.ir import Dialect, Grammar
from skillstate_local.grammar.turn import GrammarBuilder, GrammarOptions
from skillstate_local.state.canonical import Json


@dataclass(frozen=True, slots=True)
class Unwritable:
    """A grammar that one dialect cannot express."""

    level: str
    dialect: str
    reason: str


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What `domain check` says. ``guarantees`` is empty while there are errors."""

    source: str
    domain: str
    findings: tuple[Finding, ...]
    guarantees: tuple[Guarantee, ...] = ()
    unwritable: tuple[Unwritable, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is no error; warnings are allowed."""
        return not self.errors

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that make the domain unusable."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)

    def as_json(self) -> Json:
        """The report as plain JSON."""
        return {"ok": self.ok} | asdict(self)


def check_named(name: str) -> CheckReport:
    """The report on a bundled domain or a file. Raises UsageError when there is neither."""
    file = domain_file(name)
    return check_file(file) if file is not None else check_built(bundled_domain(name), name)


def check_file(file: Path) -> CheckReport:
    """The report on a domain file. Raises DomainError only when it cannot be read."""
    text = read_text(file)
    loaded = read_domain(text)
    if loaded.domain is None:
        return CheckReport(str(file), "", loaded.findings)
    root = read_tree(text, Findings())
    findings = Findings(lambda pointer: line_at(root, pointer) if root is not None else 0)
    return _with_grammars(loaded.domain, str(file), loaded.findings, findings)


def check_built(domain: Domain, source: str) -> CheckReport:
    """The report on a domain that Python built."""
    found = tuple(check_domain(domain))
    if any(finding.severity is Severity.ERROR for finding in found):
        return CheckReport(source, domain.name, found)
    return _with_grammars(domain, source, found, Findings())


def _with_grammars(domain: Domain, source: str, found: tuple[Finding, ...], findings: Findings) -> CheckReport:
    for pointer, why in oversized(domain.schema):
        findings.error(pointer, f"the grammar cannot be written: {why}", "Lower the bound.")
    unwritable: dict[tuple[str, str], Unwritable] = {}
    try:
        if not findings.failed:
            for place in _grammars(domain, findings):
                unwritable.setdefault((place.level, place.dialect), place)
    except Stop:
        pass
    everything = (*findings, *found)
    if findings.failed:
        return CheckReport(source, domain.name, everything)
    return CheckReport(source, domain.name, everything, guarantees(domain), tuple(unwritable.values()))


def _grammars(domain: Domain, findings: Findings) -> Iterator[Unwritable]:
    """Build the grammar of every level at the initial state and at each example."""
    steps: list[tuple[str, Json, str]] = [("/initial_state", domain.initial_state, "")]
    steps += [(f"/examples/{i}/state", example.state, example.observation) for i, example in enumerate(domain.examples)]
    builders = {level: GrammarBuilder(domain, GrammarOptions(level)) for level in Level if level.constrained}
    for pointer, state, observation in steps:
        state, facts = domain.schema.canonical(state), domain.facts(observation)
        world = domain.world(state, facts)
        for action in domain.actions:
            pairs = 1
            for entry in action.joint:
                pairs *= max(1, len(entry.pairs(world)))
            if pairs > MAX_JOINT_PAIRS:
                raise findings.limit(pointer, f"{action.template!r} binds {pairs:,} combinations", MAX_JOINT_PAIRS)
        for level, builder in builders.items():
            try:
                grammar = builder.build(state, facts)
                assert grammar is not None
                grammar.write(Dialect.LARK)
                yield from _other_dialects(grammar, level)
            except SkillStateError as error:
                findings.error(pointer, f"no grammar at level {level.value}: {error.message}", error.hint)


def _other_dialects(grammar: Grammar, level: Level) -> Iterator[Unwritable]:
    for dialect in (Dialect.EBNF, Dialect.GBNF):
        try:
            grammar.write(dialect)
        except UnsupportedConstraint as error:
            yield Unwritable(level.value, dialect.value, error.message)


def render_report(report: CheckReport) -> str:
    """The report as text for a terminal."""
    lines = [line for finding in report.findings for line in _finding(report.source, finding)]
    errors, warnings = len(report.errors), len(report.findings) - len(report.errors)
    verdict = "is right" if report.ok else "has mistakes"
    counts = f"{_count(errors, 'error')}, {_count(warnings, 'warning')}"
    lines.append(f"{report.domain or report.source} {verdict}: {counts}.")
    if report.guarantees:
        lines += ["", "What the grammar guarantees, field by field:"]
        lines += [line for guarantee in report.guarantees for line in _guarantee(guarantee)]
        lines += ["", *_dialects(report)]
    return "\n".join(lines)


def _finding(source: str, finding: Finding) -> list[str]:
    line = f":{finding.line}" if finding.line else ""
    place = f" (at {finding.pointer})" if finding.pointer else ""
    said = f"{source}{line}: {finding.severity.value}: {finding.message}{place}"
    return [said, f"    {finding.hint}"] if finding.hint else [said]


def _guarantee(guarantee: Guarantee) -> list[str]:
    lines = [
        f"  {guarantee.path}",
        f"    schema   {guarantee.schema}",
        f"    delta    {guarantee.delta}",
        f"    effects  {guarantee.effects}",
    ]
    return lines + [f"    only validation catches: {what}" for what in guarantee.validation_alone]


def _dialects(report: CheckReport) -> list[str]:
    if not report.unwritable:
        return ["The grammar of every level can be written in Lark (llguidance), EBNF (xgrammar) and GBNF (llama.cpp)."]
    return [f"Not in {place.dialect.upper()} at {place.level}: {place.reason}." for place in report.unwritable]


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
