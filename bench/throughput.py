"""What a constraint costs and what jump-forward gains: output tokens per second at equal batch, in alternating rounds.

    python bench/throughput.py [--model gemma-3-270m] [--batches 1,16] [--rounds 5] [--seed 1] [--json FILE]

Every request is a real Warehouse step under `delta`, each with a grammar of its own. `free` gets the same prompts and
generates as many tokens as the longest constrained answer of its round, whatever it says.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from machine import describe

from skillstate_local.domains.level import Level, Order
from skillstate_local.engine.base import Completion, Prompt, Request, Sampling, StopWhen
from skillstate_local.engine.transformers import TransformersEngine
from skillstate_local.environments.warehouse import WarehouseEnvironment
from skillstate_local.grammar.ir import Grammar
from skillstate_local.grammar.turn import GrammarBuilder, GrammarOptions
from skillstate_local.registry import load_registry, require_path
from skillstate_local.runtimes.skill_state import SkillStateRuntime

WAYS = ("free", "delta, token by token", "delta, jump-forward")


def situations(count: int, seed: int) -> tuple[list[Prompt], list[Grammar]]:
    """Prompts and `delta` grammars of ``count`` steps along the oracle's way, each of another episode."""
    prompts, grammars = [], []
    for number in range(count):
        world = WarehouseEnvironment(1000 * seed + number, 20)
        runtime = SkillStateRuntime(world.domain, Level.DELTA, Order.PATCH_FIRST, 0)
        builder = GrammarBuilder(world.domain, GrammarOptions(Level.DELTA))
        for _ in range(8):
            world.execute(world.oracle().action)
        state, observation = world.projection(), world.observe()
        prompts.append(runtime.prompt(state, observation, ""))
        grammar = builder.build(state, world.domain.facts(observation))
        assert grammar is not None
        grammars.append(grammar)
    return prompts, grammars


async def generate(
    engine: TransformersEngine, prompts: Sequence[Prompt], grammars: Sequence[Grammar | None], limit: int
) -> tuple[float, list[Completion]]:
    """Output tokens per second of one batch from the first submission to the last completion."""
    begin = time.perf_counter()
    done = await asyncio.gather(
        *(
            engine.generate(Request(f"bench {i}", prompt, grammar, Sampling(), limit, StopWhen.END_TOKEN))
            for i, (prompt, grammar) in enumerate(zip(prompts, grammars, strict=True))
        )
    )
    seconds = time.perf_counter() - begin
    return sum(completion.usage.output_tokens for completion in done) / seconds, list(done)


async def measure(model: str, batches: Sequence[int], rounds: int, seed: int) -> dict[str, dict[str, list[float]]]:
    path, template = require_path(model), load_registry().get(model).template
    engines = {
        jump: TransformersEngine(path, jump_forward=jump, max_batch=max(batches), chat_template=template)
        for jump in (False, True)
    }
    prompts, _ = situations(1, seed)
    for engine in engines.values():
        await engine.start([prompts[0].prefix])
    rates: dict[str, dict[str, list[float]]] = {}
    for batch in batches:
        found: dict[str, list[float]] = {way: [] for way in WAYS}
        for number in range(rounds + 1):
            prompts, grammars = situations(batch, seed + number)
            slow, answers = await generate(engines[False], prompts, grammars, 133)
            fast, jumped = await generate(engines[True], prompts, grammars, 133)
            longest = max(answer.usage.output_tokens for answer in answers)
            free, _ = await generate(engines[False], prompts, [None] * batch, longest)
            if number:  # the first round warms up
                for way, rate in zip(WAYS, (free, slow, fast), strict=True):
                    found[way].append(rate)
                same = sum(a.text == b.text for a, b in zip(answers, jumped, strict=True))
                forced = sum(a.forced_tokens for a in jumped) / sum(a.usage.output_tokens for a in jumped)
                print(
                    f"batch {batch}, round {number}: free {free:.1f}, constrained {slow:.1f}, jump-forward {fast:.1f} "
                    f"tokens/s; {forced:.0%} forced, {same}/{batch} answers the same with and without",
                    flush=True,
                )
        rates[str(batch)] = found
    for engine in engines.values():
        await engine.close()
    return rates


def table(rates: dict[str, dict[str, list[float]]]) -> str:
    """Medians, and ratios of paired rounds to free."""
    lines = ["| batch | way | tokens/s, median | against free, median (min–max) | n |", "|---|---|---|---|---|"]
    for batch, found in rates.items():
        for way, values in found.items():
            ratios = [value / free for value, free in zip(values, found["free"], strict=True)]
            spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"
            lines.append(f"| {batch} | {way} | {statistics.median(values):.1f} | {spread} | {len(values)} |")
        pairs = zip(found[WAYS[2]], found[WAYS[1]], strict=True)
        gain = statistics.median(fast / slow for fast, slow in pairs)
        lines.append(f"| {batch} | *jump-forward against token by token* | | {gain:.2f} | {len(found[WAYS[1]])} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="gemma-3-270m")
    parser.add_argument("--batches", default="1,16")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(f"{describe()}; model {options.model}, seed {options.seed}\n", flush=True)
    batches = [int(batch) for batch in options.batches.split(",")]
    rates = asyncio.run(measure(options.model, batches, options.rounds, options.seed))
    print("\n" + table(rates))
    if options.json:
        options.json.write_text(json.dumps(rates, indent=1))


if __name__ == "__main__":
    main()
