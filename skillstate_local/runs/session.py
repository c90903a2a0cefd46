"""One command's work on one run: begin it, go on with it, or read what it came to."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from skillstate_local.domains.base import Domain
from skillstate_local.engine.base import Engine
from skillstate_local.errors import RunMismatch
from skillstate_local.registry import Registry, require_path
from skillstate_local.runs.config import RunConfig, config_differences, nested_differences
from skillstate_local.runs.engines import make_engine
from skillstate_local.runs.journal import Journal
from skillstate_local.runs.plan import Workshop
from skillstate_local.runs.progress import Progress
from skillstate_local.runs.record import package_changes, run_identity
from skillstate_local.runs.results import EpisodeResult
from skillstate_local.runs.runner import Runner
from skillstate_local.runs.storage import has_journal


class Outcome(NamedTuple):
    """A finished run. ``computed`` is false when there was nothing left to do; ``notes`` are worth a reader's eye."""

    folder: Path
    config: RunConfig
    domain: Domain
    identity: dict[str, Any]
    sessions: list[dict[str, Any]]
    results: list[EpisodeResult]
    computed: bool
    notes: tuple[str, ...]


def execute(config: RunConfig, registry: Registry, folder: Path, max_concurrency: int, progress: Progress) -> Outcome:
    """Bring the run in ``folder`` to its end, from wherever it stands.

    Raises RunMismatch if the folder holds another run, StorageError, EnvironmentProblem, Interrupted, EngineDied.
    """
    workshop = Workshop(config)
    journal = _open(folder, config) if has_journal(folder) else None
    try:
        if journal is not None and journal.finished:
            _compare_identity(journal, run_identity(workshop, registry), showing=True)
            return _outcome(journal, workshop, computed=False)
        workshop.check_grammars()
        engine = _engine(config, registry, progress)
        with progress.phase("identifying the model and the skill prompts"):
            identity = run_identity(workshop, registry)
        if journal is None:
            skills = [workshop.skill(condition) for condition in config.conditions]
            journal = Journal.create(folder, config, identity, skills)
        _compare_identity(journal, identity, showing=False)
        Runner(workshop, journal, engine, progress, max_concurrency).run()
        return _outcome(journal, workshop, computed=True)
    finally:
        if journal is not None:
            journal.close()


def _engine(config: RunConfig, registry: Registry, progress: Progress) -> Engine | None:
    if config.scripted:
        return None
    require_path(config.model, registry)
    with progress.phase(f"importing the engine {config.engine}"):
        return make_engine(config, registry)


def _open(folder: Path, config: RunConfig) -> Journal:
    journal = Journal.open(folder)
    try:
        if differences := config_differences(journal.config, config):
            raise _mismatch(folder, "configuration", differences)
    except BaseException:
        journal.close()
        raise
    return journal


def _compare_identity(journal: Journal, identity: dict[str, Any], *, showing: bool) -> None:
    """A finished run may be shown where its model is not at hand; everything else must be what it was."""
    was = journal.identity
    if showing and not identity["model"]:
        was = was | {"model": {}}
    if differences := nested_differences(was, identity):
        raise _mismatch(journal.folder, "domain, prompts, grammars or model", differences)


def _mismatch(folder: Path, what: str, differences: tuple[str, ...]) -> RunMismatch:
    lines = "".join(f"\n  {line}" for line in differences)
    return RunMismatch(
        f"{folder} holds a run of another {what} (was → is):{lines}",
        "Give the old options to go on with it, or another folder with --out.",
        differences,
    )


def _outcome(journal: Journal, workshop: Workshop, *, computed: bool) -> Outcome:
    sessions = journal.sessions
    changes = package_changes(sessions)
    return Outcome(
        folder=journal.folder,
        config=workshop.config,
        domain=workshop.domain,
        identity=journal.identity,
        sessions=sessions,
        results=journal.results(),
        computed=computed,
        notes=(f"Package versions changed while the run went on: {'; '.join(changes)}.",) if changes else (),
    )
