"""The embedded engine end to end, on tiny random models: what it promises, and that nothing hangs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
import torch
from transformers import AutoModelForCausalLM

from skillstate_local.engine.base import Completion, Prompt, Request, Sampling, StopReason, StopWhen
from skillstate_local.engine.transformers import TransformersEngine
from skillstate_local.errors import ContextTooShort, EngineDied, GrammarError, ModelNotReady, UsageError
from tests.engine.conftest import STORE, STORE_PATTERN, FakeGrammar, plain_greedy

PREFIX = "You keep a warehouse. Items arrive; store each on a free shelf. Answer with one JSON object.\n"
Tiny = Callable[[str], Path]
T = TypeVar("T")


def request(
    name: str,
    grammar: FakeGrammar | None = STORE,
    *,
    prefix: str = PREFIX,
    tail: str = "",
    sampling: Sampling | None = None,
    max_tokens: int = 120,
    stop_when: StopWhen = StopWhen.OBJECT_CLOSED,
) -> Request:
    prompt = Prompt(prefix, tail or f"{name} arrives.\n", "Answer: ")
    return Request(name, prompt, grammar, sampling or Sampling(), max_tokens, stop_when)  # type: ignore[arg-type]


def with_engine(
    folder: Path,
    work: Callable[[TransformersEngine], Awaitable[T]],
    prefixes: tuple[str, ...] = (PREFIX,),
    **options: Any,
) -> T:
    """Start an engine in float32, do the work, close it."""

    async def run() -> T:
        engine = TransformersEngine(folder, **{"dtype": "float32", "device": "cpu", "max_batch": 4, **options})
        await engine.start(prefixes)
        try:
            return await work(engine)
        finally:
            await engine.close()

    return asyncio.run(asyncio.wait_for(run(), timeout=120))


async def together(engine: TransformersEngine, requests: list[Request]) -> list[Completion]:
    return list(await asyncio.gather(*[engine.generate(r) for r in requests]))


@pytest.mark.parametrize("backend", ["llguidance", "xgrammar"])
@pytest.mark.parametrize("kind", ["llama", "gemma3", "qwen3"])
def test_many_constrained_completions_at_once(tiny: Tiny, kind: str, backend: str) -> None:
    requests = [request(f"box-{i:02d}", tail="box arrives. " * (1 + i % 3)) for i in range(11)]
    done = with_engine(tiny(kind), lambda e: together(e, requests), grammar_backend=backend)
    for completion in done:
        assert re.fullmatch(STORE_PATTERN, completion.text)
        assert completion.stop_reason is StopReason.GRAMMAR_END
        assert completion.usage.cached_tokens > len(PREFIX) // 8
        assert completion.usage.prompt_tokens > completion.usage.cached_tokens
        assert completion.grammar_hash == STORE.key


def test_free_text_in_a_batch_equals_plain_greedy_decoding(tiny: Tiny) -> None:
    folder = tiny("gemma3")
    names = [f"box-{i:02d} arrives" * (1 + i) for i in range(5)]
    tokens: list[list[int]] = []

    async def work(engine: TransformersEngine) -> list[Completion]:
        encoder, backend = engine._live.encoder, engine._live.backend
        done = await together(
            engine, [request(n, None, max_tokens=6 + 2 * i, stop_when=StopWhen.END_TOKEN) for i, n in enumerate(names)]
        )
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        for name, completion in zip(names, done, strict=True):
            encoded = encoder.encode(request(name).prompt)
            prompt, out = [*encoded.head, *encoded.tail], []
            for _ in range(completion.usage.output_tokens):
                out.append(plain_greedy(model, [*prompt, *out], [0])[0][0])
            tokens.append(out)
            text = b"".join(backend.token_bytes(t) for t in out).decode(errors="replace")
            assert completion.text == text
        return done

    done = with_engine(folder, work)
    assert {c.stop_reason for c in done} <= {StopReason.LENGTH, StopReason.STOP}


@pytest.mark.parametrize("temperature", [0.0, 1.3])
def test_a_completion_does_not_depend_on_its_batch(tiny: Tiny, temperature: float) -> None:
    sampling = Sampling(temperature=temperature, top_p=0.9, seed=5)
    requests = [request(f"box-{i:02d}", None if i % 3 else STORE, sampling=sampling, max_tokens=90) for i in range(7)]

    async def alone(engine: TransformersEngine) -> list[Completion]:
        return [await engine.generate(r) for r in requests]

    one = with_engine(tiny("llama"), alone)
    many = with_engine(tiny("llama"), lambda e: together(e, requests))
    assert [c.text for c in one] == [c.text for c in many]


def test_jump_forward_changes_the_work_and_not_the_tokens(tiny: Tiny) -> None:
    requests = [request(f"box-{i:02d}") for i in range(6)]
    passes: dict[bool, int] = {}

    def run(jump: bool) -> list[Completion]:
        async def work(engine: TransformersEngine) -> list[Completion]:
            before = engine.stats.forward_passes
            done = await together(engine, requests)
            passes[jump] = engine.stats.forward_passes - before
            return done

        return with_engine(tiny("gemma3"), work, jump_forward=jump)

    jumped, stepped = run(True), run(False)
    assert [(c.text, c.usage.output_tokens) for c in jumped] == [(c.text, c.usage.output_tokens) for c in stepped]
    assert all(c.forced_tokens == 0 for c in stepped)
    assert all(c.forced_tokens > c.usage.output_tokens // 3 for c in jumped)
    assert passes[True] < passes[False] * 0.7


def test_a_wholly_forced_text_needs_no_forward_pass(tiny: Tiny) -> None:
    async def work(engine: TransformersEngine) -> None:
        before = engine.stats.forward_passes
        completion = await engine.generate(request("x", FakeGrammar(lark='start: "{\\"action\\":\\"Wait\\"}"\n')))
        assert completion.text == '{"action":"Wait"}'
        assert completion.forced_tokens == completion.usage.output_tokens
        assert engine.stats.forward_passes == before

    with_engine(tiny("llama"), work)


@pytest.mark.parametrize("jump", [True, False])
def test_the_budget_ends_a_completion_also_inside_a_forced_run(tiny: Tiny, jump: bool) -> None:
    async def work(engine: TransformersEngine) -> Completion:
        return await engine.generate(request("x", max_tokens=3))

    completion = with_engine(tiny("llama"), work, jump_forward=jump)
    assert completion.stop_reason is StopReason.LENGTH
    assert completion.usage.output_tokens == 3


def test_a_grammar_that_may_end_or_go_on_ends_by_an_end_token_or_at_its_end(tiny: Tiny) -> None:
    grammar = FakeGrammar(lark='start: "a" ("b" ("c" "d"?)?)?\n')
    sampling = [Sampling(temperature=3.0, seed=s) for s in range(12)]
    requests = [request(f"r{i}", grammar, sampling=s) for i, s in enumerate(sampling)]
    done = with_engine(tiny("llama"), lambda e: together(e, requests))
    for completion in done:
        assert completion.text in {"a", "ab", "abc", "abcd"}
        ended = StopReason.GRAMMAR_END if completion.text == "abcd" else StopReason.STOP
        assert completion.stop_reason is ended
    assert len({c.text for c in done}) > 1


def test_prefixes_are_computed_once(tiny: Tiny) -> None:
    other = PREFIX * 2

    async def work(engine: TransformersEngine) -> None:
        first = await engine.generate(request("a"))
        assert first.usage.cached_tokens == len(engine._live.encoder.head(PREFIX))
        unseen = await engine.generate(request("b", prefix=other))
        again = await engine.generate(request("c", prefix=other))
        assert unseen.usage.cached_tokens == 0
        assert again.usage.cached_tokens == len(engine._live.encoder.head(other))

    with_engine(tiny("llama"), work)


def test_a_prompt_without_tail_or_without_prefix(tiny: Tiny) -> None:
    async def work(engine: TransformersEngine) -> None:
        for prompt in (Prompt(PREFIX, ""), Prompt("", "box-07")):
            completion = await engine.generate(Request("x", prompt, STORE, Sampling(), 120))  # type: ignore[arg-type]
            assert re.fullmatch(STORE_PATTERN, completion.text)
        with pytest.raises(ContextTooShort, match="empty"):
            await engine.generate(Request("x", Prompt("", ""), None, Sampling(), 5))

    with_engine(tiny("llama"), work)


def test_too_long_prompts_name_both_numbers(tiny: Tiny) -> None:
    async def work(engine: TransformersEngine) -> None:
        with pytest.raises(ContextTooShort, match=r"prompt of \d+ tokens and 400 for the answer exceed .* 300 tokens"):
            await engine.generate(request("x", max_tokens=400))

    with_engine(tiny("llama"), work, context_tokens=300)


def test_a_bad_grammar_fails_alone(tiny: Tiny) -> None:
    async def work(engine: TransformersEngine) -> None:
        good, bad = await asyncio.gather(
            engine.generate(request("a")),
            engine.generate(request("b", FakeGrammar(lark="start: missing\n"))),
            return_exceptions=True,
        )
        assert isinstance(good, Completion)
        assert isinstance(bad, GrammarError)

    with_engine(tiny("llama"), work)


def test_a_matcher_that_breaks_fails_its_own_request(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    from skillstate_local.engine.backend_llguidance import LLGuidanceMatcher

    original, broken = LLGuidanceMatcher.fill, []

    def fill(self: Any, mask: Any) -> None:
        if not broken:
            broken.append(self)
        if broken[0] is self:
            raise GrammarError("broken")
        original(self, mask)

    async def work(engine: TransformersEngine) -> list[Any]:
        monkeypatch.setattr(LLGuidanceMatcher, "fill", fill)
        return await asyncio.gather(*[engine.generate(request(f"r{i}")) for i in range(6)], return_exceptions=True)

    done = with_engine(tiny("llama"), work)
    assert sum(isinstance(c, GrammarError) for c in done) == 1
    assert sum(isinstance(c, Completion) for c in done) == 5


def test_a_dead_model_fails_everybody_and_names_the_cause(tiny: Tiny) -> None:
    async def work(engine: TransformersEngine) -> None:
        decoder = engine._live.loaded.decoder
        original, calls = decoder.forward, []

        def forward(*args: Any) -> Any:
            calls.append(args)
            if len(calls) > 2:
                raise RuntimeError("out of memory")
            return original(*args)

        decoder.forward = forward  # type: ignore[method-assign]
        done = await asyncio.gather(*[engine.generate(request(f"r{i}")) for i in range(9)], return_exceptions=True)
        assert all(isinstance(e, EngineDied) and "RuntimeError: out of memory" in str(e) for e in done)
        with pytest.raises(EngineDied, match="out of memory"):
            await engine.generate(request("later"))

    with_engine(tiny("llama"), work)


def test_death_while_a_request_is_being_admitted_reaches_it(tiny: Tiny) -> None:
    async def work(engine: TransformersEngine) -> None:
        def load(*_: Any) -> None:
            raise RuntimeError("no memory for a row")

        engine._live.loaded.decoder.cache.load = load  # type: ignore[method-assign]
        with pytest.raises(EngineDied, match="no memory for a row"):
            await engine.generate(request("x"))

    with_engine(tiny("llama"), work)


def test_logits_that_are_not_numbers_are_an_error(tiny: Tiny) -> None:
    async def work(engine: TransformersEngine) -> None:
        decoder = engine._live.loaded.decoder
        decoder.head = torch.nn.Linear(32, decoder.vocab_size)
        torch.nn.init.constant_(decoder.head.weight, float("nan"))
        with pytest.raises(EngineDied, match="not numbers"):
            await engine.generate(request("x", None, max_tokens=5))

    with_engine(tiny("llama"), work)


def test_a_cancelled_request_frees_its_row(tiny: Tiny) -> None:
    async def work(engine: TransformersEngine) -> None:
        endless = FakeGrammar(lark="start: /[a-z]{390}/\n")
        long = asyncio.create_task(engine.generate(request("long", endless, max_tokens=390)))
        before = engine.stats.forward_passes
        while engine.stats.forward_passes < before + 4:
            await asyncio.sleep(0.001)
        long.cancel()
        completion = await engine.generate(request("next"))
        assert re.fullmatch(STORE_PATTERN, completion.text)
        with pytest.raises(asyncio.CancelledError):
            await long

    with_engine(tiny("llama"), work, max_batch=1, jump_forward=False)


def test_closing_fails_what_is_still_running(tiny: Tiny) -> None:
    async def work(engine: TransformersEngine) -> None:
        endless = FakeGrammar(lark="start: /[a-z]{390}/\n")
        long = asyncio.create_task(engine.generate(request("long", endless, max_tokens=390)))
        before = engine.stats.forward_passes
        while engine.stats.forward_passes < before + 2:
            await asyncio.sleep(0.001)
        await engine.close()
        with pytest.raises(EngineDied, match="closed"):
            await long
        with pytest.raises(EngineDied, match="not running"):
            await engine.generate(request("later"))

    with_engine(tiny("llama"), work, jump_forward=False)


def test_what_the_record_says(tiny: Tiny) -> None:
    async def work(engine: TransformersEngine) -> None:
        about = engine.describe()
        assert about["grammar_backend"] == "llguidance"
        assert about["dtype"] == "float32"
        assert about["end_tokens"] == [2, 3]
        assert about["vocab_size"] == 416
        assert about["context_tokens"] == 512
        assert about["template_hash"]
        assert engine.count_tokens("box <eos>") == engine.count_tokens("box <") + engine.count_tokens("eos>")

    with_engine(tiny("qwen3"), work)


def test_start_refuses_what_it_cannot_use(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Unknown dtype"):
        TransformersEngine(tmp_path, dtype="int3")
    with pytest.raises(UsageError, match="Unknown device"):
        TransformersEngine(tmp_path, device="toaster")

    async def start() -> None:
        engine = TransformersEngine(tmp_path / "nothing", device="cpu")
        with pytest.raises(ModelNotReady, match=r"no config\.json"):
            await engine.start([])
        await engine.close()

    asyncio.run(start())


def test_reasoning_comes_before_the_object(tiny: Tiny) -> None:
    grammar = FakeGrammar(
        lark='start: "<reasoning>" r "</reasoning>" "{}"\nr[max_tokens=5]: /[^<]*/\n',
        ebnf='root ::= "{}"\n',
        reasoning_tokens=5,
    )
    for backend in ("llguidance", "xgrammar"):
        done = with_engine(
            tiny("llama"),
            lambda e: together(e, [request(f"r{i}", grammar) for i in range(3)]),
            grammar_backend=backend,
        )
        assert all(re.fullmatch(r"<reasoning>[^<]*</reasoning>\{\}", c.text) for c in done)


@pytest.mark.model
@pytest.mark.parametrize("name", ["gemma-3-270m", "smollm2-135m-instruct"])
def test_real_models(model_dir: Callable[[str], Path], name: str) -> None:
    async def work(engine: TransformersEngine) -> list[Completion]:
        constrained = [request(f"box-{i:02d}") for i in range(5)]
        free = [request("box-09", None, max_tokens=12, stop_when=StopWhen.END_TOKEN)]
        return await together(engine, constrained + free)

    done = with_engine(model_dir(name), work, dtype="bfloat16")
    for completion in done[:5]:
        assert re.fullmatch(STORE_PATTERN, completion.text)
        assert completion.forced_tokens > 15
        assert completion.usage.cached_tokens > 10
    assert done[5].usage.output_tokens <= 12
