"""The shape of Σ: vocabularies, bounds, transitions and grounding of every field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from skillstate_local.domains.base import Domain
from skillstate_local.domains.check.sources import check_source, names_vocabulary
from skillstate_local.domains.findings import Findings, nearest, shown
from skillstate_local.domains.limits import MAX_ENTRIES, MAX_FIELDS, MAX_GRAMMAR_WORDS, MAX_INTEGER, MAX_MEMBERS
from skillstate_local.domains.regex import RegexProblem, bounded_shape_of
from skillstate_local.state.diff import escape_token
from skillstate_local.state.schema import (
    MAX_TEXT_CHARS,
    Choice,
    FieldKind,
    Fixed,
    Id,
    Integer,
    ListField,
    OneOf,
    Pattern,
    Permission,
    Record,
    Scalar,
    ScalarType,
    Schema,
    Table,
    Text,
    Vocabulary,
)
from skillstate_local.state.validate import scalar_problems


class Field(NamedTuple):
    """One field: its pointer in the domain file, the path under which people know it, and its kind."""

    pointer: str
    path: str
    kind: FieldKind


def fields(schema: Schema) -> Iterator[Field]:
    """Every field below the root, in order; a table's value has the path ``table/{vocabulary}``."""
    yield from _fields("/state", "", schema.root)


def _fields(pointer: str, path: str, kind: FieldKind) -> Iterator[Field]:
    if path:
        yield Field(pointer, path, kind)
    if isinstance(kind, Record):
        for name, member in kind.members.items():
            token = escape_token(name)
            yield from _fields(f"{pointer}/properties/{token}", f"{path}/{token}", member)
    elif isinstance(kind, Table):
        yield from _fields(f"{pointer}/additionalProperties", f"{path}/{{{kind.keys}}}", kind.value)


def check_state(domain: Domain, findings: Findings) -> None:
    """Check vocabularies and fields."""
    for name, vocabulary in domain.schema.vocabularies.items():
        _vocabulary(name, vocabulary, findings)
    found = list(fields(domain.schema))
    if len(found) > MAX_FIELDS:
        raise findings.limit("/state", f"the state has {len(found)} fields", MAX_FIELDS)
    for field in found:
        _field(domain, field, findings)
    if not findings.failed:
        _words(domain, findings)


def scalar_type_problems(schema: Schema, kind: ScalarType, pointer: str, findings: Findings) -> None:
    """Report bounds that are missing or wrong in a scalar type."""
    match kind:
        case Text(most, least):
            if not 0 <= least <= most <= MAX_TEXT_CHARS:
                findings.error(pointer, f"a text of {least} to {most} characters; the limit is {MAX_TEXT_CHARS:,}")
        case Integer(low, high) | Fixed(low, high, _):
            if low > high or max(abs(low), abs(high)) > MAX_INTEGER:
                findings.error(pointer, f"a number from {low} to {high}", "Keep minimum ≤ maximum ≤ 10^18.")
        case Choice(values):
            if not values or len(set(values)) < len(values) or len(values) > MAX_MEMBERS:
                findings.error(pointer, f"an enumeration of {len(values)} values, or with repetitions")
        case Pattern(regex):
            _regex(regex, pointer, findings)
        case Id(name):
            if name not in schema.vocabularies:
                findings.error(pointer, f"there is no vocabulary {shown(name)}", nearest(name, schema.vocabularies))
        case OneOf(types):
            for option in types:
                scalar_type_problems(schema, option, pointer, findings)


def _vocabulary(name: str, vocabulary: Vocabulary, findings: Findings) -> None:
    pointer = f"/vocabularies/{escape_token(name)}"
    if name != vocabulary.name:
        findings.error(pointer, f"the vocabulary calls itself {shown(vocabulary.name)}", "Use one name.")
    if bool(vocabulary.members) == bool(vocabulary.pattern):
        findings.error(pointer, f"vocabulary {name} needs members or a pattern, and not both")
    elif vocabulary.pattern:
        _regex(vocabulary.pattern, pointer, findings)
    elif len(vocabulary.members) > MAX_MEMBERS:
        raise findings.limit(pointer, f"vocabulary {name} has {len(vocabulary.members):,} members", MAX_MEMBERS)
    elif len(set(vocabulary.members)) < len(vocabulary.members):
        findings.error(pointer, f"vocabulary {name} lists a word twice")


