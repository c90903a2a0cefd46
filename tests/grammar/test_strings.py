"""Characters, patterns, vocabularies and numbers as both libraries read them, against Python's own reading."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillstate_local.errors import DomainError
from skillstate_local.grammar.ir import (
    Alt,
    Array,
    Dialect,
    Excluding,
    Grammar,
    Lit,
    Number,
    Quoted,
    Repeat,
    Token,
    Words,
)
from skillstate_local.grammar.sample import sample, spell
from skillstate_local.grammar.text import any_character, excluding, pattern_node, sentence_count, sentences
from skillstate_local.state.canonical import dumps, escape
from tests.grammar.matching import ebnf_matches, lark_matches, matches
from tests.grammar.random_domains import ALPHABET, PATTERNS, WORDS, random_match
from tests.grammar.steps import seeds

LIBRARIES = (Dialect.LARK, Dialect.EBNF)
QUICK = settings(derandomize=True, database=None, deadline=None, max_examples=60)
SCRIPTS = (
    "aZ09 _-\"\\/'`<>{}()[]|^$.*+?#&~@%,:;=!\t\n\r\x00\x1f\x7f\x80\xa0éßİ²漢字ﬁ\u2028\ufeff😀\U0010ffff\ud7ff\ue000"
)


@pytest.mark.parametrize("dialect", LIBRARIES)
def test_every_character_is_matched_as_itself_and_nothing_else(dialect: Dialect) -> None:
    codes = [*range(0x250), 0x2028, 0xFEFF, 0x6F22, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF]
    words = [chr(code) for code in codes]
    grammar = Grammar(Quoted(Words(tuple(sorted(map(escape, words))))))
    single = [Grammar(Quoted(Lit(escape(word)))) for word in ('"', "\\", "/", "<", "-", "\x00", "\x7f", "é", "😀")]
    for word in words:
        assert matches(grammar, dialect, dumps(word)), hex(ord(word))
    for code in (0x250, 0x3000, 0xE001, 0x10FFFE):
        assert not matches(grammar, dialect, dumps(chr(code)))
    for other in single:
        assert sum(matches(other, dialect, dumps(word)) for word in words) == 1


@pytest.mark.parametrize("dialect", LIBRARIES)
@given(
    words=st.lists(st.text(SCRIPTS, max_size=4), min_size=1, max_size=25), others=st.lists(st.text(SCRIPTS, max_size=4))
)
@QUICK
def test_a_vocabulary_matches_its_words_only(dialect: Dialect, words: list[str], others: list[str]) -> None:
    grammar = Grammar(Quoted(Words(tuple(sorted({escape(word) for word in words})))))
    near = [word[:-1] for word in words] + [word + "a" for word in words] + [word + word for word in words]
    for word in [*words, *others, *near]:
        assert matches(grammar, dialect, dumps(word)) is (word in words), (words, word)


@pytest.mark.parametrize("dialect", LIBRARIES)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_what_python_matches(dialect: Dialect, pattern: str) -> None:
    rng = Random(pattern)
    grammar = Grammar(Quoted(pattern_node(pattern)))
    words = {*WORDS, *ALPHABET, *(random_match(rng, pattern) for _ in range(40))}
    words |= {word + rng.choice(ALPHABET) for word in words} | {word[:-1] for word in words}
    for word in sorted(words):
        wanted = re.fullmatch(pattern, word, re.ASCII) is not None
        assert matches(grammar, dialect, dumps(word)) is wanted, (pattern, word)


@pytest.mark.parametrize(
    "pattern",
    [
        r"a*",
        r"a+",
        r"a{2,}",
        r"^a",
        r"a$",
        r"\ba",
        r"(a)\1",
        r"(?=a)b",
        r"(?<!a)b",
        "(?i)a",
        "(?i:a)",
        "(?s).",
        "(",
        "[z-a]",
        "a**",
    ],
)
def test_a_pattern_that_no_grammar_can_express_is_refused(pattern: str) -> None:
    with pytest.raises(DomainError):
        pattern_node(pattern)


@pytest.mark.parametrize("dialect", LIBRARIES)
def test_bounded_text_counts_code_points_and_escapes_as_one(dialect: Dialect) -> None:
    grammar = Grammar(Quoted(Repeat(any_character(), 1, 3)))
    for word in ("a", "\x00\x00\x00", '"""', "\\\\\\", "😀😀😀", "é\n漢"):
        assert matches(grammar, dialect, dumps(word)), word
    for text in ('""', '"abcd"', '"\\u0041"', '"\\/"', '"\\u000A"', '"\t"', '"\\u001F"', '"a', "a", '"\\ud83d\\ude00"'):
        assert not matches(grammar, dialect, text), text


