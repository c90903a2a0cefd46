"""Level `effects`: the action first, then only the facts that O_t reports and the action's own effect does not set."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from skillstate_local.domains.action import ActionTemplate
from skillstate_local.domains.base import Domain
from skillstate_local.domains.observation import Facts, fill
from skillstate_local.domains.turn import ACTION_KEY, PATCH_KEY
from skillstate_local.errors import GrammarError
from skillstate_local.grammar.action import Narrowed, template_node
from skillstate_local.grammar.ir import Group, Lit, Node, Object, Quoted, Seq, Token, Variant, Words, alternatives
from skillstate_local.state.canonical import Json, dumps, escape
from skillstate_local.state.diff import leaves, overlapping, pointers
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
        Seq((alternatives(actions), Lit(f',"{PATCH_KEY}":'), _residual(facts, touched)))
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
            for mine, theirs in zip(effect.split("/")[1:], pointer.split("/")[1:], strict=False):
                if mine.startswith("{") and mine.endswith("}"):
                    found.setdefault(mine[1:-1], set()).add(theirs.replace("~1", "/").replace("~0", "~"))
                elif mine != theirs:
                    break
    return {name: frozenset(words) for name, words in found.items()}


def _touched(template: ActionTemplate, narrowed: dict[str, Narrowed]) -> frozenset[str]:
    """Pointers of the effect under this choice; an argument that is none of the reported words meets nothing."""
    words = {name: choice.word if choice.word is not None else "\0" for name, choice in narrowed.items()}
    return pointers(fill(template.effect, words)) if template.effect is not None else frozenset()


def _residual(facts: Facts, touched: frozenset[str]) -> Node:
    free = [(pointer, value) for pointer, value in facts.reported if pointer not in touched]
    tree: dict[str, Json] = {}
    for pointer, value in free:
        place = tree
        *path, last = [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]
        for token in path:
            place = place.setdefault(token, {})
        place[last] = _Leaf(value)
    return _object(tree, nonempty=False)


class _Leaf:
    """A reported value, told apart from the objects on the way to it."""

    def __init__(self, value: Json) -> None:
        self.value = value


def _object(tree: dict[str, Json], *, nonempty: bool) -> Node:
    groups = tuple(Group((Variant(Words((escape(key),)), _value(value)),)) for key, value in tree.items())
    return Object(groups, len(groups), nonempty)


def _value(value: Json) -> Node:
    if not isinstance(value, _Leaf):
        return _object(value, nonempty=True)
    if isinstance(value.value, str):
        return Quoted(Words((escape(value.value),)))
    return Token(Words((dumps(value.value),)))
