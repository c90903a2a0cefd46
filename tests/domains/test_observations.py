"""What an observation names and reports: events only, never results or noise."""

from __future__ import annotations

import pytest

from skillstate_local.domains.base import Domain
from skillstate_local.domains.observation import MAX_FACTS, Event, ObservationFormat, read_observation
from skillstate_local.domains.warehouse import WAREHOUSE
from skillstate_local.state.schema import Integer, Record, Scalar, Schema, Table, Text, Vocabulary

FORM = ObservationFormat(
    (
        Event("moved", r"(?P<item>\w+) went from (?P<shelf__from>\w+) to (?P<shelf__to>\w+)\."),
        Event("seen", r"(?P<item>\w+) is on (?P<shelf>\S+)\.", {"at": {"{shelf}": "{item}"}}),
        Event("two", r"(?P<item>\w+) has (?P<owner>\w+)?\.", {"own": {"{item}": {"who": "{owner}"}}, "n": 1}),
    ),
    ("Success:", "Error:"),
    "--- NOISE ---",
)


def test_groups_name_vocabularies_and_repeated_ones_are_united() -> None:
    facts = read_observation(FORM, "a went from s1 to s2.\nb is on s3.")
    assert facts.seen == {"item": frozenset("ab"), "shelf": frozenset({"s1", "s2", "s3"})}
    assert facts.events == ("moved", "seen")
    assert facts.reported == (("/at/s3", "b"),)


@pytest.mark.parametrize(
    "text",
    [
        "Success: b is on s3.",
        "Error: b is on s3.",
        "--- NOISE ---\nb is on s3.",
        "--- NOISE --- more\nb is on s3.",
        "b is on s3. ",
        " b is on s3.",
        "xx b is on s3.",
        "b is on s3.\r",
        "",
    ],
)
def test_results_noise_and_near_misses_ground_nothing(text: str) -> None:
    facts = read_observation(FORM, text)
    assert not facts.seen
    assert not facts.reported


def test_a_later_report_on_the_same_pointer_wins() -> None:
    assert read_observation(FORM, "a is on s.\nb is on s.").reported == (("/at/s", "b"),)


def test_pointers_are_escaped() -> None:
    assert read_observation(FORM, "a is on x/y~z.").reported == (("/at/x~1y~0z", "a"),)


def test_reports_are_leaves_sorted_and_bounded() -> None:
    assert read_observation(FORM, "a has me.").reported == (("/n", 1), ("/own/a/who", "me"))
    many = "\n".join(f"a is on s{number}." for number in range(99))
    assert len(read_observation(FORM, many).reported) == MAX_FACTS


def test_what_an_absent_group_would_have_named_is_not_reported() -> None:
    facts = read_observation(FORM, "a has .")
    assert facts.seen == {"item": frozenset({"a"})}
    assert facts.reported == (("/n", 1),)


def test_a_report_that_the_state_could_not_hold_is_dropped() -> None:
    members = {"at": Table("shelf", Scalar(Text(2)), 9), "n": Scalar(Integer(2, 9))}
    schema = Schema(Record(members), {"shelf": Vocabulary("shelf", ("s1", "s2"))})
    domain = Domain("d", schema, (), FORM, "")
    assert domain.facts("a is on s1.\nb is on s9.\nlong is on s2.").reported == (("/at/s1", "a"),)
    assert domain.facts("a has me.").reported == ()


def test_a_malformed_id_is_seen_but_grounds_nothing_of_its_type() -> None:
    facts = WAREHOUSE.facts("Shipment arrived containing item_007.")
    assert facts.seen == {"item": frozenset({"item_007"})}
    action, reason = WAREHOUSE.legal_action("Store item_007 shelf_1", WAREHOUSE.world({"inventory": {}}, facts))
    assert action is None
    assert reason
