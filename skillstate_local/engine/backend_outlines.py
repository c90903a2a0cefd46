"""outlines_core: one regular expression, indexed over the whole vocabulary; for static levels of small domains.

The index lists the allowed tokens of every state. It takes seconds for each grammar (Warehouse at `delta`: 4.7 s for a
vocabulary of 49,000), so a grammar that changes with every step is refused; and it lists the whole vocabulary again
for every character of free text, so a domain with much of that is refused too, before anything is built.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import llguidance.hf

from skillstate_local.engine.backends import Compiled, Mask, Matcher, TokenFilter, special_tokens
from skillstate_local.errors import EnvironmentProblem, GrammarError, UnsupportedConstraint
from skillstate_local.grammar.ir import Dialect, Grammar
from skillstate_local.grammar.regular import free_characters

MAX_INDEX_ENTRIES = 25_000_000
"""Tokens listed over all states; 11 million took 2.8 s and 1.3 GiB."""
TRIAL_LIMIT_S = 10.0
_TRIAL = """
import resource, sys, outlines_core
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
byte_tokens = outlines_core.Vocabulary(256, {bytes([byte]): [byte] for byte in range(256)})
outlines_core.Index(sys.stdin.read(), byte_tokens)
"""
HINT = "Use `--grammar-backend llguidance`."


class OutlinesMatcher:
    """Wraps a Guide. It gives no forced tokens: the index holds every segmentation, not only the tokenizer's."""

    def __init__(self, inner: Any, token_filter: TokenFilter) -> None:
        self._inner = inner
        self._filter = token_filter

    def fill(self, mask: Mask) -> None:
        self._inner.write_mask_into(mask.ctypes.data, mask.size, mask.itemsize)
        self._filter.apply(mask, may_end=bool(self._inner.is_finished()))

    def accept(self, token: int) -> None:
        try:
            self._inner.advance(token, return_tokens=False)
        except ValueError:
            raise GrammarError(f"The grammar rejected token {token}.") from None

    def is_complete(self) -> bool:
        return bool(self._inner.is_finished()) and set(self._inner.get_tokens()) <= set(self._filter.end_tokens)

    def forced_tokens(self) -> list[int]:
        return []


class OutlinesCompiled:
    """A grammar's index; matchers share it."""

    def __init__(self, index: Any, token_filter: TokenFilter) -> None:
        self._index = index
        self._filter = token_filter

    def matcher(self) -> Matcher:
        return OutlinesMatcher(_library().Guide(self._index), self._filter)


class OutlinesBackend:
    """outlines_core bound to a tokenizer. The bytes of its tokens are those that llguidance reads from it.

    Raises EnvironmentProblem if outlines_core is not installed.
    """

    name = "outlines"
    dialect = Dialect.REGEX

    def __init__(self, tokenizer: Any, vocab_size: int, end_tokens: Sequence[int]) -> None:
        library = _library()
        self.version = version("outlines_core")
        self._special = special_tokens(tokenizer)
        self._filter = TokenFilter(vocab_size, list(self._special), end_tokens)
        self._bytes = llguidance.hf.from_tokenizer(tokenizer, n_vocab=vocab_size, eos_token=list(end_tokens))
        self._ordinary = [i for i in range(len(tokenizer)) if i not in self._special and i not in end_tokens]
        self._vocabulary = library.Vocabulary(end_tokens[0], self._tokens())

    def compile(self, grammar: Grammar) -> Compiled:
        if not grammar.static:
            raise UnsupportedConstraint(
                f"outlines needs seconds to index a grammar, and that of {grammar.label} is another at every step; "
                "it serves the levels json and schema only",
                HINT,
            )
        text = grammar.write(Dialect.REGEX)
        self._check_cost(grammar)
        _try_automaton(text, grammar.label)
        try:
            index = _library().Index(text, self._vocabulary)
        except (ValueError, RuntimeError) as error:
            raise GrammarError(f"outlines_core cannot index the grammar: {error}", HINT) from error
        return OutlinesCompiled(index, self._filter)

    def token_bytes(self, token: int) -> bytes:
        special = self._special.get(token)
        if special is not None:
            return special.encode()
        return bytes(self._bytes.decode_bytes([token]))

    def _check_cost(self, grammar: Grammar) -> None:
        entries = free_characters(grammar) * len(self._ordinary)
        if entries > MAX_INDEX_ENTRIES:
            raise UnsupportedConstraint(
                f"{grammar.label} holds {free_characters(grammar):,} characters of free text (the reasoning counted "
                f"in); their index over {len(self._ordinary):,} tokens has about {entries:,} entries, at most "
                f"{MAX_INDEX_ENTRIES:,} are made",
                HINT,
            )

    def _tokens(self) -> dict[bytes, list[int]]:
        tokens: dict[bytes, list[int]] = {}
        for token in self._ordinary:
            tokens.setdefault(bytes(self._bytes.decode_bytes([token])), []).append(token)
        tokens.pop(b"", None)
        return tokens


def _try_automaton(text: str, label: str) -> None:
    """Build the automaton alone in another process: its size can be exponential in the expression's."""
    try:
        subprocess.run(
            [sys.executable, "-c", _TRIAL],
            input=text.encode(),
            timeout=TRIAL_LIMIT_S,
            check=True,
            stderr=subprocess.DEVNULL,
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        why = f"takes longer than {TRIAL_LIMIT_S:g} s" if isinstance(error, subprocess.TimeoutExpired) else "fails"
        raise GrammarError(f"building the automaton of {label or 'this grammar'} for outlines {why}", HINT) from None


def _library() -> Any:
    try:
        return importlib.import_module("outlines_core")
    except ImportError:
        raise EnvironmentProblem(
            "outlines_core is not installed.", 'Install it with `pip install "skillstate-local[outlines]"`.'
        ) from None
