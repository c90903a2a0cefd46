"""`grammar DOMAIN`: print the grammar of one step in any dialect, or say where a turn leaves it."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skillstate_local.domains.level import Level, Order
from skillstate_local.errors import EXIT_DONE, EXIT_FAILED, UsageError
from skillstate_local.grammar.ir import Dialect

if TYPE_CHECKING:
    from skillstate_local.domains.base import Domain
    from skillstate_local.grammar.ir import Grammar

MAX_STATE_BYTES = 4 * 1024 * 1024


def grammar(
    domain: Annotated[str, typer.Argument(help="A bundled domain's name, or a path to a YAML file.", metavar="DOMAIN")],
    level: Annotated[Level, typer.Option(help="Level of constraint; free has no grammar.")] = Level.DELTA,
    state: Annotated[
        str | None, typer.Option(help="File with the state as JSON, or - for stdin. Default: the initial state.")
    ] = None,
    observation: Annotated[str, typer.Option(help="The observation's text.")] = "",
    order: Annotated[Order, typer.Option(help="Which key the model writes first.")] = Order.PATCH_FIRST,
    reasoning_tokens: Annotated[int, typer.Option(min=0, max=100_000, help="Budget for reasoning; 0: none.")] = 0,
    dialect: Annotated[Dialect, typer.Option(help="The language to write.")] = Dialect.LARK,
    match: Annotated[
        str | None, typer.Option(help="A turn: say whether the grammar accepts it, or where it leaves the language.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print nothing but one JSON object on stdout.")] = False,
) -> None:
    """Print the grammar of one step, or with --match say where a turn leaves it.

    Ends with 0, with 1 when --match is refused, with 2 when the domain, the state or an option is wrong.
    """
    from skillstate_local.domains.catalog import find_domain
    from skillstate_local.grammar.check import check_text

    found = find_domain(domain)
    started = time.perf_counter()
    built = _build(found, level, _state(found, state), observation, order, reasoning_tokens)
    text = built.write(dialect)
    seconds = time.perf_counter() - started
    check_text(text, built.label)
    if match is not None:
        raise typer.Exit(_match(built, dialect, match, as_json=as_json))
    if as_json:
        typer.echo(_dump(_facts(found, built, dialect, text, seconds)))
    else:
        typer.echo(text, nl=not text.endswith("\n"))


def _build(domain: Domain, level: Level, state: Any, observation: str, order: Order, reasoning_tokens: int) -> Grammar:
    from skillstate_local.grammar.turn import GrammarBuilder, GrammarOptions

    builder = GrammarBuilder(domain, GrammarOptions(level, order, reasoning_tokens))
    built = builder.build(state, domain.facts(observation))
    if built is None:
        raise UsageError("Level free has no grammar.", "Choose --level json, schema, delta or effects.")
    return built


def _state(domain: Domain, source: str | None) -> Any:
    """The state to build for, strictly read and typed. Raises UsageError with the JSON pointer of what is wrong."""
    from skillstate_local.state.canonical import StrictJsonError, loads
    from skillstate_local.state.validate import state_problems

    if source is None:
        return domain.initial_state
    name = "stdin" if source == "-" else source
    try:
        state = loads(_read(source))
    except StrictJsonError as error:
        raise UsageError(f"{name}: not strict JSON: {error}.") from None
    problem = next(state_problems(domain.schema, state), None)
    if problem is not None:
        said = f"{name}: not a state of {domain.name}: at {problem.pointer or 'the root'}: {problem.message}."
        raise UsageError(said, f"`domain show {domain.name}` says what its state looks like.")
    return domain.schema.canonical(state)


def _read(source: str) -> str:
    try:
        with sys.stdin.buffer if source == "-" else Path(source).open("rb") as stream:
            data = stream.read(MAX_STATE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{source}: cannot be read: {error.strerror}.", "--state takes a file, or -.") from None
    if len(data) > MAX_STATE_BYTES:
        raise UsageError(f"{source}: larger than {MAX_STATE_BYTES:,} bytes.")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{source}: not UTF-8 text (at byte {error.start}).") from None


def _match(built: Grammar, dialect: Dialect, text: str, *, as_json: bool) -> int:
    from skillstate_local.grammar.trial import try_out

    trial = try_out(built, dialect, text)
    result = trial.result
    if as_json:
        seconds = {"compile_ms": round(trial.compile_s * 1000, 3), "match_ms": round(trial.match_s * 1000, 3)}
        typer.echo(_dump({"dialect": dialect.value, **result._asdict(), **seconds}))
    else:
        typer.echo(result.report(text))
    return EXIT_DONE if result.accepted else EXIT_FAILED


def _facts(domain: Domain, built: Grammar, dialect: Dialect, text: str, seconds: float) -> dict[str, Any]:
    return {
        "domain": domain.name,
        "version": domain.version,
        "label": built.label,
        "dialect": dialect.value,
        "key": built.key,
        "static": built.static,
        "bytes": len(text.encode()),
        "build_ms": round(seconds * 1000, 3),
        "grammar": text,
    }


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
