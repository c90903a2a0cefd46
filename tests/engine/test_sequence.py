"""When one completion ends, and with what reason."""

from __future__ import annotations

from skillstate_local.engine.base import Prompt, Request, Sampling, StopReason, StopWhen
from skillstate_local.engine.detokenizer import Detokenizer
from skillstate_local.engine.prompting import Encoded
from skillstate_local.engine.sampling import Drawer
from skillstate_local.engine.sequence import Sequence

END = 0


class Counting:
    """A matcher of a language of ``length`` tokens, with forced tokens given in advance."""

    def __init__(self, length: int, forced: list[list[int]]) -> None:
        self.left, self.forced = length, forced

    def fill(self, mask: object) -> None:
        raise AssertionError

    def accept(self, token: int) -> None:
        self.left -= 1

    def is_complete(self) -> bool:
        return self.left == 0

    def forced_tokens(self) -> list[int]:
        return self.forced.pop(0) if self.forced else []


def sequence(
    matcher: Counting | None = None, max_tokens: int = 50, stop_when: StopWhen = StopWhen.OBJECT_CLOSED
) -> Sequence:
    return Sequence(
        request=Request("r", Prompt("P", "t"), None, Sampling(), max_tokens, stop_when),
        prompt=Encoded((1, 2), [3]),
        matcher=matcher,
        detokenizer=Detokenizer(lambda token: bytes([token])),
        drawer=Drawer(Sampling()),
        end_tokens=frozenset({END}),
    )


def feed(target: Sequence, text: str) -> str:
    """Accept the text's bytes until the sequence ends; returns what was accepted."""
    for at, byte in enumerate(text.encode()):
        if target.stop_reason is not None:
            return text[:at]
        target.accept(byte)
    return text


def test_free_text_ends_when_its_object_closes() -> None:
    running = sequence()
    assert feed(running, 'so: {"a":{}} and more') == 'so: {"a":{}}'
    assert running.stop_reason is StopReason.STOP


def test_free_text_may_go_on_behind_the_object_where_only_an_end_token_ends_it() -> None:
    running = sequence(stop_when=StopWhen.END_TOKEN)
    feed(running, '{"a":1} and')
    assert running.stop_reason is None
    running.accept(END)
    assert running.stop_reason is StopReason.STOP
    running.succeed()
    completion = running.future.result()
    assert completion.text == '{"a":1} and'
    assert completion.usage == (3, 0, 11)


def test_the_budget() -> None:
    running = sequence(max_tokens=3)
    assert feed(running, "abcdef") == "abc"
    assert running.stop_reason is StopReason.LENGTH


def test_a_grammar_ends_at_its_last_token_even_if_the_budget_ends_there_too() -> None:
    running = sequence(Counting(3, []), max_tokens=3)
    feed(running, "abc")
    assert running.stop_reason is StopReason.GRAMMAR_END


def test_forced_tokens_follow_at_once_and_are_counted() -> None:
    running = sequence(Counting(6, [[98, 99], [100], []]))
    running.accept(97)
    assert running.output == running.pending == [97, 98, 99, 100]
    assert running.forced == 3
    assert running.stop_reason is None


def test_forced_tokens_stop_at_the_end_of_the_language() -> None:
    running = sequence(Counting(3, [[98, 99, 100, 101]]))
    running.accept(97)
    assert running.stop_reason is StopReason.GRAMMAR_END
    assert running.output == [97, 98, 99]


def test_settling_a_cancelled_request_is_harmless() -> None:
    running = sequence()
    running.future.cancel()
    running.stop_reason = StopReason.LENGTH
    running.succeed()
    running.fail(RuntimeError("late"))
