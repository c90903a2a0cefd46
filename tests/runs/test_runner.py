"""What happens when something goes wrong while episodes are played."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from skillstate_local.engine.base import Completion, Request, StopReason, Usage
from skillstate_local.errors import EngineDied, StorageError
from skillstate_local.runs.journal import Journal
from skillstate_local.runs.plan import Workshop
from skillstate_local.runs.runner import Runner
from tests.runs.making import Quiet, begin, config_of

WAIT = '{"state_patch":{},"action":"Wait"}'


class FakeEngine:
    """Answers `Wait`; fails as told; knows how many requests it has at once."""

    name = "fake"

    def __init__(self, failure: Exception | None = None, after: int = 5) -> None:
        self.failure = failure
        self.after = after
        self.running = self.most = self.served = 0
        self.prefixes: Sequence[str] = ()
        self.closed = False

    async def start(self, prefixes: Sequence[str]) -> None:
        self.prefixes = prefixes

    async def generate(self, request: Request) -> Completion:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        self.served += 1
        if self.failure is not None and self.served > self.after:
            raise self.failure
        return Completion(WAIT, StopReason.GRAMMAR_END, Usage(10, 0, 5))

    async def close(self) -> None:
        self.closed = True

    def count_tokens(self, text: str) -> int:
        return len(text)

    def describe(self) -> Mapping[str, object]:
        return {"engine": self.name}


def run_with(folder: Path, engine: FakeEngine, at_once: int = 4, seeds: str = "1-8") -> Journal:
    config = config_of(seeds=seeds)
    journal = begin(folder, config)
    try:
        Runner(Workshop(config), journal, engine, Quiet(), at_once).run()
    except BaseException:
        journal.close()
        raise
    return journal


@pytest.mark.parametrize("at_once", [1, 3])
def test_so_many_episodes_at_once_and_no_more(tmp_path: Path, at_once: int) -> None:
    engine = FakeEngine()
    journal = run_with(tmp_path / "run", engine, at_once)
    assert engine.most == at_once
    assert engine.closed
    assert journal.finished
    assert journal.counts() == {"delta": (48, 0)}
    journal.close()


def test_the_engine_starts_with_every_skill_prompt_and_is_described(tmp_path: Path) -> None:
    engine = FakeEngine()
    journal = run_with(tmp_path / "run", engine)
    config = config_of()
    assert list(engine.prefixes) == [Workshop(config).runtime(config.conditions[0]).prompt({}, "", "").prefix]
    assert journal.sessions[0]["engine"] == {"engine": "fake"}
    assert journal.sessions[0]["max_concurrency"] == 4
    journal.close()


@pytest.mark.parametrize("failure", [EngineDied("gone"), ZeroDivisionError("a bug"), StorageError("full")])
def test_a_failure_comes_out_as_it_is_and_the_journal_stays_whole(tmp_path: Path, failure: Exception) -> None:
    engine = FakeEngine(failure)
    with pytest.raises(type(failure)):
        run_with(tmp_path / "run", engine)
    assert engine.closed


def test_after_the_engine_died_the_run_goes_on(tmp_path: Path) -> None:
    config = config_of(seeds="1-8")
    journal = begin(tmp_path / "run", config)
    with pytest.raises(EngineDied):
        Runner(Workshop(config), journal, FakeEngine(EngineDied("gone"), after=20), Quiet(), 4).run()
    done = journal.counts()["delta"][0]
    assert 0 < done < 48
    again = FakeEngine()
    Runner(Workshop(config), journal, again, Quiet(), 4).run()
    assert again.served == 48 - done
    assert journal.finished
    journal.close()


def test_a_bug_is_reported_rather_than_what_it_brings_down_with_it(tmp_path: Path) -> None:
    class TwoFailures(FakeEngine):
        async def generate(self, request: Request) -> Completion:
            await asyncio.sleep(0)
            raise EngineDied("gone") if "seed-1 " in request.id else ZeroDivisionError("a bug")

    with pytest.raises(ZeroDivisionError):
        run_with(tmp_path / "run", TwoFailures(), seeds="1,2")
