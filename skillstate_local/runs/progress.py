"""What a run tells a person while it works, on standard error."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.table import Table

from skillstate_local.records import StepIntent, StepReceipt

LINE_EVERY_S = 10.0


@dataclass(slots=True)
class Tally:
    """Where one condition stands. ``fresh_*`` count this process alone, so that rates leave interruptions out."""

    total: int
    done: int = 0
    successes: int = 0
    fresh_steps: int = 0
    fresh_tokens: int = 0
    since: float | None = None
    latest: float = 0.0

    def add(self, intent: StepIntent, receipt: StepReceipt, now: float) -> None:
        """Count one finished step."""
        self.done += 1
        self.successes += receipt.success
        self.fresh_steps += 1
        self.fresh_tokens += sum(attempt.usage.output_tokens for attempt in intent.attempts)
        self.latest = now

    @property
    def tokens_per_s(self) -> float | None:
        """Output tokens by second of this process, once there is something to divide."""
        elapsed = self.latest - self.since if self.since is not None else 0.0
        return self.fresh_tokens / elapsed if elapsed > 0 and self.fresh_tokens else None

    def eta_s(self, now: float) -> float | None:
        """Seconds left at the pace so far."""
        if self.since is None or not self.fresh_steps:
            return None
        return (now - self.since) / self.fresh_steps * (self.total - self.done)


class Progress(Protocol):
    """Listens to a run."""

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """A part of the start-up is going on; its seconds are shown when it is over."""
        ...

    @contextmanager
    def steps(self, tallies: Mapping[str, Tally]) -> Iterator[None]:
        """Episodes are being played."""
        ...

    def started(self, label: str) -> None:
        """A condition's first episode has begun."""
        ...

    def step(self, label: str, intent: StepIntent, receipt: StepReceipt) -> None:
        """One step is over."""
        ...


class _Tallies:
    """Keeps the tallies; what all ways of showing them share."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._tallies: Mapping[str, Tally] = {}

    def started(self, label: str) -> None:
        """Start the clock of a condition."""
        tally = self._tallies[label]
        tally.since = tally.since or time.monotonic()

    def step(self, label: str, intent: StepIntent, receipt: StepReceipt) -> None:
        """Count a step."""
        self._tallies[label].add(intent, receipt, time.monotonic())

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Say what is going on, and how long it took."""
        started = time.monotonic()
        self._console.print(f"{name} …", highlight=False)
        yield
        self._console.print(f"{name}: {time.monotonic() - started:.1f} s", highlight=False)


class LineProgress(_Tallies):
    """One plain line every ten seconds, for logs."""

    def __init__(self, console: Console, every_s: float = LINE_EVERY_S) -> None:
        super().__init__(console)
        self._every_s = every_s

    @contextmanager
    def steps(self, tallies: Mapping[str, Tally]) -> Iterator[None]:
        """Print lines while steps are played, however long one takes, and one at the end."""
        self._tallies = tallies
        over = threading.Event()
        printer = threading.Thread(target=self._print_until, args=(over,), daemon=True)
        printer.start()
        try:
            yield
        finally:
            over.set()
            printer.join()
            self._print()

    def _print_until(self, over: threading.Event) -> None:
        while not over.wait(self._every_s):
            self._print()

    def _print(self) -> None:
        now = time.monotonic()
        parts = [f"{label} {tally.done}/{tally.total} ({tally.successes} ok)" for label, tally in self._tallies.items()]
        left = [eta for tally in self._tallies.values() if (eta := tally.eta_s(now)) is not None]
        until = f", about {_duration(max(left))} left" if left and max(left) >= 1 else ""
        self._console.print(f"steps: {', '.join(parts)}{until}", highlight=False, soft_wrap=True)


class LiveProgress(_Tallies):
    """A table that is redrawn in place, for terminals."""

    @contextmanager
    def steps(self, tallies: Mapping[str, Tally]) -> Iterator[None]:
        """Show the table while steps are played; it disappears with the last one, for the result follows."""
        self._tallies = tallies
        self._began = time.monotonic()
        with Live(get_renderable=self._table, console=self._console, refresh_per_second=4, transient=True):
            yield

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Turn a spinner, then leave one line."""
        started = time.monotonic()
        with self._console.status(f"{name} …"):
            yield
        self._console.print(f"[green]✓[/] {name} [dim]{time.monotonic() - started:.1f} s[/]", highlight=False)

    def _table(self) -> Table:
        now = time.monotonic()
        caption = f"{_duration(now - self._began)} so far; Ctrl-C stops, the same command goes on"
        table = Table(box=None, pad_edge=False, caption=caption, caption_justify="left")
        table.add_column("condition")
        for heading in ("steps", "successes", "tokens/s", "left"):
            table.add_column(heading, justify="right")
        for label, tally in self._tallies.items():
            rate, eta = tally.tokens_per_s, tally.eta_s(now)
            table.add_row(
                label,
                f"{tally.done}/{tally.total}",
                str(tally.successes),
                f"{rate:,.0f}" if rate is not None else "",
                "done" if tally.done == tally.total else _duration(eta) if eta is not None else "",
            )
        return table


def make_progress() -> Progress:
    """The way that suits standard error."""
    console = Console(stderr=True)
    return LiveProgress(console) if console.is_terminal else LineProgress(console)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
