"""Level `effects`: the action first, then only the facts that O_t reports and the action's own effect does not set."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from skillstate_local.domains.action import ActionTemplate, bindings, template_parts
from skillstate_local.domains.base import Domain
from skillstate_local.domains.observation import Facts, fill
from skillstate_local.domains.turn import ACTION_KEY, PATCH_KEY
from skillstate_local.errors import GrammarError
from skillstate_local.grammar.action import Narrowed, template_node
from skillstate_local.grammar.ir import Group, Lit, Node, Object, Quoted, Seq, Token, Variant, Words, alternatives
from skillstate_local.state.canonical import Json, dumps, escape
from skillstate_local.state.diff import leaves, overlapping, pointers, tokens
from skillstate_local.state.schema import FieldKind, Record, Schema, Table
from skillstate_local.state.source import World


def effects_turn(domain: Domain, worlds: tuple[World, ...], facts: Facts) -> Node:
    """The turn's object at `effects`. Actions are grouped by the reported facts that their effects set themselves."""
    classes: dict[frozenset[str], list[Node]] = {}
    for template in domain.actions:
        for node, touched in _classes(domain, template, worlds, facts):
            classes.setdefault(touched, []).append(node)
    if not classes:
        raise GrammarError(f"no action of {domain.name} is legal in this state")
    options: list[Node] = [
        Seq((alternatives(actions), Lit(f',"{PATCH_KEY}":'), _residual(domain.schema, facts, touched)))
        for touched, actions in classes.items()
    ]
    return Seq((Lit(f'{{"{ACTION_KEY}":'), alternatives(options), Lit("}")))


def _classes(
    domain: Domain, template: ActionTemplate, worlds: tuple[World, ...], facts: Facts
) -> Iterator[tuple[Node, frozenset[str]]]:
    """The template's legal instances, split by which reported pointers their effect touches."""
    reported = frozenset(pointer for pointer, _ in facts.reported)
    deciding = _deciding(template, reported) if template.effect is not None else {}
    for choice in itertools.product(*(_choices(words) for words in deciding.values())):
        narrowed = dict(zip(deciding, choice, strict=True))
        node = template_node(domain, template, worlds, narrowed)
        if node is not None:
            yield node, overlapping(reported, _touched(template, narrowed))


def _choices(words: frozenset[str]) -> list[Narrowed]:
    return [*(Narrowed(word) for word in sorted(words)), Narrowed(excluded=words)]


def _deciding(template: ActionTemplate, reported: frozenset[str]) -> dict[str, frozenset[str]]:
    """For each argument that stands in the effect's pointers: the words at which it meets a reported pointer."""
    found: dict[str, set[str]] = {}
    for effect, _ in leaves(template.effect):
        for pointer in reported:
            for mine, theirs in zip(tokens(effect), tokens(pointer), strict=False):
                readings = list(bindings(template_parts(mine), theirs, partial(_may_be, template)))
                for name, word in itertools.chain.from_iterable(map(dict.items, readings)):
                    found.setdefault(name, set()).add(word)
                if not readings:
                    break
    return {name: frozenset(found[name]) for name in template.arguments if name in found}


def _may_be(template: ActionTemplate, name: str, word: str) -> bool:
    """Any word may stand for an argument; a name in braces that is none stays as it is."""
    return name in template.arguments or word == f"{{{name}}}"


def _touched(template: ActionTemplate, narrowed: dict[str, Narrowed]) -> frozenset[str]:
    """Pointers of the effect under this choice; an argument that is none of the reported words meets nothing."""
    words = {name: choice.word if choice.word is not None else "\0" for name, choice in narrowed.items()}
    return pointers(fill(template.effect, words)) if template.effect is not None else frozenset()


def _residual(schema: Schema, facts: Facts, touched: frozenset[str]) -> Node:
    root = _Place(schema.root)
    for pointer, value in facts.reported:
        if pointer not in touched:
            place = root
            for token in tokens(pointer):
                place = place.below(token)
            place.values.append(value)
    return _object(root, nonempty=False)


@dataclass(slots=True)
class _Place:
    """What is reported at one pointer (one value at most) and below it."""

    kind: FieldKind | None
    values: list[Json] = field(default_factory=list)
    members: dict[str, _Place] = field(default_factory=dict)

    def below(self, token: str) -> _Place:
        """The place of a member, made when it is new."""
        if token not in self.members:
            kind = self.kind.value if isinstance(self.kind, Table) else None
            self.members[token] = _Place(self.kind.members.get(token) if isinstance(self.kind, Record) else kind)
        return self.members[token]


def _object(place: _Place, *, nonempty: bool) -> Node:
    groups = tuple(Group((Variant(Words((escape(key),)), _value(member)),)) for key, member in place.members.items())
    at_most = place.kind.max_changes if isinstance(place.kind, Table) else len(groups)
    return Object(groups, min(len(groups), at_most), nonempty)


def _value(place: _Place) -> Node:
    """What is reported here, or something of what is reported below."""
    options: list[Node] = [
        Quoted(Words((escape(value),))) if isinstance(value, str) else Token(Words((dumps(value),)))
        for value in place.values
    ]
    if place.members:
        options.append(_object(place, nonempty=True))
    return alternatives(options)
