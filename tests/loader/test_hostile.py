"""Hostile files: refused or read within two seconds of processor time, never with anything but a told mistake."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from skillstate_local.authoring.report import check_file, render_report
from skillstate_local.domains.loader import load_domain
from skillstate_local.errors import DomainError

from .authored import BASE, changed, with_field

BOUND_S = 2.0


def _defs(lines: str, extra: str = "{$ref: '#/$defs/d0'}") -> str:
    return with_field(extra).replace("observations:", f"  $defs:\n{lines}observations:", 1)


def _doubling() -> str:
    two = "{{type: object, required: [], properties: {{a: {{$ref: '#/$defs/d{0}'}}, b: {{$ref: '#/$defs/d{0}'}}}}}}"
    lines = [f"    d{i}: " + two.format(i + 1) for i in range(40)]
    return _defs("\n".join([*lines, "    d40: {type: boolean}\n"]))


def _chain() -> str:
    lines = [f"    d{i}: {{$ref: '#/$defs/d{i + 1}'}}\n" for i in range(250)]
    return _defs("".join(lines) + "    d250: {$ref: '#/$defs/d0'}\n")


def _nested_defs() -> str:
    one = "{{type: object, required: [], properties: {{a: {{$ref: '#/$defs/d{0}'}}}}}}"
    lines = [f"    d{i}: " + one.format(i + 1) for i in range(250)]
    return _defs("\n".join([*lines, "    d250: {type: boolean}\n"]))


def _many_fields(schema: str, count: int = 280) -> str:
    fields = "".join(f"    f{i}: {schema}\n" for i in range(count))
    return changed("    open: {type: boolean}\n", "    open: {type: boolean}\n" + fields)


def _vocabularies(count: int) -> str:
    lines = "".join(f'  v{i}: {{range: "v{i}_{{0..9999}}"}}\n' for i in range(count))
    return changed("  bin: {m", lines + "  bin: {m")


def _large_vocabulary_everywhere() -> str:
    return _many_fields("{type: string, x-vocabulary: v0}").replace("  bin:", '  v0: {range: "v_{0..9999}"}\n  bin:', 1)


def _large_vocabulary_fivefold() -> str:
    """Within every limit; must still be quick."""
    text = _many_fields("{type: string, x-vocabulary: v0}", 5)
    return text.replace("  bin:", '  v0: {range: "v_{0..9999}"}\n  bin:', 1)


def _shared_enum() -> str:
    words = ", ".join(f"w{i}" for i in range(10_000))
    shared = f"  $defs: {{w: {{type: string, enum: [{words}]}}}}\nobservations:"
    return _many_fields("{$ref: '#/$defs/w'}").replace("observations:", shared)


def _event(pattern: str, observation: str = "Part p1 came.") -> str:
    text = changed("'Part (?P<part>p[0-9]{1,3}) came\\.'", f"'{pattern}'")
    return text.replace("Part p1 came.,", f"'{observation}',")


def _joint(size: int) -> str:
    """A table of many entries, bound twice by one action whose bindings share no argument."""
    stock = ", ".join(f"p{i}: p{i}" for i in range(size))
    text = changed("{type: integer, minimum: 0, maximum: 99}", "{type: string, x-vocabulary: part}")
    text = text.replace("x-max-entries: 20", "x-max-entries: 9999").replace('    effect: {stock: {"{part}": 1}}\n', "")
    entries = "      - {table: stock, key: a, value: c}\n      - {table: stock, key: b, value: d}\n"
    text = text.replace("  - template: wait", _four_arguments(entries) + "  - template: wait")
    text = text.replace("patch: {stock: {p1: 1}}", "patch: {}").replace("p[0-9]{1,3}", "p[0-9]{1,4}")
    return text.replace("initial_state: {stock: {}", f"initial_state: {{stock: {{{stock}}}", 1)


def _four_arguments(joint: str) -> str:
    words = ", ".join(f"{name}: {{vocabulary: part}}" for name in "abcd")
    return f'  - template: "join {{a}} {{b}} {{c}} {{d}}"\n    arguments: {{{words}}}\n    joint:\n{joint}'


def _texts() -> str:
    words = ", ".join(f"a{i}: {{type: string, maxLength: 500}}" for i in range(8))
    template = " ".join(f"{{a{i}}}" for i in range(8))
    action = f'  - {{template: "go {template}", arguments: {{{words}}}}}\n'
    return changed("  - template: wait", action + "  - template: wait")


HOSTILE: dict[str, Callable[[], str]] = {
    "billion laughs": lambda: "a: &a [x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(20)
    ),
    "self reference": lambda: "a: &a [*a]\n",
    "python object": lambda: changed("name: shop", "name: !!python/object/apply:os.system ['echo hi']"),
    "brackets": lambda: "[" * 200_000,
    "braces": lambda: "{a: " * 60_000,
    "block nesting": lambda: "\n".join(" " * i + "a:" for i in range(600)),
    "dashes": lambda: "- " * 100_000 + "x",
    "complex keys": lambda: "? " * 100_000 + "x",
    "complex key": lambda: "? [a, b]\n: c\n" + BASE,
    "values": lambda: "a: [" + "1," * 100_000 + "]",
    "long scalar": lambda: "name: " + "x" * 250_000,
    "escapes": lambda: 'name: "' + "\\u0041" * 40_000 + '"',
    "half a surrogate": lambda: changed("name: shop", 'name: "\\ud800"'),
    "control characters": lambda: changed("name: shop", "name: sh\x00p"),
    "huge number": lambda: changed("maximum: 99", "maximum: " + "9" * 200_000),
    "infinity": lambda: changed("maximum: 99", "maximum: .inf"),
    "second document": lambda: BASE + "---\n" + BASE,
    "directive": lambda: "%TAG ! tag:evil,2000:\n---\n" + BASE,
    "merge key": lambda: changed("name: shop", "name: shop\n<<: {a: b}"),
    "duplicate keys": lambda: "\n".join(f"k{i % 50}: 1" for i in range(10_000)),
    "doubling references": _doubling,
    "chain of references": _chain,
    "nesting by references": _nested_defs,
    "many fields": lambda: _many_fields("{type: boolean}", 2_000),
    "endless range": lambda: changed("members: [b1, b2, b3]", 'range: "b{0..999999999}"'),
    "many vocabularies": lambda: _vocabularies(60),
    "vocabulary everywhere": _large_vocabulary_everywhere,
    "vocabulary in five fields": _large_vocabulary_fivefold,
    "shared enumeration": _shared_enum,
    "exponential event": lambda: _event("(?P<part>p[0-9]{1,3})(a+)+!", "p1" + "a" * 5_000),
    "alternatives": lambda: _event("(?P<part>p[0-9]{1,3})(a|a)*!", "p1" + "a" * 5_000),
    "polynomial event": lambda: _event("(?P<part>p[0-9]{1,3}).*.*.*.*!", "p1" + "a" * 5_000),
    "optional event": lambda: _event("(?P<part>p[0-9]{1,3})" + "a?" * 100 + "a" * 100, "p1" + "a" * 99),
    "slow but allowed event": lambda: _event("(?P<part>p[0-9]{1,3}).{1,300}.*!", "p1" + "a" * 5_000),
    "lookahead": lambda: _event("(?=P)(?P<part>p[0-9]{1,3})"),
    "backreference": lambda: _event("(?P<part>p[0-9]{1,3}) (.*)(?P=part)"),
    "groups": lambda: _event("(" * 200 + "a" + ")" * 200),
    "repetition too large": lambda: _event("(?P<part>p[0-9]{1,99999999999})"),
    "long pattern": lambda: _event("a" * 100_000),
    "huge pattern": lambda: changed('"p[0-9]{1,3}"', '"((p{1,1000}){1,1000}){1,1000}"'),
    "ambiguous pattern": lambda: changed('"p[0-9]{1,3}"', '"(p{0,9}p{0,9}){0,9}x"'),
    "long text": lambda: with_field("{type: string, maxLength: 999999999}"),
    "many long texts": lambda: _many_fields("{type: string, maxLength: 100000}", 60),
    "many patterns": lambda: _many_fields("{type: string, pattern: '[a-z]{0,9999}'}", 60),
    "many actions": lambda: changed("  - template: wait", "".join(f"  - template: w{i}\n" for i in range(5_000))),
    "eight texts in a row": _texts,
    "joint product": lambda: _joint(540),
    "large joint product": lambda: _joint(9_000),
    "mistakes": lambda: "\n".join(f"k{i}: 1" for i in range(20_000)),
    "anyOf tower": lambda: with_field("{anyOf: [" * 25 + "{type: boolean}" + "]}" * 25),
    "source tower": lambda: with_field("{type: string, maxLength: 5, x-values: " + "{any_of: [" * 12 + "]}" * 12 + "}"),
    "where a map": lambda: with_field("{type: string, maxLength: 5, x-values: {keys_of: stock, where: {a: {b: c}}}}"),
    "template braces": lambda: changed('"take {part} {bin}"', '"' + "{" * 400 + '"'),
    "empty": lambda: "",
    "a word": lambda: "hello",
    "a list": lambda: "- a\n- b\n",
    "null": lambda: "~",
}  # fmt: skip
RIGHT = {"directive", "vocabulary in five fields", "many long texts", "slow but allowed event", "many patterns"}

BY_GRAMMAR = {"joint product", "large joint product"}
"""Only `domain check` builds grammars; the others are refused by whoever reads the file."""


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text(name: str, tmp_path: Path) -> None:
    file = tmp_path / "hostile.yaml"
    file.write_bytes(HOSTILE[name]().encode(errors="surrogatepass"))
    started = time.process_time()
    try:
        report = check_file(file)
        render_report(report)
        refused = not report.ok
    except DomainError as error:
        refused = bool(error.hint)
    assert time.process_time() - started < BOUND_S
    if name not in RIGHT:
        assert refused
        if name not in BY_GRAMMAR:
            with pytest.raises(DomainError):
                load_domain(file)


def test_there_are_enough() -> None:
    assert len(HOSTILE) >= 15


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"a" * 300_000, b"\x80abc"])
def test_hostile_bytes(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "hostile.yaml"
    file.write_bytes(content)
    with pytest.raises(DomainError):
        check_file(file)


def test_what_is_no_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    for file in (tmp_path, pipe, tmp_path / "missing.yaml", Path("/dev/zero")):
        with pytest.raises(DomainError, match="no such file"):
            check_file(file)
