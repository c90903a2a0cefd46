"""The journal gives back what it was given, and says plainly what is wrong with a folder."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skillstate_local.engine.base import StopReason, Timing, Usage
from skillstate_local.errors import StorageError
from skillstate_local.records import AttemptRecord, StepIntent, StepReceipt
from skillstate_local.runs.journal import Journal
from skillstate_local.runs.plan import Workshop
from skillstate_local.runs.storage import JOURNAL
from skillstate_local.state.canonical import equal
from tests.runs.making import begin, config_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
NUMBERS = st.one_of(
    st.integers(-(10**40), 10**40),
    st.builds(lambda units, scale: Decimal(units).scaleb(-scale), st.integers(-(10**9), 10**9), st.integers(1, 6)),
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=4)
SECONDS = st.floats(0, 1e6)
COUNTS = st.integers(0, 10**9)
ATTEMPTS = st.builds(
    AttemptRecord,
    text=TEXTS,
    stop_reason=st.sampled_from(StopReason),
    stage=TEXTS,
    pointer=TEXTS,
    message=TEXTS,
    usage=st.builds(Usage, COUNTS, COUNTS, COUNTS),
    timing=st.builds(Timing, SECONDS, SECONDS, SECONDS, SECONDS, SECONDS),
    grammar_hash=TEXTS,
    forced_tokens=COUNTS,
)
RECEIPTS = st.builds(
    StepReceipt,
    accepted=st.booleans(),
    success=st.booleans(),
    message=TEXTS,
    faithful_after=st.booleans(),
    state_after=OBJECTS,
)


@st.composite
def intents(draw: st.DrawFn) -> StepIntent:
    """A step that was decided, or one without a valid attempt."""
    decided = draw(st.booleans())
    return StepIntent(
        step=0,
        skill_hash="filled in below",
        state=draw(OBJECTS),
        observation=draw(TEXTS),
        attempts=tuple(draw(st.lists(ATTEMPTS, min_size=1, max_size=3))),
        patch=draw(OBJECTS) if decided else None,
        effect=draw(OBJECTS) if decided else None,
        action=draw(TEXTS) if decided else None,
        next_state=draw(OBJECTS),
        oracle_patch=draw(OBJECTS),
        oracle_action=draw(TEXTS),
        void=draw(st.booleans()),
        faithful=draw(st.booleans()),
    )


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = begin(tmp_path / "run", config_of())
    yield journal
    journal.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journal]:
    """One journal for all examples of a property; each writes to it under the next seed's episode."""
    journal = begin(tmp_path_factory.mktemp("shared") / "run", config_of(seeds="1-1000"))
    yield journal
    journal.close()


def keys() -> Iterator[str]:
    return (f"delta/seed-{seed}" for seed in range(1, 1001))


FREE_KEYS = keys()


def known_hash() -> str:
    config = config_of()
    return Workshop(config).skill(config.conditions[0]).hash


@given(intent=intents(), receipt=RECEIPTS, wall_s=SECONDS)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_read_equals_what_was_written(
    shared: Journal, intent: StepIntent, receipt: StepReceipt, wall_s: float
) -> None:
    key = next(FREE_KEYS)
    intent = replace(intent, skill_hash=known_hash())
    shared.intend(key, intent)
    assert shared.past(key).pending == intent
    shared.receive(key, 0, receipt, wall_s)
    past = shared.past(key)
    assert past.pending is None
    assert (past.done[0].intent, past.done[0].receipt, past.wall_s) == (intent, receipt, wall_s)
    for name in ("state", "patch", "effect", "next_state", "oracle_patch"):
        assert equal(getattr(past.done[0].intent, name), getattr(intent, name))
    assert equal(past.done[0].receipt.state_after, receipt.state_after)


def an_intent(step: int) -> StepIntent:
    attempt = AttemptRecord("{}", StopReason.STOP, "", "", "", Usage(1, 0, 1), Timing(), "")
    return StepIntent(step, known_hash(), {}, "o", (attempt,), {}, {}, "Wait", {}, {}, "Wait", False, True)


RECEIPT = StepReceipt(True, False, "m", True, {})


def test_every_skill_is_stored_under_its_hash(journal: Journal, tmp_path: Path) -> None:
    skill = Workshop(config_of()).skill(config_of().conditions[0])
    with sqlite3.connect(tmp_path / "run" / JOURNAL) as database:
        assert database.execute("SELECT hash, text FROM skills").fetchall() == [(skill.hash, skill.text)]
    database.close()


def test_a_failed_transaction_leaves_nothing(journal: Journal) -> None:
    twice = replace(an_intent(0), skill_hash="unknown")
    with pytest.raises(StorageError):
        journal.intend("delta/seed-1", twice)
    assert journal.past("delta/seed-1") == ((), None, 0)
    journal.intend("delta/seed-1", an_intent(0))


