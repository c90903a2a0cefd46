"""The engine of a run, made from the registry's entry, and the scripts that need no model."""

from __future__ import annotations

import asyncio
import inspect
from importlib.util import find_spec
from typing import Any

from skillstate_local.domains.level import Level, Order
from skillstate_local.engine.base import Completion, Engine, Request
from skillstate_local.engine.scripted import ScriptedEngine, chance_engine
from skillstate_local.environments.base import Environment
from skillstate_local.environments.oracle import oracle_engine
from skillstate_local.errors import EnvironmentProblem, UsageError
from skillstate_local.registry import Model, Registry, require_path
from skillstate_local.runs.config import CHANCE, RunConfig

_NEEDS = {"transformers": ("torch", "transformers", "llguidance", "xgrammar")}


def make_engine(config: RunConfig, registry: Registry) -> Engine:
    """The engine of a run, not started yet.

    Raises EnvironmentProblem if an extra is missing, ModelNotReady if the model is, UsageError for a wrong setting.
    """
    model = registry.get(config.model)
    folder = require_path(config.model, registry)
    missing = [name for name in _NEEDS[config.engine] if find_spec(name) is None]
    if missing:
        raise EnvironmentProblem(
            f"The engine {config.engine!r} needs {', '.join(missing)}, not installed here.",
            f"pip install 'skillstate-local[{config.engine}]'",
        )
    from skillstate_local.engine.transformers import TransformersEngine

    settings: dict[str, Any] = {"max_batch": model.limits.max_batch} | _settings(
        model, config.engine, TransformersEngine
    )
    return TransformersEngine(
        folder,
        grammar_backend=config.grammar_backend,
        context_tokens=model.limits.context_tokens,
        chat_template=model.template_path or model.template,
        **settings,
    )


def scripted_engine(script: str, environment: Environment, level: Level, order: Order) -> Engine:
    """The oracle of an environment, or chance."""
    inner = chance_engine() if script == CHANCE else oracle_engine(environment, level, order)
    return _Cooperative(inner)


class _Cooperative(ScriptedEngine):
    """A script answers at once; this lets other episodes and signals in before each answer."""

    def __init__(self, inner: ScriptedEngine) -> None:
        super().__init__(inner.name, lambda _: "")
        self._inner = inner

    async def generate(self, request: Request) -> Completion:
        await asyncio.sleep(0)
        return await self._inner.generate(request)


def _settings(model: Model, engine: str, kind: type) -> dict[str, Any]:
    """What models.yaml passes through to the engine."""
    settings = model.settings(engine)
    fixed = {"self", "model_dir", "name", "grammar_backend", "context_tokens", "chat_template"}
    known = inspect.signature(kind.__init__).parameters.keys() - fixed  # type: ignore[misc]
    for name in settings:
        if name not in known:
            raise UsageError(
                f"{model.file}: {model.name}: engine {engine!r} has no setting {name!r}.",
                f"Known: {', '.join(sorted(known))}.",
            )
    return settings