@pytest.mark.parametrize("dialect", LIBRARIES)
@seeds(30)
def test_numbers_within_bounds_and_no_other_spelling(dialect: Dialect, seed: int) -> None:
    rng = Random(seed)
    size = rng.choice((3, 12, 130, 100_000))
    low, high = sorted((rng.randint(-size, size), rng.randint(-size, size)))
    scale = rng.choice((0, 0, 1, 2, 3))
    grammar = Grammar(Number(low, high, scale))
    near = {bound + step for bound in (low, high, 0) for step in range(-3, 4)}
    near |= {rng.randint(-2 * size, 2 * size) for _ in range(15)} | {bound * 10 for bound in (low, high)}
    for units in sorted(near):
        assert matches(grammar, dialect, spell(units, scale)) is (low <= units <= high), (low, high, scale, units)
    text = spell(rng.randint(low, high), scale)
    digits = text.lstrip("-")
    for wrong in (
        f"0{text}",
        f"+{text}",
        f"-0{digits}",
        f"{text}0" if scale else f"{text}.0",
        f'"{text}"',
        f"{text}e0",
    ):
        assert not matches(grammar, dialect, wrong), (low, high, scale, wrong)
    assert not matches(grammar, dialect, f"-{spell(0, scale)}")


@pytest.mark.parametrize("dialect", LIBRARIES)
def test_tokens_that_begin_alike_are_told_apart(dialect: Dialect) -> None:
    """The lexer takes the longest match; none of these may hide another."""
    text = Quoted(Repeat(any_character(), 0, 3))
    mixed = Alt((Number(1, 12), Number(1, 1250, 2), text, Quoted(Words(("a", "null"))), Lit("null"), Lit("true")))
    grammar = Grammar(Array(mixed, 0, 3))
    for good in (
        "[1]",
        "[12]",
        "[1.00]",
        "[12.50,1]",
        '["a",null]',
        '["null"]',
        '["1",1]',
        "[true]",
        "[]",
        '["",1.01,12]',
    ):
        assert matches(grammar, dialect, good), good
    for bad in ("[13]", "[1.0]", "[1.000]", "[12.51]", "[nul]", "[nulll]", '["a"', "[1,]", "[1 ]", "[01]", "[1,1,1,1]"):
        assert not matches(grammar, dialect, bad), bad


@pytest.mark.parametrize("dialect", LIBRARIES)
@pytest.mark.parametrize(("minimum", "maximum"), [(0, 0), (0, 1), (1, 1), (0, 2), (1, 3), (2, 2), (2, 4)])
def test_arrays_keep_their_bounds(dialect: Dialect, minimum: int, maximum: int) -> None:
    grammar = Grammar(Array(Token(Words(("1", "12", "false"))), minimum, maximum))
    for length in range(6):
        text = f"[{','.join(['12', '1', 'false', '1', '12'][:length])}]"
        assert matches(grammar, dialect, text) is (minimum <= length <= maximum), text


def test_a_complement_inside_a_string() -> None:
    open_key = excluding(pattern_node("[a-z]{1,6}"), ("abc", "de", "X"))
    assert isinstance(open_key, Excluding)
    grammar = Grammar(Quoted(Alt((open_key,))))
    for word, wanted in (("abc", False), ("de", False), ("ab", True), ("abcd", True), ("d", True), ("X", False)):
        assert matches(grammar, Dialect.LARK, f'"{word}"') is wanted, word


def test_a_random_walk_never_draws_what_is_excluded() -> None:
    taken = tuple(a + b for a in "abcdefghijklmno" for b in "abcdefghijklmnopqrstuvwxyz")
    node = excluding(pattern_node("[a-z]{2}"), taken)
    assert isinstance(node, Excluding)
    assert not {sample(node, Random(seed)) for seed in range(60)} & set(taken)


def test_a_complement_of_few_words_is_their_list_and_may_be_empty() -> None:
    left = excluding(pattern_node("[ab]{1,2}"), ("a", "bb", "zz"))
    assert isinstance(left, Words)
    assert left.words == ("aa", "ab", "b", "ba")
    assert excluding(pattern_node("a|b"), ("a", "b")) is None


@pytest.mark.parametrize(
    "pattern", ["[a-c]{1,2}", "(x|yy|z{2}){1,2}", "a?b{0,2}", "", r"\d", "(?:ab){0}c", "[é漢]{1,2}"]
)
def test_sentences_are_all_of_them(pattern: str) -> None:
    found = sentences(pattern_node(pattern))
    assert all(re.fullmatch(pattern, word, re.ASCII) for word in found)
    assert len(found) <= sentence_count(pattern_node(pattern))
    assert found >= {random_match(Random(n), pattern) for n in range(50)}


def test_words_of_the_dialects_themselves_are_plain_text() -> None:
    words = (
        "%llguidance {}",
        "start: T0",
        "root ::= x",
        "T0",
        "[^a]",
        "//",
        "/*",
        "a/b/i",
        '"',
        "::_",
        "%if",
        "\\u0041",
    )
    node = Quoted(Words(tuple(sorted(map(escape, words)))))
    for word in words:
        assert lark_matches(Grammar(node).write("lark"), dumps(word))
        assert ebnf_matches(Grammar(node).write("ebnf"), dumps(word))
    assert not lark_matches(Grammar(node).write("lark"), '"A"')
