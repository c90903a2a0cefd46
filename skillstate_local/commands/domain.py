"""`domain check|new|show`: authoring a domain without writing code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from skillstate_local.domains.level import Level, Order
from skillstate_local.errors import EXIT_DONE, EXIT_FAILED, EnvironmentProblem, SkillStateError, UsageError

domain_app = typer.Typer(
    name="domain",
    help="Write a domain, check it, and see what the model sees.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
Domain = Annotated[str, typer.Argument(help="A bundled domain's name, or a path to a YAML file.", metavar="DOMAIN")]


@domain_app.command("check")
def check(domain: Domain, as_json: Json = False) -> None:
    """Say what is wrong with a domain, and what each level's grammar guarantees for each field.

    Ends with 0 when there is no error, with 1 when there is one, with 2 when the file cannot be read.
    """
    from skillstate_local.authoring.report import check_named, render_report

    with _reported():
        report = check_named(domain)
    typer.echo(_dump(report.as_json()) if as_json else render_report(report))
    raise typer.Exit(EXIT_DONE if report.ok else EXIT_FAILED)


@domain_app.command("new")
def new(
    name: Annotated[str, typer.Argument(help="The domain's name, as in my-domain.")],
    output: Annotated[Path | None, typer.Option(help="Where to write it; - is stdout. Default: NAME.yaml.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: Json = False,
) -> None:
    """Write a commented starting file that passes `domain check` as it is."""
    from skillstate_local.domains.template import new_domain_text

    with _reported():
        text = new_domain_text(name)
        file = output or Path(f"{name}.yaml")
        if str(file) == "-":
            typer.echo(_dump({"text": text}) if as_json else text, nl=as_json)
            return
        _write(file, text, force=force)
    said = f"Wrote {file}. Next: `domain check {file}`, then `domain show {file}`."
    typer.echo(_dump({"file": str(file)}) if as_json else said)


@domain_app.command("show")
def show(
    domain: Domain,
    level: Annotated[Level, typer.Option(help="Level of constraint.")] = Level.DELTA,
    order: Annotated[Order, typer.Option(help="Which key the model writes first.")] = Order.PATCH_FIRST,
    reasoning: Annotated[int, typer.Option(min=0, help="Tokens of reasoning before the object; 0: none.")] = 0,
    as_json: Json = False,
) -> None:
    """Print P, the immutable part of every prompt, exactly as the model sees it."""
    from skillstate_local.authoring.show import show_domain
    from skillstate_local.domains.catalog import find_domain

    with _reported():
        skill = show_domain(find_domain(domain), level, order, reasoning)
    if as_json:
        typer.echo(_dump({"text": skill.text, "hash": skill.hash, "instructions_hash": skill.instructions_hash}))
    else:
        typer.echo(skill.text)


@contextmanager
def _reported() -> Iterator[None]:
    """A user's mistake ends with its message and exit code, never with a traceback."""
    try:
        yield
    except SkillStateError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(error.exit_code) from None


def _write(file: Path, text: str, *, force: bool) -> None:
    try:
        with file.open("w" if force else "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise UsageError(f"{file}: there is such a file already.", "Choose another name, or add --force.") from None
    except OSError as error:
        said = f"{file}: cannot be written: {error.strerror}"
        raise EnvironmentProblem(said, "Choose another place with --output.") from None


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)
