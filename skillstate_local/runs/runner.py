"""Plays a run: many episodes at once over one engine, every step journalled, ready to be cut off at any moment."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine, Sequence
from typing import Any

from skillstate_local.engine.base import Engine
from skillstate_local.environments.base import Environment
from skillstate_local.errors import EXIT_INTERRUPTED, SkillStateError
from skillstate_local.records import StepIntent, StepReceipt
from skillstate_local.runs.config import Kind
from skillstate_local.runs.engines import scripted_engine
from skillstate_local.runs.journal import EpisodeJournal, Journal
from skillstate_local.runs.plan import EpisodePlan, Workshop, plan_episodes
from skillstate_local.runs.progress import Progress, Tally
from skillstate_local.runs.record import session_record

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(SkillStateError):
    """The user or the system stopped the run; all finished steps are in the journal."""

    exit_code = EXIT_INTERRUPTED


class Runner:
    """Plays the episodes that a journal lacks. ``engine`` answers in the conditions of kind `model`.

    Without one, the script that the configuration names as model does.
    """

    def __init__(
        self,
        workshop: Workshop,
        journal: Journal,
        engine: Engine | None,
        progress: Progress,
        max_concurrency: int,
    ) -> None:
        self._workshop = workshop
        self._config = workshop.config
        self._journal = journal
        self._engine = engine
        self._progress = progress
        self._max_concurrency = max_concurrency

    def run(self) -> None:
        """Play to the end.

        Raises Interrupted on SIGINT or SIGTERM, and whatever an episode raises; the journal stays resumable.
        """
        try:
            asyncio.run(_interruptible(self._play()))
        except BaseExceptionGroup as group:
            raise _first(group) from group

    async def _play(self) -> None:
        try:
            await self._start()
            scripts, models = self._waves()
            with self._progress.steps(self._tallies()):
                await self._play_all(scripts)
                await self._play_all(models)
        finally:
            if self._engine is not None:
                await self._engine.close()

    async def _start(self) -> None:
        if self._engine is not None:
            asked = [condition for condition in self._config.conditions if condition.kind is Kind.MODEL]
            prefixes = self._workshop.prefixes(asked)
            with self._progress.phase(f"loading {self._config.model} and computing {len(prefixes)} skill prompt(s)"):
                await self._engine.start(prefixes)
        description = self._engine.describe() if self._engine is not None else None
        self._journal.add_session(session_record(description, self._max_concurrency))

    def _waves(self) -> tuple[list[EpisodePlan], list[EpisodePlan]]:
        """Scripted episodes, and those of the model: played apart, so that scripts do not slow what is timed."""
        plans = plan_episodes(self._config)
        scripts = [plan for plan in plans if plan.condition.kind is not Kind.MODEL]
        return scripts, [plan for plan in plans if plan.condition.kind is Kind.MODEL]

    def _tallies(self) -> dict[str, Tally]:
        counts = self._journal.counts()
        steps = len(self._config.seeds) * self._config.horizon
        return {
            condition.label: Tally(steps * condition.repeats, *counts.get(condition.label, (0, 0)))
            for condition in self._config.conditions
        }

    async def _play_all(self, plans: Sequence[EpisodePlan]) -> None:
        gate = asyncio.Semaphore(self._max_concurrency)
        async with asyncio.TaskGroup() as group:
            for plan in plans:
                group.create_task(self._play_one(plan, gate))

    async def _play_one(self, plan: EpisodePlan, gate: asyncio.Semaphore) -> None:
        async with gate:
            past = self._journal.past(plan.key)
            environment = self._workshop.world(plan.seed)
            episode = self._workshop.episode(plan, environment, self._engine_of(plan, environment))
            self._journal.begin(plan.key)
            self._progress.started(plan.condition.label)
            recorder = _Recorder(self._journal, self._progress, plan, past.pending)
            await episode.run(recorder, past.done, past.pending)
            self._journal.end(plan.key)

    def _engine_of(self, plan: EpisodePlan, environment: Environment) -> Engine:
        condition = plan.condition
        if condition.kind is Kind.MODEL and self._engine is not None:
            return self._engine
        script = self._config.model if condition.kind is Kind.MODEL else condition.kind.value
        return scripted_engine(script, environment, condition.level, self._config.order)


class _Recorder:
    """Writes an episode down, then tells the progress."""

    def __init__(self, journal: Journal, progress: Progress, plan: EpisodePlan, pending: StepIntent | None) -> None:
        self._journal = EpisodeJournal(journal, plan.key)
        self._progress = progress
        self._label = plan.condition.label
        self._intent = pending

    def intend(self, intent: StepIntent) -> None:
        self._journal.intend(intent)
        self._intent = intent

    def receive(self, step: int, receipt: StepReceipt) -> None:
        self._journal.receive(step, receipt)
        if self._intent is not None:
            self._progress.step(self._label, self._intent, receipt)


async def _interruptible(work: Coroutine[Any, Any, None]) -> None:
    """Do the work; the first signal cancels it between two commits, a second one ends the process the usual way."""
    task = asyncio.ensure_future(work)
    if threading.current_thread() is not threading.main_thread():
        await task
        return
    loop = asyncio.get_running_loop()
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        release()
        task.cancel()

    def release() -> None:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop)
    try:
        await task
    except asyncio.CancelledError:
        if stopped:
            raise Interrupted("Interrupted. Every finished step is kept.") from None
        raise
    finally:
        release()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error to report of several: one that nobody foresaw before those that say what to do."""
    leaves: list[BaseException] = []
    for error in group.exceptions:
        leaves.append(_first(error) if isinstance(error, BaseExceptionGroup) else error)
    return next((error for error in leaves if not isinstance(error, SkillStateError)), leaves[0])
