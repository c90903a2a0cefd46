"""The token limit of a run: one number for all its levels, so long that no turn from `schema` up can reach it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from skillstate_local.domains.base import Domain
from skillstate_local.domains.level import Level, Order
from skillstate_local.domains.observation import MAX_FACTS, Event, vocabulary_of
from skillstate_local.domains.turn import REASONING_CLOSE, REASONING_OPEN, write_turn
from skillstate_local.domains.validate import JSON_LIMITS
from skillstate_local.grammar.action import well_formed_actions
from skillstate_local.grammar.measure import longest_bytes
from skillstate_local.grammar.patch import scalar_node
from skillstate_local.grammar.turn import GrammarBuilder, GrammarOptions
from skillstate_local.state.canonical import dumps
from skillstate_local.state.schema import Id

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def needed_tokens(domain: Domain, levels: Iterable[Level], reasoning_tokens: int) -> int:
    """The longest sentence of any level from `schema` up in bytes (no tokenizer needs more tokens), and the reasoning.

    `delta` is part of `schema`; a turn of `effects` is an action and no more than what O_t can report, and a run of
    `effects` alone needs no more: a limit that no turn can reach changes no result.
    """
    levels = set(levels)
    longest = _longest_effects(domain) if Level.EFFECTS in levels else 0
    if levels != {Level.EFFECTS}:
        schema = GrammarBuilder(domain, GrammarOptions(Level.SCHEMA)).build({})
        assert schema is not None  # a constrained level always has a grammar
        longest = max(longest, longest_bytes(schema.root))
    tags = len(f"{REASONING_OPEN}{REASONING_CLOSE}") if reasoning_tokens else 0
    return longest + reasoning_tokens + tags


def _longest_effects(domain: Domain) -> int:
    empty = write_turn({}, "", Order.ACTION_FIRST)
    return len(empty) + longest_bytes(well_formed_actions(domain)) + longest_report(domain)


def longest_report(domain: Domain) -> int:
    """Bytes of the largest residual patch: as many of the longest facts as one observation may report."""
    sizes = [_report_bytes(domain, event) for event in domain.observations.events if event.reports is not None]
    return MAX_FACTS * max(sizes, default=0)


def _report_bytes(domain: Domain, event: Event) -> int:
    text = dumps(event.reports)
    return len(text.encode()) + sum(_word_bytes(domain, name) for name in _PLACEHOLDER.findall(text))


def _word_bytes(domain: Domain, group: str) -> int:
    """The longest word that a named group of an event can put into a fact."""
    vocabulary = vocabulary_of(group)
    if vocabulary not in domain.schema.vocabularies:
        return 4 * JSON_LIMITS.string_chars
    return longest_bytes(scalar_node(domain.schema, Id(vocabulary)))
