"""Whether a model is ready on this machine, and exactly which weights it has."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from skillstate_local.errors import ModelNotReady
from skillstate_local.registry.files import folder_bytes, folder_problem, sha256_of, weight_files, write_json
from skillstate_local.registry.hub import cached_snapshot
from skillstate_local.registry.load import Registry, load_registry
from skillstate_local.registry.resources import cache_root
from skillstate_local.registry.schema import Model

MANIFEST = "manifest.json"
FORMAT = 1  # raise it when the conversion changes what it writes
_IDENTITY_FILES = ("config.json", "generation_config.json", "tokenizer.json", "chat_template.jinja")


class FileRecord(BaseModel):
    """Size and checksum of one file of a converted model."""

    bytes: int
    sha256: str


class Manifest(BaseModel):
    """Written last into a converted model's folder; a folder without it is not ready."""

    format: int
    name: str
    source: dict[str, Any]
    gguf_sha256: str
    files: dict[str, FileRecord]
    versions: dict[str, str]
    created: str


@dataclass(frozen=True, slots=True)
class Status:
    """``why`` says what is missing when ``ready`` is false; ``path`` is the folder to load when it is true."""

    name: str
    ready: bool
    why: str
    path: Path | None
    size_bytes: int
    checksum: str


def model_folder(model: Model) -> Path:
    """Where a packaged model's converted folder lives."""
    return cache_root() / "models" / safe_name(model.name)


def safe_name(name: str) -> str:
    """A model name as one path component; names forbid ``--``, so no two collide."""
    return name.replace("/", "--")


def status(name: str, *, verify: bool = False, registry: Registry | None = None) -> Status:
    """State of one model; ``verify`` also computes the checksums of a converted model again.

    Raises UsageError if the name is unknown.
    """
    model = (registry or load_registry()).get(name)
    folder, why = _find(model)
    if not why and folder and verify and model.source.kind == "package":
        why = _checksum_problem(folder)
    if why or folder is None:
        return Status(name, False, why, None, folder_bytes(folder) if folder and folder.is_dir() else 0, "")
    checksum = ""
    if manifest := read_manifest(folder):
        checksum = combined_sha256({file.name: manifest.files[file.name].sha256 for file in weight_files(folder)})
    return Status(name, True, "", folder, folder_bytes(folder), checksum)


def ready_path(name: str, registry: Registry | None = None) -> Path | None:
    """The folder to load, or None if the model is not ready. Raises UsageError if the name is unknown."""
    folder, why = _find((registry or load_registry()).get(name))
    return None if why else folder


def require_path(name: str, registry: Registry | None = None) -> Path:
    """The folder to load. Raises ModelNotReady with the command that makes it ready; UsageError if unknown."""
    folder, why = _find((registry or load_registry()).get(name))
    if why or folder is None:
        raise ModelNotReady(f"Model {name!r} is not ready: {why}.", f"Run `skillstate-local models pull {name}`.")
    return folder


def model_identity(name: str, registry: Registry | None = None) -> dict[str, Any]:
    """What a run's record says about its model: source, revision, checksums of weights and tokenizer.

    Checksums come from the manifest, from the hub's own blob names, or are computed once per size and time of change.
    Raises ModelNotReady if the model is not ready, UsageError if the name is unknown.
    """
    registry = registry or load_registry()
    model, folder = registry.get(name), require_path(name, registry)
    others = [folder / file for file in _IDENTITY_FILES if (folder / file).is_file()]
    files = _checksums(folder, [*weight_files(folder), *others])
    weights = {path.name: files[path.name] for path in weight_files(folder)}
    return {
        "name": name,
        "source": model.source.model_dump(exclude_none=True),
        "revision": _revision(model, folder),
        "template": model.template,
        "weights_sha256": combined_sha256(weights),
        "files": files,
    }


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest in ``folder``, or None if there is none that can be read."""
    try:
        return Manifest.model_validate_json((folder / MANIFEST).read_bytes())
    except (OSError, ValidationError):
        return None


def combined_sha256(sums: dict[str, str]) -> str:
    """The sum of a single file, or the SHA-256 over the sorted ``sum  name`` lines of several."""
    import hashlib

    if len(sums) == 1:
        return next(iter(sums.values()))
    lines = "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))
    return hashlib.sha256(lines.encode()).hexdigest()


def _find(model: Model) -> tuple[Path | None, str]:
    """The folder where the model is or would be, and why it cannot be loaded (empty if it can)."""
    if model.source.hub is not None:
        snapshot = cached_snapshot(model.source.hub)
        return snapshot, folder_problem(snapshot) if snapshot else "not in the local hub cache"
    if model.path is not None:
        return model.path, folder_problem(model.path)
    folder = model_folder(model)
    return folder, _package_problem(model, folder)


def _package_problem(model: Model, folder: Path) -> str:
    if not folder.is_dir():
        return "not pulled"
    manifest = read_manifest(folder)
    if manifest is None:
        return "the folder has no valid manifest"
    if manifest.format != FORMAT:
        return "made by another version of the conversion"
    if model.source.package and manifest.gguf_sha256 != model.source.package.sha256:
        return "made from other weights than models.yaml names"
    for name, record in manifest.files.items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != record.bytes:
            return f"{name} is missing or truncated"
    return folder_problem(folder)


def _checksum_problem(folder: Path) -> str:
    manifest = read_manifest(folder)
    for name, record in manifest.files.items() if manifest else ():
        if sha256_of(folder / name) != record.sha256:
            return f"{name} has changed since it was made"
    return ""


def _revision(model: Model, folder: Path) -> str:
    if model.source.package is not None:
        return model.source.package.sha256
    return folder.name if model.source.hub is not None else ""


def _checksums(folder: Path, paths: list[Path]) -> dict[str, str]:
    """SHA-256 by file name; what is not known already is computed and remembered under the cache root."""
    manifest = read_manifest(folder)
    known = {name: record.sha256 for name, record in manifest.files.items()} if manifest else {}
    memory_file = cache_root() / "checksums.json"
    memory = _read_memory(memory_file)
    sums, fresh = {}, False
    for path in paths:
        blob = path.resolve()
        stat = blob.stat()
        key = f"{blob}:{stat.st_size}:{stat.st_mtime_ns}"
        if path.name in known:
            sums[path.name] = known[path.name]
        elif re.fullmatch("[0-9a-f]{64}", blob.name):
            sums[path.name] = blob.name  # the hub names large blobs by their SHA-256
        else:
            fresh = fresh or key not in memory
            sums[path.name] = memory[key] = memory.get(key) or sha256_of(blob)
    if fresh:
        memory_file.parent.mkdir(parents=True, exist_ok=True)
        write_json(memory_file, memory)
    return sums


def _read_memory(file: Path) -> dict[str, str]:
    try:
        memory = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return memory if isinstance(memory, dict) else {}
