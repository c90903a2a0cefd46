"""Shipped files are found in the source tree and in a wheel; the cache root follows the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillstate_local.errors import EnvironmentProblem
from skillstate_local.registry import cache_root, resource, resources


def test_source_tree() -> None:
    assert resource("models.yaml").is_file()


def test_installed_data_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site-packages" / "skillstate_local"
    (package / "_data").mkdir(parents=True)
    (package / "_data" / "models.yaml").touch()
    (package.parent / "grammars").mkdir()
    monkeypatch.setattr(resources, "_PACKAGE", package)
    assert resource("models.yaml") == package / "_data" / "models.yaml"
    with pytest.raises(EnvironmentProblem, match="lacks 'grammars'"):
        resource("grammars")  # another package's folder in site-packages is not ours


def test_cache_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLSTATE_HOME", str(tmp_path / "a"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "b"))
    monkeypatch.setenv("HOME", str(tmp_path / "c"))
    assert cache_root() == tmp_path / "a"
    monkeypatch.delenv("SKILLSTATE_HOME")
    assert cache_root() == tmp_path / "b" / "skillstate_local"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_root() == tmp_path / "c" / ".cache" / "skillstate_local"
