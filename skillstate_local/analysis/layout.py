"""A table as rows of text, written for a terminal or as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

WIDTH = 100
_GAP = 2
DASH = "–"


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: the first ``texts`` columns stand on the left, figures on the right. ``\\n`` breaks a heading."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    texts: int = 1

    @property
    def widths(self) -> tuple[int, ...]:
        """Characters of each column."""
        lines = [[*heading.split("\n"), *cells] for heading, *cells in zip(self.columns, *self.rows, strict=True)]
        return tuple(max(map(len, column)) for column in lines)


def fit(grid: Grid, width: int = WIDTH) -> list[Grid]:
    """``grid`` in as many parts as ``width`` needs, each with the first column; notes go below the last."""
    first, *others = grid.widths
    groups: list[list[int]] = [[]]
    used = first
    for index, needed in enumerate(others, 1):
        if groups[-1] and used + _GAP + needed > width:
            groups.append([])
            used = first
        groups[-1].append(index)
        used += _GAP + needed
    parts = [_part(grid, [0, *group]) for group in groups]
    return [*parts[:-1], replace(parts[-1], notes=grid.notes)]


def print_grid(console: Console, grid: Grid) -> None:
    """Write to a terminal; text is printed as it is, never read as markup."""
    width = min(console.width, WIDTH)
    for part in fit(grid, width):
        table = Table(
            title=Text(part.title, style="bold"),
            title_justify="left",
            box=SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            padding=(0, 1, 0, 0),
        )
        for index, heading in enumerate(part.columns):
            justify: JustifyMethod = "left" if index < part.texts else "right"
            table.add_column(Text(heading), justify=justify, no_wrap=True, vertical="bottom")
        for row in part.rows:
            table.add_row(*map(Text, row))
        console.print(table)
        for note in part.notes:
            console.print(Text(note, style="dim"), width=width)
        console.print()


def markdown_grid(grid: Grid) -> str:
    """A Markdown table, in one part."""
    return "\n".join(_markdown_lines(grid))


def _markdown_lines(grid: Grid) -> Iterator[str]:
    yield f"**{grid.title}**"
    yield ""
    yield _markdown_row(heading.replace("\n", " ") for heading in grid.columns)
    yield _markdown_row("---" if index < grid.texts else "---:" for index in range(len(grid.columns)))
    yield from (_markdown_row(iter(row)) for row in grid.rows)
    if grid.notes:
        yield ""
    yield from (f"{note}  " for note in grid.notes)


def _markdown_row(cells: Iterator[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _part(grid: Grid, chosen: list[int]) -> Grid:
    columns = tuple(grid.columns[index] for index in chosen)
    rows = tuple(tuple(row[index] for index in chosen) for row in grid.rows)
    return Grid(grid.title, columns, rows, texts=sum(index < grid.texts for index in chosen))
