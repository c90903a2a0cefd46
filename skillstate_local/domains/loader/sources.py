"""Sources: where a value may come from, as an author writes it.

    {seen: item}                                   ids of a vocabulary that the observation's events name
    {members: shelf}                               a whole closed vocabulary
    {words: [low, high]}                           these words
    {keys_of: tickets, where: {status: open}}      keys of a table of the state, of entries that hold these values
    {values_of: tickets, member: agent, at: {…}}   values of a table (of a member of its records; under these keys), of
                                                   a list or of a scalar field
    {any_of: [{…}, {…}]}                           what any of several sources gives

Each may have ``except: {…}``: another source whose words are taken away.
"""

from __future__ import annotations

from collections.abc import Callable

from skillstate_local.domains.findings import Findings
from skillstate_local.domains.limits import MAX_MEMBERS, MAX_WORD_CHARS
from skillstate_local.domains.loader.section import Section
from skillstate_local.domains.loader.yaml_tree import Node, plain
from skillstate_local.state.canonical import Json
from skillstate_local.state.source import KeysOf, Members, Minus, Seen, Source, Union, ValuesOf, Words

_FORMS = ("seen", "members", "words", "keys_of", "values_of", "any_of")
_KNOWN = (*_FORMS, "where", "member", "at", "except")
_BELONGS = {"where": "keys_of", "member": "values_of", "at": "values_of"}


def read_source(node: Node, findings: Findings) -> Source | None:
    """The source, or None when it could not be read (which is reported)."""
    section = Section(node, findings, "a source", _KNOWN)
    given = [form for form in _FORMS if form in section]
    if len(given) != 1:
        section.error(
            "a source needs exactly one of " + ", ".join(_FORMS), "Write {seen: …}, {keys_of: …} or the like."
        )
        return None
    for word, form in _BELONGS.items():
        if word in section and form != given[0]:
            section.error(f"{word} belongs to {form}, not to {given[0]}", "Remove it.", section.get(word))
    base = _READERS[given[0]](section)
    if "except" not in section:
        return base
    excluded = read_source(section.members["except"], findings)
    return None if base is None or excluded is None else Minus(base, excluded)


def read_where(section: Section) -> tuple[tuple[str, Json], ...]:
    """The ``where`` of a source or of a joint binding."""
    found = []
    for name, node in section.mapping("where", 16).items():
        if not isinstance(node.value, (str, int, bool)):
            section.error(f"where {name}: only text, an integer or true/false can be compared", at=node)
        found.append((name, plain(node)))
    return tuple(found)


def _words(section: Section) -> Source | None:
    words = section.texts("words", MAX_MEMBERS, MAX_WORD_CHARS)
    return Words(words) if words else None


def _values_of(section: Section) -> Source | None:
    at = section.get("at")
    keys = None if at is None else read_source(at, section.findings)
    table = section.text("values_of")
    return ValuesOf(table, section.text("member"), keys) if table and (at is None) == (keys is None) else None


def _any_of(section: Section) -> Source | None:
    nodes = section.items("any_of", 16)
    if len(nodes) < 2:
        section.error("any_of needs two sources or more", at=section.get("any_of"))
    found = [read_source(node, section.findings) for node in nodes]
    sources = tuple(source for source in found if source is not None)
    return Union(sources) if sources and len(sources) == len(nodes) else None


def _named(section: Section, form: str, make: Callable[[str], Source]) -> Source | None:
    name = section.text(form)
    return make(name) if name else None


_READERS: dict[str, Callable[[Section], Source | None]] = {
    "seen": lambda section: _named(section, "seen", Seen),
    "members": lambda section: _named(section, "members", Members),
    "words": _words,
    "keys_of": lambda section: _named(section, "keys_of", lambda name: KeysOf(name, read_where(section))),
    "values_of": _values_of,
    "any_of": _any_of,
}
