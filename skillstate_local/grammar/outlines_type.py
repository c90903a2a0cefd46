"""A domain as an output type of the ``outlines`` package, for those who generate with it.

model = outlines.from_transformers(model, tokenizer)
turn = model(prompt, output_type(WAREHOUSE, Level.SCHEMA), max_new_tokens=200)
"""

from __future__ import annotations

import importlib
from typing import Any

from skillstate_local.domains.base import Domain
from skillstate_local.domains.level import Level, Order
from skillstate_local.errors import EnvironmentProblem, UnsupportedConstraint
from skillstate_local.grammar.ir import Dialect
from skillstate_local.grammar.turn import GrammarBuilder, GrammarOptions


def output_type(
    domain: Domain,
    level: Level = Level.SCHEMA,
    order: Order = Order.PATCH_FIRST,
    dialect: Dialect = Dialect.LARK,
    reasoning_tokens: int = 0,
) -> Any:
    """What a model may answer: an ``outlines.types.CFG`` in Lark or EBNF, or in regex an ``outlines.types.Regex``.

    Lark is for outlines' own choice of backend for a CFG (``llguidance``), EBNF for ``backend="xgrammar"``. A Regex
    goes to outlines_core, which indexes the whole vocabulary first. Only the static levels `json` and `schema` have an
    output type: what is allowed at `delta` and `effects` depends on Σ_t and O_t.

    Raises UnsupportedConstraint for another level or dialect, or if the dialect cannot express the domain;
    EnvironmentProblem if outlines is not installed.
    """
    if not level.static:
        raise UnsupportedConstraint(
            f"an output type is one grammar for all steps, and level {level.value} has none",
            "Choose level json or schema; at delta and effects, use this package's own engines.",
        )
    if dialect is Dialect.GBNF or (dialect is Dialect.EBNF and reasoning_tokens):
        raise UnsupportedConstraint(
            f"outlines has no type for {dialect.value}{' with reasoning' if reasoning_tokens else ''}",
            "Choose the dialect lark.",
        )
    types = _outlines_types()
    grammar = GrammarBuilder(domain, GrammarOptions(level, order, reasoning_tokens)).build(domain.initial_state)
    assert grammar is not None
    text = grammar.write(dialect)
    return types.Regex(text) if dialect is Dialect.REGEX else types.CFG(text)


def _outlines_types() -> Any:
    try:
        return importlib.import_module("outlines.types")
    except ImportError:
        raise EnvironmentProblem(
            "outlines is not installed.", 'Install it with `pip install "skillstate-local[outlines]"`.'
        ) from None
