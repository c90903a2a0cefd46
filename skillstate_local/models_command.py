"""What `models` and `models pull` do."""

from __future__ import annotations

import json
import shutil
import sys
import time

from rich.console import Console
from rich.table import Table

from skillstate_local.registry import Phase, load_registry, status
from skillstate_local.registry import pull as make_ready

LINE_EVERY_S = 5.0
TABLE_WIDTH = 110


def show_models(*, as_json: bool) -> None:
    """List every known model, and whether it is ready. Raises UsageError for a wrong models.yaml."""
    registry = load_registry()
    states = {model.name: status(model.name, registry=registry) for model in registry}
    if as_json:
        entries = [
            {
                "name": model.name,
                "description": model.description,
                "license": model.license,
                "parameters": model.parameters,
                "source": model.source.kind,
                "engines": list(model.engines),
                "ready": states[model.name].ready,
                "why": states[model.name].why,
                "path": str(states[model.name].path or ""),
                "size_bytes": states[model.name].size_bytes,
                "checksum": states[model.name].checksum,
            }
            for model in registry
        ]
        print(json.dumps({"models": entries}, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("model", "parameters", "source", "ready", "engines"):
        table.add_column(heading, no_wrap=heading != "ready", overflow="fold")
    for model in registry:
        state = states[model.name]
        ready = f"yes, {state.size_bytes / 1e9:.2f} GB" if state.ready else f"no: {state.why}"
        table.add_row(model.name, model.parameters, model.source.kind, ready, ", ".join(model.engines))
    Console(highlight=False, width=max(shutil.get_terminal_size().columns, TABLE_WIDTH)).print(table)


def pull_model(name: str, *, keep_packages: bool, as_json: bool) -> None:
    """Make a model ready, saying what goes on. Raises as ``registry.pull`` does."""
    folder = make_ready(name, _PullProgress(), keep_downloads=keep_packages)
    if as_json:
        print(json.dumps({"name": name, "path": str(folder)}))
    else:
        print(f"{name} is ready: {folder}")


class _PullProgress:
    """One line on standard error for each phase, and one now and then while it lasts."""

    def __init__(self) -> None:
        self._label = ""
        self._total: int | None = None
        self._done = 0
        self._said = 0.0

    def start(self, phase: Phase, total: int | None, unit: str) -> None:
        """Name the phase."""
        known = f" ({_amount(total, unit)})" if total is not None else f" ({unit})" if unit else ""
        self._label, self._total, self._unit, self._done = phase.value, total, unit, 0
        self._say(f"{self._label}{known}")

    def advance(self, amount: int, detail: str = "") -> None:
        """Say how far it is, every few seconds."""
        self._done += amount
        if time.monotonic() - self._said >= LINE_EVERY_S:
            of = f" of {_amount(self._total, self._unit)}" if self._total else ""
            self._say(f"{self._label}: {_amount(self._done, self._unit)}{of} {detail}".rstrip())

    def _say(self, line: str) -> None:
        self._said = time.monotonic()
        print(line, file=sys.stderr, flush=True)


def _amount(count: int | None, unit: str) -> str:
    return f"{(count or 0) / 1e6:.0f} MB" if unit == "bytes" else f"{count or 0} {unit}"
