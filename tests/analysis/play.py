"""Real episodes without a model, and single steps built from texts; both give the records that analysis reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from skillstate_local.domains.base import Domain
from skillstate_local.domains.level import Level, Order, Validation, effective_order
from skillstate_local.domains.turn import write_turn
from skillstate_local.domains.validate import Accepted, Rejected, Rules, Stage, Verdict, validate
from skillstate_local.domains.warehouse import WAREHOUSE
from skillstate_local.engine.base import Sampling, StopReason, Timing, Usage
from skillstate_local.engine.scripted import ScriptedEngine, chance_engine
from skillstate_local.environments.oracle import oracle_engine
from skillstate_local.environments.warehouse import WarehouseEnvironment
from skillstate_local.episode import Episode
from skillstate_local.grammar.turn import GrammarBuilder, GrammarOptions
from skillstate_local.records import AttemptRecord, StepIntent, StepReceipt, StepRecord
from skillstate_local.runs.config import Condition, Kind
from skillstate_local.runs.results import EpisodeResult
from skillstate_local.runtimes.skill_state import SkillStateRuntime
from skillstate_local.state.canonical import Json
from skillstate_local.state.merge import MergeMode

DONE = StepReceipt(accepted=True, success=True, message="Success:", faithful_after=True, state_after={})
REFUSED = StepReceipt(accepted=False, success=False, message="Error:", faithful_after=False, state_after={})
MISSED = StepReceipt(accepted=True, success=False, message="Success:", faithful_after=True, state_after={})
DRIFTED = StepReceipt(accepted=True, success=True, message="Success:", faithful_after=False, state_after={})


def turn(patch: Json, action: str, order: Order = Order.PATCH_FIRST) -> str:
    """The canonical text of a turn."""
    return write_turn(patch, action, order)


@dataclass(frozen=True)
class Step:
    """A step of a domain waiting for its attempts; by default two shelves are occupied and item_9 has arrived."""

    state: Json = field(default_factory=lambda: {"inventory": {"shelf_3": "item_3", "shelf_4": "item_4"}})
    observation: str = "Shipment arrived containing item_9."
    oracle_patch: Json = field(default_factory=lambda: {"inventory": {"shelf_0": "item_9"}})
    oracle_action: str = "Store item_9 shelf_0"
    void: bool = False
    faithful: bool = True
    rules: Rules = field(default_factory=Rules)
    domain: Domain = WAREHOUSE

    def record(self, *texts: str, receipt: StepReceipt = DONE, cut: bool = False) -> StepRecord:
        """The record of attempts with these texts, judged by the real pipeline; ``cut``: the last hit the limit."""
        verdicts = [self._judge(text) for text in texts]
        if cut:
            verdicts[-1] = Rejected(Stage.TRUNCATED, "", "")
        accepted = verdicts[-1] if isinstance(verdicts[-1], Accepted) else None
        intent = StepIntent(
            step=0,
            skill_hash="",
            state=self.state,
            observation=self.observation,
            attempts=tuple(map(_attempt, texts, verdicts)),
            patch=accepted.turn.patch if accepted else None,
            effect=accepted.action.effect if accepted else None,
            action=accepted.action.text if accepted else None,
            next_state=accepted.state if accepted else self.state,
            oracle_patch=self.oracle_patch,
            oracle_action=self.oracle_action,
            void=self.void,
            faithful=self.faithful,
        )
        return StepRecord(intent, receipt if accepted else REFUSED)

    def _judge(self, text: str) -> Verdict:
        return validate(text, self.domain, self.state, self.domain.facts(self.observation), self.rules)


def _attempt(text: str, verdict: Verdict) -> AttemptRecord:
    stage = verdict.stage if isinstance(verdict, Rejected) else ""
    stop = StopReason.LENGTH if stage == Stage.TRUNCATED else StopReason.STOP
    return AttemptRecord(text, stop, str(stage), "", "", Usage(10, 4, 5), Timing(0.1, 0.2, 0.3, 0.4, 0.1), "", 1)


Answer = Callable[[WarehouseEnvironment], str]


class Keeper:
    """A recorder that keeps everything."""

    def __init__(self) -> None:
        self.intents: list[StepIntent] = []
        self.receipts: list[StepReceipt] = []

    def intend(self, intent: StepIntent) -> None:
        self.intents.append(intent)

    def receive(self, step: int, receipt: StepReceipt) -> None:
        assert step == len(self.receipts)
        self.receipts.append(receipt)


def condition(kind: Kind, level: Level, merge: MergeMode = MergeMode.DEEP, repeats: int = 1) -> Condition:
    """A condition with the label that a comparison gives it."""
    name = f"free-{merge.value}" if level is Level.FREE else level.value
    label = {Kind.MODEL: name, Kind.ORACLE: "oracle", Kind.CHANCE: f"chance-{level.value}"}[kind]
    return Condition(label=label, kind=kind, level=level, merge=merge, repeats=repeats)


def play(
    what: Condition,
    seed: int,
    horizon: int,
    answer: Answer | None = None,
    *,
    repeat: int = 0,
    validation: Validation = Validation.FULL,
) -> EpisodeResult:
    """One whole Warehouse episode of the oracle, of chance, or of ``answer``."""
    environment = WarehouseEnvironment(seed, horizon)
    if answer is not None:
        engine = ScriptedEngine("answer", lambda _: answer(environment))
    elif what.kind is Kind.CHANCE:
        engine = chance_engine()
    else:
        engine = oracle_engine(environment, what.level, Order.PATCH_FIRST)
    key = f"{what.label}/seed-{seed}/repeat-{repeat}"
    episode = Episode(
        key=key,
        environment=environment,
        runtime=SkillStateRuntime(WAREHOUSE, what.level, Order.PATCH_FIRST, 0),
        builder=GrammarBuilder(WAREHOUSE, GrammarOptions(what.level)),
        engine=engine,
        rules=Rules(what.level, Order.PATCH_FIRST, what.merge, validation),
        max_tokens=1000,
        sampling=Sampling(temperature=1.0),
    )
    keeper = Keeper()
    asyncio.run(episode.run(keeper))
    steps = tuple(StepRecord(i, r) for i, r in zip(keeper.intents, keeper.receipts, strict=True))
    return EpisodeResult(key, what, seed, repeat, horizon, steps, 1.5)


def oracle_answer(level: Level) -> Answer:
    """What the oracle would write at a level."""
    order = effective_order(level, Order.PATCH_FIRST)

    def answer(environment: WarehouseEnvironment) -> str:
        right = environment.oracle()
        return turn({} if level is Level.EFFECTS else right.patch, right.action, order)

    return answer
