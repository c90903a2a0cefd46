"""Reads a domain file into the same ``Domain`` that Python authoring builds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from skillstate_local.domains.base import Domain
from skillstate_local.domains.check import domain_findings
from skillstate_local.domains.findings import Finding, Findings, Severity, Stop, shown
from skillstate_local.domains.limits import MAX_PROSE_CHARS
from skillstate_local.domains.loader.actions import ActionReader
from skillstate_local.domains.loader.observations import object_of, read_examples, read_observations
from skillstate_local.domains.loader.schema import SchemaReader
from skillstate_local.domains.loader.section import Section
from skillstate_local.domains.loader.vocabularies import read_vocabularies
from skillstate_local.domains.loader.yaml_tree import Node, line_at, read_text, read_tree
from skillstate_local.errors import DomainError
from skillstate_local.state.schema import Schema

TOP = ("name", "vocabularies", "state", "observations", "actions", "instructions", "examples", "initial_state")
NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
MAX_NAME = 64


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a file gave: a domain, unless there was an error, and everything found on the way."""

    domain: Domain | None
    findings: tuple[Finding, ...]


def load_domain(file: Path) -> Domain:
    """The domain of a file. Raises DomainError with file, line and pointer of the first mistake."""
    loaded = read_domain(read_text(file))
    errors = [finding for finding in loaded.findings if finding.severity is Severity.ERROR]
    if loaded.domain is None or errors:
        raise as_error(file, errors)
    return loaded.domain


def as_error(file: Path, errors: list[Finding]) -> DomainError:
    """The first of several mistakes as an exception."""
    first = errors[0]
    line = f":{first.line}" if first.line else ""
    more = f" {len(errors) - 1} more: `domain check {file}` lists them." if len(errors) > 1 else ""
    return DomainError(f"{file}{line}: {first.message}", first.hint + more, first.pointer)


def read_domain(text: str) -> Loaded:
    """The domain that a YAML text describes, checked; every mistake becomes a finding, none an exception."""
    lines: list[Node] = []
    findings = Findings(lambda pointer: line_at(lines[0], pointer) if lines else 0)
    domain: Domain | None = None
    try:
        root = read_tree(text, findings)
        if root is None:
            findings.error("", "the file is empty", "`domain new NAME` writes one to start from.", 1)
            raise Stop
        lines.append(root)
        domain = _domain(root, findings)
        if domain is not None and not findings.failed:
            domain_findings(domain, findings)
    except Stop:
        domain = None
    found = sorted(findings, key=lambda finding: (finding.severity is not Severity.ERROR, finding.line))
    return Loaded(None if findings.failed else domain, tuple(found))


def _domain(root: Node, findings: Findings) -> Domain | None:
    top = Section(root, findings, "a domain", TOP)
    for word in ("name", "state", "actions", "instructions"):
        top.need(word)
    vocabularies = read_vocabularies(top, findings)
    schemas = SchemaReader(findings, vocabularies)
    state = top.get("state")
    record = None if state is None else schemas.state(state)
    actions = ActionReader(findings, vocabularies, schemas).actions(top)
    observations = read_observations(top, findings)
    examples = read_examples(top, findings)
    name, instructions = _name(top), top.text("instructions", at_most=MAX_PROSE_CHARS).rstrip("\n")
    initial = object_of(top, "initial_state")
    if record is None or findings.failed:
        return None
    return Domain(name, Schema(record, vocabularies), actions, observations, instructions, examples, initial)


def _name(top: Section) -> str:
    name = top.text("name")
    if name and not is_name(name):
        top.error(f"{shown(name)} cannot name a domain", "Use lower-case letters, digits and hyphens.", top.get("name"))
    return name


def is_name(name: str) -> bool:
    """Whether a domain may have this name."""
    return len(name) <= MAX_NAME and NAME.fullmatch(name) is not None
