"""``vocabularies:`` named sets of ids, listed, counted or described by a pattern."""

from __future__ import annotations

import re

from skillstate_local.domains.findings import Findings, shown
from skillstate_local.domains.limits import (
    MAX_GRAMMAR_WORDS,
    MAX_MEMBERS,
    MAX_PATTERN_CHARS,
    MAX_VOCABULARIES,
    MAX_WORD_CHARS,
)
from skillstate_local.domains.loader.section import Section
from skillstate_local.domains.loader.yaml_tree import Node
from skillstate_local.state.schema import Vocabulary

_RANGE = re.compile(r"([^{}]{0,100})\{([0-9]{1,9})\.\.([0-9]{1,9})\}([^{}]{0,100})")
_NAME = re.compile(r"[A-Za-z](?:_?[A-Za-z0-9])*")


def read_vocabularies(top: Section, findings: Findings) -> dict[str, Vocabulary]:
    """All vocabularies that could be read."""
    found: dict[str, Vocabulary] = {}
    total = 0
    for name, node in top.mapping("vocabularies", MAX_VOCABULARIES).items():
        if not _NAME.fullmatch(name) or len(name) > 64:
            hint = "Use letters, digits and single underscores: event patterns use the name as a group."
            findings.error(node.pointer, f"{shown(name)} cannot name a vocabulary", hint, node.line)
        vocabulary = _vocabulary(name, node, findings)
        if vocabulary is not None:
            found[name] = vocabulary
            total += len(vocabulary.members)
        if total > MAX_GRAMMAR_WORDS:
            said = f"the vocabularies have {total:,} members altogether"
            raise findings.limit(node.pointer, said, MAX_GRAMMAR_WORDS, line=node.line)
    return found


def _vocabulary(name: str, node: Node, findings: Findings) -> Vocabulary | None:
    section = Section(node, findings, f"vocabulary {name}", ("members", "range", "pattern", "description"))
    section.text("description")
    given = [word for word in ("members", "range", "pattern") if word in section]
    if len(given) != 1:
        section.error(
            f"vocabulary {name} needs exactly one of members, range and pattern",
            'Write {members: [a, b]}, {range: "shelf_{0..499}"} or {pattern: "T-[0-9]{1,6}"}.',
        )
        return None
    if "pattern" in section:
        pattern = whole(section.text("pattern", at_most=MAX_PATTERN_CHARS))
        return Vocabulary(name, pattern=pattern) if pattern else None
    members = section.texts("members", MAX_MEMBERS, MAX_WORD_CHARS) if "members" in section else _counted(section)
    if not members and "members" in section:
        section.error(f"vocabulary {name} has no members", "List at least one.")
    return Vocabulary(name, members=members) if members else None


def _counted(section: Section) -> tuple[str, ...]:
    """The words of ``prefix{first..last}suffix``; leading zeros keep their width."""
    text = section.text("range", at_most=300)
    match = _RANGE.fullmatch(text)
    at = section.get("range")
    if match is None:
        if text:
            section.error(f"{shown(text)} is not a range", 'Write it like "shelf_{0..499}".', at)
        return ()
    first, last = int(match[2]), int(match[3])
    if last < first:
        section.error(f"{shown(text)} counts down", "Write the smaller number first.", at)
        return ()
    if last - first + 1 > MAX_MEMBERS:
        raise section.findings.limit(
            section.node.pointer, f"{shown(text)} has {last - first + 1:,} members", MAX_MEMBERS, line=section.node.line
        )
    width = len(match[2]) if match[2].startswith("0") and len(match[2]) > 1 else 0
    return tuple(f"{match[1]}{number:0{width}d}{match[4]}" for number in range(first, last + 1))


def whole(pattern: str) -> str:
    """A pattern without the anchors that JSON Schema needs; here a pattern always matches the whole text."""
    if pattern.startswith("^") and pattern.endswith("$") and not pattern.endswith("\\$"):
        return pattern[1:-1]
    return pattern
