"""The grammar libraries over single bytes: what each says about a text without any model's tokenizer.

Lark and regular expressions are read by llguidance, EBNF and GBNF by xgrammar (whose EBNF follows GBNF). Imports are
lazy: a command that writes a grammar needs neither library.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import replace
from functools import lru_cache
from typing import Any, Protocol

from skillstate_local.domains.turn import REASONING_CLOSE, REASONING_OPEN
from skillstate_local.errors import EnvironmentProblem, GrammarError
from skillstate_local.grammar.gbnf import CHARS_PER_TOKEN
from skillstate_local.grammar.ir import Dialect, Grammar

END = 256
BYTES_PER_TOKEN = 4 * CHARS_PER_TOKEN


class Walker(Protocol):
    """Where a text stands in its grammar, at the start of it at first."""

    def consume(self, data: bytes) -> int:
        """Move on as far as the grammar allows; how many bytes that was. Ends at the first byte refused."""
        ...

    def allowed(self) -> tuple[frozenset[int], bool]:
        """The bytes that may follow, and whether the text may end here."""
        ...

    def forced(self) -> bytes:
        """What must follow, as far as there is no choice."""
        ...


def walker(grammar: Grammar, dialect: Dialect) -> Walker:
    """The dialect's library at the start of the turn.

    Raises GrammarError with the library's message if it cannot compile the grammar, UnsupportedConstraint if the
    dialect cannot express it, EnvironmentProblem if the library is not installed.
    """
    return compiled(written(grammar, dialect), dialect)


def written(grammar: Grammar, dialect: Dialect) -> str:
    """The grammar's text for reading by bytes, the reasoning section included. Raises UnsupportedConstraint."""
    if dialect is Dialect.EBNF:
        return _with_reasoning(grammar)
    if dialect is Dialect.LARK and grammar.reasoning_tokens:
        # Each byte counts as a token there, so the budget becomes that of tokens of BYTES_PER_TOKEN bytes.
        grammar = replace(grammar, reasoning_tokens=BYTES_PER_TOKEN * grammar.reasoning_tokens, _written={})
    return grammar.write(dialect)


def compiled(text: str, dialect: Dialect) -> Walker:
    """A written grammar, at its start. Raises GrammarError and EnvironmentProblem."""
    return _XGrammar(text) if dialect in (Dialect.EBNF, Dialect.GBNF) else _LLGuidance(text, dialect)


class _LLGuidance:
    def __init__(self, text: str, dialect: Dialect) -> None:
        reader = _library("llguidance").LLMatcher
        read = reader.grammar_from_regex if dialect is Dialect.REGEX else reader.grammar_from_lark
        self._matcher = reader(_byte_tokenizer(), read(text), log_level=0)
        self._raise_error()

    def consume(self, data: bytes) -> int:
        count = int(self._matcher.try_consume_tokens(list(data)))
        self._raise_error()
        return count

    def allowed(self) -> tuple[frozenset[int], bool]:
        if self._matcher.is_stopped():
            return frozenset(), True
        mask = self._matcher.compute_bitmask()
        self._raise_error()
        return frozenset(i for i in range(256) if mask[i >> 3] >> (i & 7) & 1), bool(self._matcher.is_accepting())

    def forced(self) -> bytes:
        return b"" if self._matcher.is_stopped() else bytes(self._matcher.compute_ff_bytes())

    def _raise_error(self) -> None:
        if self._matcher.is_error():
            raise GrammarError(f"llguidance: {str(self._matcher.get_error()).splitlines()[0]}")


class _XGrammar:
    def __init__(self, text: str) -> None:
        library = _library("xgrammar")
        try:
            self._matcher = library.GrammarMatcher(_byte_compiler().compile_grammar(text))
        except Exception as error:  # the binding raises several unrelated types
            raise GrammarError(f"xgrammar: {str(error).splitlines()[0]}") from error

    def consume(self, data: bytes) -> int:
        for count, byte in enumerate(data):
            if not self._matcher.accept_token(byte):
                return count
        return len(data)

    def allowed(self) -> tuple[frozenset[int], bool]:
        numpy = importlib.import_module("numpy")
        mask = numpy.full((1, END // 32 + 1), -1, dtype=numpy.int32)
        self._matcher.fill_next_token_bitmask(mask, 0)
        found = frozenset(i for i in range(END + 1) if int(mask[0][i >> 5]) >> (i & 31) & 1)
        return found - {END}, END in found

    def forced(self) -> bytes:
        return str(self._matcher.find_jump_forward_string()).encode()


def _with_reasoning(grammar: Grammar) -> str:
    """EBNF leaves the reasoning to a structural tag; here it becomes part of the grammar, bounded as in GBNF."""
    text = grammar.write(Dialect.EBNF)
    if not grammar.reasoning_tokens:
        return text
    bound = CHARS_PER_TOKEN * grammar.reasoning_tokens
    section = f'root ::= "{REASONING_OPEN}" [^<]{{0,{bound}}} "{REASONING_CLOSE}" object'
    return f"{section}\nobject{text.removeprefix('root')}"


def require_library(dialect: Dialect) -> None:
    """Raises EnvironmentProblem if the library that reads a dialect is not installed. Does not import it."""
    name = "xgrammar" if dialect in (Dialect.EBNF, Dialect.GBNF) else "llguidance"
    if importlib.util.find_spec(name) is None:
        raise _missing(name)


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise _missing(name) from None


def _missing(name: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"{name} is not installed.", 'Install it with `pip install "skillstate-local[transformers]"`.'
    )


@lru_cache(maxsize=1)
def _byte_tokenizer() -> Any:
    return _library("llguidance").LLTokenizer("byte")


@lru_cache(maxsize=1)
def _byte_compiler() -> Any:
    library = _library("xgrammar")
    vocabulary = [*(bytes([byte]) for byte in range(256)), b"</s>"]
    info = library.TokenizerInfo(
        vocabulary, vocab_type=library.VocabType.RAW, vocab_size=len(vocabulary), stop_token_ids=[END]
    )
    return library.GrammarCompiler(info, max_threads=1, cache_enabled=False)
