"""Observations: event patterns are safe, name vocabularies, and report facts that Σ can hold."""

from __future__ import annotations

import re

from skillstate_local.domains.base import Domain
from skillstate_local.domains.check.actions import check_placeholders
from skillstate_local.domains.check.samples import sample_words, unfilled
from skillstate_local.domains.findings import Findings, nearest, shown
from skillstate_local.domains.limits import MAX_EVENTS
from skillstate_local.domains.observation import Event, fill, vocabulary_of
from skillstate_local.domains.regex import RegexProblem, shape_of
from skillstate_local.state.schema import Id
from skillstate_local.state.validate import patch_problems


def check_observations(domain: Domain, findings: Findings) -> None:
    """Check every event."""
    events = domain.observations.events
    if len(events) > MAX_EVENTS:
        raise findings.limit("/observations/events", f"there are {len(events)} events", MAX_EVENTS)
    names: set[str] = set()
    for index, event in enumerate(events):
        pointer = f"/observations/events/{index}"
        if event.name in names:
            findings.error(f"{pointer}/name", f"another event is called {shown(event.name)} too")
        names.add(event.name)
        _event(domain, event, pointer, findings)


def _event(domain: Domain, event: Event, pointer: str, findings: Findings) -> None:
    try:
        shape = shape_of(event.pattern)
    except RegexProblem as problem:
        said = f"pattern {shown(event.pattern)}: {problem.message}"
        findings.error(f"{pointer}/pattern", said, problem.hint)
        return
    groups = tuple(re.compile(event.pattern, re.ASCII).groupindex)
    vocabularies = domain.schema.vocabularies
    unknown = [group for group in groups if vocabulary_of(group) not in vocabularies]
    for group in unknown:
        said = f"the group {shown(group)} names no vocabulary"
        hint = f"{nearest(vocabulary_of(group), vocabularies)} Two of one kind: (?P<shelf__from>…), (?P<shelf__to>…)."
        findings.error(f"{pointer}/pattern", said, hint)
    if domain.observations.result_prefixes and shape.shortest.startswith(domain.observations.result_prefixes):
        findings.warn(f"{pointer}/pattern", "lines of this event begin with a result prefix and are never read")
    if event.reports is not None and not unknown:
        _reports(domain, event, groups, f"{pointer}/reports", findings)


def _reports(domain: Domain, event: Event, groups: tuple[str, ...], pointer: str, findings: Findings) -> None:
    if check_placeholders(event.reports, groups, "group of the pattern", pointer, findings):
        return
    words = {group: sample_words(domain.schema, Id(vocabulary_of(group)))[0] for group in groups}
    for problem in patch_problems(domain.schema, fill(event.reports, words)):
        place = pointer + unfilled(event.reports, words, problem.pointer)
        findings.error(place, f"the report does not fit the state: {problem.message}")
