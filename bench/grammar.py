"""How long the grammar of a new step takes, beside the naive way: one JSON-Schema property for each live key.

    python bench/grammar.py [--sizes 5,50,500,2000] [--repeats 15] [--json FILE] [--no-naive]

A size of N means a warehouse of N shelves, half of them occupied: every key is in the grammar, as one to delete or to
insert. Every repeat is another state, so nothing is reused from the step before. Both vocabularies are those of the
packaged models. A library that refuses a schema says so in the row.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import llguidance
import llguidance.hf
import xgrammar
from machine import describe, median_ms, percentile
from transformers import AutoTokenizer

from skillstate_local.domains.base import Domain
from skillstate_local.domains.level import Level, Order
from skillstate_local.domains.turn import write_turn
from skillstate_local.domains.warehouse import warehouse_domain
from skillstate_local.grammar.turn import GrammarBuilder, GrammarOptions
from skillstate_local.registry import require_path
from skillstate_local.state.canonical import Json, dumps

MODELS = {"49k": "smollm2-135m-instruct", "262k": "gemma-3-270m"}


@dataclass
class Row:
    """One line of the table; times in milliseconds, masks in microseconds."""

    way: str
    vocabulary: str
    live_keys: int
    build_ms: float
    build_p95_ms: float
    mask_p50_us: float
    mask_p99_us: float
    repeats: int
    note: str = ""


@dataclass
class Step:
    """One random step: Σ_t, O_t and the right turn for it."""

    state: Json
    observation: str
    turn: str


class Tokenizers:
    """One model's vocabulary as each library wants it."""

    def __init__(self, model: str) -> None:
        folder = require_path(model)
        self.hf = AutoTokenizer.from_pretrained(folder)
        config = json.loads((folder / "config.json").read_text())
        self.size = int(config["vocab_size"])
        self.llguidance = llguidance.hf.from_tokenizer(self.hf, n_vocab=self.size)
        self.xgrammar = xgrammar.TokenizerInfo.from_huggingface(self.hf, vocab_size=self.size)

    def ids(self, text: str) -> list[int]:
        return list(self.hf(text, add_special_tokens=False).input_ids)


