"""The state of one emulated vLLM: the engine on the real clock, and what it counts.

Which metric counts what: `v1/metrics/loggers.py:499-1031` and `v1/spec_decode/metrics.py:207-264` of 0.33.0.
"""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from paceline_emulator import info, models, noise, profile, prompts
from paceline_emulator.depth import Drafting, Paces, by_cost, by_schedule
from paceline_emulator.engine import Engine, Request
from paceline_emulator.positions import by_position
from paceline_emulator.profile import Profile
from paceline_emulator.prompts import Prompt, cached_tokens
from paceline_emulator.server import Job
from paceline_emulator.settings import Settings
from paceline_emulator.vllm.launch import Launch, Speculation
from paceline_emulator.vllm.log import log, write
from paceline_emulator.vllm.metrics import Page
from paceline_emulator.vllm.profiles import for_target

VERSION = "0.33.0+emulated"
BLOCK_SIZE = "16"
MEMORY = "0.92"


@dataclass(slots=True)
class Drafted:
    """Verify calls, and what they accepted."""

    calls: int = 0
    accepted: int = 0
    proposed: int = 0


class Server:
    """Everything the HTTP handlers share. Lives in one event loop."""

    def __init__(self, launch: Launch, settings: Settings, argv: Sequence[str]) -> None:
        self.launch, self.settings, self.argv = launch, settings, tuple(argv)
        self.key = os.environ.get("VLLM_API_KEY")
        self.started = int(time.time())
        self.known_prompts = prompts.index()
        self.page = Page(launch.names[0], launch.speculation.tokens if launch.speculation else 0, cache_of(launch))
        self.finished = 0
        """Requests that came to their end."""
        self._let_in: dict[str, float] = {}
        """By id of the request: when its prefill began."""
        self._drafted = Drafted()
        """Since the counters by position were last read."""
        self._verified: dict[str, Drafted] = {}
        """Of the requests that run, by id, as far as it was counted."""
        self.salt: str | None = None
        self.salts = 0
        self._failures = 0.0
        self._seen: dict[str | None, set[bytes]] = {}
        self._timer: asyncio.TimerHandle | None = None
        spec = launch.speculation
        shape, self.target = spec.shape(spec.tokens) if spec else None, for_target(launch.target, settings.speed)
        self.forced = 1.0 if spec and spec.head and models.accepts_nothing(spec.head, launch.target) else None
        self.engine = Engine(
            paces=profile.paces(self.target, shape, self.forced),
            limit=seats(launch.seats, self.target, speculates=spec is not None),
            speculative=spec is not None,
            width=shape.width if shape else 1,
            log_interval=10,
            factor=self._noise(),
            drafting=self._moving(),
            on_prefill=self._prefilled,
        )

    def submit(self, prompt: Prompt, *, id: str, limit: int, ignore_eos: bool, salt: str | None) -> Job:
        """Puts a request into the engine. A salt not seen before begins a new point, with noise of its own."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        self.engine.advance(now)
        if salt != self.salt and self.engine.idle:
            self.salt, self.salts = salt, self.salts + 1
            self.engine.factor, self.engine.drafting = self._noise(), self._moving()
        length = limit if ignore_eos else min(limit, prompt.natural_length)
        request = Request(
            id=id,
            dataset=prompt.dataset,
            prompt_tokens=prompt.tokens,
            cached_tokens=self._cached(prompt, salt),
            length=length,
            finish="length" if length == limit else "stop",
            deliver=lambda tokens, finish: self._deliver(job, tokens, finish),
        )
        job = Job(request=request, prompt=prompt, streaming=True, arrived=now, began_at=time.time())
        self.engine.submit(request, now)
        self._schedule()
        return job

    def abort(self, job: Job) -> None:
        """The client has left: what the request has cost is counted, and it is in no `request_success_total`."""
        if job.finish is None:
            self.engine.advance(asyncio.get_running_loop().time())
        if job.finish is None:
            self.engine.abort(job.request)
            self._verified.pop(job.request.id, None)
            self._let_in.pop(job.request.id, None)
            job.finish = "abort"
            job.chunk_ready.set()
            self._schedule()

    def must_fail(self) -> bool:
        """Whether the next request is one of the fraction that fails."""
        self._failures += self.settings.fail.of(self.launch.speculation is not None) or 0.0
        fails = self._failures >= 1.0
        self._failures -= fails
        return fails

    def metrics(self) -> str:
        """The page of /metrics."""
        self._spread()
        engine, put = self.engine, self.page.put
        used = sum(request.prompt_tokens + request.produced for request in engine.running)
        put("num_requests_running", len(engine.running))
        put("num_requests_waiting", len(engine.waiting))
        put("num_requests_waiting_by_reason", len(engine.waiting), reason="capacity")
        put("engine_sleep_state", 1, sleep_state="awake")
        put("kv_cache_usage_perc", min(1.0, used / kv_tokens(self.launch)))
        return self.page.text()

    def _noise(self) -> float:
        return noise.factor(self.settings.noise, self.settings.uid, self.argv, self.salts)

    def _moving(self) -> Callable[[int], Drafting] | None:
        """Where the depth moves; what a schedule costs differs between points."""
        spec, costs = self.launch.speculation, self.target.scheduled
        if spec is None:
            return None
        rest = noise.within(*costs.resting, self.settings.uid, self.argv, self.salts) if costs else 1.0
        return moving(spec, self.target, self.forced, rest)

    def _cached(self, prompt: Prompt, salt: str | None) -> int:
        """Whole blocks of a prompt that came before under the same salt."""
        if self.launch.args["enable_prefix_caching"] is False:
            return 0
        seen = self._seen.setdefault(salt, set())
        found = cached_tokens(prompt, seen)
        seen.add(prompt.begins[-1][0])
        return found // int(BLOCK_SIZE) * int(BLOCK_SIZE)

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        deadline = self.engine.advance(loop.time())
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if deadline is None else loop.call_at(deadline, self._schedule)

    def _prefilled(self, started: list[Request]) -> None:
        now = asyncio.get_running_loop().time()
        self._let_in.update({request.id: now for request in started})

    def _deliver(self, job: Job, tokens: int, finish: str | None) -> None:
        now = asyncio.get_running_loop().time()
        if job.first_token is None:
            job.first_token = now
            self._count_prompt(job.request)
            self.page.observe("time_to_first_token_seconds", now - job.arrived)
        else:
            self.page.observe("inter_token_latency_seconds", now - job.last_token)
        self.page.add("generation_tokens_total", tokens)
        self._speculate(job.request, finish)
        job.last_token = now
        job.pending += tokens
        if finish is not None:
            job.finish, job.finished = finish, now
            self._count_finished(job, finish)
            last = self.settings.die.of(self.launch.speculation is not None)
            if last is not None and self.finished >= last:
                asyncio.get_running_loop().call_soon(die)
        job.chunk_ready.set()

    def _count_prompt(self, request: Request) -> None:
        add, cached = self.page.add, request.cached_tokens
        add("prompt_tokens_total", request.prompt_tokens)
        add("prompt_tokens_by_source_total", request.prompt_tokens - cached, source="local_compute")
        add("prompt_tokens_by_source_total", cached, source="local_cache_hit")
        add("prompt_tokens_cached_total", cached)
        add("prompt_tokens_cached_by_source_total", cached, source="device")
        add("prefix_cache_queries_total", request.prompt_tokens)
        add("prefix_cache_hits_total", cached)

    def _count_finished(self, job: Job, finish: str) -> None:
        self.finished += 1
        self.page.add("request_success_total", finished_reason=finish)
        request, first = job.request, job.first_token
        assert first is not None
        let_in = self._let_in.pop(request.id, job.arrived)
        seen = {
            "request_prompt_tokens": request.prompt_tokens,
            "request_generation_tokens": request.produced,
            "request_max_num_generation_tokens": request.produced,
            "request_params_n": 1,
            "request_params_max_tokens": request.length,
            "request_prefill_kv_computed_tokens": request.prompt_tokens - request.cached_tokens,
            "request_num_preemptions": 0,
            "request_time_per_output_token_seconds": (job.finished - first) / max(1, request.produced - 1),
            "e2e_request_latency_seconds": job.finished - job.arrived,
            "request_queue_time_seconds": let_in - job.arrived,
            "request_inference_time_seconds": job.finished - let_in,
            "request_prefill_time_seconds": first - let_in,
            "request_decode_time_seconds": job.finished - first,
        }
        for name, value in seen.items():
            self.page.observe(name, value)

    def _speculate(self, request: Request, finish: str | None) -> None:
        """What was verified of a request since its last tokens, into the counters."""
        if self.launch.speculation is None:
            return
        before = self._verified.pop(request.id, Drafted())
        calls, accepted = request.verify_calls - before.calls, request.accepted - before.accepted
        if finish is None:
            self._verified[request.id] = Drafted(request.verify_calls, request.accepted, request.proposed)
        self.page.add("spec_decode_num_drafts_total", calls)
        self.page.add("spec_decode_num_draft_tokens_total", request.proposed - before.proposed)
        self.page.add("spec_decode_num_accepted_tokens_total", accepted - calls)
        self._drafted.calls += calls
        self._drafted.accepted += accepted - calls

    def _spread(self) -> None:
        """What was accepted since the last look, over the positions."""
        if self.launch.speculation is None:
            return
        fresh, self._drafted = self._drafted, Drafted()
        for position, share in enumerate(by_position(fresh.accepted, fresh.calls, self.launch.speculation.tokens)):
            self.page.add("spec_decode_num_accepted_tokens_per_pos_total", share, position=str(position))


def seats(asked: int, target: Profile, *, speculates: bool) -> int:
    """Requests at a time: as many as were asked for, and no more than the KV cache of the published table holds."""
    if target.seats is None:
        return asked
    return min(asked, target.seats.speculative if speculates else target.seats.baseline)


def moving(
    spec: Speculation, target: Profile, forced: float | None, rest: float = 1.0
) -> Callable[[int], Drafting] | None:
    """How many tokens are proposed by batch size; None: always as many. `rest`: where a schedule proposes none, its
    throughput over that of always proposing `spec.tokens`, if the target's profile knows what a schedule costs."""

    def scheduled(tokens: int) -> Paces:
        if target.scheduled is None:
            return fixed(tokens)
        if tokens:
            return {name: pace.times(target.scheduled.drafting) for name, pace in fixed(tokens).items()}
        always = fixed(spec.tokens)
        return {name: replace(pace.times(rest), acceptance=1.0, width=1) for name, pace in always.items()}

    def fixed(tokens: int) -> Paces:
        return profile.paces(target, spec.shape(tokens), forced if tokens else 1.0)

    def cut(verified: int) -> Paces:
        return profile.paces(target, spec.shape(spec.tokens, verified), forced if verified else 1.0)

    if spec.schedule:
        ranges = [(first, last, min(tokens, spec.tokens)) for first, last, tokens in spec.schedule]
        return by_schedule(ranges, scheduled)
    return by_cost(spec.tokens, cut) if spec.adaptive else None


