"""Domains, states and observations drawn at random: everything an author may write, and the nastiest ids."""

from __future__ import annotations

import re
from decimal import Decimal
from random import Random

from skillstate_local.domains.action import ActionTemplate, Argument, Entry
from skillstate_local.domains.base import Domain
from skillstate_local.domains.observation import Event, ObservationFormat
from skillstate_local.state.canonical import Json
from skillstate_local.state.schema import (
    Boolean,
    Choice,
    FieldKind,
    Fixed,
    Id,
    Integer,
    ListField,
    ListMode,
    Mutability,
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
from skillstate_local.state.source import KeysOf, Members, Minus, Seen, Source, Union, ValuesOf, Words

WORDS = (
    *("a", "ab", "abc", "item_1", "item_12", "item_2", 'x"y', '"', "back\\slash", "\\", "with space", "it's", ""),
    *("é", "漢字", "漢", "😀", "😀😁", "start", "root", "null", "true", "{x}", "{id}", "{a}", "a/b", "a~b", "~1", "/"),
    *("T0", "%llguidance", "<tag>", "</reasoning>", "tab\there", "\x7f", "\x01", "new\nline", "-", "+", "#", "&&"),
    *("~x", ".*", "[a]", "(", ")", "|", "^$", "?", "@", "A", "İ", "ß", "\u2028", "\ufeff", "\U0010ffff", "¼", "²"),
    *(
        "state_patch",
        "action",
        "1",
        "12",
        "1.0",
        "-0",
        "\\u0041",
        "\x00",
        "//",
        "*",
        ",",
        ":",
        "}",
        "\x85",
        "ﬁ",
        "e\u0301",
    ),
)
PATTERNS = (
    *(r"id_[0-9]{1,2}", "[a-c]{1,2}", r'[\w"\\]{0,2}', r"\d{1,3}", "(x|yy|z{2}){1,2}", ".", "[^a-z]", r"\s?"),
    *("a?b{0,2}", "[é漢]{1,2}", r"[\x00-\x1f]", "😀|b", "[/~]{1,2}", "", r"item_(0|[1-9][0-9]{0,2})", "[^\\x00-\\x7f]"),
    *(r"[\]\[^-]{1,2}", r"\W", r"(?:ab){0}c", r"[{}]x", "A{3}"),
)


def random_domain(rng: Random) -> Domain:
    """A domain of a few fields, two or three vocabularies and up to four actions."""
    return _Author(rng).domain()


class _Author:
    """Remembers what is there already, so that sources and effects point at it."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.wide = rng.random() < 0.15
        """Large vocabularies, tables with many changes and records of many fields: the other layouts of Lark."""
        self.vocabularies = {f"v{number}": self._vocabulary(f"v{number}") for number in range(rng.randint(1, 3))}
        self.members: dict[str, FieldKind] = {}

    def domain(self) -> Domain:
        rng = self.rng
        names = rng.sample(WORDS, rng.randint(1, 5))
        for name in names:
            self.members[name] = self._field(2)
        schema = Schema(Record(dict(self.members)), self.vocabularies)
        actions = [self._action() for _ in range(rng.randint(1, 4))]
        if rng.random() < 0.8:
            actions.append(ActionTemplate(rng.choice(("Wait", "待つ", 'No "op"', "null"))))
        return Domain("random", schema, tuple(actions), self._observations(), "")

    def _vocabulary(self, name: str) -> Vocabulary:
        if self.wide and self.rng.random() < 0.7:
            return Vocabulary(name, members=tuple(f"item_{number}" for number in range(self.rng.randint(50, 140))))
        if self.rng.random() < 0.6:
            return Vocabulary(name, members=tuple(self.rng.sample(WORDS, self.rng.choice((1, 2, 3, 5, 8, 12)))))
        return Vocabulary(name, pattern=self.rng.choice(PATTERNS))

    def _field(self, depth: int) -> FieldKind:
        kinds = [self._scalar, self._scalar, self._list] + ([self._record, self._table, self._table] if depth else [])
        kind = self.rng.choice(kinds)
        return kind(depth) if kind in (self._record, self._table) else kind()  # type: ignore[call-arg]

    def _optional(self) -> dict[str, bool]:
        optional = self.rng.random() < 0.4
        return {"optional": optional, "deletable": self.rng.random() < 0.6}

    def _scalar(self) -> Scalar:
        rng = self.rng
        kind = self._type()
        mutability = rng.choices(tuple(Mutability), (6, 2, 1))[0]
        transitions: dict[str, tuple[str, ...]] = {}
        if isinstance(kind, Choice) and rng.random() < 0.6:
            transitions = {v: tuple(rng.sample(kind.values, rng.randint(0, len(kind.values)))) for v in kind.values}
        stringy = isinstance(kind, Choice | Id | Text | Pattern | OneOf)
        values = self._source() if stringy and rng.random() < 0.4 else None
        return Scalar(kind, mutability, transitions, values, **self._optional())

    def _list(self) -> ListField:
        rng = self.rng
        values = self._source() if rng.random() < 0.3 else None
        mode = rng.choice(tuple(ListMode))
        return ListField(
            self._type(),
            max_items=rng.randint(1, 4),
            mode=mode,
            max_changes=rng.randint(1, 3),
            values=values,
            **self._optional(),
        )

    def _record(self, depth: int) -> Record:
        names = self.rng.sample(WORDS, self.rng.randint(1, 11 if self.wide else 4))
        return Record({name: self._field(depth - 1) for name in names}, **self._optional())

    def _table(self, depth: int) -> Table:
        rng = self.rng
        return Table(
            keys=rng.choice(tuple(self.vocabularies)),
            value=self._field(depth - 1),
            max_entries=rng.choice((2, 8, 90)) if self.wide else rng.randint(1, 6),
            insert=rng.choice(tuple(Permission)),
            update=rng.choice(tuple(Permission)),
            delete=rng.choice(tuple(Permission)),
            max_inserts=rng.choice((1, 1, 2, 3) if self.wide else (1, 1, 2)),
            max_updates=rng.choice((1, 1, 2, 3) if self.wide else (1, 1, 2)),
            max_deletes=rng.choice((1, 1, 2, 3) if self.wide else (1, 1, 2)),
            **self._optional(),
        )

    def _type(self, depth: int = 1) -> ScalarType:
        rng = self.rng
        low, high = sorted((rng.randint(-30, 130), rng.randint(-30, 130)))
        kinds: list[ScalarType] = [
            Text(rng.randint(1, 4), rng.randint(0, 1)),
            Pattern(rng.choice(PATTERNS)),
            Choice(tuple(rng.sample(WORDS, rng.randint(1, 4)))),
            Id(rng.choice(tuple(self.vocabularies))),
            Integer(low, high),
            Fixed(low, high, rng.randint(1, 3)),
            Boolean(),
        ]
        if depth and rng.random() < 0.15:
            return OneOf(tuple(self._type(0) for _ in range(rng.randint(1, 3))))
        return rng.choice(kinds)

    def _string_type(self) -> ScalarType:
        while True:
            kind = self._type(0)
            if isinstance(kind, Text | Pattern | Choice | Id):
                return kind

    def _source(self, depth: int = 1) -> Source:
        rng = self.rng
        closed = [name for name, v in self.vocabularies.items() if v.members]
        field = rng.choice(tuple(self.members)) if self.members else "none"
        member = self._member_of(field)
        options: list[Source] = [
            Seen(rng.choice(tuple(self.vocabularies))),
            KeysOf(field),
            ValuesOf(field, member),
            Words(tuple(rng.sample(WORDS, rng.randint(1, 4)))),
        ]
        options += [Members(rng.choice(closed))] if closed else []
        if depth:
            options += [
                Union((self._source(0), self._source(0))),
                Minus(self._source(0), self._source(0)),
                ValuesOf(field, member, at=self._source(0)),
            ]
        return rng.choice(options)

    def _member_of(self, name: str) -> str:
        kind = self.members.get(name)
        if isinstance(kind, Table) and isinstance(kind.value, Record):
            return self.rng.choice(tuple(kind.value.members))
        return ""

    def _action(self) -> ActionTemplate:
        rng = self.rng
        names = rng.sample(("a", "b", "c"), rng.randint(0, 3))
        glue = (" ", " on ", "", "/", '"', "\\", "漢", "!", " {", ".", "\n")
        template = rng.choice(("Do ", "Set", "", 'Say "', "漢 ", "Do ", "a.b*c ", "{ "))
        template += "".join(f"{{{name}}}{rng.choice(glue)}" for name in names)
        template = template or "Go"
        arguments = {n: Argument(self._string_type(), self._source() if rng.random() < 0.5 else None) for n in names}
        tables = [name for name, kind in self.members.items() if isinstance(kind, Table)]
        joint: tuple[Entry, ...] = ()
        if tables and len(names) >= 2 and rng.random() < 0.7:
            table = rng.choice(tables)
            joint = (Entry(table, *rng.sample(names, 2), member=self._member_of(table)),)
            keys = self.members[table].keys  # type: ignore[union-attr]
            arguments[joint[0].key] = Argument(Id(keys), arguments[joint[0].key].source if rng.random() < 0.3 else None)
            arguments[joint[0].value] = Argument(Text(12), None)
            if rng.random() < 0.2:
                joint += (Entry(table, *rng.sample(names, 2), member=self._member_of(table)),)
        return ActionTemplate(template, arguments, joint, self._patch_template(names) if rng.random() < 0.7 else None)

    def _patch_template(self, names: list[str]) -> Json:
        """A patch template over the fields there are; not always a sensible one."""
        rng = self.rng
        chosen = rng.sample(tuple(self.members), rng.randint(1, min(2, len(self.members))))
        return {name: self._change_template(self.members[name], names) for name in chosen}

    def _change_template(self, kind: FieldKind, names: list[str]) -> Json:
        rng = self.rng

        def word() -> str:
            if names and rng.random() < 0.8:
                before, after = rng.choice((("", ""), ("", ""), ("", ""), ("item_", ""), ("", "b")))
                return f"{before}{{{rng.choice(names)}}}{after}"
            return rng.choice(WORDS)

        if isinstance(kind, Table):
            keys = [word() for _ in range(rng.randint(1, 2))]
            return {key: None if rng.random() < 0.3 else self._change_template(kind.value, names) for key in keys}
        if isinstance(kind, Record):
            chosen = rng.sample(tuple(kind.members), rng.randint(1, len(kind.members)))
            return {name: self._change_template(kind.members[name], names) for name in chosen}
        if isinstance(kind, ListField):
            return [word()] if rng.random() < 0.5 else {"+": [word()]}
        if isinstance(kind.type, Choice | Id | Text | Pattern):
            return word()
        return random_scalar(rng, Schema(Record({}), self.vocabularies), kind.type)

    def _observations(self) -> ObservationFormat:
        events: list[Event] = []
        for number in range(3):
            groups = [self.rng.choice(tuple(self.vocabularies)) for _ in range(self.rng.randint(0, 2))]
            names = [f"{name}__{index}" for index, name in enumerate(groups)]
            pattern = f"Event {number}:" + "".join(f" <(?P<{name}>.*)>" for name in names)
            reports = self._patch_template(names) if self.rng.random() < 0.7 else None
            events.append(Event(f"event{number}", pattern, reports))
        return ObservationFormat(tuple(events), ("Success:", "Error:"), "--- NOISE ---")


def random_observation(rng: Random, domain: Domain, state: Json) -> str:
    """Lines of a few events, naming ids that exist in Σ more often than not."""
    lines = []
    for event in rng.choices(domain.observations.events, k=rng.randint(0, 3)):
        count = event.pattern.count("(?P<")
        vocabularies = re.findall(r"\(\?P<(v\d+)__", event.pattern)
        words = [observable(random_word(rng, domain.schema, name, state)) for name in vocabularies[:count]]
        lines.append(f"Event {event.name[-1]}:" + "".join(f" <{word}>" for word in words))
    return "\n".join(lines)


def observable(word: str) -> str:
    """A word that fits on a line of an observation."""
    return word if "\n" not in word else "a"


def random_word(rng: Random, schema: Schema, name: str, state: Json = None) -> str:
    """A word of a vocabulary; one that Σ mentions where there is one."""
    vocabulary = schema.vocabularies[name]
    held = [word for word in strings_of(state) if word in vocabulary]
    if held and rng.random() < 0.6:
        return rng.choice(held)
    return rng.choice(vocabulary.members) if vocabulary.members else random_match(rng, vocabulary.pattern)


def strings_of(value: Json) -> list[str]:
    """All keys and strings in a value."""
    if isinstance(value, dict):
        return [*value, *(word for member in value.values() for word in strings_of(member))]
    if isinstance(value, list):
        return [word for item in value for word in strings_of(item)]
    return [value] if isinstance(value, str) else []


ALPHABET = 'abcxyzid_0123456789AB é漢😀"\\/~[]^-{}\t\n\x00\x1f\x7f-._'


def random_match(rng: Random, pattern: str) -> str:
    """A match of a pattern, found by trial and error: independent of how the package reads patterns."""
    known = _matches_of(pattern)
    return rng.choice(known)


def _matches_of(pattern: str, _cache: dict[str, list[str]] = {}) -> list[str]:  # noqa: B006
    if pattern not in _cache:
        rng = Random(pattern)
        seeds = ["", *WORDS, *ALPHABET, "id_1", "id_12", "item_0", "item_105", "zz", "xyy", "yyzz", "aabb", "bb", "c"]
        seeds += ["AAA", "{x", "}x"]
        found = {word for word in seeds if re.fullmatch(pattern, word, re.ASCII)}
        for _ in range(3000):
            word = "".join(rng.choice(ALPHABET) for _ in range(rng.randint(0, 2)))
            if re.fullmatch(pattern, word, re.ASCII):
                found.add(word)
        assert found, pattern
        _cache[pattern] = sorted(found)[:200]
    return _cache[pattern]


def random_state(rng: Random, domain: Domain) -> Json:
    """A state that the schema allows."""
    return domain.schema.canonical(random_value(rng, domain.schema, domain.schema.root))


def random_value(rng: Random, schema: Schema, kind: FieldKind) -> Json:
    """A complete value of a field."""
    if isinstance(kind, Scalar):
        return random_scalar(rng, schema, kind.type)
    if isinstance(kind, ListField):
        return [random_scalar(rng, schema, kind.item) for _ in range(rng.randint(0, kind.max_items))]
    if isinstance(kind, Table):
        keys = {random_word(rng, schema, kind.keys) for _ in range(rng.randint(0, kind.max_entries))}
        return {key: random_value(rng, schema, kind.value) for key in sorted(keys)}
    chosen = [name for name, member in kind.members.items() if not member.optional or rng.random() < 0.6]
    return {name: random_value(rng, schema, kind.members[name]) for name in chosen}


def random_scalar(rng: Random, schema: Schema, kind: ScalarType) -> Json:
    """A value of a scalar type."""
    match kind:
        case OneOf(types):
            return random_scalar(rng, schema, rng.choice(types))
        case Boolean():
            return rng.random() < 0.5
        case Integer(low, high):
            return rng.choice((low, high, rng.randint(low, high)))
        case Fixed(low, high, scale):
            return Decimal(rng.choice((low, high, rng.randint(low, high)))).scaleb(-scale)
        case Choice(values):
            return rng.choice(values)
        case Id(name):
            return random_word(rng, schema, name)
        case Pattern(regex):
            return random_match(rng, regex)
        case Text():
            count = rng.randint(kind.min_chars, kind.max_chars)
            return "".join(rng.choice(ALPHABET) for _ in range(count))
