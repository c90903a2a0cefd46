"""Model folders on disk: what makes one complete, sums, locks and durable renames."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from skillstate_local.errors import SkillStateError, StorageError
from skillstate_local.registry.resources import cache_root

CHUNK_BYTES = 1 << 20
_STORAGE_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG}
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "tekken.json", "vocab.txt")


def folder_problem(folder: Path) -> str:
    """Why ``folder`` cannot be loaded as a model, or an empty string."""
    if not folder.is_dir():
        return f"{folder} is not a folder"
    if not (folder / "config.json").is_file():
        return f"{folder} has no config.json"
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        return f"{folder} has no tokenizer"
    if not weight_files(folder):
        return f"{folder} has no complete set of weights"
    return ""


def weight_files(folder: Path) -> list[Path]:
    """The weights by name: all shards of an index, or every weight file; empty if a shard is missing."""
    for index in sorted(folder.glob("*.index.json")):
        try:
            shards = {folder / shard for shard in json.loads(index.read_bytes())["weight_map"].values()}
        except (ValueError, KeyError, AttributeError, TypeError):
            return []
        return sorted(shards) if all(shard.is_file() for shard in shards) else []
    return sorted(folder.glob("*.safetensors")) or sorted(folder.glob("pytorch_model*.bin"))


def folder_bytes(folder: Path) -> int:
    """Size of all files under ``folder``, links followed."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def sha256_of(path: Path, on_bytes: Callable[[int], None] = lambda _: None) -> str:
    """SHA-256 of a file; ``on_bytes`` hears how many bytes each chunk had."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            digest.update(chunk)
            on_bytes(len(chunk))
    return digest.hexdigest()


def sync_tree(folder: Path) -> None:
    """Make every file under ``folder``, and the folder itself, survive a power cut."""
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def replace_folder(new: Path, final: Path) -> None:
    """Put the finished folder ``new`` in the place of ``final``; a reader never sees a half of either."""
    sync_tree(new)
    old = final.with_name(f"{final.name}.replaced")
    shutil.rmtree(old, ignore_errors=True)
    if final.exists():
        final.rename(old)
    new.rename(final)
    shutil.rmtree(old, ignore_errors=True)
    descriptor = os.open(final.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, value: object) -> None:
    """Write JSON beside ``path`` and rename it into place."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    partial.replace(path)


@contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Turn a full or unwritable disk into StorageError; other errors pass."""
    try:
        yield
    except SkillStateError:
        raise
    except Exception as error:
        # safetensors and tokenizers, written in Rust, report a full disk as their own exception types.
        full = "no space left" in str(error).lower() or "os error 28" in str(error)
        if full or (isinstance(error, OSError) and error.errno in _STORAGE_ERRNOS):
            hint = f"Free space under {cache_root()}, or set SKILLSTATE_HOME to a folder on another disk."
            raise StorageError(f"{what}: {error}", hint) from error
        raise


@contextmanager
def exclusive(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file ``path``; ``on_wait`` is called if another process has it. A killed holder releases it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield
