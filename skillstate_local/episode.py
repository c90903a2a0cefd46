"""THE loop. One episode is Algorithm 1 of the paper, with the grammar of each step built from its own Σ and O."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from skillstate_local.domains.observation import Facts
from skillstate_local.domains.turn import Turn, split_reasoning
from skillstate_local.domains.validate import Accepted, Rejected, Rules, Stage, Verdict, validate
from skillstate_local.engine.base import Completion, Engine, Prompt, Request, Sampling, StopReason
from skillstate_local.environments.base import Environment, Receipt
from skillstate_local.errors import SkillStateError
from skillstate_local.grammar.turn import GrammarBuilder
from skillstate_local.records import AttemptRecord, StepIntent, StepReceipt, StepRecord
from skillstate_local.runtimes.base import Runtime
from skillstate_local.state.canonical import Json, equal


class OnRejected(StrEnum):
    """What becomes of Σ when the world refuses an action: ``KEEP`` as the paper, or ``ROLLBACK`` the turn."""

    KEEP = "keep"
    ROLLBACK = "rollback"


class Recorder(Protocol):
    """Is told what happens. A journal writes it down; the loop itself neither logs nor measures."""

    def intend(self, intent: StepIntent) -> None:
        """A step's turn is decided and committed; its action has not run yet."""
        ...

    def receive(self, step: int, receipt: StepReceipt) -> None:
        """The step's action has run."""
        ...


@dataclass(slots=True)
class Episode:
    """One environment, one seed, one runtime, one level, and the engine that answers."""

    key: str
    environment: Environment
    runtime: Runtime
    builder: GrammarBuilder
    engine: Engine
    rules: Rules
    max_tokens: int
    sampling: Sampling = field(default_factory=Sampling)
    max_retries: int = 2
    on_rejected: OnRejected = OnRejected.KEEP

    async def run(self, recorder: Recorder, done: Sequence[StepRecord] = (), pending: StepIntent | None = None) -> None:
        """Play the episode to its horizon.

        An interrupted run hands in the steps it has finished, which are replayed, and the ``pending`` one that was
        decided but has no receipt: its turn is kept, only its action is carried out. Raises SkillStateError if the
        world no longer shows what it showed then.
        """
        state = self._replay(done)
        for step in range(len(done), self.environment.horizon):
            intent = pending or await self._intend(step, state, recorder)
            pending = None
            self._check_replay(intent)
            receipt = self.environment.execute(intent.action)
            state = self._after(intent, receipt)
            recorder.receive(step, self._receipt(receipt, state))
            self.runtime.remember(intent.observation, _turn(intent))

    async def _intend(self, step: int, state: Json, recorder: Recorder) -> StepIntent:
        """Decide the step's turn and commit it, before its action runs."""
        observation = self.environment.observe()
        verdict, attempts = await self._decide(step, state, observation)
        committed = verdict.state if isinstance(verdict, Accepted) else state
        intent = self._intent(step, state, observation, verdict, attempts, committed)
        recorder.intend(intent)
        return intent

    async def _decide(self, step: int, state: Json, observation: str) -> tuple[Verdict, list[AttemptRecord]]:
        """Generate and validate until a turn is accepted or the retries are used up. Σ is untouched either way."""
        facts = self.environment.domain.facts(observation)
        grammar = self.builder.build(state, facts)
        attempts: list[AttemptRecord] = []
        feedback = ""
        while True:
            prompt = self.runtime.prompt(state, observation, feedback)
            request = Request(
                id=f"{self.key} step {step} attempt {len(attempts)}",
                prompt=prompt,
                grammar=grammar,
                sampling=self._sampling(step, len(attempts)),
                max_tokens=self.max_tokens,
            )
            completion = await self.engine.generate(request)
            verdict = self._judge(completion, state, facts)
            attempts.append(_record(completion, verdict))
            if isinstance(verdict, Accepted) or len(attempts) > self.max_retries:
                return verdict, attempts
            feedback = verdict.feedback

    def _judge(self, completion: Completion, state: Json, facts: Facts) -> Verdict:
        """Validation runs whatever the grammar promised; a completion that was cut off is never a turn."""
        if completion.stop_reason is StopReason.LENGTH:
            return Rejected(Stage.TRUNCATED, "", "the answer was cut off at the token limit")
        return validate(completion.text, self.environment.domain, state, facts, self.rules)

    def _replay(self, done: Sequence[StepRecord]) -> Json:
        state = self.environment.initial_state
        for record in done:
            self._check_replay(record.intent)
            self.environment.execute(record.intent.action)
            self.runtime.remember(record.intent.observation, _turn(record.intent))
            state = record.receipt.state_after
        return state

    def _check_replay(self, intent: StepIntent) -> None:
        if self.environment.observe() != intent.observation:
            raise SkillStateError(
                f"{self.key}: at step {intent.step} the world no longer shows what the journal says it showed.",
                "The environment has changed since the run began: start anew with another --out.",
            )

    def _after(self, intent: StepIntent, receipt: Receipt) -> Json:
        undo = self.on_rejected is OnRejected.ROLLBACK and not receipt.accepted
        return intent.state if undo else intent.next_state

    def _sampling(self, step: int, attempt: int) -> Sampling:
        """The same draw for the same place, whatever ran before or beside it."""
        place = f"{self.sampling.seed} {self.key} {step} {attempt}".encode()
        seed = int.from_bytes(hashlib.sha256(place).digest()[:6], "big")
        return Sampling(self.sampling.temperature, self.sampling.top_p, seed)

    def _intent(
        self,
        step: int,
        state: Json,
        observation: str,
        verdict: Verdict,
        attempts: list[AttemptRecord],
        committed: Json,
    ) -> StepIntent:
        oracle = self.environment.oracle()
        accepted = verdict if isinstance(verdict, Accepted) else None
        return StepIntent(
            step=step,
            skill_hash=self.runtime.skill.hash,
            state=state,
            observation=observation,
            attempts=tuple(attempts),
            patch=accepted.turn.patch if accepted else None,
            effect=accepted.action.effect if accepted else None,
            action=accepted.action.text if accepted else None,
            next_state=committed,
            oracle_patch=oracle.patch,
            oracle_action=oracle.action,
            void=self.environment.void,
            faithful=equal(state, self.environment.projection()),
        )

    def _receipt(self, receipt: Receipt, state: Json) -> StepReceipt:
        faithful = equal(state, self.environment.projection())
        return StepReceipt(receipt.accepted, receipt.success, receipt.message, faithful, state)


def _turn(intent: StepIntent) -> Turn | None:
    """The turn that a step went with; None when no attempt was valid."""
    if intent.action is None:
        return None
    reasoning, _ = split_reasoning(intent.attempts[-1].text)
    return Turn(reasoning, intent.patch, intent.action)


def _record(completion: Completion, verdict: Verdict) -> AttemptRecord:
    refused = verdict if isinstance(verdict, Rejected) else None
    return AttemptRecord(
        text=completion.text,
        stop_reason=completion.stop_reason,
        stage=refused.stage.value if refused else "",
        pointer=refused.pointer if refused else "",
        message=refused.message if refused else "",
        usage=completion.usage,
        timing=completion.timing,
        grammar_hash=completion.grammar_hash,
        forced_tokens=completion.forced_tokens,
    )


__all__ = ["Episode", "OnRejected", "Prompt", "Recorder"]
