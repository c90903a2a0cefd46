"""The language of actions: every well-formed command, or only those that are legal on Σ_t and O_t."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

from skillstate_local.domains.action import ActionTemplate, Argument
from skillstate_local.domains.base import Domain
from skillstate_local.errors import GrammarError
from skillstate_local.grammar.ir import Alt, Lit, Node, Quoted, Repeat, Seq, Words, alternatives, words_node
from skillstate_local.grammar.text import any_character, excluding, pattern_node
from skillstate_local.state.canonical import escape
from skillstate_local.state.schema import Choice, Id, OneOf, Pattern, ScalarType, Schema, Text
from skillstate_local.state.source import World
from skillstate_local.state.validate import scalar_problems, typed_words

MAX_JOINT_ASSIGNMENTS = 10_000


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A restriction of one argument: exactly this word, or none of these."""

    word: str | None = None
    excluded: frozenset[str] = frozenset()

    def allows(self, word: str) -> bool:
        """Whether ``word`` passes the restriction."""
        return word == self.word if self.word is not None else word not in self.excluded


def well_formed_actions(domain: Domain) -> Node:
    """Any action that fits a template and its argument types, whatever Σ and O say."""
    nodes = [
        _content(template, {n: type_content(domain.schema, a.type) for n, a in template.arguments.items()})
        for template in domain.actions
    ]
    return alternatives([Quoted(node) for node in nodes])


def legal_actions(domain: Domain, worlds: tuple[World, ...]) -> Node | None:
    """The actions that are legal in any of ``worlds``; None when there are none."""
    nodes = [node for template in domain.actions if (node := template_node(domain, template, worlds)) is not None]
    return alternatives(nodes) if nodes else None


def template_node(
    domain: Domain,
    template: ActionTemplate,
    worlds: tuple[World, ...],
    narrowed: Mapping[str, Narrowed] | None = None,
) -> Node | None:
    """The legal instances of one template as a JSON string; None when there are none."""
    found = [_legal(domain.schema, template, world, narrowed or {}) for world in worlds]
    nodes: list[Node] = [Quoted(node) for node in found if node is not None]
    return alternatives(nodes) if nodes else None


def _legal(schema: Schema, template: ActionTemplate, world: World, narrowed: Mapping[str, Narrowed]) -> Node | None:
    joint = {name for entry in template.joint for name in (entry.key, entry.value)}
    nodes: dict[str, Node] = {}
    for name, argument in template.arguments.items():
        if name not in joint:
            node = _argument(schema, argument, world, narrowed.get(name))
            if node is None:
                return None
            nodes[name] = node
    if not joint:
        return _content(template, nodes)
    place = _side_by_side(template)
    if place and narrowed.keys().isdisjoint(joint):
        span = world.once(_pair_key(template, place), lambda: _pair_words(schema, template, world, place))
        return None if span is None else _around(template, place, place + 2, span, nodes)
    return _jointly(template, _assignments(schema, template, world, narrowed), nodes)


def _argument(schema: Schema, argument: Argument, world: World, narrowed: Narrowed | None) -> Node | None:
    if argument.source is None:
        if narrowed is not None and narrowed.word is not None:
            return Lit(escape(narrowed.word)) if _typed(schema, argument.type, narrowed.word) else None
        content = type_content(schema, argument.type)
        return content if narrowed is None else excluding(content, map(escape, narrowed.excluded))
    if narrowed is None:
        return world.once((id(argument.source), argument.type), lambda: _words(schema, argument, world, Narrowed()))
    return _words(schema, argument, world, narrowed)


def _words(schema: Schema, argument: Argument, world: World, narrowed: Narrowed) -> Words | None:
    words = argument.source.resolve(world) if argument.source is not None else frozenset()
    return words_node(escape(word) for word in typed_words(schema, argument.type, words) if narrowed.allows(word))


def _side_by_side(template: ActionTemplate) -> int:
    """The place among the parts of the first of the only two joint arguments, if just a literal is between; else 0."""
    names = template.parts[1::2]
    if len(template.joint) != 1 or len(set(names)) < len(names):
        return 0
    places = sorted(names.index(name) for name in (template.joint[0].key, template.joint[0].value))
    return 2 * places[0] + 1 if places[1] == places[0] + 1 else 0


def _pair_key(template: ActionTemplate, place: int) -> Hashable:
    """Templates that bind alike (Ship and Move, say) share one vocabulary of pairs."""
    entry, (first, between, second) = template.joint[0], template.parts[place : place + 3]
    kinds = [(template.arguments[n].type, id(template.arguments[n].source)) for n in (first, second)]
    return (entry.table, entry.member, repr(entry.where), first == entry.key, between, *kinds)


