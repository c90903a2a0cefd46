"""Sources: do they name tables, members and vocabularies that exist, and can what they give be of the type?"""

from __future__ import annotations

from skillstate_local.domains.base import Domain
from skillstate_local.domains.findings import Findings, nearest, shown
from skillstate_local.state.canonical import Json
from skillstate_local.state.schema import (
    Boolean,
    Fixed,
    Id,
    Integer,
    ListField,
    OneOf,
    Record,
    Scalar,
    ScalarType,
    Table,
)
from skillstate_local.state.source import KeysOf, Members, Minus, Seen, Source, Union, ValuesOf, Words
from skillstate_local.state.validate import scalar_problems


def check_source(domain: Domain, source: Source, kind: ScalarType, pointer: str, findings: Findings) -> None:
    """Check one source of values of ``kind``."""
    if isinstance(kind, (Boolean, Integer, Fixed)):
        findings.error(pointer, "a source gives text, and this field holds none", "Remove it or change the type.")
    before = len(findings)
    _check(domain, source, pointer, findings)
    if len(findings) == before and isinstance(kind, Id):
        given = _vocabularies(domain, source)
        if given is not None and kind.vocabulary not in given:
            names = ", ".join(sorted(given)) or "nothing"
            findings.warn(pointer, f"this source gives {names}, never a {kind.vocabulary}")
    if isinstance(source, Words):
        for word in source.words:
            if any(scalar_problems(domain.schema, kind, word, "")) and _known(domain, kind):
                findings.warn(f"{pointer}/words", f"{shown(word)} is not of the type and never allowed")


def check_where(
    domain: Domain, table: Table, where: tuple[tuple[str, Json], ...], pointer: str, findings: Findings
) -> None:
    """Check that a filter names members of the table's records and values that they can hold."""
    for name, value in where:
        member = member_of(table, name, f"{pointer}/where", findings)
        if isinstance(member, Scalar) and any(scalar_problems(domain.schema, member.type, value, "")):
            findings.error(f"{pointer}/where/{name}", f"{name} can never be {shown(value)}")


def table_named(domain: Domain, name: str, pointer: str, findings: Findings) -> Table | None:
    """The table of Σ with this name; reports when there is none."""
    kind = domain.schema.root.members.get(name)
    if isinstance(kind, Table):
        return kind
    tables = [known for known, other in domain.schema.root.members.items() if isinstance(other, Table)]
    what = "is no table" if kind is not None else "names no table at the top of the state"
    findings.error(pointer, f"{shown(name)} {what}", nearest(name, tables))
    return None


def member_of(table: Table, name: str, pointer: str, findings: Findings) -> object:
    """The member of a table's records; reports when there is none."""
    if not isinstance(table.value, Record):
        findings.error(pointer, f"the table holds no records, so there is no member {shown(name)}")
        return None
    if name not in table.value.members:
        findings.error(pointer, f"the records have no member {shown(name)}", nearest(name, table.value.members))
    return table.value.members.get(name)


def names_vocabulary(domain: Domain, vocabulary: str) -> bool:
    """Whether any event can name a word of the vocabulary."""
    return any(
        f"(?P<{vocabulary}>" in e.pattern or f"(?P<{vocabulary}__" in e.pattern for e in domain.observations.events
    )


def _check(domain: Domain, source: Source, pointer: str, findings: Findings) -> None:
    match source:
        case Seen(name):
            if _vocabulary(domain, name, f"{pointer}/seen", findings) and not names_vocabulary(domain, name):
                hint = f"Write (?P<{name}>…) in the pattern of an event."
                findings.warn(f"{pointer}/seen", f"no event names a {name}, so this is always empty", hint)
        case Members(name):
            if _vocabulary(domain, name, f"{pointer}/members", findings) and name not in domain.closed:
                hint = "Write {seen: …}, or list its members."
                findings.error(f"{pointer}/members", f"vocabulary {name} is open and cannot be listed", hint)
        case KeysOf(name, where):
            table = table_named(domain, name, f"{pointer}/keys_of", findings)
            if table is not None:
                check_where(domain, table, where, pointer, findings)
        case ValuesOf():
            _values_of(domain, source, pointer, findings)
        case Union(sources):
            for index, below in enumerate(sources):
                _check(domain, below, f"{pointer}/any_of/{index}", findings)
        case Minus(base, excluded):
            _check(domain, base, pointer, findings)
            _check(domain, excluded, f"{pointer}/except", findings)


def _values_of(domain: Domain, source: ValuesOf, pointer: str, findings: Findings) -> None:
    kind = domain.schema.root.members.get(source.table)
    if isinstance(kind, (Scalar, ListField)):
        if source.member or source.at is not None:
            findings.error(pointer, f"{source.table} is no table, so member and at mean nothing")
        return
    table = table_named(domain, source.table, f"{pointer}/values_of", findings)
    if table is None:
        return
    if source.member:
        member_of(table, source.member, f"{pointer}/member", findings)
    elif isinstance(table.value, Record):
        hint = nearest("", table.value.members)
        findings.error(pointer, f"{source.table} holds records; say which member", hint)
    if source.at is not None:
        _check(domain, source.at, f"{pointer}/at", findings)


def _vocabulary(domain: Domain, name: str, pointer: str, findings: Findings) -> bool:
    if name in domain.schema.vocabularies:
        return True
    findings.error(pointer, f"there is no vocabulary {shown(name)}", nearest(name, domain.schema.vocabularies))
    return False


def _vocabularies(domain: Domain, source: Source) -> frozenset[str] | None:
    """The vocabularies that a source's words come from; None when that is not known."""
    match source:
        case Seen(name) | Members(name):
            return frozenset((name,))
        case KeysOf(name):
            table = domain.schema.root.members[name]
            return frozenset((table.keys,)) if isinstance(table, Table) else None
        case ValuesOf(name, member):
            kind = domain.schema.root.members[name]
            value = kind.value if isinstance(kind, Table) else kind
            inner = value.members.get(member) if isinstance(value, Record) else value
            scalar = inner.type if isinstance(inner, Scalar) else inner.item if isinstance(inner, ListField) else None
            return frozenset((scalar.vocabulary,)) if isinstance(scalar, Id) else None
        case Union(sources):
            found = [_vocabularies(domain, below) for below in sources]
            return None if None in found else frozenset().union(*(names for names in found if names is not None))
        case Minus(base):
            return _vocabularies(domain, base)
    return None


def _known(domain: Domain, kind: ScalarType) -> bool:
    if isinstance(kind, OneOf):
        return all(_known(domain, option) for option in kind.types)
    return not isinstance(kind, Id) or kind.vocabulary in domain.schema.vocabularies
