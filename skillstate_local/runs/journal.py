"""The journal of a run: what was intended, attempted and received, step by step, in one SQLite file.

A step's intent is committed before its action runs and its receipt after, in transactions of their own. Nothing is
ever changed or deleted.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from skillstate_local.errors import StorageError
from skillstate_local.records import AttemptRecord, StepIntent, StepReceipt, StepRecord
from skillstate_local.runs import rows
from skillstate_local.runs.config import RunConfig
from skillstate_local.runs.plan import EpisodePlan, plan_episodes
from skillstate_local.runs.results import EpisodeResult
from skillstate_local.runs.storage import (
    FolderLock,
    claim_folder,
    create_database,
    forget_folder,
    open_database,
    storage_errors,
)
from skillstate_local.runtimes.skill import Skill

_INSERT_STEP = rows.insert("steps", rows.STEP_COLUMNS)
_INSERT_ATTEMPT = rows.insert("attempts", rows.ATTEMPT_COLUMNS)
_INSERT_RECEIPT = rows.insert("receipts", rows.RECEIPT_COLUMNS)
_INSERT_META = "INSERT INTO meta (key, value) VALUES (?, ?)"
_INSERT_SKILL = "INSERT OR IGNORE INTO skills (hash, text) VALUES (?, ?)"
_INSERT_EPISODE = "INSERT INTO episodes (key, position, condition, seed, repeat) VALUES (?, ?, ?, ?, ?)"


class Past(NamedTuple):
    """What a journal knows of one episode: finished steps, then perhaps one whose action has no receipt."""

    done: tuple[StepRecord, ...]
    pending: StepIntent | None
    wall_s: float


class Journal:
    """One run's journal, open for reading and writing by this process alone. Every method raises StorageError."""

    def __init__(self, folder: Path, database: sqlite3.Connection, lock: FolderLock) -> None:
        self.folder = folder
        self._database = database
        self._lock = lock

    @classmethod
    def create(
        cls, folder: Path, config: RunConfig, identity: Mapping[str, object], skills: Sequence[Skill]
    ) -> Journal:
        """Begin a run in a new or empty folder. Leaves nothing behind if it fails."""
        existed = folder.exists()
        lock = claim_folder(folder)
        try:
            create_database(folder, _first_rows(config, identity, skills))
            return cls(folder, open_database(folder), lock)
        except BaseException:
            lock.release()
            forget_folder(folder, existed)
            raise

    @classmethod
    def open(cls, folder: Path) -> Journal:
        """Go on with the run in ``folder``."""
        lock = claim_folder(folder)
        try:
            return cls(folder, open_database(folder), lock)
        except BaseException:
            lock.release()
            raise

    @property
    def config(self) -> RunConfig:
        """The configuration that the run was begun with."""
        try:
            return RunConfig.model_validate_json(self._meta("config"))
        except ValidationError as error:
            raise StorageError(
                f"The configuration in {self.folder} is not one of this version ({error.error_count()} differences).",
                "Use the version of skillstate-local that made it, or choose another folder with --out.",
            ) from error

    @property
    def identity(self) -> dict[str, Any]:
        """What else must be the same when the run goes on: domain, prompts, grammars, model."""
        identity: dict[str, Any] = json.loads(self._meta("identity"))
        return identity

    @property
    def sessions(self) -> list[dict[str, Any]]:
        """The records of the processes that have worked on the run, oldest first."""
        return [json.loads(text) for (text,) in self._read("SELECT record FROM sessions ORDER BY number")]

    @property
    def finished(self) -> bool:
        """Whether every episode has been played to its end."""
        return not self._read("SELECT 1 FROM episodes WHERE ended IS NULL LIMIT 1")

    def add_session(self, record: Mapping[str, object]) -> None:
        """Note which software and hardware works on the run from now on."""
        with self._transaction():
            self._database.execute("INSERT INTO sessions (record) VALUES (?)", (json.dumps(record),))

    def begin(self, key: str) -> None:
        """An episode is being played, for the first time or again."""
        with self._transaction():
            self._database.execute("UPDATE episodes SET started = coalesce(started, ?) WHERE key = ?", (_now(), key))

    def end(self, key: str) -> None:
        """An episode has been played to its horizon."""
        with self._transaction():
            self._database.execute("UPDATE episodes SET ended = ? WHERE key = ?", (_now(), key))

    def intend(self, key: str, intent: StepIntent) -> None:
        """Commit a step's decision with all its attempts."""
        with self._transaction():
            self._database.execute(_INSERT_STEP, (key, *rows.step_row(intent)))
            attempts = ((key, *rows.attempt_row(intent.step, n, a)) for n, a in enumerate(intent.attempts))
            self._database.executemany(_INSERT_ATTEMPT, attempts)

    def receive(self, key: str, step: int, receipt: StepReceipt, wall_s: float) -> None:
        """Commit what the world answered, and the seconds that the step took."""
        with self._transaction():
            self._database.execute(_INSERT_RECEIPT, (key, *rows.receipt_row(step, receipt, wall_s)))

    def counts(self) -> dict[str, tuple[int, int]]:
        """(finished steps, successes) by condition."""
        statement = (
            "SELECT condition, count(*), sum(success) FROM receipts JOIN episodes ON episode = key GROUP BY condition"
        )
        return {condition: (steps, successes) for condition, steps, successes in self._read(statement)}

    def past(self, key: str) -> Past:
        """What is known of one episode."""
        attempts: dict[int, list[AttemptRecord]] = {}
        for row in self._read(rows.select("attempts", rows.ATTEMPT_COLUMNS), key):
            attempts.setdefault(row[0], []).append(rows.attempt_record(row))
        intents = [
            rows.step_intent(row, tuple(attempts.get(row[0], ())))
            for row in self._read(rows.select("steps", rows.STEP_COLUMNS), key)
        ]
        received = self._read(rows.select("receipts", rows.RECEIPT_COLUMNS), key)
        receipts = [rows.step_receipt(row) for row in received]
        if [intent.step for intent in intents] != list(range(len(intents))) or not 0 <= len(intents) - len(
            receipts
        ) < 2:
            raise StorageError(f"The journal in {self.folder} lacks steps of {key}.", "Start anew with another --out.")
        done = tuple(map(StepRecord, intents, receipts))
        pending = intents[-1] if len(intents) > len(receipts) else None
        return Past(done, pending, sum(row[-1] for row in received))

    def results(self) -> list[EpisodeResult]:
        """All episodes in the order of the plan, as far as they have been played."""
        config = self.config
        return [self._result(plan, config.horizon) for plan in plan_episodes(config)]

    def close(self) -> None:
        """Fold the write-ahead log into the file and let other processes in. Safe to call twice."""
        try:
            with storage_errors(self.folder):
                self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except StorageError:
            pass  # the log stays beside the file and is read from there; closing must not hide an earlier error
        finally:
            self._database.close()
            self._lock.release()

    def _result(self, plan: EpisodePlan, horizon: int) -> EpisodeResult:
        done, _, wall_s = self.past(plan.key)
        return EpisodeResult(plan.key, plan.condition, plan.seed, plan.repeat, horizon, done, wall_s)

    def _meta(self, key: str) -> str:
        return str(self._read("SELECT value FROM meta WHERE key = ?", key)[0][0])

    def _read(self, statement: str, *values: object) -> list[Any]:
        with storage_errors(self.folder):
            return self._database.execute(statement, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with storage_errors(self.folder):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise


class EpisodeJournal:
    """Writes down one episode; implements the loop's ``Recorder``."""

    def __init__(self, journal: Journal, key: str) -> None:
        self._journal = journal
        self._key = key
        self._since = time.perf_counter()

    def intend(self, intent: StepIntent) -> None:
        """Commit the step's decision."""
        self._journal.intend(self._key, intent)

    def receive(self, step: int, receipt: StepReceipt) -> None:
        """Commit the world's answer."""
        now = time.perf_counter()
        self._journal.receive(self._key, step, receipt, now - self._since)
        self._since = now


def _first_rows(
    config: RunConfig, identity: Mapping[str, object], skills: Sequence[Skill]
) -> list[tuple[str, tuple[object, ...]]]:
    contents: list[tuple[str, tuple[object, ...]]] = [
        (_INSERT_META, ("config", config.model_dump_json())),
        (_INSERT_META, ("identity", json.dumps(identity))),
        (_INSERT_META, ("created", _now())),
    ]
    contents += [(_INSERT_SKILL, (skill.hash, skill.text)) for skill in skills]
    for position, plan in enumerate(plan_episodes(config)):
        contents.append((_INSERT_EPISODE, (plan.key, position, plan.condition.label, plan.seed, plan.repeat)))
    return contents


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