def _pair_words(schema: Schema, template: ActionTemplate, world: World, place: int) -> Words | None:
    entry, (first, between, second) = template.joint[0], template.parts[place : place + 3]
    found = entry.pairs(world)
    pairs = found if first == entry.key else [(value, key) for key, value in found]
    lefts = _fitting(schema, template.arguments[first], world, {left for left, _ in pairs}, None)
    rights = _fitting(schema, template.arguments[second], world, {right for _, right in pairs}, None)
    literal = escape(between)
    return words_node(escape(a) + literal + escape(b) for a, b in pairs if a in lefts and b in rights)


def _around(template: ActionTemplate, first: int, last: int, span: Node, nodes: Mapping[str, Node]) -> Node:
    """The template with one node in the place of the parts from ``first`` to ``last``."""
    return Seq((_run(template.parts[:first], nodes), span, _run(template.parts[last + 1 :], nodes)))


def _typed(schema: Schema, kind: ScalarType, word: str) -> bool:
    return not any(scalar_problems(schema, kind, word, ""))


def _assignments(
    schema: Schema, template: ActionTemplate, world: World, narrowed: Mapping[str, Narrowed]
) -> list[dict[str, str]]:
    """All joint bindings of the arguments that entries of Σ_t bind together."""
    found: list[dict[str, str]] = [{}]
    for entry in template.joint:
        pairs = [{entry.key: key, entry.value: value} for key, value in sorted(entry.pairs(world))]
        found = [old | new for old in found for new in pairs if all(old.get(k, v) == v for k, v in new.items())]
        if len(found) > MAX_JOINT_ASSIGNMENTS:
            raise GrammarError(f"{template.template!r} has more than {MAX_JOINT_ASSIGNMENTS} joint bindings")
    for name in found[0] if found else ():
        fitting = _fitting(
            schema, template.arguments[name], world, {words[name] for words in found}, narrowed.get(name)
        )
        found = [words for words in found if words[name] in fitting]
    return found


def _fitting(
    schema: Schema, argument: Argument, world: World, words: set[str], narrowed: Narrowed | None
) -> frozenset[str]:
    typed = frozenset(typed_words(schema, argument.type, words))
    if argument.source is not None:
        typed &= argument.source.resolve(world)
    return typed if narrowed is None else frozenset(word for word in typed if narrowed.allows(word))


def _jointly(template: ActionTemplate, assignments: list[dict[str, str]], nodes: Mapping[str, Node]) -> Node | None:
    """Joint arguments that stand side by side become one vocabulary; others are written out binding by binding."""
    if not assignments:
        return None
    parts = template.parts
    places = [i for i in range(1, len(parts), 2) if parts[i] in assignments[0]]
    first, last = places[0], places[-1]
    if places == list(range(first, last + 1, 2)):
        spans = ("".join(_spelled(parts[i], i, words) for i in range(first, last + 1)) for words in assignments)
        span = words_node(spans)
        assert span is not None
        return _around(template, first, last, span, nodes)
    return Alt(tuple(_content(template, {**nodes, **{n: Lit(escape(w)) for n, w in a.items()}}) for a in assignments))


def _spelled(part: str, index: int, words: Mapping[str, str]) -> str:
    return escape(words[part] if index % 2 else part)


def _run(parts: Iterable[str], nodes: Mapping[str, Node]) -> Node:
    """Literals and arguments in turn, beginning with a literal in either case."""
    return Seq(tuple(nodes[part] if i % 2 else Lit(escape(part)) for i, part in enumerate(parts)))


def _content(template: ActionTemplate, nodes: Mapping[str, Node]) -> Node:
    return _run(template.parts, nodes)


def type_content(schema: Schema, kind: ScalarType) -> Node:
    """The content of a JSON string of a scalar type. Raises GrammarError for a type that is no string."""
    match kind:
        case Text():
            return Repeat(any_character(), kind.min_chars, kind.max_chars)
        case Pattern(regex):
            return pattern_node(regex)
        case Choice(values):
            return Words(tuple(sorted({escape(value) for value in values})))
        case Id(name):
            vocabulary = schema.vocabularies[name]
            if vocabulary.members:
                return Words(tuple(sorted({escape(word) for word in vocabulary.members})))
            return pattern_node(vocabulary.pattern)
        case OneOf(types):
            return Alt(tuple(type_content(schema, option) for option in types))
    raise GrammarError(f"an action argument must be a string, not {type(kind).__name__}")
