"""From records to figures: classes of failure, statistics, a summary, and its tables.

Names are loaded on first use, so that importing the package costs nothing; scipy is loaded when an interval is needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillstate_local.analysis.summary import Summary, summarise, to_json
    from skillstate_local.analysis.tables import markdown, render

__all__ = ["Summary", "markdown", "render", "summarise", "to_json"]

_HOMES = {"Summary": "summary", "summarise": "summary", "to_json": "summary", "markdown": "tables", "render": "tables"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