def _regex(pattern: str, pointer: str, findings: Findings) -> None:
    try:
        bounded_shape_of(pattern)
    except RegexProblem as problem:
        findings.error(pointer, f"pattern {shown(pattern)}: {problem.message}", problem.hint)


def _field(domain: Domain, field: Field, findings: Findings) -> None:
    kind, pointer = field.kind, field.pointer
    if kind.deletable and not kind.optional:
        findings.error(pointer, f"{field.path} is deletable but not optional")
    if isinstance(kind, Scalar):
        _scalar(domain, kind, pointer, findings)
    elif isinstance(kind, ListField):
        if kind.max_items < 1 or kind.max_changes < 1:
            findings.error(pointer, f"list {field.path} needs max_items and max_changes of 1 or more")
        _typed_source(domain, kind.item, kind, pointer, findings)
    elif isinstance(kind, Table):
        _table(domain, field, kind, findings)
    elif not kind.members:
        findings.error(pointer, f"record {field.path} has no members")


def _scalar(domain: Domain, kind: Scalar, pointer: str, findings: Findings) -> None:
    _typed_source(domain, kind.type, kind, pointer, findings)
    if findings.failed:
        return
    states = {word: f"{pointer}/x-transitions/{escape_token(word)}" for word in kind.transitions}
    for state, following in kind.transitions.items():
        states |= {word: f"{pointer}/x-transitions/{escape_token(state)}" for word in following if word not in states}
    for word, place in states.items():
        if any(scalar_problems(domain.schema, kind.type, word, "")):
            known = kind.type.values if isinstance(kind.type, Choice) else ()
            hint = nearest(word, known) if known else "Use values of the field's type."
            findings.error(place, f"x-transitions names {shown(word)}, which this field cannot hold", hint)


def _typed_source(
    domain: Domain, kind: ScalarType, field: Scalar | ListField, pointer: str, findings: Findings
) -> None:
    scalar_type_problems(domain.schema, kind, pointer, findings)
    if field.values is not None:
        check_source(domain, field.values, kind, f"{pointer}/x-values", findings)


def _table(domain: Domain, field: Field, kind: Table, findings: Findings) -> None:
    if kind.keys not in domain.schema.vocabularies:
        hint = nearest(kind.keys, domain.schema.vocabularies)
        findings.error(f"{field.pointer}/x-keys", f"there is no vocabulary {shown(kind.keys)}", hint)
    if not 1 <= kind.max_entries <= MAX_ENTRIES:
        findings.error(field.pointer, f"table {field.path} has max_entries {kind.max_entries}")
    if kind.insert is Permission.GROUNDED and not names_vocabulary(domain, kind.keys):
        findings.warn(
            f"{field.pointer}/x-insert",
            f"no event names a {kind.keys}, so nothing can ever be inserted in {field.path}",
        )


def _words(domain: Domain, findings: Findings) -> None:
    """Refuse a schema whose static grammar alone would be huge."""
    total = 0
    for field in fields(domain.schema):
        kind = field.kind
        if isinstance(kind, Table):
            total += len(domain.schema.vocabularies[kind.keys].members)
        elif isinstance(kind, (Scalar, ListField)):
            total += words_of(domain.schema, kind.type if isinstance(kind, Scalar) else kind.item)
    if total > MAX_GRAMMAR_WORDS:
        raise findings.limit("/state", f"the fields spell out {total:,} words of vocabularies", MAX_GRAMMAR_WORDS)


def words_of(schema: Schema, kind: ScalarType) -> int:
    """How many words a type writes into a grammar."""
    match kind:
        case Choice(values):
            return len(values)
        case Id(name):
            return len(schema.vocabularies[name].members)
        case OneOf(types):
            return sum(words_of(schema, option) for option in types)
    return 1
