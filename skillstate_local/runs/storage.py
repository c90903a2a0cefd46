"""A run's folder: one process at a time, made whole or not at all, and its failures in plain words."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from skillstate_local.errors import StorageError
from skillstate_local.runs.rows import APPLICATION_ID, SCHEMA_VERSION, TABLES

JOURNAL = "journal.sqlite"
LOCK = "lock"
_UNFINISHED = f"{JOURNAL}.new"
_OURS = {JOURNAL, LOCK, _UNFINISHED, f"{_UNFINISHED}-journal"}

_SPACE = "Free some space and give the same command again; what is recorded so far is kept."
_CORRUPT = "Restore the folder from a copy, or start anew with another --out."


@contextmanager
def storage_errors(folder: Path) -> Iterator[None]:
    """Turn what the disk and SQLite say into a StorageError about ``folder``."""
    try:
        yield
    except sqlite3.Error as error:
        raise _of_sqlite(folder, error) from error
    except OSError as error:
        raise _of_os(folder, error) from error


def _of_sqlite(folder: Path, error: sqlite3.Error) -> StorageError:
    match getattr(error, "sqlite_errorcode", None) or 0:
        case code if code & 0xFF == sqlite3.SQLITE_FULL:
            return StorageError(f"The disk under {folder} is full.", _SPACE)
        case code if code & 0xFF in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            return StorageError(f"The run folder {folder} cannot be written: {error}.", "Choose another with --out.")
        case code if code & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            return StorageError(f"The journal in {folder} is damaged: {error}.", _CORRUPT)
        case code if code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StorageError(f"Another program holds the journal in {folder}.", "Close it and try again.")
    return StorageError(f"The journal in {folder} failed: {error}.", "Check the disk, then give the command again.")


def _of_os(folder: Path, error: OSError) -> StorageError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(f"The disk under {folder} is full.", _SPACE)
    reason = error.strerror or str(error)
    return StorageError(f"The run folder {folder} cannot be written: {reason}.", "Choose another with --out.")


class FolderLock:
    """Held by the process that works on a run; the system releases it when the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        """Raises StorageError if another live process holds it."""
        self._file = (folder / LOCK).open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            holder = self._file.read().strip() or "unknown"
            self._file.close()
            raise StorageError(
                f"Another process (id {holder}) is working on the run in {folder}.",
                "Wait until it ends, or choose another folder with --out.",
            ) from None
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def release(self) -> None:
        """Let others in. Safe to call twice."""
        self._file.close()


def has_journal(folder: Path) -> bool:
    """Whether a run was ever begun in ``folder``."""
    return (folder / JOURNAL).exists()


def claim_folder(folder: Path) -> FolderLock:
    """Make the folder if need be and lock it. Raises StorageError if it is something else, read-only or taken."""
    with storage_errors(folder):
        if folder.exists() and not folder.is_dir():
            raise StorageError(f"{folder} is not a folder.", "Choose another with --out.")
        if folder.is_dir() and not has_journal(folder):
            strange = sorted(entry.name for entry in folder.iterdir() if entry.name not in _OURS)
            if strange:
                raise StorageError(
                    f"{folder} is not a run's folder: it holds {strange[0]!r} and no {JOURNAL}.",
                    "Choose an empty or a new folder with --out.",
                )
        folder.mkdir(parents=True, exist_ok=True)
        return FolderLock(folder)


def forget_folder(folder: Path, existed: bool) -> None:
    """Undo what claiming a folder did, when no journal could be made in it."""
    with suppress(OSError):
        (folder / LOCK).unlink(missing_ok=True)
        if not existed:
            folder.rmdir()


def create_database(folder: Path, contents: list[tuple[str, tuple[object, ...]]]) -> None:
    """Write the journal with its first rows under another name, then rename it: it exists whole or not at all."""
    unfinished = folder / _UNFINISHED
    if has_journal(folder):
        raise StorageError(f"Another process has just begun a run in {folder}.", "Give the same command again.")
    with storage_errors(folder):
        unfinished.unlink(missing_ok=True)
        try:
            _write_database(unfinished, contents)
            unfinished.rename(folder / JOURNAL)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise


def _write_database(file: Path, contents: list[tuple[str, tuple[object, ...]]]) -> None:
    database = sqlite3.connect(file, isolation_level=None)
    try:
        database.executescript(f"BEGIN; {TABLES} COMMIT;")
        database.execute("BEGIN")
        for statement, values in contents:
            database.execute(statement, values)
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        database.execute("COMMIT")
    finally:
        database.close()


def open_database(folder: Path) -> sqlite3.Connection:
    """The one connection that writes. Raises StorageError if the file is damaged or not a journal of this version."""
    with storage_errors(folder):
        database = sqlite3.connect(folder / JOURNAL, isolation_level=None)
        try:
            _check_database(folder, database)
            database.execute("PRAGMA journal_mode = WAL")
            # NORMAL does not wait for the disk at each commit. A killed process loses nothing, since what was written
            # is in the system's cache; after a power cut the last commits may be missing, but never half of one. That
            # is enough here: the world lives in this process and is replayed, so lost steps are simply played again.
            # A world that acts outside this process will need FULL, for its intents must survive a power cut.
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            database.close()
            raise
        return database


def _check_database(folder: Path, database: sqlite3.Connection) -> None:
    (application,), (version,) = (
        database.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
    )
    if application != APPLICATION_ID:
        raise StorageError(f"{folder / JOURNAL} is not a run's journal.", "Choose another folder with --out.")
    if version != SCHEMA_VERSION:
        raise StorageError(
            f"The journal in {folder} has format {version}; this version reads {SCHEMA_VERSION}.",
            "Use the version of skillstate-local that made it, or choose another folder with --out.",
        )
    problems = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problems != "ok":
        raise StorageError(f"The journal in {folder} is damaged: {problems}.", _CORRUPT)
