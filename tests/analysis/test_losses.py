"""Class 3 on a domain with records, lists and deletable fields, where Warehouse has none."""

from __future__ import annotations

import pytest

from skillstate_local.analysis.losses import Situation, breaks_container, concerned, destroys
from skillstate_local.domains.action import ActionTemplate, Argument
from skillstate_local.domains.base import Domain
from skillstate_local.domains.observation import Event, ObservationFormat
from skillstate_local.domains.turn import Turn
from skillstate_local.state.canonical import Json
from skillstate_local.state.merge import MergeMode
from skillstate_local.state.schema import (
    Boolean,
    Id,
    ListField,
    ListMode,
    Record,
    Scalar,
    Schema,
    Table,
    Text,
    Vocabulary,
)

TASK = Record({"owner": Scalar(Id("person")), "done": Scalar(Boolean())})
ROOT = Record(
    {
        "tasks": Table("task", TASK, max_entries=5),
        "log": ListField(Text(20), 10, ListMode.APPEND),
        "tags": ListField(Text(20), 10, ListMode.ADD_REMOVE, optional=True, deletable=True),
        "place": Record({"room": Scalar(Text(20))}, optional=True),
        "scratch": Record({"note": Scalar(Text(20), optional=True)}, optional=True, deletable=True),
        "build": Scalar(Text(20), optional=True),
    }
)
DESK = Domain(
    name="desk",
    schema=Schema(ROOT, {"task": Vocabulary("task", pattern="t[0-9]"), "person": Vocabulary("person", ("ann", "bob"))}),
    actions=(
        ActionTemplate("Close {task}", {"task": Argument(Id("task"))}, effect={"tasks": {"{task}": None}}),
        ActionTemplate("Wait"),
    ),
    observations=ObservationFormat(
        (
            Event("done", r"Task (?P<task>t[0-9]) is done\."),
            Event("asks", r"(?P<person>ann|bob) asks\."),
            Event("build", r"Build (?P<colour>[a-z]+)\.", reports={"build": "{colour}"}),
        )
    ),
    instructions="",
)
STATE: Json = {
    "tasks": {"t1": {"owner": "ann", "done": False}, "t2": {"owner": "bob", "done": False}},
    "log": ["a", "b"],
    "tags": ["x", "y"],
    "place": {"room": "12"},
    "scratch": {"note": "n"},
    "build": "red",
}


def situation(observation: str = "", oracle: Json = None, state: Json = STATE) -> Situation:
    return Situation(state, DESK.facts(observation), oracle or {})


def loses(patch: Json, action: str = "Wait", observation: str = "", oracle: Json = None, merge: str = "deep") -> bool:
    return destroys(DESK, situation(observation, oracle), Turn("", patch, action), MergeMode(merge))


@pytest.mark.parametrize(
    ("patch", "broken"),
    [
        ({"tasks": None}, True),
        ({"tasks": []}, True),
        ({"tasks": "t1"}, True),
        ({"place": None}, True),
        ({"place": 3}, True),
        ({"log": None}, True),
        ({"tasks": {"t1": "done"}}, True),
        ({"tasks": {"t1": None}}, False),
        ({"tags": None}, False),
        ({"scratch": None}, False),
        ({"scratch": "n"}, True),
        ({"log": ["c"]}, False),
        ({"build": None}, False),
        ({"unknown": None}, False),
        ({}, False),
    ],
)
def test_containers(patch: Json, broken: bool) -> None:
    assert breaks_container(ROOT, STATE, patch) is broken


@pytest.mark.parametrize("patch", [{"place": None}, {"log": None}, {"tasks": {"t9": None}}, {"place": "x"}])
def test_a_container_that_is_not_there_cannot_be_broken(patch: Json) -> None:
    assert not breaks_container(ROOT, {"tasks": {}}, patch)


