"""Class 3 of BENCH.md: does a patch destroy what Σ_t holds and the step does not concern?

A patch is judged by the state it leads to under the merge in force, so the same text may lose data under a shallow
merge and none under ⊕. Whether the patch was accepted plays no part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from skillstate_local.domains.base import Domain
from skillstate_local.domains.observation import Facts
from skillstate_local.domains.turn import Turn
from skillstate_local.state.canonical import Json
from skillstate_local.state.diff import lost_or_changed, pointers
from skillstate_local.state.merge import MergeMode
from skillstate_local.state.policy import named_entries
from skillstate_local.state.schema import FieldKind, ListField, Record, Table


class Situation(NamedTuple):
    """What a turn met: Σ_t, the facts of O_t, and the patch that was right."""

    state: Json
    facts: Facts
    oracle_patch: Json


def destroys(domain: Domain, situation: Situation, turn: Turn, merge: MergeMode = MergeMode.DEEP) -> bool:
    """Whether the patch nulls or replaces a container, or removes or changes a pointer of Σ_t outside C.

    At level `effects` the turn's patch is the residual alone: the runtime's own effect destroys nothing by mistake.
    """
    if breaks_container(domain.schema.root, situation.state, turn.patch):
        return True
    lost = lost_or_changed(situation.state, domain.apply(situation.state, turn.patch, merge))
    return bool(lost) and not _all_inside(lost, concerned(domain, situation, turn.action))


def concerned(domain: Domain, situation: Situation, action: str) -> frozenset[str]:
    """C: the pointers that this step may remove or change.

    Those of the effect of every reading of ``action``, those of the oracle's patch, the entries of Σ_t that O_t names,
    and what O_t itself reports. What such a patch changes in Σ_t is added to what it names, because a list operation
    names ``/field/-`` and changes ``/field``.
    """
    state, facts, oracle_patch = situation
    named = named_entries(domain.schema, domain.world(state, facts))
    reported = frozenset(pointer for pointer, _ in facts.reported)
    patches = [oracle_patch, *(reading.effect for reading in domain.readings(action))]
    touched = (pointers(patch) | lost_or_changed(state, domain.apply(state, patch)) for patch in patches)
    return (named | reported).union(*touched)


def breaks_container(kind: FieldKind, held: Json, change: Json) -> bool:
    """Whether ``change`` nulls or replaces a container at which Σ_t now holds one, be it empty or not.

    Replacing means a non-object in the place of an object. Not broken in this sense, but judged by C like any other
    loss: an entry of a table or a field whose author allows deletion that is nulled, and a list put in a list's place.
    """
    if not isinstance(kind, (Record, Table)) or not isinstance(held, dict):
        return isinstance(kind, ListField) and isinstance(held, list) and change is None
    if not isinstance(change, dict):
        return True
    return any(breaks_container(member, old, new) for member, old, new in _shared(kind, held, change))


class _Member(NamedTuple):
    kind: FieldKind
    held: Json
    change: Json


def _shared(kind: Record | Table, held: dict[str, Json], change: dict[str, Json]) -> Iterator[_Member]:
    """The members that both have, without deletions that are ordinary."""
    for key in change.keys() & held.keys():
        member = kind.value if isinstance(kind, Table) else kind.members.get(key)
        if member is None or (change[key] is None and (isinstance(kind, Table) or member.deletable)):
            continue
        yield _Member(member, held[key], change[key])


def _all_inside(lost: frozenset[str], allowed: frozenset[str]) -> bool:
    return all(any(one == outer or one.startswith(f"{outer}/") for outer in allowed) for one in lost)
