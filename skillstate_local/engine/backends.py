"""Grammar libraries behind one protocol: compile a grammar, then fill a bit mask and accept a token by turns."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from skillstate_local.engine.base import EngineStats
from skillstate_local.errors import UsageError
from skillstate_local.grammar.ir import Dialect, Grammar

Mask = npt.NDArray[np.int32]
CACHED_GRAMMARS = 32


class Matcher(Protocol):
    """Where one completion stands in its grammar. Every method raises GrammarError rather than let anything through."""

    def fill(self, mask: Mask) -> None:
        """Write the allowed tokens as bits (``[ceil(vocab / 32)]``); end tokens only where the grammar may end."""
        ...

    def accept(self, token: int) -> None:
        """Move on by one token."""
        ...

    def is_complete(self) -> bool:
        """True when the language has ended: nothing but an end token could follow."""
        ...

    def forced_tokens(self) -> list[int]:
        """Tokens that must follow, in the tokenizer's own segmentation; may be empty."""
        ...


class Compiled(Protocol):
    """A compiled grammar, from which any number of completions can start."""

    def matcher(self) -> Matcher:
        """A matcher at the start of the language."""
        ...


class GrammarBackend(Protocol):
    """A grammar library bound to a tokenizer."""

    @property
    def name(self) -> str:
        """``llguidance`` or ``xgrammar``."""
        ...

    @property
    def version(self) -> str:
        """The library's version."""
        ...

    @property
    def dialect(self) -> Dialect:
        """What its grammars are written in."""
        ...

    def compile(self, grammar: Grammar) -> Compiled:
        """Raises GrammarError with the library's message, UnsupportedConstraint if it cannot express the grammar."""
        ...

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token, special tokens as their own text."""
        ...


class TokenFilter:
    """Bit operations on masks: special tokens never, end tokens only where a grammar may end."""

    def __init__(self, vocab_size: int, special: Sequence[int], end_tokens: Sequence[int]) -> None:
        words = -(-vocab_size // 32)
        self.end_tokens = tuple(end_tokens)
        self._keep = np.full(words, -1, dtype=np.int32)
        self._ends = np.zeros(words, dtype=np.int32)
        for token in {*special, *end_tokens}:
            if token < vocab_size:
                self._keep[token >> 5] &= ~_bit(token)
        for token in end_tokens:
            self._ends[token >> 5] |= _bit(token)
        for token in range(vocab_size, words * 32):
            self._keep[token >> 5] &= ~_bit(token)

    def apply(self, mask: Mask, may_end: bool) -> None:
        """Clear special and end tokens, then allow the end tokens if the grammar may end here."""
        np.bitwise_and(mask, self._keep, out=mask)
        if may_end:
            np.bitwise_or(mask, self._ends, out=mask)


def _bit(token: int) -> np.int32:
    return np.uint32(1 << (token & 31)).astype(np.int32)


def special_tokens(tokenizer: Any) -> dict[int, str]:
    """The added tokens that the tokenizer flags as special: never text, so never inside a grammar."""
    return {int(i): str(t) for i, t in tokenizer.added_tokens_decoder.items() if t.special}


def make_backend(name: str, tokenizer: Any, vocab_size: int, end_tokens: Sequence[int]) -> GrammarBackend:
    """Bind a library to a tokenizer; takes seconds for a large vocabulary. Raises UsageError for an unknown name."""
    if name == "llguidance":
        from skillstate_local.engine.backend_llguidance import LLGuidanceBackend

        return LLGuidanceBackend(tokenizer, vocab_size, end_tokens)
    if name == "xgrammar":
        from skillstate_local.engine.backend_xgrammar import XGrammarBackend

        return XGrammarBackend(tokenizer, vocab_size, end_tokens)
    if name == "outlines":
        from skillstate_local.engine.backend_outlines import OutlinesBackend

        return OutlinesBackend(tokenizer, vocab_size, end_tokens)
    raise UsageError(f"Unknown grammar backend {name!r}.", "Known: llguidance, xgrammar, outlines.")


class GrammarCache:
    """Compiled grammars by key: static ones kept apart, so that step grammars (kept for retries) cannot push them out.

    Called from several threads; two threads that miss at once both compile, which is harmless.
    """

    def __init__(self, backend: GrammarBackend, stats: EngineStats) -> None:
        self._backend = backend
        self._stats = stats
        self._lock = Lock()
        self._kept: Mapping[bool, OrderedDict[str, Compiled]] = {True: OrderedDict(), False: OrderedDict()}

    def matcher(self, grammar: Grammar) -> Matcher:
        """A fresh matcher for a grammar, compiled now unless it is kept."""
        kept = self._kept[grammar.static]
        with self._lock:
            compiled = kept.get(grammar.key)
            if compiled is not None:
                kept.move_to_end(grammar.key)
                self._stats.grammar_cache_hits += 1
        if compiled is None:
            compiled = self._backend.compile(grammar)
            self._keep(kept, grammar.key, compiled)
        return compiled.matcher()

    def _keep(self, kept: OrderedDict[str, Compiled], key: str, compiled: Compiled) -> None:
        with self._lock:
            self._stats.grammar_builds += 1
            kept[key] = compiled
            while len(kept) > CACHED_GRAMMARS:
                kept.popitem(last=False)
