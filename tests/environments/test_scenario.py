"""The written world: what it accepts, what it becomes, and what it says about a wrong file."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from skillstate_local.domains.level import Level, Order
from skillstate_local.domains.validate import Rules
from skillstate_local.environments.oracle import oracle_engine
from skillstate_local.environments.scenario import ScenarioEnvironment, load_scenario
from skillstate_local.episode import Episode
from skillstate_local.errors import DomainError, UsageError
from skillstate_local.grammar.turn import GrammarBuilder, GrammarOptions
from skillstate_local.records import StepIntent, StepReceipt
from skillstate_local.runtimes.skill_state import SkillStateRuntime

TICKETS = """\
domain: ticket-triage
steps:
  - observation: "New ticket T-7 from acme: printer on fire."
    action: "file T-7 acme urgent Printer on fire"
  - observation: "ben is free and can take T-7."
    action: "triage T-7 printer"
  - observation: "ben is free and can take T-7."
    action: "assign T-7 ben"
"""


class Kept:
    """A recorder that keeps what it is told."""

    def __init__(self) -> None:
        self.intents: list[StepIntent] = []
        self.receipts: list[StepReceipt] = []

    def intend(self, intent: StepIntent) -> None:
        self.intents.append(intent)

    def receive(self, step: int, receipt: StepReceipt) -> None:
        assert step == len(self.receipts)
        self.receipts.append(receipt)


@pytest.fixture
def tickets(tmp_path: Path) -> ScenarioEnvironment:
    file = tmp_path / "tickets.yaml"
    file.write_text(TICKETS)
    return ScenarioEnvironment(load_scenario(file))


@pytest.mark.parametrize("level", list(Level))
def test_the_oracle_is_right_at_every_level(tickets: ScenarioEnvironment, level: Level) -> None:
    kept = Kept()
    episode = Episode(
        "tickets",
        tickets,
        SkillStateRuntime(tickets.domain, level, Order.PATCH_FIRST, 0),
        GrammarBuilder(tickets.domain, GrammarOptions(level)),
        oracle_engine(tickets, level, Order.PATCH_FIRST),
        Rules(level),
        max_tokens=1000,
    )
    asyncio.run(episode.run(kept))
    assert [receipt.success for receipt in kept.receipts] == [True, True, True]
    assert [receipt.faithful_after for receipt in kept.receipts] == [True, True, True]


def test_free_text_may_be_worded_differently(tickets: ScenarioEnvironment) -> None:
    receipt = tickets.execute("file T-7 acme urgent Something is burning")
    assert receipt.accepted
    assert receipt.success
    assert tickets.projection()["tickets"]["T-7"]["subject"] == "Something is burning"


def test_a_wrong_action_leaves_the_world_as_the_right_one_would(tickets: ScenarioEnvironment) -> None:
    receipt = tickets.execute("file T-7 acme low Printer on fire")
    assert receipt.accepted
    assert not receipt.success
    assert tickets.projection()["tickets"]["T-7"]["priority"] == "urgent"


def test_an_illegal_action_is_refused_with_a_reason(tickets: ScenarioEnvironment) -> None:
    receipt = tickets.execute("archive T-7")
    assert not receipt.accepted
    assert "T-7" in receipt.message


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (TICKETS.replace("triage T-7 printer", "resolve T-7 ben"), 6, "not legal here"),
        (TICKETS.replace("triage T-7 printer", "dance"), 6, "fits no action template"),
        (TICKETS.replace('    action: "assign T-7 ben"\n', ""), 7, "action is missing"),
        (TICKETS.replace("steps:", "step:"), 1, "steps is missing"),
        ("domain: ticket-triage\nsteps: []\n", 1, "at least one step"),
    ],
)
def test_a_mistake_names_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    file = tmp_path / "tickets.yaml"
    file.write_text(text)
    with pytest.raises(DomainError, match=said) as caught:
        load_scenario(file)
    assert f"tickets.yaml:{line}" in str(caught.value) or f"tickets.yaml:{line + 1}" in str(caught.value)


def test_a_horizon_beyond_the_end_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tickets.yaml"
    file.write_text(TICKETS)
    with pytest.raises(UsageError, match="--horizon 4"):
        ScenarioEnvironment(load_scenario(file), 4)
