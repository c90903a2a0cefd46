"""Tables: what stands in them, their width, and that a dash stands where there is nothing."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from skillstate_local.analysis import markdown, render, summarise
from skillstate_local.analysis.layout import DASH, Grid, fit, markdown_grid, print_grid
from skillstate_local.analysis.summary import Summary
from skillstate_local.analysis.tables import grids
from skillstate_local.domains.level import Level
from skillstate_local.domains.warehouse import WAREHOUSE
from skillstate_local.environments.warehouse import WarehouseEnvironment
from skillstate_local.runs.config import Kind
from skillstate_local.runs.results import EpisodeResult
from skillstate_local.state.merge import MergeMode
from tests.analysis.play import condition, oracle_answer, play, turn


def printed(summary: Summary, width: int = 100) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    render(summary, console)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def summary() -> Summary:
    """`free` that waits and often nulls everything, `delta` that is right, oracle and chance."""

    def careless(environment: WarehouseEnvironment) -> str:
        return turn({} if "Shipment" in environment.observe() else {"inventory": None}, "Wait")

    played: list[EpisodeResult] = []
    for seed in (1, 2, 4):
        played.append(play(condition(Kind.MODEL, Level.FREE, MergeMode.SHALLOW), seed, 8, careless))
        played.append(play(condition(Kind.MODEL, Level.DELTA), seed, 8, oracle_answer(Level.DELTA)))
        played.append(play(condition(Kind.ORACLE, Level.DELTA), seed, 8))
        played.append(play(condition(Kind.CHANCE, Level.SCHEMA), seed, 8))
    return summarise(played, WAREHOUSE, "[bold]model[/bold] on warehouse")


def row(lines: list[str], start: str) -> list[str]:
    return next(line for line in lines if line.startswith(start)).split()


def test_the_main_table_has_a_line_for_each_condition_and_says_n_seeds_and_t(summary: Summary) -> None:
    lines = printed(summary)
    labels = [line.split()[0] for line in lines[4:8]]
    assert labels == ["free-shallow", "delta", "oracle", "chance-schema"]
    assert row(lines, "delta")[:6] == ["delta", "delta", "1.00", "±", "0.00", "[1.00,"]
    assert any(line.startswith("n = 3 (seeds 1–2, 4), T = 8 steps") for line in lines)
    assert any("t interval of no width" in line for line in lines)


def test_markup_in_a_title_is_text(summary: Summary) -> None:
    assert printed(summary)[0].startswith("[bold]model[/bold] on warehouse")


@pytest.mark.parametrize("width", [100, 140])
def test_no_line_is_wider_than_100_columns_and_nothing_is_cut(summary: Summary, width: int) -> None:
    lines = printed(summary, width)
    assert max(map(len, lines)) <= 100
    assert not any("…" in line for line in lines)


def test_zeros_are_dashes(summary: Summary) -> None:
    lines = printed(summary)
    assert row(lines, "truncated") == ["truncated", DASH, DASH]
    assert row(lines, "right") == ["right", DASH, "24", "→", "24"]
    assert lines[5].split()[-2:] == [DASH, DASH]


def test_the_papers_shares_stand_beside_ours(summary: Summary) -> None:
    grid = next(grid for grid in grids(summary) if "paper" in grid.columns)
    assert [cells[1] for cells in grid.rows] == ["68", "20", "12", DASH]
    assert [cells[-1] for cells in grid.rows] == [DASH] * 4
    assert grid.rows[0][2] == "100"


def test_markdown_has_the_same_cells_as_the_terminal(summary: Summary) -> None:
    text = markdown(summary)
    for grid in grids(summary):
        for cells in grid.rows:
            assert f"| {' | '.join(cells)} |" in text
    assert text.count("| --- |") == len(grids(summary))


def test_a_run_of_chance_alone_has_all_tables_too() -> None:
    alone = summarise([play(condition(Kind.CHANCE, Level.DELTA), 1, 5)], WAREHOUSE)
    lines = printed(alone)
    assert row(lines, "chance-delta")[2:5] == [row(lines, "chance-delta")[2], "±", "n/a"]
    assert len([line for line in lines if line.startswith("─")]) == len(grids(alone))


GRID = Grid("T", ("a", "b\nlong", "c", "d"), (("x", "1", "22", "333"), ("yy", "4", "5", "6|7")), ("note",))


def test_a_wide_table_is_printed_in_parts_that_repeat_the_first_column() -> None:
    assert GRID.widths == (2, 4, 2, 3)
    assert fit(GRID, 17) == [GRID]
    parts = fit(GRID, 12)
    assert [part.columns for part in parts] == [("a", "b\nlong", "c"), ("a", "d")]
    assert [part.notes for part in parts] == [(), ("note",)]
    assert parts[1].rows == (("x", "333"), ("yy", "6|7"))
    assert [len(part.columns) for part in fit(GRID, 9)] == [2, 2, 2]  # the first column counts in every part
    assert [len(part.columns) for part in fit(GRID, 1)] == [2, 2, 2]


def test_the_estimated_width_is_the_printed_one() -> None:
    console = Console(file=io.StringIO(), width=80)
    print_grid(console, GRID)
    rule = next(line for line in console.file.getvalue().splitlines() if "─" in line)  # type: ignore[attr-defined]
    assert len(rule.strip()) == sum(GRID.widths) + 2 * 3


def test_markdown_escapes_bars_and_flattens_headings() -> None:
    assert markdown_grid(GRID).splitlines() == [
        "**T**",
        "",
        "| a | b long | c | d |",
        "| --- | ---: | ---: | ---: |",
        "| x | 1 | 22 | 333 |",
        "| yy | 4 | 5 | 6\\|7 |",
        "",
        "note  ",
    ]