def kv_tokens(launch: Launch) -> int:
    """Tokens that the KV cache holds: a head takes its share."""
    head = launch.speculation is not None and launch.speculation.head is not None
    return int(info.KV_TOKENS * (1 - info.HEAD_SHARE if head else 1))


def cache_of(launch: Launch) -> dict[str, str]:
    """What `vllm:cache_config_info` says of this server's cache; the rest is as captured."""
    tokens, block = kv_tokens(launch), str(launch.args["block_size"] or BLOCK_SIZE)
    return {
        "block_size": block,
        "effective_attention_block_size": block,
        "gpu_memory_utilization": str(launch.args["gpu_memory_utilization"] or MEMORY),
        "cache_dtype": str(launch.args["kv_cache_dtype"]),
        "enable_prefix_caching": str(launch.args["enable_prefix_caching"] is not False),
        "kv_cache_size_tokens": str(tokens),
        "kv_cache_max_concurrency": str(tokens / launch.context),
        "kv_cache_memory_bytes": "None",
        "num_gpu_blocks": str(tokens // int(block)),
    }


def die() -> None:
    """The engine's process ends; the API server stops without an error (`launchers/launcher.py:314`), with the lines
    that are captured in tests/contract/captures/vllm/engine_killed.log."""
    log("EngineCore", "ERROR", "core.py:1139", "EngineCore encountered a fatal error.")
    log("EngineCore", "ERROR", "core.py:1139", "torch.OutOfMemoryError: CUDA out of memory.")
    lost = "[shutdown] MPClient: engine core exited unexpectedly; starting cleanup"
    log("APIServer", "WARNING", "core_client.py:839", lost)
    issue = "EngineCore encountered an issue. See stack trace (above) for the root cause."
    log("APIServer", "ERROR", "async_llm.py:943", f"vllm.v1.engine.exceptions.EngineDeadError: {issue}")
    for line in ("Shutting down", "Waiting for application shutdown.", "Application shutdown complete."):
        write(f"INFO:     {line}")
    write(f"INFO:     Finished server process [{os.getpid()}]")
    os._exit(0)
