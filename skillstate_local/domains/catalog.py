"""Bundled domains by name, and domain files by path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from skillstate_local.domains.base import Domain
from skillstate_local.domains.loader import load_domain
from skillstate_local.domains.warehouse import WAREHOUSE
from skillstate_local.errors import unknown_name

BUNDLED_FILES = Path(__file__).parent / "bundled"

_PYTHON: Mapping[str, Callable[[], Domain]] = {"warehouse": lambda: WAREHOUSE}


def bundled_names() -> tuple[str, ...]:
    """The names of all domains that come with the package."""
    return tuple(sorted({*_PYTHON, *(file.stem for file in BUNDLED_FILES.glob("*.yaml"))}))


@lru_cache(maxsize=32)
def bundled_domain(name: str) -> Domain:
    """A bundled domain. Raises UsageError, with the nearest match, if there is none of this name."""
    if name in _PYTHON:
        return _PYTHON[name]()
    if name not in bundled_names():
        raise unknown_name("domain", name, bundled_names())
    return load_domain(BUNDLED_FILES / f"{name}.yaml")


def find_domain(name: str) -> Domain:
    """The bundled domain of this name, or the domain of this file (a path, or a name that ends in .yaml or .yml).

    Raises UsageError for an unknown name and DomainError for a file with a mistake.
    """
    file = domain_file(name)
    return bundled_domain(name) if file is None else load_domain(file)


def domain_file(name: str) -> Path | None:
    """The path that a user's argument means, or None when it is the name of a bundled domain."""
    path = Path(name)
    is_path = path.suffix in (".yaml", ".yml") or len(path.parts) > 1
    return path if is_path else None
