"""The tables of a comparison: scores, classes, shares and what it cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console

from skillstate_local.analysis.layout import DASH, Grid, markdown_grid, print_grid
from skillstate_local.analysis.measures import Classes
from skillstate_local.analysis.shares import FAILURES, PAPER, Shares
from skillstate_local.analysis.statistics import Estimate, Interval
from skillstate_local.analysis.summary import ConditionSummary, Summary
from skillstate_local.analysis.taxonomy import MALFORMED, Outcome
from skillstate_local.runs.config import Kind


def render(summary: Summary, console: Console) -> None:
    """Print all tables; they fit into 100 columns."""
    for grid in grids(summary):
        print_grid(console, grid)


def markdown(summary: Summary) -> str:
    """All tables as Markdown."""
    return "\n\n".join(map(markdown_grid, grids(summary))) + "\n"


def grids(summary: Summary) -> list[Grid]:
    """All tables. Those after the first leave oracle and chance out, unless there is nothing else."""
    models = [one for one in summary.conditions if one.kind is Kind.MODEL] or list(summary.conditions)
    return [
        _scores(summary),
        _classes(models),
        _shares(models),
        _beside_paper(models),
        _tokens(models),
        _seconds(models),
    ]


def _scores(summary: Summary) -> Grid:
    columns = (
        "condition",
        "level",
        "score ± SD [95 % CI]",
        "chance\nfloor",
        "void",
        "score\nnon-void",
        "first\nright",
        "first\nfailed",
        "first\nmalformed",
    )
    rows = tuple(_score_row(one) for one in summary.conditions)
    return Grid(summary.title or "Scores", columns, rows, tuple(_score_notes(summary)), texts=2)


def _score_row(one: ConditionSummary) -> tuple[str, ...]:
    malformed = sum(one.first.counts[outcome] for outcome in MALFORMED)
    return (
        one.label,
        one.level.value,
        _estimate(one.score.estimate),
        _number(one.chance),
        _count(one.score.void),
        _number(one.score.non_void),
        _count(one.first.counts[Outcome.RIGHT]),
        _count(one.first.failures),
        _count(malformed),
    )


def _score_notes(summary: Summary) -> list[str]:
    repeats = {one.label: one.episodes // len(one.seeds) for one in summary.conditions}
    often = ", ".join(f"{label} {count}" for label, count in repeats.items() if count > 1)
    notes = [
        f"n = {_numbers([len(one.seeds) for one in summary.conditions])} (seeds {_numbers(summary.seeds)}), "
        f"T = {_numbers(summary.horizons)} steps; SD and t interval over seeds. Void steps count as missed."
    ]
    if often:
        notes.append(f"Episodes for each seed, averaged first: {often}.")
    if summary.unfinished:
        notes.append(f"{summary.unfinished} unfinished episodes are left out.")
    if any(one.score.estimate.sd == 0 for one in summary.conditions):
        notes.append("Equal scores give a t interval of no width: it says nothing about certainty.")
    notes.append(
        "Malformed: truncated, syntax, type or malformed action. The chance floor of free and json is schema's. "
        f"{DASH}: none, or not applicable."
    )
    return notes


def _classes(models: Sequence[ConditionSummary]) -> Grid:
    rows = [(outcome.value, *(_both(one, _counter(outcome)) for one in models)) for outcome in Outcome]
    rows.append(("failures", *(_both(one, lambda c: c.failures) for one in models)))
    rows.append(("  consequences", *(_both(one, lambda c: c.consequences) for one in models)))
    rows.append(("  in void steps", *(_both(one, lambda c: c.void_failures) for one in models)))
    notes = (
        "First attempt → final outcome; the first class that matches counts. Consequences are failures of steps that "
        "began with a state unlike the world.",
    )
    return Grid("Steps by class", ("class", *_labels(models)), tuple(rows), notes)


def _counter(outcome: Outcome) -> Callable[[Classes], int]:
    return lambda classes: classes.counts[outcome]


def _both(one: ConditionSummary, count: Callable[[Classes], int]) -> str:
    first, final = count(one.first), count(one.final)
    return f"{first} → {final}" if first or final else DASH


def _shares(models: Sequence[ConditionSummary]) -> Grid:
    rows = [(outcome.value, *(_all_and_root(one, outcome) for one in models)) for outcome in FAILURES]
    failures = (f"{one.first.shares.all.n} / {one.first.shares.root.n}" for one in models)
    rows.append(("failures", *(cell if cell != "0 / 0" else DASH for cell in failures)))
    notes = ("First attempts: all failures / root failures (void steps and consequences left out).",)
    return Grid("Shares of the failures, %", ("class", *_labels(models)), tuple(rows), notes)


def _all_and_root(one: ConditionSummary, outcome: Outcome) -> str:
    everything, root = one.first.shares.all, one.first.shares.root
    if not everything.counts[outcome]:
        return DASH
    return f"{_percent(everything, outcome)} / {_percent(root, outcome)}"


def _beside_paper(models: Sequence[ConditionSummary]) -> Grid:
    rows = [
        (outcome.value, f"{100 * share:.0f}", *(_percent(one.first.shares.paper, outcome) for one in models))
        for outcome, share in PAPER.items()
    ]
    rows.append(("failures", DASH, *(_count(one.first.shares.paper.n) for one in models)))
    notes = ("First attempts, among these three classes alone; the paper's are of Gemma-4-31B at T = 100.",)
    return Grid("Beside the paper's shares, %", ("class", "paper", *_labels(models)), tuple(rows), notes)


def _tokens(models: Sequence[ConditionSummary]) -> Grid:
    columns = (
        "condition",
        "first valid %\n[95 % CI]",
        "attempts\n/step",
        "prompt\n/step",
        "cached\n/step",
        "output\n/step",
        "forced\n/step",
        "total\ntokens",
    )
    notes = ("Refused attempts included. The interval (Wilson) takes steps as independent, which they are not.",)
    return Grid("Attempts and tokens", columns, tuple(map(_token_row, models)), notes)


def _token_row(one: ConditionSummary) -> tuple[str, ...]:
    attempts, tokens, steps = one.attempts, one.tokens, one.attempts.steps
    rate = attempts.first_accepted_rate or 0.0
    return (
        one.label,
        f"{100 * rate:.0f} {_percent_interval(attempts.first_accepted_interval)}",
        _number(attempts.per_step),
        *(_count(round(total / steps)) for total in (tokens.prompt, one.timings.cached_tokens)),
        *(_per_step(total, steps) for total in (tokens.output, tokens.forced)),
        f"{tokens.total:,}",
    )


def _seconds(models: Sequence[ConditionSummary]) -> Grid:
    parts = tuple(models[0].timings.parts_s)
    columns = ("condition", "s/step\nmean", "s/step\nmedian", *parts, "tokens/s", "vs free")
    rows = tuple(_second_row(one) for one in models)
    notes = (
        "Mean seconds of a step by part; a completion waits for the others of its batch. Tokens/s: output tokens "
        "(forced ones too) per second of decoding and masking of one completion; vs free: of free-deep, if it ran.",
    )
    return Grid("Where the time of a step goes", columns, rows, notes)


def _second_row(one: ConditionSummary) -> tuple[str, ...]:
    timings = one.timings
    return (
        one.label,
        _time(timings.step_s.mean),
        _time(timings.step_s.median),
        *(_time(part.mean) for part in timings.parts_s.values()),
        f"{timings.output_tokens_per_s:.1f}" if timings.output_tokens_per_s is not None else DASH,
        f"{timings.versus_free:.2f}×" if timings.versus_free is not None else DASH,
    )


def _labels(models: Sequence[ConditionSummary]) -> tuple[str, ...]:
    return tuple(one.label for one in models)


def _estimate(found: Estimate) -> str:
    if found.sd is None or found.interval is None:
        return f"{found.mean:.2f} ± n/a"
    return f"{found.mean:.2f} ± {found.sd:.2f} [{found.interval.low:.2f}, {found.interval.high:.2f}]"


def _number(value: float | None) -> str:
    return DASH if value is None else f"{value:.2f}"


def _count(value: int) -> str:
    return f"{value:,}" if value else DASH


def _per_step(total: int, steps: int) -> str:
    return f"{total / steps:.1f}" if total else DASH


def _time(seconds: float) -> str:
    return f"{seconds:.3f}" if seconds else DASH


def _percent(shares: Shares, outcome: Outcome) -> str:
    share = shares.share(outcome)
    return DASH if share is None else f"{100 * share:.0f}"


def _percent_interval(interval: Interval | None) -> str:
    return "[n/a]" if interval is None else f"[{100 * interval.low:.0f}, {100 * interval.high:.0f}]"


def _numbers(values: Sequence[int]) -> str:
    """``1, 2, 3`` shortened to ``1–3`` where numbers follow each other."""
    numbers = sorted(set(values))
    starts = [number for number in numbers if number - 1 not in numbers]
    ends = [number for number in numbers if number + 1 not in numbers]
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in zip(starts, ends, strict=True))