@pytest.mark.parametrize("patch", [{"tasks": {"t1": None}}, {"tags": None}, {"scratch": None}, {"build": None}])
def test_an_ordinary_deletion_is_judged_by_what_the_step_concerns(patch: Json) -> None:
    assert loses(patch)
    assert not loses(patch, oracle=patch)


@pytest.mark.parametrize("patch", [{"tasks": None}, {"place": None}, {"log": None}, {"scratch": "n"}])
def test_a_broken_container_is_never_excused(patch: Json) -> None:
    assert loses(patch, oracle=patch)


@pytest.mark.parametrize(
    ("patch", "lost"),
    [
        ({"log": {"+": ["c"]}}, False),
        ({"log": ["a", "b", "c"]}, False),
        ({"log": ["c"]}, True),
        ({"log": []}, True),
        ({"tags": {"+": ["z"]}}, False),
        ({"tags": {"-": ["x"]}}, True),
        ({"tags": {"-": ["absent"]}}, False),
        ({"tags": ["y", "x"]}, True),
    ],
)
def test_lists(patch: Json, lost: bool) -> None:
    assert loses(patch) is lost


def test_what_an_oracle_removes_from_a_list_may_be_removed_by_a_plain_list_too() -> None:
    assert not loses({"tags": ["y"]}, oracle={"tags": {"-": ["x"]}})
    assert loses({"tags": ["y"]}, oracle={"tags": {"+": ["z"]}})


@pytest.mark.parametrize(
    ("observation", "action", "t1", "t2"),
    [
        ("Task t1 is done.", "Wait", True, False),
        ("bob asks.", "Wait", False, True),
        ("", "Close t2", False, True),
        ("Task t1 is done.", "Close t2", True, True),
        ("", "Close t1 now", False, False),
    ],
)
def test_entries_are_concerned_by_key_by_an_id_they_hold_and_by_effect(
    observation: str, action: str, t1: bool, t2: bool
) -> None:
    for task, allowed in (("t1", t1), ("t2", t2)):
        assert loses({"tasks": {task: {"done": True}}}, action, observation) is not allowed
        assert loses({"tasks": {task: None}}, action, observation) is not allowed
        assert loses({"tasks": {task: None}, "log": ["c"]}, action, observation)


def test_containment_is_by_whole_tokens() -> None:
    allowed = concerned(DESK, situation("Task t1 is done."), "Wait")
    assert allowed == {"/tasks/t1"}
    table = Table("task", Scalar(Text(9)), 5)
    domain = Domain(
        "d",
        Schema(Record({"t": table}), {"task": Vocabulary("task", pattern="t[0-9]{1,2}")}),
        (),
        DESK.observations,
        "",
    )
    met = Situation({"t": {"t1": "a", "t12": "b"}}, domain.facts("Task t1 is done."), {})
    assert not destroys(domain, met, Turn("", {"t": {"t1": None}}, ""))
    assert destroys(domain, met, Turn("", {"t": {"t12": None}}, ""))


def test_what_the_observation_reports_may_change() -> None:
    assert not loses({"build": "green"}, observation="Build green.")
    assert loses({"build": "green"})


def test_a_shallow_merge_is_judged_by_the_members_it_drops() -> None:
    patch = {"tasks": {"t1": {"owner": "ann", "done": True}}}
    assert not loses(patch, observation="Task t1 is done.")
    assert loses(patch, observation="Task t1 is done.", merge="shallow")
    both = {"tasks": {**STATE["tasks"], **patch["tasks"]}}
    assert not loses(both, observation="Task t1 is done.", merge="shallow")


@pytest.mark.parametrize(
    ("patch", "lost"),
    [
        ({"log": {"+": 5}}, True),
        ({"log": {"+": "ab"}}, True),
        ({"tags": {"-": 1}}, True),
        ({"tasks": {"²": {}}}, False),
    ],
)
def test_patches_that_no_type_allows_are_judged_too(patch: Json, lost: bool) -> None:
    assert loses(patch) is lost
