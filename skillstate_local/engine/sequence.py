"""One completion on its way: what it has, what it still needs, and when it ends."""

from __future__ import annotations

import time
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field

from skillstate_local.engine.backends import Matcher
from skillstate_local.engine.base import Completion, Request, StopReason, StopWhen, Timing, Usage
from skillstate_local.engine.detokenizer import Detokenizer
from skillstate_local.engine.objects import ObjectDetector
from skillstate_local.engine.prompting import Encoded
from skillstate_local.engine.sampling import Drawer


@dataclass(slots=True)
class Clock:
    """When things happened (``time.perf_counter``), and seconds spent."""

    submitted: float = field(default_factory=time.perf_counter)
    admitted: float = 0.0
    decoding: float = 0.0
    grammar_s: float = 0.0
    prefill_s: float = 0.0
    mask_s: float = 0.0

    def timing(self) -> Timing:
        """The seconds so far, as a completion reports them."""
        now = time.perf_counter()
        queue_s = max(0.0, (self.admitted or now) - self.submitted)
        decode_s = max(0.0, now - self.decoding - self.mask_s) if self.decoding else 0.0
        return Timing(queue_s, self.grammar_s, self.prefill_s, decode_s, self.mask_s)


@dataclass(slots=True, eq=False)
class Sequence:
    """A request with its tokens. ``pending`` are known tokens whose keys and values are not in the cache yet."""

    request: Request
    prompt: Encoded
    matcher: Matcher | None
    detokenizer: Detokenizer
    drawer: Drawer
    end_tokens: frozenset[int]
    jump_forward: bool = True
    future: Future[Completion] = field(default_factory=Future)
    clock: Clock = field(default_factory=Clock)
    length: int = 0
    cached_tokens: int = 0
    pending: list[int] = field(default_factory=list)
    output: list[int] = field(default_factory=list)
    forced: int = 0
    stop_reason: StopReason | None = None
    _detector: ObjectDetector | None = None

    def __post_init__(self) -> None:
        if self.matcher is None and self.request.stop_when is StopWhen.OBJECT_CLOSED:
            self._detector = ObjectDetector()

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the whole prompt."""
        return len(self.prompt.head) + len(self.prompt.tail)

    def accept(self, token: int) -> None:
        """Take the drawn token, and what the grammar forces behind it. Raises GrammarError if it is refused."""
        if token in self.end_tokens:
            self.stop_reason = StopReason.STOP
            return
        if not self._append(token):
            self.jump()

    def jump(self) -> None:
        """Append forced tokens while there are any; they need no forward pass of their own."""
        if self.matcher is None or not self.jump_forward:
            return
        while tokens := self.matcher.forced_tokens():
            for token in tokens:
                self.forced += 1
                if self._append(token):
                    return

    def _append(self, token: int) -> bool:
        """One more token of the answer; True if it was the last."""
        if self.matcher is not None:
            self.matcher.accept(token)
        self.output.append(token)
        self.pending.append(token)
        piece = self.detokenizer.feed(token)
        if self.matcher is not None and self.matcher.is_complete():
            self.stop_reason = StopReason.GRAMMAR_END
        elif self._detector is not None and self._detector.feed(piece):
            self.stop_reason = StopReason.STOP
        elif len(self.output) >= self.request.max_tokens:
            self.stop_reason = StopReason.LENGTH
        return self.stop_reason is not None

    def succeed(self) -> None:
        """Hand the completion to the waiting caller."""
        if self.stop_reason is None:
            raise RuntimeError("a running sequence cannot be completed")
        grammar = self.request.grammar
        completion = Completion(
            text=self.detokenizer.finish(),
            stop_reason=self.stop_reason,
            usage=Usage(self.prompt_tokens, self.cached_tokens, len(self.output)),
            timing=self.clock.timing(),
            grammar_hash=grammar.key if grammar is not None else "",
            forced_tokens=self.forced,
        )
        self._settle(completion)

    def fail(self, error: BaseException) -> None:
        """Hand an error to the waiting caller."""
        self._settle(error)

    def _settle(self, outcome: Completion | BaseException) -> None:
        try:
            if isinstance(outcome, Completion):
                self.future.set_result(outcome)
            else:
                self.future.set_exception(outcome)
        except InvalidStateError:
            pass  # the caller cancelled in the meantime
