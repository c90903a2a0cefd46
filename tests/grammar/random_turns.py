"""Turns that know nothing of grammars: mostly valid ones by the policies, and single mutations of any turn."""

from __future__ import annotations

import json
from decimal import Decimal
from random import Random

from skillstate_local.domains.action import ActionTemplate
from skillstate_local.domains.base import Domain
from skillstate_local.domains.level import Level, Order, effective_order
from skillstate_local.domains.observation import Facts
from skillstate_local.domains.turn import write_turn
from skillstate_local.state.canonical import Json, StrictJsonError, dumps, loads
from skillstate_local.state.diff import nest
from skillstate_local.state.schema import FieldKind, ListField, ListMode, Record, Scalar, Table
from tests.grammar.random_domains import ALPHABET, WORDS, random_scalar, random_word, strings_of


class TurnAuthor:
    """Writes turns for one step. Follows the policies loosely: the validator has the last word."""

    def __init__(self, rng: Random, domain: Domain, state: Json, facts: Facts) -> None:
        self.rng = rng
        self.domain = domain
        self.schema = domain.schema
        self.state = state
        self.facts = facts
        self.seen = sorted(word for words in facts.seen.values() for word in words)

    def text(self, level: Level, order: Order) -> str:
        """The canonical text of one turn."""
        patch = self._residual() if level is Level.EFFECTS else self._record(self.schema.root, self.state)
        return write_turn(patch, self._action(), effective_order(level, order))

    def _residual(self) -> Json:
        patch: Json = {}
        for pointer, value in self.facts.reported:
            if self.rng.random() < 0.5:
                patch = _united(patch, nest(pointer, value))
        return patch

    def _record(self, kind: Record, held: Json) -> Json:
        count = self.rng.choice((0, 1, 1, 2, len(kind.members)))
        names = self.rng.sample(tuple(kind.members), min(count, len(kind.members)))
        return {name: self._change(kind.members[name], (held or {}).get(name)) for name in names}

    def _change(self, kind: FieldKind, held: Json) -> Json:
        if self.rng.random() < (0.2 if kind.optional and kind.deletable and held is not None else 0.02):
            return None
        if isinstance(kind, Scalar):
            return self._scalar(kind, held)
        if isinstance(kind, ListField):
            return self._list(kind, held)
        if isinstance(kind, Table):
            return self._table(kind, held or {})
        return self._whole(kind) if held is None else self._record(kind, held)

    def _scalar(self, kind: Scalar, held: Json) -> Json:
        options = [random_scalar(self.rng, self.schema, kind.type)]
        if kind.transitions and isinstance(held, str):
            options += list(kind.transitions.get(held, ())) * 3
        if kind.values is not None:
            options += sorted(kind.values.resolve(self.domain.world(self.state, self.facts))) * 3
        return self.rng.choice(options)

    def _list(self, kind: ListField, held: Json) -> Json:
        def items(at_most: int) -> list[Json]:
            count = self.rng.randint(1, max(1, at_most))
            return [self._scalar(Scalar(kind.item, values=kind.values), None) for _ in range(count)]

        if self.rng.random() < (0.9 if kind.mode is ListMode.REPLACE else 0.1):
            return items(kind.max_items) if self.rng.random() < 0.8 else []
        change = {"+": items(min(kind.max_changes, kind.max_items - len(held or [])))}
        if held and self.rng.random() < 0.5:
            change["-"] = self.rng.choices(held, k=self.rng.randint(1, kind.max_changes))
        return dict(self.rng.sample(tuple(change.items()), self.rng.randint(1, len(change))))

    def _table(self, kind: Table, held: dict[str, Json]) -> Json:
        patch: dict[str, Json] = {}
        for _ in range(self.rng.choice((0, 1, 1, 1, 2, 3))):
            key = self._key(kind, held)
            if key not in held:
                patch[key] = self._whole(kind.value)
            elif self.rng.random() < 0.5:
                patch[key] = None
            else:
                patch[key] = self._change(kind.value, held[key])
        return patch

    def _key(self, kind: Table, held: dict[str, Json]) -> str:
        options = [random_word(self.rng, self.schema, kind.keys)]
        options += [w for w in self.seen if w in self.schema.vocabularies[kind.keys]] * 2
        if held:
            options += [self.rng.choice(sorted(held))]
        return self.rng.choice(options)

    def _whole(self, kind: FieldKind) -> Json:
        if isinstance(kind, Scalar):
            return self._scalar(kind, None)
        if isinstance(kind, ListField):
            return [self._scalar(Scalar(kind.item, values=kind.values), None) for _ in range(self.rng.randint(0, 2))]
        if isinstance(kind, Table):
            count = self.rng.choice((0, 0, 1, 2, kind.max_entries))
            return {self._key(kind, {}): self._whole(kind.value) for _ in range(count)}
        return {n: self._whole(m) for n, m in kind.members.items() if not m.optional or self.rng.random() < 0.5}

    def _action(self) -> str:
        return self.rng.choice([self._instance(template) for template in self.domain.actions])

    def _instance(self, template: ActionTemplate) -> str:
        world = self.domain.world(self.state, self.facts)
        words: dict[str, str] = {}
        for name, argument in template.arguments.items():
            options = sorted(argument.source.resolve(world)) if argument.source is not None else []
            words[name] = self._word(options) if options else random_scalar(self.rng, self.schema, argument.type)
        for entry in template.joint:
            pairs = sorted(entry.pairs(world))
            if pairs:
                words[entry.key], words[entry.value] = self.rng.choice(pairs)
        reported = strings_of([nest(*fact) for fact in self.facts.reported])
        for name in words:
            if reported and self.rng.random() < 0.15:
                words[name] = self._word(reported)
        return "".join(words[part] if i % 2 else part for i, part in enumerate(template.parts))

    def _word(self, options: list[str]) -> str:
        return self.rng.choice(options)