def steps(live: int, count: int) -> tuple[Domain, list[Step]]:
    """Random maintenance steps of a warehouse with ``live`` shelves, half of them occupied."""
    domain = warehouse_domain(live)
    rng = random.Random(live)
    found = []
    for _ in range(count):
        taken = rng.sample(range(live), live // 2)
        state = domain.schema.canonical(
            {
                "inventory": {
                    f"shelf_{s}": f"item_{i}" for s, i in zip(taken, rng.sample(range(100_000), live // 2), strict=True)
                }
            }
        )
        old = rng.choice(list(state["inventory"]))
        new = next(f"shelf_{n}" for n in range(live) if f"shelf_{n}" not in state["inventory"])
        item = state["inventory"][old]
        turn = write_turn({"inventory": {old: None, new: item}}, f"Move {item} {old} {new}", Order.PATCH_FIRST)
        found.append(Step(state, f"Maintenance required on {old}.", turn))
    return domain, found


def naive_schema(domain: Domain, step: Step) -> dict[str, Any]:
    """The patch's keys without this project: every shelf a property, null if it is taken and an item if it is not."""
    held = step.state["inventory"]
    item = {"type": "string", "pattern": "^item_(0|[1-9][0-9]{0,5})$"}
    properties = {key: {"type": "null"} if key in held else item for key in domain.closed["shelf"]}
    inventory = {"type": "object", "properties": properties, "additionalProperties": False}
    patch = {"type": "object", "properties": {"inventory": inventory}, "additionalProperties": False}
    return {
        "type": "object",
        "properties": {"state_patch": patch, "action": {"type": "string"}},
        "required": ["state_patch", "action"],
        "additionalProperties": False,
    }


def llguidance_masks(matcher: Any, ids: list[int], *, fatal: bool = True) -> list[float]:
    """Seconds of each mask along a sentence; the sentence must be accepted to its end."""
    taken = []
    for token in ids:
        begin = time.perf_counter()
        matcher.compute_bitmask()
        taken.append(time.perf_counter() - begin)
        if not matcher.consume_token(token):
            if fatal:
                raise SystemExit(f"the right turn was refused: {matcher.get_error().splitlines()[0]}")
            break
    return taken


def xgrammar_masks(compiled: Any, ids: list[int], size: int) -> list[float]:
    matcher = xgrammar.GrammarMatcher(compiled)
    bitmask = xgrammar.allocate_token_bitmask(1, size)
    taken = []
    for token in ids:
        begin = time.perf_counter()
        matcher.fill_next_token_bitmask(bitmask)
        taken.append(time.perf_counter() - begin)
        if not matcher.accept_token(token):
            raise SystemExit("the right turn was refused by xgrammar")
    return taken


def ours(way: str, level: Level, tokenizers: Tokenizers, name: str, live: int, repeats: int) -> Row:
    domain, found = steps(live, repeats)
    builder = GrammarBuilder(domain, GrammarOptions(level))
    builds, masks = [], []
    compiler = xgrammar.GrammarCompiler(tokenizers.xgrammar, cache_enabled=False, max_threads=1)
    for step in found:
        ids = tokenizers.ids(step.turn)
        begin = time.perf_counter()
        grammar = builder.build(step.state, domain.facts(step.observation))
        assert grammar is not None
        if way == "lark":
            text = llguidance.grammar_from("lark", grammar.write("lark"))
            matcher = llguidance.LLMatcher(tokenizers.llguidance, text)
            builds.append(time.perf_counter() - begin)
            if matcher.is_error():
                raise SystemExit(matcher.get_error().splitlines()[0])
            masks += llguidance_masks(matcher, ids)
        else:
            compiled = compiler.compile_grammar(grammar.write("ebnf"))
            builds.append(time.perf_counter() - begin)
            masks += xgrammar_masks(compiled, ids, tokenizers.size)
    return _row(f"ours, {level.value}, {way}", name, live, builds, masks)


def naive_llguidance(tokenizers: Tokenizers, name: str, live: int, repeats: int) -> Row:
    domain, found = steps(live, repeats)
    builds, masks = [], []
    for step in found:
        schema = dumps(naive_schema(domain, step))
        begin = time.perf_counter()
        text = llguidance.LLMatcher.grammar_from_json_schema(schema, overrides={"whitespace_flexible": False})
        matcher = llguidance.LLMatcher(tokenizers.llguidance, text)
        builds.append(time.perf_counter() - begin)
        taken = llguidance_masks(matcher, tokenizers.ids('{"state_patch":{"inventory":{'), fatal=False)
        if matcher.is_error():
            note = "refused: " + matcher.get_error().splitlines()[0][:60]
            return Row("JSON Schema, llguidance", name, live, round(median_ms(builds), 2), 0, 0, 0, len(builds), note)
        masks += taken
    return _row("JSON Schema, llguidance", name, live, builds, masks)


def naive_xgrammar(tokenizers: Tokenizers, name: str, live: int, repeats: int) -> Row:
    domain, found = steps(live, repeats)
    compiler = xgrammar.GrammarCompiler(tokenizers.xgrammar, cache_enabled=False, max_threads=1)
    builds, masks = [], []
    for step in found:
        schema = dumps(naive_schema(domain, step))
        begin = time.perf_counter()
        compiled = compiler.compile_json_schema(schema, any_whitespace=False, separators=(",", ":"))
        builds.append(time.perf_counter() - begin)
        masks += xgrammar_masks(compiled, tokenizers.ids('{"state_patch":{"inventory":{'), tokenizers.size)
    return _row("JSON Schema, xgrammar", name, live, builds, masks)


def measure(tokenizers: Tokenizers, name: str, live: int, repeats: int, naive_repeats: int) -> Iterator[Row]:
    """Every way at one size, one after another in the same process."""
    yield ours("lark", Level.DELTA, tokenizers, name, live, repeats)
    yield ours("ebnf", Level.DELTA, tokenizers, name, live, repeats)
    if naive_repeats:
        yield naive_llguidance(tokenizers, name, live, naive_repeats)
        yield naive_xgrammar(tokenizers, name, live, naive_repeats)


def _row(way: str, name: str, live: int, builds: list[float], masks: list[float]) -> Row:
    return Row(
        way,
        name,
        live,
        round(median_ms(builds), 2),
        round(1e3 * percentile(builds, 0.95), 2),
        round(1e6 * statistics.median(masks), 1),
        round(1e6 * percentile(masks, 0.99), 1),
        len(builds),
    )


def table(rows: list[Row]) -> str:
    lines = [
        "| way | vocabulary | live keys | build, median / p95, ms | mask, p50 / p99, µs | n |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r.way} | {r.vocabulary} | {r.live_keys:,} | {r.build_ms:g} / {r.build_p95_ms:g} "
        f"| {r.note or f'{r.mask_p50_us:g} / {r.mask_p99_us:g}'} | {r.repeats} |"
        for r in rows
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="5,50,500,2000")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--naive-repeats", type=int, default=3)
    parser.add_argument("--vocabularies", default="49k,262k")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(describe(), "\n")
    rows: list[Row] = []
    for name in options.vocabularies.split(","):
        tokenizers = Tokenizers(MODELS[name])
        for live in map(int, options.sizes.split(",")):
            for row in measure(tokenizers, name, live, options.repeats, options.naive_repeats):
                rows.append(row)
                print(table([row]).splitlines()[-1], flush=True)
    print("\n" + table(rows))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
