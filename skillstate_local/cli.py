"""The commands. Only parses here: what a command does is imported after its options are read, so that help is quick."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skillstate_local.commands.domain import domain_app
from skillstate_local.commands.grammar import grammar
from skillstate_local.errors import EXIT_DONE, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, SkillStateError

if TYPE_CHECKING:
    from skillstate_local.runs.options import Options

PROGRAM = "skillstate-local"
_CommandLineError: type[Exception] = typer.BadParameter.__bases__[0]
_SETTINGS = {"no_args_is_help": True, "add_completion": False, "pretty_exceptions_enable": False}

app = typer.Typer(
    help="Long-horizon agent skills on open-weight models, decoded under a grammar built for each step.",
    **_SETTINGS,  # type: ignore[arg-type]
)
models = typer.Typer(help="List models, or make one ready.", invoke_without_command=True, add_completion=False)
app.add_typer(models, name="models")
app.add_typer(domain_app, name="domain")
app.command("grammar")(grammar)


def _env(name: str) -> str:
    return f"SKILLSTATE_{name}"


Model = Annotated[str, typer.Option(envvar=_env("MODEL"), help="A name from models.yaml, or `oracle` or `chance`.")]
Env = Annotated[str, typer.Option(envvar=_env("ENV"), help="The environment: warehouse, or a scenario file (.yaml).")]
Level = Annotated[str, typer.Option(envvar=_env("LEVEL"), help="free, json, schema, delta or effects.")]
Levels = Annotated[str, typer.Option(envvar=_env("LEVELS"), help="Levels to compare, with commas between.")]
Horizon = Annotated[
    int | None,
    typer.Option(envvar=_env("HORIZON"), help="Steps of an episode (T). Default: 10, or all of a scenario."),
]
Seeds = Annotated[str, typer.Option(envvar=_env("SEEDS"), help="Seeds such as 1,2,3 or 1-10; one episode for each.")]
Prefill = Annotated[int, typer.Option(envvar=_env("PREFILL"), help="Items already stored at the start, 0 to 400.")]
Engine = Annotated[
    str | None, typer.Option(envvar=_env("ENGINE"), help="transformers or scripted. Default: the model's first.")
]
Backend = Annotated[str, typer.Option(envvar=_env("GRAMMAR_BACKEND"), help="llguidance, xgrammar or outlines.")]
Reasoning = Annotated[
    int, typer.Option(envvar=_env("REASONING_TOKENS"), help="Budget for reasoning before the object; 0: none.")
]
Order = Annotated[str, typer.Option(envvar=_env("ORDER"), help="patch-first or action-first.")]
Retries = Annotated[int, typer.Option(envvar=_env("MAX_RETRIES"), help="More attempts after a refused one, 0 to 20.")]
Merge = Annotated[str, typer.Option(envvar=_env("MERGE"), help="deep, or at level free: shallow.")]
Validation = Annotated[str, typer.Option(envvar=_env("VALIDATION"), help="full, or paper: parse and types only.")]
OnRejected = Annotated[
    str, typer.Option(envvar=_env("ON_REJECTED"), help="keep or rollback the state when the world refuses an action.")
]
Temperature = Annotated[float, typer.Option(envvar=_env("TEMPERATURE"), help="0 is greedy.")]
TopP = Annotated[float, typer.Option(envvar=_env("TOP_P"), help="Nucleus of sampling, up to 1.")]
SamplingSeed = Annotated[int, typer.Option(envvar=_env("SAMPLING_SEED"), help="Seed of every draw of a token.")]
MaxTokens = Annotated[
    int | None,
    typer.Option(envvar=_env("MAX_TOKENS"), help="Token limit of an answer. Default: the longest turn there can be."),
]
ChanceRepeats = Annotated[
    int, typer.Option(envvar=_env("CHANCE_REPEATS"), help="Episodes of chance for each seed and level, 1 to 1000.")
]
Out = Annotated[str | None, typer.Option(envvar=_env("OUT"), help="The run's folder. Default: one under ./runs.")]
Concurrency = Annotated[
    int, typer.Option(envvar=_env("MAX_CONCURRENCY"), help="Episodes played at the same time, 1 to 1024.")
]
Json = Annotated[bool, typer.Option("--json", help="Print nothing but one JSON object on standard output.")]


@app.command()
def run(
    model: Model,
    env: Env = "warehouse",
    level: Level = "delta",
    horizon: Horizon = None,
    seeds: Seeds = "1,2,3",
    prefill: Prefill = 0,
    engine: Engine = None,
    grammar_backend: Backend = "llguidance",
    reasoning_tokens: Reasoning = 0,
    order: Order = "patch-first",
    max_retries: Retries = 2,
    merge: Merge = "deep",
    validation: Validation = "full",
    on_rejected: OnRejected = "keep",
    temperature: Temperature = 0.0,
    top_p: TopP = 1.0,
    sampling_seed: SamplingSeed = 0,
    max_tokens: MaxTokens = None,
    out: Out = None,
    max_concurrency: Concurrency = 16,
    as_json: Json = False,
) -> None:
    """Play episodes under one level of constraint. The same command again goes on where a run was cut off."""
    from skillstate_local.runs.options import Options

    options = Options(
        command="run",
        model=model,
        env=env,
        levels=level,
        horizon=horizon,
        seeds=seeds,
        prefill=prefill,
        engine=engine,
        grammar_backend=grammar_backend,
        reasoning_tokens=reasoning_tokens,
        order=order,
        max_retries=max_retries,
        merge=merge,
        validation=validation,
        on_rejected=on_rejected,
        temperature=temperature,
        top_p=top_p,
        sampling_seed=sampling_seed,
        max_tokens=max_tokens,
    )
    _execute(options, out, max_concurrency, as_json)


@app.command()
def compare(
    model: Model,
    env: Env = "warehouse",
    levels: Levels = "free,json,schema,delta,effects",
    horizon: Horizon = None,
    seeds: Seeds = "1,2,3",
    prefill: Prefill = 0,
    engine: Engine = None,
    grammar_backend: Backend = "llguidance",
    reasoning_tokens: Reasoning = 0,
    order: Order = "patch-first",
    max_retries: Retries = 2,
    validation: Validation = "full",
    on_rejected: OnRejected = "keep",
    temperature: Temperature = 0.0,
    top_p: TopP = 1.0,
    sampling_seed: SamplingSeed = 0,
    max_tokens: MaxTokens = None,
    chance_repeats: ChanceRepeats = 5,
    out: Out = None,
    max_concurrency: Concurrency = 16,
    as_json: Json = False,
) -> None:
    """Play the same seeds under several levels (free under both merges), beside the chance floor and the oracle."""
    from skillstate_local.runs.options import Options

    options = Options(
        command="compare",
        model=model,
        env=env,
        levels=levels,
        horizon=horizon,
        seeds=seeds,
        prefill=prefill,
        engine=engine,
        grammar_backend=grammar_backend,
        reasoning_tokens=reasoning_tokens,
        order=order,
        max_retries=max_retries,
        validation=validation,
        on_rejected=on_rejected,
        temperature=temperature,
        top_p=top_p,
        sampling_seed=sampling_seed,
        max_tokens=max_tokens,
        chance_repeats=chance_repeats,
    )
    _execute(options, out, max_concurrency, as_json)


@models.callback()
def list_models(context: typer.Context, as_json: Json = False) -> None:
    """List what models.yaml knows, and what is ready on this machine."""
    if context.invoked_subcommand is None:
        from skillstate_local.models_command import show_models

        show_models(as_json=as_json)


@models.command()
def pull(
    name: Annotated[str, typer.Argument(help="A name from models.yaml.")],
    keep_packages: Annotated[bool, typer.Option(help="Keep the downloaded packages.")] = False,
    as_json: Json = False,
) -> None:
    """Make a model ready on this machine; does nothing if it is."""
    from skillstate_local.models_command import pull_model

    pull_model(name, keep_packages=keep_packages, as_json=as_json)


def _execute(options: Options, out: str | None, max_concurrency: int, as_json: bool) -> None:
    from skillstate_local.registry import load_registry
    from skillstate_local.report import check_statistics, print_outcome
    from skillstate_local.runs.options import check_range, make_config
    from skillstate_local.runs.progress import make_progress
    from skillstate_local.runs.session import execute

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # until the runner has its own way to stop
    check_range("--max-concurrency", max_concurrency, 1, 1024)
    registry = load_registry()
    config = make_config(options, registry)
    check_statistics(config)
    folder = Path(out) if out is not None else Path("runs") / config.folder_name
    outcome = execute(config, registry, folder, max_concurrency, make_progress())
    print_outcome(outcome, as_json=as_json)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; a user's mistake is a message, never a traceback."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in words
    try:
        code = app(words, prog_name=PROGRAM, standalone_mode=False)
        if code == EXIT_INTERRUPTED:  # what typer makes of Ctrl-C
            raise KeyboardInterrupt
        return code if isinstance(code, int) else EXIT_DONE
    except SkillStateError as error:
        hint = f"Go on with: {_resume_command(words)}" if error.exit_code == EXIT_INTERRUPTED else error.hint
        return _complain(error.message, hint, error.exit_code, as_json)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("Interrupted.", f"Go on with: {_resume_command(words)}", EXIT_INTERRUPTED, as_json)
    except _CommandLineError as error:
        return _complain(_usage_message(error), f"See `{PROGRAM} --help`.", EXIT_USAGE, as_json)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except Exception as error:
        traceback.print_exc()
        hint = "This is a bug of skillstate-local; please report it with the lines above."
        return _complain(f"{type(error).__name__}: {error}", hint, EXIT_FAILED, as_json)


def _complain(message: str, hint: str, code: int, as_json: bool) -> int:
    if as_json:
        print(json.dumps({"error": message, "hint": hint, "exit_code": code}, ensure_ascii=False))
    else:
        print(f"Error: {message}" if code != EXIT_INTERRUPTED else message, file=sys.stderr)
        if hint:
            print(hint, file=sys.stderr)
    return code


def _usage_message(error: Any) -> str:
    """The parser's own words; empty ones mean that it has printed the help already."""
    return str(error.format_message()) or "A command is missing."


def _resume_command(words: Sequence[str]) -> str:
    """The command as it was given, with the variables that stood for options."""
    settings = [f"{name}={shlex.quote(value)}" for name, value in os.environ.items() if name.startswith("SKILLSTATE_")]
    return " ".join([*settings, "python -m skillstate_local", shlex.join(words)])
