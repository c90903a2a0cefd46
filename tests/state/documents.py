"""Random JSON documents for the laws of ⊕."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import strategies as st

from skillstate_local.state.canonical import Json

KEYS = st.sampled_from(("a", "b", "c", "", "é", "漢", "😀", 'q"', "\\", "/", "~", "+", "-", "a/b", "\n", "\x7f"))
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
NUMBERS = st.one_of(
    st.integers(-(10**18), 10**18),
    st.builds(lambda units, scale: Decimal(units).scaleb(-scale), st.integers(1, 10**9), st.integers(1, 6)),
)
SCALARS = st.one_of(TEXTS, NUMBERS, st.booleans())


def documents(*, nulls: bool, leaves: int = 25) -> st.SearchStrategy[Json]:
    """Any JSON; with ``nulls`` also as members. Arrays may hold nulls in either case."""
    scalars = st.one_of(SCALARS, st.none()) if nulls else SCALARS

    def containers(children: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
        items = st.lists(st.one_of(children, st.none()), max_size=3)
        return st.one_of(st.dictionaries(KEYS, children, max_size=4), items)

    return st.recursive(scalars, containers, max_leaves=leaves)


def objects(*, nulls: bool) -> st.SearchStrategy[Json]:
    """Documents that are objects, as states and patches are."""
    return st.dictionaries(KEYS, documents(nulls=nulls), max_size=5)
