"""A cache root of its own for every test, and tiny wheels that stand for a packaged model."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from skillstate_local.registry import Phase, Registry
from skillstate_local.registry.load import read_models

GGUF_PARTS = (b"GGUF first part;" * 100, b"second part." * 100)


class Recorder:
    """Progress that remembers its phases and the units counted in each."""

    def __init__(self) -> None:
        self.phases: list[Phase] = []
        self.done: dict[Phase, int] = {}
        self.totals: dict[Phase, int | None] = {}

    def start(self, phase: Phase, total: int | None, unit: str) -> None:
        self.phases.append(phase)
        self.totals[phase], self.done[phase] = total, 0

    def advance(self, amount: int, detail: str = "") -> None:
        self.done[self.phases[-1]] += amount


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache root."""
    folder = tmp_path / "home"
    monkeypatch.setenv("SKILLSTATE_HOME", str(folder))
    return folder


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A folder with two wheels, ``tiny-part1`` and ``tiny-part2``, each holding half a GGUF."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for number, content in enumerate(GGUF_PARTS, 1):
        package = f"tiny_part{number}"
        with zipfile.ZipFile(folder / f"{package}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{package}/model.part", content)
            wheel.writestr(f"{package}/__init__.py", "raise SystemExit('package code was run')")
            info = f"{package}-1.0.dist-info"
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
    return folder


def entry(source: dict[str, object], **changes: object) -> dict[str, object]:
    """A valid entry with ``source``; ``changes`` replace keys."""
    fields: dict[str, object] = {
        "source": source,
        "license": "none",
        "description": "a test",
        "parameters": "1K",
        "engines": ["transformers"],
        "limits": {"context_tokens": 64},
    }
    return fields | changes


def tiny_source(**changes: object) -> dict[str, object]:
    """The package source of the tiny wheels."""
    fields: dict[str, object] = {
        "requirements": ["tiny-part1==1.0", "tiny-part2==1.0"],
        "members": ["tiny_part1/model.part", "tiny_part2/model.part"],
        "sha256": hashlib.sha256(b"".join(GGUF_PARTS)).hexdigest(),
    }
    return {"package": fields | changes}


@pytest.fixture
def registry_of(tmp_path: Path) -> Callable[[dict[str, object]], Registry]:
    """A function that writes entries as models.yaml in ``tmp_path`` and reads them."""

    def make(entries: dict[str, object]) -> Registry:
        file = tmp_path / "models.yaml"
        file.write_text(yaml.safe_dump(entries))
        return Registry(read_models(file))

    return make
