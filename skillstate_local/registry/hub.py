"""Models from a Hugging Face repository: found in the local cache, or fetched into it."""

from __future__ import annotations

import importlib.util
import shutil
from fnmatch import fnmatch
from pathlib import Path

from skillstate_local.errors import EnvironmentProblem, ModelNotReady, StorageError
from skillstate_local.registry.progress import Phase, Progress
from skillstate_local.registry.schema import HubSource

TIMEOUT_S = 5
_PATTERNS = ["*.safetensors", "*.json", "*.jinja", "*.txt", "*.model"]
_IGNORED = ["original/*", "onnx/*", "consolidated*"]


def cached_snapshot(source: HubSource) -> Path | None:
    """The snapshot of ``source`` in the hub's local cache, maybe incomplete, or None. Never uses the network."""
    if importlib.util.find_spec("huggingface_hub") is None:
        return None
    from huggingface_hub import snapshot_download

    try:
        # The patterns of the download: without them the hub's cache calls every partial copy incomplete.
        folder = snapshot_download(
            source.id,
            revision=source.revision,
            allow_patterns=_PATTERNS,
            ignore_patterns=_IGNORED,
            local_files_only=True,
        )
    except (OSError, ValueError):
        return None
    return Path(folder)


def fetch_snapshot(name: str, source: HubSource, progress: Progress) -> Path:
    """Download the safetensors, configuration and tokenizer of ``source`` into the hub's cache.

    Raises ModelNotReady if the hub is unreachable or refuses, within seconds; StorageError if the disk is too small;
    EnvironmentProblem if huggingface_hub is missing.
    """
    if importlib.util.find_spec("huggingface_hub") is None:
        raise EnvironmentProblem("huggingface_hub is not installed.", "Install skillstate-local[transformers].")
    try:
        return _fetch(source, progress)
    except EnvironmentProblem:
        raise
    except Exception as error:
        if "no space left" in str(error).lower():
            raise StorageError(f"No space left while fetching {name}.", "Free space, or set HF_HOME.") from error
        raise _not_ready(name, source, error) from error


def _fetch(source: HubSource, progress: Progress) -> Path:
    """File by file, smallest first, so that progress is seen and a killed download resumes."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    commit, sizes = _look_up(source)
    _need_space(sum(sizes.values()))
    progress.start(Phase.DOWNLOAD, len(sizes), "files")
    for file in sorted(sizes, key=lambda file: sizes[file]):
        progress.advance(0, file)
        snapshot_download(source.id, revision=commit, allow_patterns=[file], etag_timeout=TIMEOUT_S)
        progress.advance(1)
    # By the revision's own name, so that the cache learns which commit it is.
    return Path(
        snapshot_download(
            source.id,
            revision=source.revision,
            allow_patterns=_PATTERNS,
            ignore_patterns=_IGNORED,
            etag_timeout=TIMEOUT_S,
        )
    )


def _look_up(source: HubSource) -> tuple[str, dict[str, int]]:
    """The commit that the revision points to, and the size of each file we need."""
    from huggingface_hub import HfApi

    info = HfApi().model_info(source.id, revision=source.revision, timeout=TIMEOUT_S, files_metadata=True)
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
    return info.sha or source.revision, {file: size for file, size in sizes.items() if is_wanted(file)}


def is_wanted(file: str) -> bool:
    """Whether a repository's file is needed to run the model: weights, configuration, tokenizer."""
    wanted = any(fnmatch(file, pattern) for pattern in _PATTERNS)
    return wanted and not any(fnmatch(file, pattern) for pattern in _IGNORED)


def _need_space(needed_bytes: int) -> None:
    from huggingface_hub.constants import HF_HUB_CACHE

    folder = Path(HF_HUB_CACHE)
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if needed_bytes > free:
        raise StorageError(
            f"The model needs {needed_bytes / 1e9:.1f} GB and {folder} has {free / 1e9:.1f} GB free.",
            "Free space, or set HF_HOME to a folder on another disk.",
        )


def _not_ready(name: str, source: HubSource, error: Exception) -> ModelNotReady:
    kind = type(error).__name__
    if kind == "GatedRepoError":
        why, hint = "access is restricted", "Accept the licence on the hub and set HF_TOKEN."
    elif kind == "RepositoryNotFoundError":
        why, hint = "no such repository, or it is private", "Check the id in models.yaml, or set HF_TOKEN."
    elif kind == "RevisionNotFoundError":
        why, hint = f"no revision {source.revision!r}", "Correct `revision` in models.yaml."
    elif kind == "OfflineModeIsEnabled":
        why, hint = "HF_HUB_OFFLINE is set", "Unset HF_HUB_OFFLINE, or name a local folder as `path` in ./models.yaml."
    elif kind == "HfHubHTTPError":
        why, hint = f"the hub answered: {error}", "Try again later; private models need HF_TOKEN."
    else:
        why = f"the hub cannot be reached ({str(error).splitlines()[0] if str(error) else kind})"
        hint = (
            "Check the network; gated models also need HF_TOKEN. A folder already on this machine works too: give the"
            " entry `source: {path: …}` in ./models.yaml."
        )
    return ModelNotReady(f"Model {name!r} ({source.id}) was not fetched: {why}.", hint)
