"""A domain as an output type of the outlines package, run through outlines itself."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from skillstate_local.domains.level import Level, Order
from skillstate_local.domains.observation import NO_FACTS
from skillstate_local.domains.validate import Rules, is_decodable, validate
from skillstate_local.domains.warehouse import WAREHOUSE
from skillstate_local.errors import EnvironmentProblem, UnsupportedConstraint
from skillstate_local.grammar.ir import Dialect
from skillstate_local.grammar.outlines_type import output_type
from tests.engine.conftest import build_model

pytestmark = pytest.mark.filterwarnings("ignore:.*script_method.*:DeprecationWarning")  # torch, from torch.compile

EMPTY = {"inventory": {}}
CHOICES = ((Dialect.LARK, None), (Dialect.EBNF, "xgrammar"), (Dialect.REGEX, None))
PROMPT = "Shipment arrived containing item_9. Answer with one JSON object:\n"


def generated(model: Any, dialect: Dialect, backend: str | None) -> str:
    """What a model answers under the output type."""
    outlines = importlib.import_module("outlines")
    generator = outlines.Generator(model, output_type(WAREHOUSE, dialect=dialect), backend=backend)
    return str(generator(PROMPT, max_new_tokens=150, do_sample=False))


def is_turn(text: str) -> bool:
    """Whether an answer is a valid turn at `schema`."""
    return is_decodable(validate(text, WAREHOUSE, EMPTY, NO_FACTS, Rules(Level.SCHEMA)), Level.SCHEMA)


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A random model: what is well formed in its answers, the output type has made so."""
    return loaded(build_model(tmp_path_factory.mktemp("tiny"), "llama"))


def loaded(folder: Path) -> Any:
    """A model as outlines wants it."""
    import outlines
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return outlines.from_transformers(
        AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    )


@pytest.mark.parametrize(("dialect", "backend"), CHOICES)
def test_a_random_model_answers_with_a_valid_turn(tiny_model: Any, dialect: Dialect, backend: str | None) -> None:
    assert is_turn(generated(tiny_model, dialect, backend))


@pytest.mark.slow
@pytest.mark.model
def test_a_real_model_answers_with_a_valid_turn() -> None:
    from skillstate_local.registry import ready_path

    folder = ready_path("smollm2-135m-instruct")
    assert folder is not None, "run `python -m skillstate_local models pull smollm2-135m-instruct`"
    assert is_turn(generated(loaded(folder), Dialect.LARK, None))


def test_the_type_follows_the_dialect_level_and_order() -> None:
    from outlines.types import CFG, Regex

    assert isinstance(output_type(WAREHOUSE), CFG)
    assert isinstance(output_type(WAREHOUSE, Level.JSON), CFG)
    regex = output_type(WAREHOUSE, order=Order.ACTION_FIRST, dialect=Dialect.REGEX)
    assert isinstance(regex, Regex)
    assert regex.pattern.startswith(r'\{"action"')


@pytest.mark.parametrize("level", [Level.FREE, Level.DELTA, Level.EFFECTS])
def test_levels_that_depend_on_the_step_have_no_type(level: Level) -> None:
    with pytest.raises(UnsupportedConstraint, match=level.value):
        output_type(WAREHOUSE, level)


def test_dialects_that_outlines_does_not_read_are_refused() -> None:
    with pytest.raises(UnsupportedConstraint, match="gbnf"):
        output_type(WAREHOUSE, dialect=Dialect.GBNF)
    with pytest.raises(UnsupportedConstraint, match="ebnf with reasoning"):
        output_type(WAREHOUSE, dialect=Dialect.EBNF, reasoning_tokens=5)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from skillstate_local.grammar import outlines_type

    def missing(_: str) -> Any:
        raise ImportError

    monkeypatch.setattr(outlines_type.importlib, "import_module", missing)
    with pytest.raises(EnvironmentProblem, match=r"outlines\]"):
        output_type(WAREHOUSE)
