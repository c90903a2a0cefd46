"""One tree of errors; each says what happened, what to do next, and the exit code a command ends with."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_ENVIRONMENT = 3
EXIT_ENGINE_DIED = 4
EXIT_INTERRUPTED = 130


class SkillStateError(Exception):
    """Base of every error this package raises on purpose.

    ``message`` names what and where; ``hint`` says what to do next and may be empty.
    """

    exit_code = EXIT_FAILED

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class UsageError(SkillStateError):
    """The command, a flag or a file the user wrote is wrong."""

    exit_code = EXIT_USAGE


class DomainError(UsageError):
    """A domain is authored inconsistently; ``pointer`` is the JSON pointer into its definition."""

    def __init__(self, message: str, hint: str = "", pointer: str = "") -> None:
        super().__init__(f"{message} (at {pointer})" if pointer else message, hint)
        self.pointer = pointer


class RunMismatch(UsageError):
    """A run folder holds another configuration; ``differences`` is the diff, one line a field."""

    def __init__(self, message: str, hint: str, differences: tuple[str, ...]) -> None:
        super().__init__(message, hint)
        self.differences = differences


class EnvironmentProblem(SkillStateError):
    """Something outside the command is missing: an extra, a model, a port, disk space."""

    exit_code = EXIT_ENVIRONMENT


class ModelNotReady(EnvironmentProblem):
    """The named model is known but its files are not on this machine."""


class ContextTooShort(EnvironmentProblem):
    """The prompt and the output budget do not fit the model's context; found before decoding."""


class UnsupportedConstraint(UsageError):
    """An engine or dialect cannot enforce what was asked for. It refuses; it never weakens."""


class GrammarError(SkillStateError):
    """A grammar could not be compiled, or exceeds a limit."""

    exit_code = EXIT_ENVIRONMENT


class EngineDied(SkillStateError):
    """The engine stopped working in the middle of a run; the run can be resumed."""

    exit_code = EXIT_ENGINE_DIED


class StorageError(EnvironmentProblem):
    """The run folder cannot be written: disk full, read-only, or not a run folder."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """Error for a name that is not in a closed list, with the nearest match as hint."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    return UsageError(f"Unknown {kind} {name!r}.", f"{hint}Known: {', '.join(names)}.")
