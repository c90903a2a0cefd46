"""How a run's outcome is printed and left in its folder."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console

from skillstate_local.analysis import Summary, markdown, render, summarise, to_json
from skillstate_local.errors import EnvironmentProblem
from skillstate_local.runs.config import RunConfig
from skillstate_local.runs.session import Outcome
from skillstate_local.runs.storage import storage_errors

TABLE_WIDTH = 100


def check_statistics(config: RunConfig) -> None:
    """Raise EnvironmentProblem before a run whose intervals could not be computed after it."""
    if len(config.seeds) > 1 and find_spec("scipy") is None:
        raise EnvironmentProblem(
            "Intervals over several seeds need scipy, not installed here.", "pip install 'skillstate-local[analysis]'"
        )


def print_outcome(outcome: Outcome, *, as_json: bool) -> None:
    """Write summary.json and summary.md into the folder, then print the table or the JSON object.

    Raises StorageError if the folder cannot be written.
    """
    summary = summarise(outcome.results, outcome.domain, title_of(outcome))
    document = document_of(outcome, summary)
    with storage_errors(outcome.folder):
        _replace(outcome.folder / "summary.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        _replace(outcome.folder / "summary.md", f"{markdown(summary)}\n{_as_list(record_lines(outcome))}")
    if as_json:
        print(json.dumps(document, ensure_ascii=False))
        return
    width = max(shutil.get_terminal_size((TABLE_WIDTH, 24)).columns, TABLE_WIDTH)
    console = Console(width=width, highlight=False)
    render(summary, console)
    for line in record_lines(outcome):
        console.print(line, markup=False, soft_wrap=True)


def title_of(outcome: Outcome) -> str:
    """One line above the table."""
    config = outcome.config
    what = "compared" if config.command == "compare" else config.conditions[0].label
    seeds = f"{len(config.seeds)} seed{'s' if len(config.seeds) > 1 else ''}"
    return f"{config.model} on {config.env}, {what}: T = {config.horizon}, {seeds}"


def document_of(outcome: Outcome, summary: Summary) -> dict[str, Any]:
    """Everything about a finished run as one JSON object."""
    return {
        "folder": str(outcome.folder),
        "config": outcome.config.model_dump(mode="json"),
        "identity": outcome.identity,
        "sessions": outcome.sessions,
        "notes": list(outcome.notes),
        "summary": to_json(summary),
    }


def record_lines(outcome: Outcome) -> list[str]:
    """The part of the record that a reader of the table needs."""
    latest = outcome.sessions[-1]
    hardware, packages = latest["hardware"], latest["packages"]
    checksum = str(outcome.identity["model"].get("weights_sha256", ""))[:12]
    versions = ", ".join(f"{name} {packages[name]}" for name in packages if name != "pydantic")
    gpus = f", {', '.join(hardware['gpus'])}" if hardware["gpus"] else ""
    lines = [
        f"model     {outcome.config.model}{f' (weights sha256 {checksum}…)' if checksum else ''}",
        f"engine    {outcome.config.engine}, {latest['max_concurrency']} episodes at once, "
        f"at most {outcome.config.max_tokens} tokens an answer",
        f"hardware  {hardware['cpu']}, {hardware['cores']} cores, {hardware['memory_gib']} GiB{gpus}",
        f"versions  python {latest['python']}, {versions}",
        f"seeds     {', '.join(map(str, outcome.config.seeds))}; begun {outcome.sessions[0]['date']}",
        *(f"note      {note}" for note in outcome.notes),
        f"folder    {outcome.folder}",
    ]
    return lines if outcome.computed else [*lines, "This run was finished before; nothing was computed."]


def _as_list(lines: list[str]) -> str:
    return "".join(f"- {' '.join(line.split())}\n" for line in lines)


def _replace(file: Path, text: str) -> None:
    """Write a file whole or not at all."""
    unfinished = file.with_name(f"{file.name}.new")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(file)
