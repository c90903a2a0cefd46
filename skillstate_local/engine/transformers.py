"""The engine `transformers`: a local model in this process, many completions in one batch, a token mask per token."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import torch

from skillstate_local.engine import sequence as sequences
from skillstate_local.engine.backends import GrammarBackend, GrammarCache, make_backend
from skillstate_local.engine.base import Completion, EngineStats, Prompt, Request, Sampling
from skillstate_local.engine.chooser import Chooser
from skillstate_local.engine.detokenizer import Detokenizer
from skillstate_local.engine.loading import Loaded, load, pick_device, pick_dtype, template_text
from skillstate_local.engine.prompting import Encoded, PromptEncoder, choose_template
from skillstate_local.engine.sampling import Drawer
from skillstate_local.engine.scheduler import Scheduler
from skillstate_local.errors import ContextTooShort, EngineDied, EnvironmentProblem
from skillstate_local.grammar.ir import Grammar, Lit

PREPARING_THREADS = 2
_PROBE_TEXT = "zq"


@dataclass(slots=True)
class _Live:
    """What exists between start and close."""

    loaded: Loaded
    encoder: PromptEncoder
    backend: GrammarBackend
    grammars: GrammarCache
    scheduler: Scheduler
    context_tokens: int


class TransformersEngine:
    """Implements ``Engine`` on transformers; greedy text in bfloat16 may depend on what else is in the batch.

    ``grammar_backend`` is llguidance or xgrammar; ``threads`` sets torch's threads for the whole process;
    ``jump_forward`` appends tokens that the grammar forces without a forward pass for each.
    """

    def __init__(
        self,
        model_dir: Path,
        *,
        name: str = "transformers",
        grammar_backend: str = "llguidance",
        max_batch: int = 16,
        dtype: str = "bfloat16",
        device: str = "auto",
        context_tokens: int | None = None,
        threads: int | None = None,
        chat_template: str | Path = "auto",
        jump_forward: bool = True,
    ) -> None:
        self.name = name
        self.stats = EngineStats()
        self._model_dir = model_dir
        self._backend_name = grammar_backend
        self._max_batch = max_batch
        self._dtype = pick_dtype(dtype)
        self._device = pick_device(device)
        self._context_tokens = context_tokens
        self._threads = threads
        self._chat_template = chat_template
        self._jump_forward = jump_forward
        self._live_state: _Live | None = None
        self._pool: ThreadPoolExecutor | None = None

    async def start(self, prefixes: Sequence[str]) -> None:
        """Load, probe that a grammar is enforced, and compute every prefix. Raises as ``Engine.start`` says."""
        if self._live_state is not None:
            raise EngineDied("The engine is already running.", "Start it once.")
        self._pool = ThreadPoolExecutor(PREPARING_THREADS, thread_name_prefix="skillstate-prepare")
        loop = asyncio.get_running_loop()
        try:
            self._live_state = await loop.run_in_executor(self._pool, self._load)
            await self._probe()
            for prefix in dict.fromkeys(prefixes):
                await self.warm(prefix)
        except BaseException:
            await self.close()
            raise

    async def warm(self, prefix: str) -> None:
        """Compute the key-value blocks of one more P."""
        live = self._live
        await asyncio.wrap_future(live.scheduler.warm(live.encoder.head(prefix)))

    async def generate(self, request: Request) -> Completion:
        """Complete one request. Raises as ``Engine.generate`` says."""
        live = self._live
        if self._pool is None:
            raise EngineDied("The engine is not running.", "Call start() first.")
        loop = asyncio.get_running_loop()
        sequence = await loop.run_in_executor(self._pool, self._prepare, live, request)
        sequence.clock.submitted = time.perf_counter()
        live.scheduler.submit(sequence)
        return await asyncio.wrap_future(sequence.future)

    async def close(self) -> None:
        """End the thread and release the model. Safe to call twice."""
        live, self._live_state = self._live_state, None
        pool, self._pool = self._pool, None
        if live is not None:
            await asyncio.get_running_loop().run_in_executor(None, live.scheduler.close)
        if pool is not None:
            pool.shutdown(wait=False)

    def count_tokens(self, text: str) -> int:
        """Number of tokens of ``text``, special tokens read as plain text."""
        return len(self._live.encoder.plain(text))

    def describe(self) -> Mapping[str, object]:
        """Versions, precision, device and limits: what influences a result besides the model's files."""
        live = self._live
        device = self._device
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or "cpu"
        return {
            "engine": self.name,
            "versions": {p: version(p) for p in ("torch", "transformers", "llguidance", "xgrammar")},
            "dtype": str(self._dtype).removeprefix("torch."),
            "device": str(device),
            "device_name": name,
            "threads": torch.get_num_threads(),
            "max_batch": self._max_batch,
            "grammar_backend": live.backend.name,
            "jump_forward": self._jump_forward,
            "vocab_size": live.loaded.decoder.vocab_size,
            "end_tokens": list(live.loaded.end_tokens),
            "context_tokens": live.context_tokens,
            "template_hash": live.encoder.template_hash,
        }

    @property
    def _live(self) -> _Live:
        if self._live_state is None:
            raise EngineDied("The engine is not running.", "Call start() first.")
        return self._live_state

    def _load(self) -> _Live:
        if self._threads is not None:
            torch.set_num_threads(self._threads)
        loaded = load(self._model_dir, dtype=self._dtype, device=self._device, max_batch=self._max_batch)
        template = choose_template(self._chat_template, template_text(self._model_dir), loaded.tokenizer)
        encoder = PromptEncoder(loaded.tokenizer, template, loaded.needs_bos)
        backend = make_backend(self._backend_name, loaded.tokenizer, loaded.decoder.vocab_size, loaded.end_tokens)
        chooser = Chooser(loaded.decoder, self._max_batch)
        return _Live(
            loaded,
            encoder,
            backend,
            GrammarCache(backend, self.stats),
            Scheduler(loaded.decoder, chooser, self._max_batch, self.stats),
            min(self._context_tokens or loaded.context_tokens, loaded.context_tokens),
        )

    def _prepare(self, live: _Live, request: Request) -> sequences.Sequence:
        """Tokenise, check the length, compile the grammar: on a pool thread, while others decode."""
        encoded = live.encoder.encode(request.prompt)
        self._check_context(live, request, encoded)
        started = time.perf_counter()
        matcher = live.grammars.matcher(request.grammar) if request.grammar is not None else None
        grammar_s = time.perf_counter() - started
        return sequences.Sequence(
            request=request,
            prompt=encoded,
            matcher=matcher,
            detokenizer=Detokenizer(live.backend.token_bytes),
            drawer=Drawer(request.sampling),
            end_tokens=frozenset(live.loaded.end_tokens),
            jump_forward=self._jump_forward,
            clock=sequences.Clock(grammar_s=grammar_s),
        )

    def _check_context(self, live: _Live, request: Request, encoded: Encoded) -> None:
        prompt_tokens = len(encoded.head) + len(encoded.tail)
        if prompt_tokens == 0:
            raise ContextTooShort(f"The prompt of {request.id} is empty.", "Give it at least one token.")
        if prompt_tokens + request.max_tokens > live.context_tokens:
            raise ContextTooShort(
                f"{request.id}: a prompt of {prompt_tokens} tokens and {request.max_tokens} for the answer exceed "
                f"the context of {live.context_tokens} tokens.",
                "Shorten the state, lower --max-tokens, or take a model with a longer context.",
            )

    async def _probe(self) -> None:
        """Let the model write something it would not: a grammar that is accepted and ignored must not go unseen."""
        grammar = Grammar(root=Lit(_PROBE_TEXT), static=True, label="probe")
        request = Request("probe", Prompt("Hello", " world"), grammar, Sampling(), max_tokens=8)
        completion = await self.generate(request)
        if completion.text != _PROBE_TEXT:
            raise EnvironmentProblem(
                f"The engine does not enforce grammars: {completion.text!r} came back.", "Report this as a bug."
            )
