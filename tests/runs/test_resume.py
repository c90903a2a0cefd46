"""A run that was cut off, however brutally, ends like one that was not."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from skillstate_local.environments.warehouse import WarehouseEnvironment
from skillstate_local.errors import RunMismatch, SkillStateError
from skillstate_local.records import StepIntent
from skillstate_local.runs import session
from skillstate_local.runs.journal import EpisodeJournal, Journal
from skillstate_local.runs.runner import Runner
from skillstate_local.runs.storage import JOURNAL
from tests.runs.making import Quiet, config_of, play, timeless

KILLS = 10
STEPS = 2 * 40 * (3 + 2 * 3 + 1)
COMMAND = "compare --model oracle --levels schema,delta,effects --horizon 40 --seeds 1,2 --chance-repeats 2 --json"


def command(folder: Path) -> list[str]:
    return [sys.executable, "-m", "skillstate_local", *COMMAND.split(), "--out", str(folder)]


def receipts(folder: Path) -> int:
    """Finished steps so far, read beside the process that writes them."""
    if not (folder / JOURNAL).exists():
        return 0
    database = sqlite3.connect(f"file:{folder / JOURNAL}?mode=ro", uri=True, timeout=5)
    try:
        return int(database.execute("SELECT count(*) FROM receipts").fetchone()[0])
    finally:
        database.close()


def finish(folder: Path) -> dict[str, Any]:
    done = subprocess.run(command(folder), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def kill_after(folder: Path, steps: int, rng: random.Random) -> None:
    """Start the command and kill it, without warning, at a random moment after so many more steps."""
    target = receipts(folder) + steps
    with subprocess.Popen(command(folder), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        while process.poll() is None and receipts(folder) < target:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.01))
        process.kill()
        assert process.stderr is not None
        said = process.stderr.read().decode()
    assert process.returncode == -signal.SIGKILL, said


@pytest.mark.slow
def test_ten_kills_change_nothing(tmp_path: Path) -> None:
    rng = random.Random(20261130)
    whole = finish(tmp_path / "whole")
    for _ in range(KILLS):
        kill_after(tmp_path / "killed", rng.randint(1, STEPS // (KILLS + 2)), rng)
    before = receipts(tmp_path / "killed")
    assert KILLS <= before < STEPS
    killed = finish(tmp_path / "killed")
    assert len(killed["sessions"]) == KILLS + 1
    assert killed["summary"]["results"] == whole["summary"]["results"]
    assert results(tmp_path / "killed") == results(tmp_path / "whole")


def results(folder: Path) -> list[Any]:
    journal = Journal.open(folder)
    try:
        return timeless(journal.results())
    finally:
        journal.close()


class Stopped(Exception):
    """Raised by a test to cut a run off."""


def cut_off_after_intent(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Cut the run off between a step's intent and its action."""
    original = EpisodeJournal.intend

    def intend(self: EpisodeJournal, intent: StepIntent) -> None:
        original(self, intent)
        if intent.step == step:
            raise Stopped

    monkeypatch.setattr(EpisodeJournal, "intend", intend)


@pytest.mark.parametrize("step", [0, 3, 5])
def test_a_decided_turn_is_carried_out_and_not_generated_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    config = config_of(model="chance", levels="schema", seeds="3")
    whole = play(tmp_path / "whole", config)
    with monkeypatch.context() as patch:
        cut_off_after_intent(patch, step)
        with pytest.raises(Stopped):
            play(tmp_path / "cut", config)
    intended: list[int] = []
    original = EpisodeJournal.intend

    def count(self: EpisodeJournal, intent: StepIntent) -> None:
        intended.append(intent.step)
        original(self, intent)

    monkeypatch.setattr(EpisodeJournal, "intend", count)
    progress = Quiet()
    resumed = play(tmp_path / "cut", config, progress)
    assert intended == list(range(step + 1, config.horizon))
    assert progress.count == config.horizon - step
    assert timeless(resumed.results) == timeless(whole.results)


def test_a_finished_run_is_shown_without_computing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = play(tmp_path / "run", config_of())
    monkeypatch.setattr(Runner, "run", lambda _: pytest.fail("a finished run was played again"))
    again = play(tmp_path / "run", config_of())
    assert first.computed
    assert not again.computed
    assert again.results == first.results


def test_another_configuration_is_refused_with_a_diff(tmp_path: Path) -> None:
    play(tmp_path / "run", config_of())
    with pytest.raises(RunMismatch) as caught:
        play(tmp_path / "run", config_of(horizon=7, order="action-first"))
    assert caught.value.differences == ("horizon: 6 → 7", "order: patch-first → action-first")
    assert caught.value.exit_code == 2
    assert "horizon: 6 → 7" in caught.value.message


@pytest.mark.parametrize("finished", [True, False])
def test_another_domain_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finished: bool) -> None:
    if finished:
        play(tmp_path / "run", config_of())
    else:
        with monkeypatch.context() as patch:
            cut_off_after_intent(patch, 2)
            with pytest.raises(Stopped):
                play(tmp_path / "run", config_of())
    original = session.run_identity
    monkeypatch.setattr(session, "run_identity", lambda *a: original(*a) | {"domain": {"version": "new"}})
    with pytest.raises(RunMismatch, match=r"domain\.version: [0-9a-f]{16} → new"):
        play(tmp_path / "run", config_of())


def test_another_concurrency_is_no_mismatch(tmp_path: Path) -> None:
    play(tmp_path / "run", config_of(), at_once=1)
    assert not play(tmp_path / "run", config_of(), at_once=8).computed


def test_changed_packages_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        cut_off_after_intent(patch, 1)
        with pytest.raises(Stopped):
            play(tmp_path / "run", config_of())
    monkeypatch.setattr("skillstate_local.runs.record.version", lambda name: f"{name}-next")
    outcome = play(tmp_path / "run", config_of())
    assert outcome.computed
    assert "pydantic-next" in outcome.notes[0]


def test_a_world_that_changed_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        cut_off_after_intent(patch, 3)
        with pytest.raises(Stopped):
            play(tmp_path / "run", config_of(seeds="1"))
    observe = WarehouseEnvironment.observe
    monkeypatch.setattr(WarehouseEnvironment, "observe", lambda self: observe(self) + " Really.")
    with pytest.raises(SkillStateError, match="no longer shows"):
        play(tmp_path / "run", config_of(seeds="1"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_with_130_and_the_command_that_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    arguments = ["run", "--model", "chance", "--level", "schema", "--horizon", "3000", "--seeds", "1", "--out", "a run"]
    environment = os.environ | {"SKILLSTATE_PREFILL": "2"}
    program = [sys.executable, "-m", "skillstate_local", *arguments]
    with subprocess.Popen(program, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        while receipts(tmp_path / "a run") < 20:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "SKILLSTATE_PREFILL=2 python -m skillstate_local run --model chance" in said
    assert "--out 'a run'" in said
    assert "Traceback" not in said
    assert 20 <= receipts(tmp_path / "a run") < 3000