def _united(left: Json, right: Json) -> Json:
    """Two patches as one; unlike ⊕ it keeps nulls."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left | {key: _united(left[key], value) if key in left else value for key, value in right.items()}
    return right


def mutated(rng: Random, text: str, domain: Domain) -> str:
    """``text`` with one thing changed, in its spelling or in its structure."""
    if rng.random() < 0.4:
        return _respelled(rng, text)
    try:
        value = loads(text)
    except StrictJsonError:
        return _respelled(rng, text)
    return _restructured(rng, value, domain)


def _respelled(rng: Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    spot = rng.randrange(max(1, len(text)))
    char = text[spot] if text else "x"
    choices = [
        text[:spot] + text[spot + 1 :],
        text[:at] + rng.choice(' \n\t"\\{}[],:0-1.eEtfn/\x00\x7fé😀\ufeff') + text[at:],
        text[:spot] + f"\\u{ord(char):04x}" + text[spot + 1 :] if ord(char) < 0x10000 else text,
        text[:spot] + f"\\u{ord(char):04X}" + text[spot + 1 :] if ord(char) < 0x10000 else text,
        text.replace("/", "\\/"),
        text.replace("\\n", "\\u000a"),
        text.replace(":", ": ", 1),
        text.replace(",", ", ", 1),
        text.replace('"', "'", 2),
        text.replace("null", "Null", 1),
        text.replace("true", "True", 1),
        text[:at],
        text + rng.choice((" ", "\n", "}", "{}", "x", "\x00")),
        rng.choice((" ", "\n", "\ufeff", "```json\n")) + text,
        text[:spot] + char.upper() + text[spot + 1 :],
        text[:spot] + char * 2 + text[spot + 1 :],
        json.dumps(loads(text), default=float) if _is_json(text) else text,
    ]
    return rng.choice(choices)


def _is_json(text: str) -> bool:
    try:
        loads(text)
    except StrictJsonError:
        return False
    return True


class _Raw(str):
    """Text that goes into the document as it is."""


class _Twice(dict[str, Json]):
    """An object whose first member is written twice."""


def _restructured(rng: Random, value: Json, domain: Domain) -> str:
    spots = list(_spots(value, ()))
    path = rng.choice(spots)
    return _spell(_with(value, path, lambda held: _other(rng, held, domain)))


def _spots(value: Json, path: tuple[str | int, ...]) -> list[tuple[str | int, ...]]:
    found = [path]
    if isinstance(value, dict):
        found += [spot for key in value for spot in _spots(value[key], (*path, key))]
    elif isinstance(value, list):
        found += [spot for index, item in enumerate(value) for spot in _spots(item, (*path, index))]
    return found


def _with(value: Json, path: tuple[str | int, ...], change) -> Json:  # type: ignore[no-untyped-def]
    if not path:
        return change(value)
    if isinstance(value, dict):
        return {key: _with(held, path[1:], change) if key == path[0] else held for key, held in value.items()}
    return [_with(held, path[1:], change) if index == path[0] else held for index, held in enumerate(value)]


def _other(rng: Random, held: Json, domain: Domain) -> Json:
    vocabulary = rng.choice(tuple(domain.schema.vocabularies))
    general: list[Json] = [
        None,
        {},
        [],
        "",
        rng.choice(WORDS),
        random_word(rng, domain.schema, vocabulary),
        rng.choice((0, 1, -1, 5, 99, 1000000, 10**20)),
        rng.choice((True, False)),
        Decimal(rng.choice(("0.5", "1.0", "1.00", "-0.1", "12.345"))),
        {rng.choice(WORDS): None},
        [rng.choice(WORDS)],
        _Raw(rng.choice(("-0", "01", "1e0", "1E2", "NaN", "-0.00", "1.", ".5", "tru", "Infinity", "-1", "0.10"))),
    ]
    if isinstance(held, dict):
        keys = list(held)
        rng.shuffle(keys)
        special: list[Json] = [
            {key: held[key] for key in keys},
            held | {rng.choice(WORDS): rng.choice((None, 1, "x", {}))},
            held | {random_word(rng, domain.schema, vocabulary): None},
            {key: value for key, value in held.items() if key not in keys[:1]},
            _Twice(held),
            {rng.choice(WORDS) if key in keys[:1] else key: value for key, value in held.items()},
            {**held, **dict.fromkeys(keys[:1])},
        ]
    elif isinstance(held, list):
        special = [held + held[:1], held[1:], held[::-1], held * 5, [*held, None], {"+": held}, {"-": held}]
    elif isinstance(held, str):
        spot = rng.randrange(len(held) + 1)
        special = [
            held + rng.choice(ALPHABET),
            held[:-1],
            held[:spot] + rng.choice(ALPHABET) + held[spot:],
            held * 30,
            held.swapcase(),
            held.replace("1", "2"),
            rng.choice((1, True)),
            held[:spot] + held[spot + 1 :],
        ]
    elif isinstance(held, bool):
        special = [not held, int(held), str(held).lower()]
    elif isinstance(held, int):
        special = [held + 1, held - 1, -held, str(held), Decimal(held).quantize(Decimal("1.0")), held * 10]
    elif isinstance(held, Decimal):
        special = [held * 10, -held, str(held), int(held), held + Decimal("0.01"), _Raw(f"{held}0")]
    else:
        special = ["null", {}, [], 0]
    return rng.choice(special if rng.random() < 0.65 else general)


def _spell(value: Json) -> str:
    if isinstance(value, _Raw):
        return str(value)
    if isinstance(value, dict):
        members = [f"{json.dumps(key, ensure_ascii=False)}:{_spell(held)}" for key, held in value.items()]
        if isinstance(value, _Twice):
            members += members[:1]
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return f"[{','.join(map(_spell, value))}]"
    return dumps(value)
