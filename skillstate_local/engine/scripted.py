"""Engines without a model: a callable that answers, and chance sampled from the intermediate form of the grammar."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from skillstate_local.engine.base import Completion, Request, StopReason, Usage
from skillstate_local.errors import UnsupportedConstraint
from skillstate_local.grammar.sample import sample

Script = Callable[[Request], str]


class ScriptedEngine:
    """Answers every request by a callable; counts characters as tokens."""

    def __init__(self, name: str, script: Script) -> None:
        self._name = name
        self._script = script

    @property
    def name(self) -> str:
        return self._name

    async def start(self, prefixes: Sequence[str]) -> None:
        """Nothing to load."""

    async def generate(self, request: Request) -> Completion:
        text = self._script(request)
        prompt = request.prompt.prefix + request.prompt.tail + request.prompt.cue
        usage = Usage(self.count_tokens(prompt), 0, self.count_tokens(text))
        key = request.grammar.key if request.grammar is not None else ""
        reason = StopReason.GRAMMAR_END if request.grammar is not None else StopReason.STOP
        return Completion(text, reason, usage, grammar_hash=key)

    async def close(self) -> None:
        """Nothing to release."""

    def count_tokens(self, text: str) -> int:
        return len(text)

    def describe(self) -> Mapping[str, object]:
        return {"engine": self._name}


def chance_engine() -> ScriptedEngine:
    """Answers with a random sentence of the request's grammar, drawn by the request's own seed."""

    def answer(request: Request) -> str:
        if request.grammar is None:
            raise UnsupportedConstraint("chance needs a grammar to draw from; level free has none")
        return sample(request.grammar.root, Random(request.sampling.seed))

    return ScriptedEngine("chance", answer)
