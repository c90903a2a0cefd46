"""The contract of an engine: requests in, completions out, nothing weakened on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from skillstate_local.grammar.ir import Grammar


class StopReason(StrEnum):
    """Why a completion ended. ``LENGTH`` is never a finished turn."""

    GRAMMAR_END = "grammar_end"
    STOP = "stop"
    LENGTH = "length"


class StopWhen(StrEnum):
    """What ends an unconstrained completion besides the model's own end tokens."""

    END_TOKEN = "end_token"
    OBJECT_CLOSED = "object_closed"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt in two parts that are tokenised apart, so that P's tokens never change.

    ``prefix`` is P: authored, trusted, the same bytes at every step; its key-value blocks are computed once.
    ``tail`` is Σ and O: untrusted, so special tokens inside it are read as plain text.
    ``cue`` ends the prompt of a model without a chat template; with a template the assistant header takes its place.
    """

    prefix: str
    tail: str
    cue: str = ""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is drawn. Temperature 0 is greedy and ignores the rest."""

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """One completion to make. ``grammar`` None means unconstrained, which only the level `free` asks for.

    ``id`` names episode, step and attempt; engines use it in messages only.
    """

    id: str
    prompt: Prompt
    grammar: Grammar | None
    sampling: Sampling
    max_tokens: int
    stop_when: StopWhen = StopWhen.OBJECT_CLOSED


class Usage(NamedTuple):
    """Token counts of one completion; ``cached_tokens`` of the prompt were not computed again."""

    prompt_tokens: int
    cached_tokens: int
    output_tokens: int


class Timing(NamedTuple):
    """Where the seconds of one completion went. ``grammar_s`` is building and compiling, ``mask_s`` filling masks."""

    queue_s: float = 0.0
    grammar_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    mask_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Completion:
    """What came back. ``grammar_hash`` is empty when the request had no grammar."""

    text: str
    stop_reason: StopReason
    usage: Usage
    timing: Timing = Timing()
    grammar_hash: str = ""
    forced_tokens: int = 0


class Engine(Protocol):
    """Generates text. Many calls of ``generate`` run at once; each returns as soon as its own completion is there."""

    @property
    def name(self) -> str:
        """The engine's name in models.yaml and on the command line."""
        ...

    async def start(self, prefixes: Sequence[str]) -> None:
        """Load, check that grammars are enforced, and compute the key-value blocks of every P in ``prefixes``.

        Raises EnvironmentProblem if the model cannot be used here, ModelNotReady if its files are missing.
        """
        ...

    async def generate(self, request: Request) -> Completion:
        """Complete one request.

        Raises ContextTooShort before decoding if prompt and budget exceed the context, UnsupportedConstraint if the
        grammar cannot be enforced, GrammarError if it does not compile, EngineDied if the engine is lost.
        """
        ...

    async def close(self) -> None:
        """Release the model. Safe to call twice."""
        ...

    def count_tokens(self, text: str) -> int:
        """Number of tokens of ``text`` by the engine's own tokenizer."""
        ...

    def describe(self) -> Mapping[str, object]:
        """Everything about the engine that influences a result, for the run's record."""
        ...


@dataclass(slots=True)
class EngineStats:
    """Counters an engine keeps over its life, for benches and progress."""

    forward_passes: int = 0
    prefill_tokens: int = 0
    decoded_tokens: int = 0
    forced_tokens: int = 0
    grammar_builds: int = 0
    grammar_cache_hits: int = 0
    mask_s: float = 0.0
    extra: dict[str, float] = field(default_factory=dict)
