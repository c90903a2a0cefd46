"""xgrammar: EBNF grammars; the fastest masks for closed languages, slow to build where strings are bounded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import xgrammar

from skillstate_local.engine.backends import Compiled, Mask, Matcher, TokenFilter, special_tokens
from skillstate_local.engine.objects import REASONING_CLOSE, REASONING_OPEN
from skillstate_local.errors import GrammarError, UnsupportedConstraint
from skillstate_local.grammar.ir import Dialect, Grammar


class XGrammarMatcher:
    """Wraps a GrammarMatcher. It gives no forced tokens: the library forces text, not the tokenizer's segmentation."""

    def __init__(self, inner: Any, token_filter: TokenFilter, words: int) -> None:
        self._inner = inner
        self._filter = token_filter
        self._scratch = np.zeros((1, words), dtype=np.int32)

    def fill(self, mask: Mask) -> None:
        self._fill(mask.reshape(1, -1))
        self._filter.apply(mask, may_end=bool(self._inner.is_completed()))

    def accept(self, token: int) -> None:
        if not self._inner.accept_token(token):
            raise GrammarError(f"The grammar rejected token {token}.")

    def is_complete(self) -> bool:
        if self._inner.is_terminated():
            return True
        if not self._inner.is_completed():
            return False
        self._fill(self._scratch)
        self._filter.apply(self._scratch[0], may_end=False)
        return not self._scratch.any()

    def forced_tokens(self) -> list[int]:
        return []

    def _fill(self, mask: Mask) -> None:
        mask.fill(-1)
        try:
            self._inner.fill_next_token_bitmask(mask, 0)
        except RuntimeError as error:
            raise GrammarError(f"xgrammar: {error}") from error


class XGrammarCompiled:
    """A grammar as xgrammar keeps it."""

    def __init__(self, inner: Any, token_filter: TokenFilter, words: int) -> None:
        self._inner = inner
        self._filter = token_filter
        self._words = words

    def matcher(self) -> Matcher:
        return XGrammarMatcher(xgrammar.GrammarMatcher(self._inner), self._filter, self._words)


class XGrammarBackend:
    """xgrammar bound to a tokenizer."""

    name = "xgrammar"
    dialect = Dialect.EBNF

    def __init__(self, tokenizer: Any, vocab_size: int, end_tokens: Sequence[int]) -> None:
        self.version = version("xgrammar")
        self._special = special_tokens(tokenizer)
        self._filter = TokenFilter(vocab_size, list(self._special), end_tokens)
        self._words = -(-vocab_size // 32)
        info = xgrammar.TokenizerInfo.from_huggingface(
            tokenizer, vocab_size=vocab_size, stop_token_ids=list(end_tokens)
        )
        self._vocab = info.decoded_vocab
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    def compile(self, grammar: Grammar) -> Compiled:
        text = grammar.write(Dialect.EBNF)
        try:
            if grammar.reasoning_tokens:
                inner = self._compiler.compile_structural_tag(reasoning_tag(text, grammar.reasoning_tokens))
            else:
                inner = self._compiler.compile_grammar(text)
        except UnsupportedConstraint:
            raise
        except Exception as error:  # the binding raises several unrelated types
            raise GrammarError(
                f"xgrammar cannot compile the grammar: {error}", "Use `--grammar-backend llguidance`."
            ) from error
        return XGrammarCompiled(inner, self._filter, self._words)

    def token_bytes(self, token: int) -> bytes:
        special = self._special.get(token)
        if special is not None:
            return special.encode()
        return bytes(self._vocab[token])


def reasoning_tag(ebnf: str, budget_tokens: int) -> str:
    """A structural tag: opening tag, at most ``budget_tokens`` of text without ``<``, closing tag, object."""
    elements = [
        {"type": "const_string", "value": REASONING_OPEN},
        {"type": "any_text", "max_tokens": budget_tokens, "excludes": ["<"]},
        {"type": "const_string", "value": REASONING_CLOSE},
        {"type": "grammar", "grammar": ebnf},
    ]
    return json.dumps({"type": "structural_tag", "format": {"type": "sequence", "elements": elements}})
