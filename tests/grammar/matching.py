"""What the real libraries accept: one function for each dialect, over a byte tokenizer."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import xgrammar
from llguidance import LLMatcher, LLTokenizer

from skillstate_local.grammar.ir import Dialect, Grammar

BYTES = LLTokenizer("byte")


class Refused(AssertionError):
    """The library could not compile the grammar, or gave up in the middle of a text."""


def matches(grammar: Grammar, dialect: Dialect, text: str) -> bool:
    """Whether the dialect's library accepts ``text`` as a whole."""
    return {Dialect.LARK: lark_matches, Dialect.EBNF: ebnf_matches}[dialect](grammar.write(dialect), text)


def lark_matches(lark: str, text: str) -> bool:
    """llguidance: every byte is consumed and the grammar may end there."""
    matcher = _lark_compiled(lark).deep_copy()
    data = text.encode()
    consumed = matcher.try_consume_tokens(list(data))
    if matcher.is_error():
        raise Refused(f"llguidance: {matcher.get_error()}\n{text}\n{lark[:4000]}")
    return consumed == len(data) and bool(matcher.is_accepting())


def ebnf_matches(ebnf: str, text: str) -> bool:
    """xgrammar: the string is accepted and the grammar may end there."""
    matcher = xgrammar.GrammarMatcher(_ebnf_compiled(ebnf))
    return bool(matcher.accept_string(text)) and bool(matcher.is_completed())


@lru_cache(maxsize=64)
def _lark_compiled(lark: str) -> Any:
    matcher = LLMatcher(BYTES, LLMatcher.grammar_from_lark(lark), log_level=0)
    if matcher.is_error():
        raise Refused(f"llguidance: {matcher.get_error()}\n{lark[:4000]}")
    return matcher


@lru_cache(maxsize=64)
def _ebnf_compiled(ebnf: str) -> Any:
    try:
        return _compiler().compile_grammar(ebnf)
    except Exception as error:
        raise Refused(f"xgrammar: {error}\n{ebnf[:4000]}") from error


@lru_cache(maxsize=1)
def _compiler() -> Any:
    vocabulary = [bytes([byte]) for byte in range(256)] + [b"</s>"]
    info = xgrammar.TokenizerInfo(
        vocabulary, vocab_type=xgrammar.VocabType.RAW, vocab_size=len(vocabulary), stop_token_ids=[256]
    )
    return xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
