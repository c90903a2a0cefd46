"""The thread that owns the model: admit, forward, choose, retire, again and again.

Completions join and leave at every step. A row is a completion's index in the list of running ones; when one leaves,
the last takes its place, so rows stay compact.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from threading import Condition, Thread

import torch
from torch import Tensor

from skillstate_local.engine.attention import Segment
from skillstate_local.engine.base import EngineStats
from skillstate_local.engine.chooser import Chooser
from skillstate_local.engine.decoder import Decoder
from skillstate_local.engine.sequence import Sequence
from skillstate_local.errors import EngineDied, SkillStateError

PREFILL_TOKENS = 4096


class Scheduler:
    """Runs submitted sequences to their end on its own thread, up to ``max_batch`` at once."""

    def __init__(self, decoder: Decoder, chooser: Chooser, max_batch: int, stats: EngineStats) -> None:
        self._decoder = decoder
        self._chooser = chooser
        self._max_batch = max_batch
        self._stats = stats
        self._running: list[Sequence] = []
        self._waiting: deque[Sequence] = deque()
        self._prefixes: deque[tuple[tuple[int, ...], Future[None]]] = deque()
        self._changed = Condition()
        self._closing = False
        self._dead: EngineDied | None = None
        self._thread = Thread(target=self._run, name="skillstate-engine", daemon=True)
        self._thread.start()

    def submit(self, sequence: Sequence) -> None:
        """Queue a sequence; its future gets the completion. Raises EngineDied if the thread is gone."""
        self._enqueue(lambda: self._waiting.append(sequence))

    def warm(self, prefix: tuple[int, ...]) -> Future[None]:
        """Queue the computation of a prefix."""
        done: Future[None] = Future()
        self._enqueue(lambda: self._prefixes.append((prefix, done)))
        return done

    def close(self) -> None:
        """End the thread; what is still waiting or running fails with EngineDied."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def _enqueue(self, action: Callable[[], None]) -> None:
        with self._changed:
            if self._dead is not None:
                raise EngineDied(self._dead.message, self._dead.hint) from self._dead
            action()
            self._changed.notify_all()

    @torch.inference_mode()
    def _run(self) -> None:
        try:
            while self._wait_for_work():
                self._warm_prefixes()
                self._drop_cancelled()
                self._step(self._admit())
            error = EngineDied("The engine was closed.", "Start it again.")
        except BaseException as cause:  # whatever it is, nobody may wait for ever
            error = EngineDied(f"The engine died: {type(cause).__name__}: {cause}", "Run the same command to resume.")
            error.__cause__ = cause
        self._die(error)

    def _wait_for_work(self) -> bool:
        with self._changed:
            while not (self._closing or self._running or self._waiting or self._prefixes):
                self._changed.wait()
            return not self._closing

    def _warm_prefixes(self) -> None:
        while self._prefixes:
            tokens, done = self._prefixes[0]
            if len(self._running) == self._max_batch:
                return
            self._decoder.prefix(tokens, len(self._running))
            self._prefixes.popleft()
            if done.set_running_or_notify_cancel():
                done.set_result(None)

    def _drop_cancelled(self) -> None:
        for row in reversed(range(len(self._running))):
            if self._running[row].future.cancelled():
                self._remove(row)

    def _admit(self) -> int:
        """Move waiting sequences into free rows; returns how many rows were already decoding."""
        decoding = len(self._running)
        budget = PREFILL_TOKENS
        while self._waiting and len(self._running) < self._max_batch and budget > 0:
            sequence = self._waiting.popleft()
            if sequence.future.cancelled():
                continue
            self._running.append(sequence)  # first of all: if the model dies now, its caller must hear of it
            if self._begin(sequence, len(self._running) - 1):
                budget -= len(sequence.pending)
            else:
                self._running.pop()
        return decoding

    def _begin(self, sequence: Sequence, row: int) -> bool:
        """Put a sequence's prefix into its row; False if it ended before the model was needed."""
        sequence.clock.admitted = time.perf_counter()
        sequence.pending = list(sequence.prompt.tail)
        try:
            sequence.jump()
        except SkillStateError as error:
            sequence.fail(error)
            return False
        if sequence.stop_reason is not None:
            sequence.succeed()
            return False
        self._place_prefix(sequence, row)
        sequence.clock.prefill_s = time.perf_counter() - sequence.clock.admitted
        return True

    def _place_prefix(self, sequence: Sequence, row: int) -> None:
        head = sequence.prompt.head
        if head:
            saved, was_there = self._decoder.prefix(head, row)
            self._decoder.cache.load(row, saved)
            sequence.length = len(head)
            sequence.cached_tokens = len(head) if was_there else 0
            self._stats.prefill_tokens += 0 if was_there else len(head)
        if not sequence.pending:  # logits are needed behind the head's last token
            sequence.length -= 1
            sequence.pending = [head[-1]]
        done = self._decoder.fill(row, sequence.length, sequence.pending)
        sequence.length += done
        del sequence.pending[:done]

    def _step(self, decoding: int) -> None:
        """One forward pass over all running rows, one new token for each, and goodbye to those that ended."""
        if not self._running:
            return
        hidden = self._forward(decoding)
        tokens = self._chooser.choose(hidden, self._running)
        finished = []
        for row, (sequence, token) in enumerate(zip(self._running, tokens, strict=True)):
            if self._accept(sequence, token):
                finished.append(row)
        for row in reversed(finished):
            self._remove(row)

    def _forward(self, decoding: int) -> Tensor:
        started = time.perf_counter()
        segments = [Segment(row, s.length, s.pending) for row, s in enumerate(self._running)]
        hidden = self._decoder.forward(segments, decoding)
        now = time.perf_counter()
        self._stats.forward_passes = self._decoder.forward_passes
        for row, sequence in enumerate(self._running):
            if row >= decoding:
                self._stats.prefill_tokens += len(sequence.pending)
                sequence.clock.prefill_s += now - started
                sequence.clock.decoding = now
            sequence.length += len(sequence.pending)
            sequence.pending = []
        return hidden

    def _accept(self, sequence: Sequence, token: int | SkillStateError) -> bool:
        """Give a sequence its token; True when it has ended, one way or the other."""
        try:
            if isinstance(token, SkillStateError):
                raise token
            sequence.accept(token)
        except SkillStateError as error:
            sequence.fail(error)
            return True
        if sequence.stop_reason is None:
            return False
        self._stats.decoded_tokens += len(sequence.output)
        self._stats.forced_tokens += sequence.forced
        self._stats.mask_s += sequence.clock.mask_s
        sequence.succeed()
        return True

    def _remove(self, row: int) -> None:
        """Free a row: the last running sequence moves into it."""
        last = self._running.pop()
        if row < len(self._running):
            self._decoder.cache.move(len(self._running), row, last.length)
            self._running[row] = last

    def _die(self, error: EngineDied) -> None:
        with self._changed:
            self._dead = error
            lost = [*self._running, *self._waiting]
            self._running.clear()
            self._waiting.clear()
        for sequence in lost:
            sequence.fail(error)
        while self._prefixes:
            done = self._prefixes.popleft()[1]
            if done.set_running_or_notify_cancel():
                done.set_exception(error)
