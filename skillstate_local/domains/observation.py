"""What an observation says: which ids its events name, and which facts it reports.

Only event lines ground anything. A result line of the previous action and whatever follows the noise header are
ignored, so text that imitates an event there grounds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from skillstate_local.state.canonical import Json
from skillstate_local.state.diff import leaves, nest

MAX_FACTS = 16
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class Event:
    """A line that matches ``pattern`` (whole line); its named groups are vocabularies: ``(?P<item>…)``.

    ``reports`` is a patch template: what this line states as a fact about Σ, e.g.
    ``{"inventory": {"{shelf}": "{item}"}}``. Facts are what the residual patch of level `effects` may hold.
    """

    name: str
    pattern: str
    reports: Json = None


@dataclass(frozen=True, slots=True)
class ObservationFormat:
    """How to read O_t line by line."""

    events: tuple[Event, ...]
    result_prefixes: tuple[str, ...] = ()
    noise_header: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What one observation names (by vocabulary) and reports (leaf patches, one per pointer)."""

    seen: Mapping[str, frozenset[str]]
    reported: tuple[tuple[str, Json], ...] = ()
    events: tuple[str, ...] = ()


NO_FACTS = Facts({})


def read_observation(form: ObservationFormat, text: str) -> Facts:
    """Extract the facts of one observation. Lines no event pattern matches mean nothing."""
    seen: dict[str, set[str]] = {}
    reported: dict[str, Json] = {}
    names: list[str] = []
    for line in text.split("\n"):
        if form.noise_header and line.startswith(form.noise_header):
            break
        if line.startswith(form.result_prefixes or ("\0",)):
            continue
        for event in form.events:
            match = _compiled(event.pattern).fullmatch(line)
            if match is None:
                continue
            names.append(event.name)
            groups = {key: value for key, value in match.groupdict().items() if value is not None}
            for group, word in groups.items():
                seen.setdefault(vocabulary_of(group), set()).add(word)
            reported.update(_reports(event, groups))
            break
    return Facts(
        {name: frozenset(words) for name, words in seen.items()},
        tuple(sorted(reported.items()))[:MAX_FACTS],
        tuple(names),
    )


def _reports(event: Event, groups: Mapping[str, str]) -> Iterator[tuple[str, Json]]:
    """The leaves of what a line reports; a part that depends on a group which the line left out is not reported."""
    for pointer, value in leaves(event.reports):
        if pointer and groups.keys() >= set(_PLACEHOLDER.findall(f"{pointer} {value}")):
            yield from leaves(fill(nest(pointer, value), groups))


def vocabulary_of(group: str) -> str:
    """The vocabulary a named group stands for: ``shelf`` and ``shelf__from`` both name shelves."""
    return group.split("__", 1)[0]


def fill(template: Json, words: Mapping[str, str]) -> Json:
    """A patch template with every ``{name}`` in keys and strings replaced by its word."""
    if isinstance(template, dict):
        return {_filled(key, words): fill(value, words) for key, value in template.items()}
    if isinstance(template, list):
        return [fill(item, words) for item in template]
    return _filled(template, words) if isinstance(template, str) else template


def _filled(text: str, words: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda m: words.get(m.group(1), m.group(0)), text)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)