def test_a_gap_is_reported(journal: Journal) -> None:
    journal.intend("delta/seed-1", an_intent(1))
    with pytest.raises(StorageError, match="lacks steps"):
        journal.past("delta/seed-1")


def test_two_steps_without_receipt_are_reported(journal: Journal) -> None:
    journal.intend("delta/seed-1", an_intent(0))
    journal.intend("delta/seed-1", an_intent(1))
    with pytest.raises(StorageError, match="lacks steps"):
        journal.past("delta/seed-1")


def test_counts_and_ends(journal: Journal) -> None:
    journal.intend("delta/seed-2", an_intent(0))
    assert journal.counts() == {}
    journal.receive("delta/seed-2", 0, replace(RECEIPT, success=True), 0.5)
    assert journal.counts() == {"delta": (1, 1)}
    for seed in (1, 2):
        assert not journal.finished
        journal.end(f"delta/seed-{seed}")
    assert journal.finished


def test_configuration_and_sessions_come_back(journal: Journal) -> None:
    assert journal.config == config_of()
    journal.add_session({"date": "today"})
    journal.add_session({"date": "tomorrow"})
    assert [session["date"] for session in journal.sessions] == ["today", "tomorrow"]


def test_closing_leaves_one_file_and_lets_others_in(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    journal = begin(folder, config_of())
    journal.intend("delta/seed-1", an_intent(0))
    journal.close()
    journal.close()
    assert sorted(file.name for file in folder.iterdir()) == [JOURNAL, "lock"]
    again = Journal.open(folder)
    assert again.past("delta/seed-1").pending == an_intent(0)
    again.close()


def test_a_second_process_is_refused(journal: Journal, tmp_path: Path) -> None:
    script = "import sys, pathlib, skillstate_local.runs.journal as j; j.Journal.open(pathlib.Path(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "run"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "is working on the run" in done.stderr


def test_a_folder_with_other_things_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(StorageError, match=r"thesis\.tex"):
        begin(tmp_path, config_of())
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("x")
    with pytest.raises(StorageError, match="not a folder"):
        begin(tmp_path / "run", config_of())
    with pytest.raises(StorageError, match="cannot be written"):
        begin(tmp_path / "run" / "deeper", config_of())


def test_a_place_where_nothing_can_be_made() -> None:
    with pytest.raises(StorageError, match="cannot be written"):
        begin(Path("/proc/skillstate-run"), config_of())


@pytest.mark.parametrize("junk", [b"no database at all, just some text of sufficient length" * 40, b""])
def test_a_file_that_is_no_journal(tmp_path: Path, junk: bytes) -> None:
    (tmp_path / JOURNAL).write_bytes(junk)
    with pytest.raises(StorageError, match=r"damaged|not a run's journal"):
        Journal.open(tmp_path)


def test_a_damaged_journal(tmp_path: Path) -> None:
    journal = begin(tmp_path / "run", config_of(seeds="1-200"))
    for step in range(300):
        journal.intend("delta/seed-1", an_intent(step))
        journal.receive("delta/seed-1", step, RECEIPT, 0.0)
    journal.close()
    file = tmp_path / "run" / JOURNAL
    content = bytearray(file.read_bytes())
    content[8192:40960] = bytes(32768)
    file.write_bytes(content)
    with pytest.raises(StorageError, match="damaged"):
        Journal.open(tmp_path / "run")


def test_a_journal_of_another_format(tmp_path: Path) -> None:
    begin(tmp_path / "run", config_of()).close()
    database = sqlite3.connect(tmp_path / "run" / JOURNAL)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(StorageError, match="format 99"):
        Journal.open(tmp_path / "run")


def test_a_full_disk_keeps_what_was_written(journal: Journal) -> None:
    journal._database.execute("PRAGMA max_page_count = 1")  # SQLite raises it to the present size: not a page more
    big = replace(an_intent(0), observation="x" * 200_000)
    with pytest.raises(StorageError, match="is full"):
        journal.intend("delta/seed-1", big)
    assert journal.past("delta/seed-1").pending is None
    assert journal.config == config_of()


def test_a_disk_that_fills_up_at_the_start_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", no_space)
    with pytest.raises(StorageError, match="is full"):
        begin(tmp_path / "run", config_of())
    assert list(tmp_path.iterdir()) == []


def test_what_a_kill_during_creation_leaves_does_not_matter(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "lock").write_text("4711")
    (folder / f"{JOURNAL}.new").write_bytes(b"half a database")
    begin(folder, config_of()).close()
    Journal.open(folder).close()


def test_a_journal_that_appeared_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    begin(tmp_path / "run", config_of()).close()
    with pytest.raises(StorageError, match="same command"):
        begin(tmp_path / "run", config_of(horizon=9))
    journal = Journal.open(tmp_path / "run")
    assert journal.config == config_of()
    journal.close()
