"""How a pull tells what it is doing; rendering is the caller's business."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class Phase(StrEnum):
    """What a pull is busy with, in this order; phases that are not needed are skipped."""

    WAIT = "wait"
    DOWNLOAD = "download"
    VERIFY = "verify"
    CONVERT = "convert"


class Progress(Protocol):
    """Listens to one pull."""

    def start(self, phase: Phase, total: int | None, unit: str) -> None:
        """A phase begins; ``total`` counts ``unit`` ("files", "bytes", "steps") or is None if unknown."""
        ...

    def advance(self, amount: int, detail: str = "") -> None:
        """``amount`` more units of the current phase are done; ``detail`` names what comes next."""
        ...


class Silent:
    """Says nothing."""

    def start(self, phase: Phase, total: int | None, unit: str) -> None:
        """Ignore."""

    def advance(self, amount: int, detail: str = "") -> None:
        """Ignore."""


SILENT = Silent()
