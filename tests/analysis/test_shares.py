"""The three kinds of shares, on steps whose classes are known."""

from __future__ import annotations

import pytest

from skillstate_local.analysis.shares import FAILURES, PAPER, final_shares, first_shares
from skillstate_local.analysis.taxonomy import Classified, Outcome

STEPS = [
    Classified(Outcome.OVERWRITE, Outcome.RIGHT, consequence=False, void=False),
    Classified(Outcome.OVERWRITE, Outcome.OVERWRITE, consequence=True, void=False),
    Classified(Outcome.SYNTAX, Outcome.TYPE, consequence=False, void=True),
    Classified(Outcome.TYPE, Outcome.TYPE, consequence=False, void=False),
    Classified(Outcome.WRONG_ACTION, Outcome.WRONG_ACTION, consequence=True, void=True),
    Classified(Outcome.RIGHT, Outcome.RIGHT, consequence=False, void=False),
    Classified(Outcome.WRONG_PATCH, Outcome.WRONG_PATCH, consequence=False, void=False),
    Classified(Outcome.RIGHT, Outcome.RIGHT, consequence=True, void=False),
]


def test_over_all_failures() -> None:
    shares = first_shares(STEPS).all
    assert shares.n == 6
    assert shares.share(Outcome.OVERWRITE) == pytest.approx(2 / 6)
    assert sum(shares.share(outcome) or 0 for outcome in FAILURES) == pytest.approx(1)
    assert Outcome.RIGHT not in shares.counts


def test_root_failures_leave_out_consequences_and_void_steps() -> None:
    shares = first_shares(STEPS).root
    assert shares.n == 3
    assert {outcome for outcome, count in shares.counts.items() if count} == {
        Outcome.OVERWRITE,
        Outcome.TYPE,
        Outcome.WRONG_PATCH,
    }


def test_among_the_papers_three_classes() -> None:
    shares = first_shares(STEPS).paper
    assert (shares.n, dict(shares.counts)) == (4, {Outcome.OVERWRITE: 2, Outcome.TYPE: 1, Outcome.SYNTAX: 1})
    assert shares.share(Outcome.OVERWRITE) == 0.5
    assert sum(PAPER.values()) == pytest.approx(1)


def test_final_outcomes_have_shares_of_their_own() -> None:
    shares = final_shares(STEPS).paper
    assert dict(shares.counts) == {Outcome.OVERWRITE: 1, Outcome.TYPE: 2, Outcome.SYNTAX: 0}


def test_without_failures_there_are_no_shares() -> None:
    shares = first_shares([STEPS[5]]).all
    assert (shares.n, shares.share(Outcome.SYNTAX)) == (0, None)
