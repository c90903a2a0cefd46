"""What is wrong with a domain: where, what, and what to do. Collected, so that an author sees everything at once."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from skillstate_local.domains.limits import MAX_FINDINGS


class Severity(StrEnum):
    """An error makes the domain unusable; a warning says what will surprise."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem. ``pointer`` is a JSON pointer into the definition; ``line`` is 0 where there is no file."""

    severity: Severity
    pointer: str
    message: str
    hint: str = ""
    line: int = 0


class Stop(Exception):
    """A limit is exceeded: going on would cost too much. What was found so far is already in the findings."""


class Findings:
    """Collects problems; ``line_of`` gives the line of a pointer."""

    def __init__(self, line_of: Callable[[str], int] = lambda pointer: 0) -> None:
        self._line_of = line_of
        self._found: dict[tuple[str, str], Finding] = {}

    def error(self, pointer: str, message: str, hint: str = "", line: int = 0) -> None:
        """Record a mistake. Raises Stop when there are too many to be of use."""
        self._add(Finding(Severity.ERROR, pointer, message, hint, line or self._line_of(pointer)))

    def warn(self, pointer: str, message: str, hint: str = "") -> None:
        """Record something that works, but hardly as meant."""
        self._add(Finding(Severity.WARNING, pointer, message, hint, self._line_of(pointer)))

    def limit(self, pointer: str, what: str, limit: int, hint: str = "", line: int = 0) -> Stop:
        """Record an exceeded limit and return what to raise."""
        self.error(pointer, f"{what}; the limit is {limit:,}", hint, line)
        return Stop()

    @property
    def failed(self) -> bool:
        """Whether there is at least one error."""
        return any(finding.severity is Severity.ERROR for finding in self)

    def __iter__(self) -> Iterator[Finding]:
        return iter(tuple(self._found.values()))

    def __len__(self) -> int:
        return len(self._found)

    def _add(self, finding: Finding) -> None:
        self._found.setdefault((finding.pointer, finding.message), finding)
        if len(self._found) >= MAX_FINDINGS:
            raise Stop


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint for a name that is not in a closed list: the most similar one and the first few of the others."""
    names = sorted(known)
    if not names:
        return "None is declared."
    near = difflib.get_close_matches(word[:100], names[:2000], n=1, cutoff=0.4)
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return (f"Did you mean {near[0]!r}? " if near else "") + f"Known: {shown}."


def shown(value: object, at_most: int = 60) -> str:
    """A value as a message shows it."""
    text = repr(value)
    return text if len(text) <= at_most else text[: at_most - 1] + "…"
