"""Actions: a command template with typed arguments, bound jointly to Σ_t and O_t, and its effect on Σ."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from skillstate_local.domains.observation import fill
from skillstate_local.state.canonical import Json
from skillstate_local.state.schema import ScalarType, Schema
from skillstate_local.state.source import Source, World, entries, matches
from skillstate_local.state.validate import scalar_problems

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: its type, and where its value may come from (None: its type alone decides, as for free text)."""

    type: ScalarType
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """Binds two arguments jointly to one entry of a table of Σ_t: this value under this key.

    ``member`` names a member of record values; ``where`` keeps only entries with these member values.
    """

    table: str
    key: str
    value: str
    member: str = ""
    where: tuple[tuple[str, Json], ...] = ()

    def pairs(self, world: World) -> frozenset[tuple[str, str]]:
        """All (key, value) pairs that hold now."""
        found = ((k, v.get(self.member) if self.member else v) for k, v in entries(world, self.table) if self._fits(v))
        return frozenset((key, value) for key, value in found if isinstance(value, str))

    def _fits(self, value: Json) -> bool:
        return matches(value, self.where) and (not self.member or isinstance(value, dict))


@dataclass(frozen=True, slots=True)
class ActionTemplate:
    """A command such as ``Ship {item} {shelf}``. ``effect`` is a patch template over the arguments; None: no effect."""

    template: str
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    joint: tuple[Entry, ...] = ()
    effect: Json = None
    description: str = ""

    @property
    def name(self) -> str:
        """The template's first word."""
        return self.template.split(" ", 1)[0]

    @property
    def parts(self) -> tuple[str, ...]:
        """Literal and argument name in turn, beginning and ending with a (possibly empty) literal."""
        return template_parts(self.template)


@lru_cache(maxsize=1024)
def template_parts(template: str) -> tuple[str, ...]:
    """Literal and name in turn, of an action's template or of a key in its effect."""
    return tuple(_PLACEHOLDER.split(template))


@dataclass(frozen=True, slots=True)
class Action:
    """One concrete action: its text, its template and the words bound to the arguments."""

    text: str
    template: ActionTemplate
    words: Mapping[str, str]

    @property
    def effect(self) -> Json:
        """The patch that this action's success means for Σ; ``{}`` when it has none."""
        return {} if self.template.effect is None else fill(self.template.effect, self.words)


def parse_action(schema: Schema, templates: tuple[ActionTemplate, ...], text: str) -> tuple[Action, ...]:
    """All readings of ``text`` by the templates and argument types; empty when it is malformed."""

    def fits(template: ActionTemplate) -> Callable[[str, str], bool]:
        return lambda name, word: not any(scalar_problems(schema, template.arguments[name].type, word, ""))

    return tuple(
        Action(text, template, words)
        for template in templates
        for words in bindings(template.parts, text, fits(template))
    )


def bindings(parts: tuple[str, ...], text: str, fits: Callable[[str, str], bool]) -> Iterator[dict[str, str]]:
    """Every way to read ``text`` as literals and named words in turn; ``fits`` judges a name and its word."""
    literal, rest = parts[0], parts[1:]
    if not text.startswith(literal):
        return
    text = text[len(literal) :]
    if not rest:
        if not text:
            yield {}
        return
    name, following = rest[0], rest[1]
    for end in _ends(text, following, last=len(rest) == 2):
        word = text[:end]
        if not fits(name, word):
            continue
        for others in bindings(rest[1:], text[end:], fits):
            if others.get(name, word) == word:
                yield {name: word} | others


def _ends(text: str, following: str, *, last: bool) -> Iterator[int]:
    if last and not following:
        yield len(text)
        return
    end = text.find(following, 0) if following else 0
    while end != -1 and end <= len(text):
        yield end
        end = text.find(following, end + 1) if following else (end + 1 if end < len(text) else -1)


def legality(action: Action, world: World) -> str:
    """Why the action's preconditions on (Σ_t, O_t) fail; empty when it is legal."""
    for name, word in action.words.items():
        source = action.template.arguments[name].source
        if source is not None and word not in source.resolve(world):
            return f"{word!r} cannot be {name} of {action.template.name} here"
    for entry in action.template.joint:
        pair = (action.words[entry.key], action.words[entry.value])
        if pair not in entry.pairs(world):
            return f"{pair[1]!r} is not under {pair[0]!r} in {entry.table}"
    return ""
