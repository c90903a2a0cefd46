"""Compiling and matching on trial, in a process of its own that is ended when it takes too long.

The libraries work in native code that no signal handler of ours can interrupt, and xgrammar takes minutes to follow
some short texts through a repetition of repetitions. So where a domain is new (`domain check`, `grammar --match`) the
first try happens elsewhere, over a byte vocabulary.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, NamedTuple

from skillstate_local.errors import EnvironmentProblem, GrammarError
from skillstate_local.grammar.check import check_limits, check_text
from skillstate_local.grammar.ir import Dialect, Grammar
from skillstate_local.grammar.match import MatchResult

TRIAL_LIMIT_S = 10.0

_SMALLEST = {Dialect.LARK: 'start: "a"', Dialect.EBNF: 'root ::= "a"', Dialect.GBNF: 'root ::= "a"', Dialect.REGEX: "a"}


class Trial(NamedTuple):
    """What became of the text, and how long compiling and matching took."""

    result: MatchResult
    compile_s: float
    match_s: float


def try_out(grammar: Grammar, dialect: Dialect, text: str = "", limit_s: float = TRIAL_LIMIT_S) -> Trial:
    """Compile a grammar and match a text in another process, for at most ``limit_s`` after the library is loaded.

    Raises GrammarError if a limit of size or time is exceeded or the library refuses the grammar;
    UnsupportedConstraint if the dialect cannot express it; EnvironmentProblem if the library is not installed.
    """
    from skillstate_local.grammar.walker import require_library, written

    check_limits(grammar)
    source = written(grammar, dialect)
    check_text(source, grammar.label)
    require_library(dialect)
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, dialect.value],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        try:
            answer = _answer(process, json.dumps([source, text]), dialect, limit_s)
        finally:
            process.kill()
    if "error" in answer:
        raise GrammarError(answer["error"])
    return Trial(MatchResult(*answer["result"]), answer["compile_s"], answer["match_s"])


def _answer(process: subprocess.Popen[str], question: str, dialect: Dialect, limit_s: float) -> dict[str, Any]:
    assert process.stdout is not None
    if not process.stdout.readline():
        raise EnvironmentProblem(f"the library that reads {dialect.value} could not be started in another process.")
    try:
        said, _ = process.communicate(question, timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise GrammarError(
            f"compiling and matching the grammar's {dialect.value} took longer than {limit_s:g} s (TRIAL_LIMIT_S)",
            "Lower the bounds of the domain, above all of repetitions within repetitions.",
        ) from None
    if not said:
        raise GrammarError(f"the library that reads {dialect.value} crashed over this grammar")
    answer: dict[str, Any] = json.loads(said)
    return answer


def _main() -> None:
    import time

    from skillstate_local.grammar.match import match_written
    from skillstate_local.grammar.walker import compiled

    dialect = Dialect(sys.argv[1])
    match_written(_SMALLEST[dialect], "b", dialect)
    print("ready", flush=True)
    source, text = json.loads(sys.stdin.read())
    try:
        started = time.perf_counter()
        compiled(source, dialect)
        between = time.perf_counter()
        result = match_written(source, text, dialect)
        seconds = {"compile_s": between - started, "match_s": time.perf_counter() - between}
        print(json.dumps({"result": list(result), **seconds}))
    except GrammarError as error:
        print(json.dumps({"error": error.message}))


if __name__ == "__main__":
    _main()
