"""Where files that ship with the package and files it makes are found."""

from __future__ import annotations

import os
from pathlib import Path

from skillstate_local.errors import EnvironmentProblem

_PACKAGE = Path(__file__).resolve().parent.parent


def resource(name: str) -> Path:
    """Path of a shipped file or folder (``models.yaml``, ``grammars``), in a wheel or in the source tree.

    Raises EnvironmentProblem if the installation lacks it.
    """
    installed = _PACKAGE / "_data" / name
    if installed.exists():
        return installed
    source_tree = _PACKAGE.parent
    if (source_tree / "pyproject.toml").is_file() and (source_tree / name).exists():
        return source_tree / name
    raise EnvironmentProblem(f"The installation lacks {name!r}.", "Install skillstate-local again.")


def cache_root() -> Path:
    """Folder for models and downloads: ``SKILLSTATE_HOME``, else the user's cache folder. It need not exist yet."""
    if home := os.environ.get("SKILLSTATE_HOME"):
        return Path(home).expanduser().absolute()
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg).expanduser().absolute() / "skillstate_local"
    return Path("~/.cache/skillstate_local").expanduser()
