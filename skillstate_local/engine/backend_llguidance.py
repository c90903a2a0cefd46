"""llguidance: Lark grammars, cheap to build anew at every step, with canonical forced tokens."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import llguidance.hf
from llguidance import LLMatcher

from skillstate_local.engine.backends import Compiled, Mask, Matcher, TokenFilter, special_tokens
from skillstate_local.errors import GrammarError
from skillstate_local.grammar.ir import Dialect, Grammar

_ENDED = frozenset({"NoExtension", "NoExtensionBias", "EndOfSentence"})


class LLGuidanceMatcher:
    """Wraps an LLMatcher, which reports errors as a state; here every error state is raised."""

    def __init__(self, inner: Any, token_filter: TokenFilter, jump: bool) -> None:
        self._inner = inner
        self._filter = token_filter
        self._jump = jump

    def fill(self, mask: Mask) -> None:
        self._inner.unsafe_compute_mask_ptr(mask.ctypes.data, mask.nbytes)
        self._raise_error()
        self._filter.apply(mask, may_end=bool(self._inner.is_accepting()))

    def accept(self, token: int) -> None:
        if not self._inner.consume_token(token):
            self._raise_error()
            raise GrammarError(f"The grammar rejected token {token}.")

    def is_complete(self) -> bool:
        if not self._inner.is_stopped():
            return False
        self._raise_error()
        reason = self._inner.stop_reason()
        if reason not in _ENDED:
            raise GrammarError(f"llguidance stopped: {reason}.", "The grammar exceeds a limit of the library.")
        return True

    def forced_tokens(self) -> list[int]:
        if not self._jump:
            return []
        tokens = [int(t) for t in self._inner.compute_ff_tokens()]
        self._raise_error()
        return tokens

    def _raise_error(self) -> None:
        if self._inner.is_error():
            message = str(self._inner.get_error()).splitlines()[0]
            raise GrammarError(f"llguidance: {message}")


class LLGuidanceCompiled:
    """A grammar as llguidance keeps it; matchers are copies of its first state."""

    def __init__(self, inner: Any, token_filter: TokenFilter, jump: bool) -> None:
        self._inner = inner
        self._filter = token_filter
        self._jump = jump

    def matcher(self) -> Matcher:
        return LLGuidanceMatcher(self._inner.deep_copy(), self._filter, self._jump)


class LLGuidanceBackend:
    """llguidance bound to a tokenizer. Forced tokens are given only if the library calls the tokenizer canonical."""

    name = "llguidance"
    dialect = Dialect.LARK

    def __init__(self, tokenizer: Any, vocab_size: int, end_tokens: Sequence[int]) -> None:
        self.version = version("llguidance")
        self._special = special_tokens(tokenizer)
        self._filter = TokenFilter(vocab_size, list(self._special), end_tokens)
        self._tokenizer = llguidance.hf.from_tokenizer(tokenizer, n_vocab=vocab_size, eos_token=list(end_tokens))
        self.canonical = bool(self._tokenizer.is_canonical)

    def compile(self, grammar: Grammar) -> Compiled:
        text = LLMatcher.grammar_from_lark(grammar.write(Dialect.LARK))
        inner = LLMatcher(self._tokenizer, text, log_level=0)
        if inner.is_error():
            raise GrammarError(
                f"llguidance cannot compile the grammar: {inner.get_error()}",
                "Lower the bounds of the domain, or its number of keys.",
            )
        return LLGuidanceCompiled(inner, self._filter, self.canonical)

    def token_bytes(self, token: int) -> bytes:
        special = self._special.get(token)
        if special is not None:
            return special.encode()
        return bytes(self._tokenizer.decode_bytes([token]))
