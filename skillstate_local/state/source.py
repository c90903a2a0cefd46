"""Grounding: where a value may come from. A small algebra over Σ_t, what O_t names, and vocabularies.

A source resolves to a finite set of strings. What cannot be resolved to one (an open vocabulary) is a type, not a
source.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from skillstate_local.state.canonical import Json

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class World:
    """What a step knows: Σ_t, the ids that O_t's events name by vocabulary, and the closed vocabularies."""

    state: Json
    seen: Mapping[str, frozenset[str]]
    closed: Mapping[str, tuple[str, ...]]
    _known: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What ``make`` returned the first time it was asked for under ``key`` in this step."""
        if key not in self._known:
            self._known[key] = make()
        made: Made = self._known[key]
        return made


class Source(Protocol):
    """Something that resolves to a finite set of strings."""

    def resolve(self, world: World) -> frozenset[str]:
        """The strings allowed here and now."""
        ...


@dataclass(frozen=True, slots=True)
class Seen:
    """Ids of ``vocabulary`` that an event of O_t names."""

    vocabulary: str

    def resolve(self, world: World) -> frozenset[str]:
        return world.seen.get(self.vocabulary, frozenset())


@dataclass(frozen=True, slots=True)
class Members:
    """All members of a closed vocabulary."""

    vocabulary: str

    def resolve(self, world: World) -> frozenset[str]:
        return frozenset(world.closed[self.vocabulary])


@dataclass(frozen=True, slots=True)
class Words:
    """A fixed list of strings."""

    words: tuple[str, ...]

    def resolve(self, world: World) -> frozenset[str]:
        return frozenset(self.words)


@dataclass(frozen=True, slots=True)
class KeysOf:
    """Keys of a table of Σ_t; with ``where``, only of entries whose record holds these values."""

    table: str
    where: tuple[tuple[str, Json], ...] = ()

    def resolve(self, world: World) -> frozenset[str]:
        return frozenset(key for key, value in entries(world, self.table) if matches(value, self.where))


@dataclass(frozen=True, slots=True)
class ValuesOf:
    """String values of a table of Σ_t, of a member of its records, or of a list or scalar field of Σ_t.

    ``at`` restricts a table to the entries under these keys.
    """

    table: str
    member: str = ""
    at: Source | None = None

    def resolve(self, world: World) -> frozenset[str]:
        held = world.state.get(self.table) if isinstance(world.state, dict) else None
        if isinstance(held, list):
            return _strings(held)
        if isinstance(held, str):
            return frozenset((held,))
        keys = None if self.at is None else self.at.resolve(world)
        found = (value for key, value in entries(world, self.table) if keys is None or key in keys)
        return _strings(v.get(self.member) if self.member and isinstance(v, dict) else v for v in found)


@dataclass(frozen=True, slots=True)
class Union:
    """What any of several sources allows."""

    sources: tuple[Source, ...]

    def resolve(self, world: World) -> frozenset[str]:
        return frozenset().union(*(source.resolve(world) for source in self.sources))


@dataclass(frozen=True, slots=True)
class Minus:
    """What ``base`` allows and ``excluded`` does not."""

    base: Source
    excluded: Source

    def resolve(self, world: World) -> frozenset[str]:
        return self.base.resolve(world) - self.excluded.resolve(world)


def entries(world: World, table: str) -> Iterable[tuple[str, Json]]:
    """The entries of a table of Σ_t; none when it is absent or not a table."""
    held = world.state.get(table) if isinstance(world.state, dict) else None
    return held.items() if isinstance(held, dict) else ()


def matches(value: Json, where: tuple[tuple[str, Json], ...]) -> bool:
    """Whether a record holds all the given member values."""
    return not where or (isinstance(value, dict) and all(value.get(name) == wanted for name, wanted in where))


def _strings(values: Iterable[Json]) -> frozenset[str]:
    return frozenset(value for value in values if isinstance(value, str))
