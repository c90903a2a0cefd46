"""``observations:`` how to read the world's text; and ``examples:``, worked steps for the prompt."""

from __future__ import annotations

from collections.abc import Mapping

from skillstate_local.domains.base import Example
from skillstate_local.domains.findings import Findings
from skillstate_local.domains.limits import MAX_EVENTS, MAX_EXAMPLES, MAX_PATTERN_CHARS, MAX_PROSE_CHARS
from skillstate_local.domains.loader.section import Section
from skillstate_local.domains.loader.yaml_tree import Node, plain
from skillstate_local.domains.observation import Event, ObservationFormat
from skillstate_local.state.canonical import Json


def read_observations(top: Section, findings: Findings) -> ObservationFormat:
    """The format; events that could not be read are left out (and reported)."""
    node = top.need("observations", "Say how to read the world's text; `observations: {events: []}` reads nothing.")
    if node is None:
        return ObservationFormat(())
    section = Section(node, findings, "observations", ("events", "result_prefixes", "noise_header"))
    section.need("events", "List the lines that state a fact; [] if there are none.")
    events = [_event(below, findings) for below in section.items("events", MAX_EVENTS)]
    return ObservationFormat(
        tuple(event for event in events if event is not None),
        section.texts("result_prefixes", MAX_EVENTS),
        section.text("noise_header", at_most=200),
    )


def _event(node: Node, findings: Findings) -> Event | None:
    section = Section(node, findings, "an event", ("name", "pattern", "reports", "description"))
    section.text("description")
    section.need("name")
    section.need("pattern", "Write a regular expression for the whole line.")
    name, pattern = section.text("name", at_most=64), section.text("pattern", at_most=MAX_PATTERN_CHARS)
    reports = section.get("reports")
    if reports is not None and not isinstance(reports.value, Mapping):
        section.error(f"reports must be a patch, this is {reports.kind}", "Write a mapping of fields.", reports)
        return None
    return Event(name, pattern, None if reports is None else plain(reports)) if name and pattern else None


def read_examples(top: Section, findings: Findings) -> tuple[Example, ...]:
    """The worked steps."""
    return tuple(_example(node, findings) for node in top.items("examples", MAX_EXAMPLES))


def _example(node: Node, findings: Findings) -> Example:
    known = ("state", "observation", "patch", "action", "reasoning")
    section = Section(node, findings, "an example", known)
    for word in known[:-1]:
        section.need(word)
    return Example(
        state=object_of(section, "state"),
        observation=section.text("observation"),
        patch=object_of(section, "patch"),
        action=section.text("action"),
        reasoning=section.text("reasoning", at_most=MAX_PROSE_CHARS),
    )


def object_of(section: Section, name: str) -> dict[str, Json]:
    """A member that must be a JSON object, as plain data."""
    node = section.get(name)
    if node is None:
        return {}
    if not isinstance(node.value, Mapping):
        section.error(f"{name} must be a mapping, this is {node.kind}", "Write {} for an empty one.", node)
        return {}
    return {key: plain(below) for key, below in node.value.items()}
