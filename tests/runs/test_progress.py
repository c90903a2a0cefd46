"""What a person sees while a run goes on."""

from __future__ import annotations

import io
import time
from dataclasses import replace

import pytest
from rich.console import Console

from skillstate_local.runs.progress import LineProgress, LiveProgress, Tally
from tests.runs.test_journal import RECEIPT, an_intent


def test_a_tally_counts_steps_successes_and_tokens() -> None:
    tally = Tally(total=10, done=4, successes=2, since=100.0)
    assert tally.eta_s(101.0) is None
    tally.add(an_intent(4), replace(RECEIPT, success=True), 102.0)
    assert (tally.done, tally.successes, tally.fresh_steps, tally.fresh_tokens) == (5, 3, 1, 1)
    assert tally.tokens_per_s == 0.5
    assert tally.eta_s(102.0) == pytest.approx(10.0)


def test_lines_without_a_terminal() -> None:
    out = io.StringIO()
    progress = LineProgress(Console(file=out, width=200), every_s=0.01)
    with progress.phase("loading"):
        pass
    with progress.steps({"delta": Tally(total=2)}):
        progress.started("delta")
        progress.step("delta", an_intent(0), RECEIPT)
        deadline = time.monotonic() + 10
        while "delta 1/2" not in out.getvalue() and time.monotonic() < deadline:
            time.sleep(0.005)
        progress.step("delta", an_intent(1), RECEIPT)
    lines = out.getvalue().splitlines()
    assert lines[0] == "loading …"
    assert lines[1].startswith("loading: 0.0 s")
    assert any("delta 1/2 (0 ok)" in line for line in lines)
    assert lines[-1].startswith("steps: delta 2/2 (0 ok)")
    assert "\x1b" not in out.getvalue()


def test_a_table_on_a_terminal() -> None:
    out = io.StringIO()
    progress = LiveProgress(Console(file=out, width=100, force_terminal=True))
    with progress.steps({"delta": Tally(total=2), "json": Tally(total=3)}):
        progress.started("delta")
        progress.step("delta", an_intent(0), RECEIPT)
        progress.step("delta", an_intent(1), RECEIPT)
    assert "2/2" in out.getvalue()
    assert "0/3" in out.getvalue()
    assert "done" in out.getvalue()
