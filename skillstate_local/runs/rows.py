"""Records as rows of the journal, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skillstate_local.engine.base import StopReason, Timing, Usage
from skillstate_local.records import AttemptRecord, StepIntent, StepReceipt
from skillstate_local.state.canonical import Json, dumps, loads

Row = Sequence[Any]

SCHEMA_VERSION = 1
APPLICATION_ID = 0x534B534C  # "SKSL"

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sessions (number INTEGER PRIMARY KEY, record TEXT NOT NULL);
CREATE TABLE skills (hash TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE episodes (
  key TEXT PRIMARY KEY, position INTEGER NOT NULL, condition TEXT NOT NULL, seed INTEGER NOT NULL,
  repeat INTEGER NOT NULL, started TEXT, ended TEXT
) WITHOUT ROWID;
CREATE TABLE steps (
  episode TEXT NOT NULL REFERENCES episodes, step INTEGER NOT NULL, skill_hash TEXT NOT NULL REFERENCES skills,
  state TEXT NOT NULL, observation TEXT NOT NULL, patch TEXT, effect TEXT, action TEXT, next_state TEXT NOT NULL,
  oracle_patch TEXT NOT NULL, oracle_action TEXT NOT NULL, void INTEGER NOT NULL, faithful INTEGER NOT NULL,
  PRIMARY KEY (episode, step)
) WITHOUT ROWID;
CREATE TABLE attempts (
  episode TEXT NOT NULL, step INTEGER NOT NULL, attempt INTEGER NOT NULL, text TEXT NOT NULL,
  stop_reason TEXT NOT NULL, stage TEXT NOT NULL, pointer TEXT NOT NULL, message TEXT NOT NULL,
  prompt_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
  queue_s REAL NOT NULL, grammar_s REAL NOT NULL, prefill_s REAL NOT NULL, decode_s REAL NOT NULL,
  mask_s REAL NOT NULL, grammar_hash TEXT NOT NULL, forced_tokens INTEGER NOT NULL,
  PRIMARY KEY (episode, step, attempt), FOREIGN KEY (episode, step) REFERENCES steps
) WITHOUT ROWID;
CREATE TABLE receipts (
  episode TEXT NOT NULL, step INTEGER NOT NULL, accepted INTEGER NOT NULL, success INTEGER NOT NULL,
  message TEXT NOT NULL, faithful_after INTEGER NOT NULL, state_after TEXT NOT NULL, wall_s REAL NOT NULL,
  PRIMARY KEY (episode, step), FOREIGN KEY (episode, step) REFERENCES steps
) WITHOUT ROWID;
"""

STEP_COLUMNS = (
    "step, skill_hash, state, observation, patch, effect, action, next_state, oracle_patch, oracle_action, void, "
    "faithful"
)
ATTEMPT_COLUMNS = (
    "step, attempt, text, stop_reason, stage, pointer, message, prompt_tokens, cached_tokens, output_tokens, queue_s, "
    "grammar_s, prefill_s, decode_s, mask_s, grammar_hash, forced_tokens"
)
RECEIPT_COLUMNS = "step, accepted, success, message, faithful_after, state_after, wall_s"


def insert(table: str, columns: str) -> str:
    """The statement that inserts one episode's row."""
    marks = ", ".join("?" * (columns.count(",") + 2))
    return f"INSERT INTO {table} (episode, {columns}) VALUES ({marks})"


def select(table: str, columns: str) -> str:
    """The statement that reads one episode's rows in order; ``columns`` begin with the ones they are ordered by."""
    return f"SELECT {columns} FROM {table} WHERE episode = ? ORDER BY {columns}"


def step_row(intent: StepIntent) -> Row:
    """In the order of STEP_COLUMNS."""
    decided = intent.action is not None
    return (
        intent.step,
        intent.skill_hash,
        dumps(intent.state),
        intent.observation,
        dumps(intent.patch) if decided else None,
        dumps(intent.effect) if decided else None,
        intent.action,
        dumps(intent.next_state),
        dumps(intent.oracle_patch),
        intent.oracle_action,
        intent.void,
        intent.faithful,
    )


def step_intent(row: Row, attempts: tuple[AttemptRecord, ...]) -> StepIntent:
    """From the order of STEP_COLUMNS."""
    step, skill_hash, state, observation, patch, effect, action, next_state, oracle_patch, oracle_action, *flags = row
    return StepIntent(
        step=step,
        skill_hash=skill_hash,
        state=loads(state),
        observation=observation,
        attempts=attempts,
        patch=_optional(patch),
        effect=_optional(effect),
        action=action,
        next_state=loads(next_state),
        oracle_patch=loads(oracle_patch),
        oracle_action=oracle_action,
        void=bool(flags[0]),
        faithful=bool(flags[1]),
    )


def attempt_row(step: int, number: int, attempt: AttemptRecord) -> Row:
    """In the order of ATTEMPT_COLUMNS."""
    return (
        step,
        number,
        attempt.text,
        attempt.stop_reason.value,
        attempt.stage,
        attempt.pointer,
        attempt.message,
        *attempt.usage,
        *attempt.timing,
        attempt.grammar_hash,
        attempt.forced_tokens,
    )


def attempt_record(row: Row) -> AttemptRecord:
    """From the order of ATTEMPT_COLUMNS."""
    _, _, text, stop_reason, stage, pointer, message, *numbers, grammar_hash, forced_tokens = row
    return AttemptRecord(
        text=text,
        stop_reason=StopReason(stop_reason),
        stage=stage,
        pointer=pointer,
        message=message,
        usage=Usage(*numbers[:3]),
        timing=Timing(*numbers[3:]),
        grammar_hash=grammar_hash,
        forced_tokens=forced_tokens,
    )


def receipt_row(step: int, receipt: StepReceipt, wall_s: float) -> Row:
    """In the order of RECEIPT_COLUMNS."""
    state = dumps(receipt.state_after)
    return (step, receipt.accepted, receipt.success, receipt.message, receipt.faithful_after, state, wall_s)


def step_receipt(row: Row) -> StepReceipt:
    """From the order of RECEIPT_COLUMNS."""
    _, accepted, success, message, faithful_after, state_after, _ = row
    return StepReceipt(bool(accepted), bool(success), message, bool(faithful_after), loads(state_after))


def _optional(text: str | None) -> Json:
    return None if text is None else loads(text)
