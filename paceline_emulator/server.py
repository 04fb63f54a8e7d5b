"""The state of one emulated server: the engine on the real clock, its counters, and what it says of itself."""

import asyncio
import json
import os
import signal
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from paceline_emulator import depth, info, layers, models, noise, profile, prompts
from paceline_emulator.engine import Engine, Report, Request
from paceline_emulator.log import say
from paceline_emulator.metrics import Metrics
from paceline_emulator.profile import Shape
from paceline_emulator.prompts import Prompt, cached_tokens
from paceline_emulator.resolve import Launch
from paceline_emulator.settings import Settings

REMEMBERED_PROMPTS = 10_000


class Status(StrEnum):
    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """A request with its times, seconds of the loop's clock (`began_at` of the epoch)."""

    request: Request
    prompt: Prompt
    streaming: bool
    arrived: float
    began_at: float
    fork_gap: float = 0.0
    """Nats, where the prompt has a fork."""
    pending: int = 0
    finish: str | None = None
    first_token: float | None = None
    last_token: float = 0.0
    finished: float = 0.0
    chunk_ready: asyncio.Event = field(default_factory=asyncio.Event)

    async def chunk(self) -> tuple[int, int, str | None]:
        """The next tokens [start, stop) and, with the last of them, why it ended."""
        await self.chunk_ready.wait()
        self.chunk_ready.clear()
        stop = self.request.produced
        start, self.pending = stop - self.pending, 0
        return start, stop, self.finish


class Server:
    """Everything the HTTP handlers share. Lives in one event loop."""

    def __init__(self, launch: Launch, settings: Settings, argv: Sequence[str]) -> None:
        self.launch, self.settings, self.argv = launch, settings, tuple(argv)
        self.status = Status.STARTING
        self.unpaused = asyncio.Event()
        self.unpaused.set()
        self.started = time.time()
        self.jobs: dict[str, Job] = {}
        self.flushes = 0
        self.flushing = False
        self.delivered = 0.0
        self.finished_requests = 0
        self.known_prompts = prompts.index()
        self.metrics = Metrics(
            model=launch.args["served_model_name"],
            extra=launch.args["extra_metric_labels"] or {},
            shown=settings.surface.metrics,
        )
        shape = profile.shape_of(launch.args)
        if shape is not None:
            shape = replace(shape, worth=shape.worth * layers.worth(launch.states, launch.head))
        target, forced = profile.for_target(launch.target, settings.speed), _forced(launch, settings)
        moves = adaptation(launch.args, target, forced, shape.worth if shape else 1.0)
        self.engine = Engine(
            paces=profile.paces(target, shape, forced),
            limit=launch.running_requests,
            speculative=launch.speculative,
            width=shape.width if shape else 1,
            log_interval=launch.args["decode_log_interval"],
            factor=self._noise(),
            on_prefill=self._prefilled,
            on_report=self._reported,
            drafting=moves.of if moves else None,
            learn=moves.learn if moves else None,
        )
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None
        self.failing = settings.fail.of(launch.speculative) or 0.0
        self._failures = 0.0

    async def warm_up(self) -> None:
        """Until it says that it is ready; it listens already."""
        await asyncio.sleep(self.settings.warmup)

    @property
    def ready(self) -> bool:
        return self.status is Status.READY and self.unpaused.is_set()

    def submit(
        self, prompt: Prompt, *, id: str, limit: int, ignore_eos: bool, streaming: bool, counted: bool = True
    ) -> Job:
        """Puts a request into the engine. `limit`: at most so many output tokens. `counted`: it shows in metrics."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        self.engine.advance(now)
        prompt = self.settings.leaving.of(prompt, self.launch.speculative)
        prompt = self.settings.diverging.of(prompt, self.launch.speculative, self.named)
        prompt = self._spoiled(prompt)
        length = limit if ignore_eos else min(limit, prompt.natural_length)
        request = Request(
            id=id,
            dataset=prompt.dataset,
            prompt_tokens=prompt.tokens,
            cached_tokens=self._cached(prompt),
            length=length,
            finish="length" if length == limit else "stop",
            deliver=lambda tokens, finish: self._deliver(job, tokens, finish, counted),
        )
        job = Job(
            request=request,
            prompt=prompt,
            streaming=streaming,
            arrived=now,
            began_at=time.time(),
            fork_gap=self.settings.leaving.gap,
        )
        self.jobs[id] = job
        self.engine.submit(request, now)
        self._schedule()
        return job

    def _spoiled(self, prompt: Prompt) -> Prompt:
        """An answer in a form, of those whose form this server gets wrong."""
        fraction = self.settings.malformed.of(self.launch.speculative) or 0.0
        return replace(prompt, written=prompt.written[:-1]) if prompt.digest[-2] < 256 * fraction else prompt

    def abort(self, job: Job, *, told: bool = False) -> None:
        """The request is over without a finish; its client gets `abort`. One that is `told` of it, because it still
        listens, is counted as any other, but for its time per token (tokenizer_manager.py:3280)."""
        if job.finish is not None:
            return
        self.engine.advance(asyncio.get_running_loop().time())
        if job.finish is None:
            self.engine.abort(job.request)
            job.finish = "abort"
            job.chunk_ready.set()
            self.jobs.pop(job.request.id, None)
            self.metrics.add("sglang:num_aborted_requests_total")
            if told and job.request.produced:
                job.finished = asyncio.get_running_loop().time()
                self._count(job, "true" if job.streaming else "false", whole=False)
            self._schedule()

    async def wait_idle(self, seconds: float) -> None:
        """Comes back when nothing runs or waits, or after so many seconds."""
        deadline = time.monotonic() + seconds
        for _ in iter(lambda: self.engine.idle or time.monotonic() >= deadline, True):
            await asyncio.sleep(0.01)

    def flush(self) -> bool:
        """Refused unless idle. Begins a new point: new noise, an empty cache, counters of speculation at zero."""
        if not self.engine.flush(self.engine.factor):
            return False
        self.flushes += 1
        self.engine.factor = self._noise()
        self._seen.clear()
        return True

    def emulate(self, *, accepting: float, hung: bool, failing: float) -> None:
        """From the step that is under way on, and from the next request."""
        self.failing = failing
        self.engine.advance(asyncio.get_running_loop().time())
        self.engine.accepting, self.engine.hung = accepting, hung
        self._schedule()

    def must_fail(self) -> bool:
        """Whether the next request is one of the fraction that fails: every second of two for 0.5."""
        self._failures += self.failing
        if self._failures < 1.0:
            return False
        self._failures -= 1.0
        return True

    def refresh_metrics(self) -> None:
        """Puts what the engine counts into the metrics, before they are read."""
        for name, labels, value in info.gauges(self):
            self.metrics.put(name, value, **labels)

    @property
    def named(self) -> str:
        """This server, and no other that was ever started: what it does otherwise than they do follows from that."""
        return json.dumps([self.settings.uid, list(self.argv)])

    def _noise(self) -> float:
        return noise.factor(self.settings.noise, self.settings.uid, self.argv, self.flushes)

    def _cached(self, prompt: Prompt) -> int:
        """Prompt tokens that the radix cache has since the last flush; not those of its own answers."""
        if self.launch.args["disable_radix_cache"]:
            return 0
        found, (whole, _) = cached_tokens(prompt, self._seen), prompt.begins[-1]
        self._seen[whole] = None
        self._seen.move_to_end(whole)
        while len(self._seen) > REMEMBERED_PROMPTS:
            self._seen.popitem(last=False)
        return found

    def _schedule(self) -> None:
        """Wakes at the end of the current step."""
        loop = asyncio.get_running_loop()
        deadline = self.engine.advance(loop.time())
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if deadline is None else loop.call_at(deadline, self._schedule)

    def _deliver(self, job: Job, tokens: int, finish: str | None, counted: bool) -> None:
        self.delivered = now = asyncio.get_running_loop().time()
        streaming = "true" if job.streaming else "false"
        if counted:
            if job.first_token is None:
                self.metrics.observe("sglang:time_to_first_token_seconds", now - job.arrived, is_streaming=streaming)
            else:
                self.metrics.observe("sglang:inter_token_latency_seconds", (now - job.last_token) / tokens, tokens)
        if job.first_token is None:
            job.first_token = now
        job.last_token = now
        job.pending += tokens
        if finish is not None:
            job.finish, job.finished = finish, now
            self.jobs.pop(job.request.id, None)
            if counted:
                self._count(job, streaming)
        job.chunk_ready.set()

    def _count(self, job: Job, streaming: str, *, whole: bool = True) -> None:
        """A finished request, into the counters."""
        request, add, observe = job.request, self.metrics.add, self.metrics.observe
        add("sglang:prompt_tokens_total", request.prompt_tokens, is_streaming=streaming)
        add("sglang:generation_tokens_total", request.produced, is_streaming=streaming)
        add("sglang:num_requests_total", 1, is_streaming=streaming)
        if request.cached_tokens:
            add("sglang:cached_tokens_total", request.cached_tokens, cache_source="device")
        if self.launch.speculative:
            add("sglang:spec_verify_calls_total", request.verify_calls)
        observe("sglang:e2e_request_latency_seconds", job.finished - job.arrived, is_streaming=streaming)
        if request.produced > 1 and whole:
            assert job.first_token is not None
            a_token = (job.finished - job.first_token) / (request.produced - 1)
            observe("sglang:request_time_per_output_token_seconds", a_token, is_streaming=streaming)
        observe("sglang:prompt_tokens_histogram", request.prompt_tokens)
        observe("sglang:uncached_prompt_tokens_histogram", request.prompt_tokens - request.cached_tokens)
        observe("sglang:generation_tokens_histogram", request.produced)
        self.finished_requests += 1
        last = self.settings.die.of(self.launch.speculative)
        if last is not None and self.finished_requests >= last:
            asyncio.get_running_loop().call_soon(self.die)

    def die(self) -> None:
        """As when a scheduler dies."""
        die()

    def _prefilled(self, started: list[Request]) -> None:
        now = asyncio.get_running_loop().time()
        for request in started:
            job = self.jobs.get(request.id)
            self.metrics.observe("sglang:queue_time_seconds", max(0.0, now - job.arrived) if job else 0.0)
            self.metrics.observe("sglang:per_stage_req_latency_seconds", 0.0, stage="request_process")
            self.metrics.observe("sglang:per_stage_req_latency_seconds", 0.0, stage="prefill_forward")
        new = sum(request.prompt_tokens - request.cached_tokens for request in started)
        cached = sum(request.cached_tokens for request in started)
        say(
            f"Prefill batch, #new-seq: {len(started)}, #new-token: {new}, #cached-token: {cached}, "
            f"token usage: {info.token_usage(self):.2f}, #running-req: {len(self.engine.running) - len(started)}, "
            f"#queue-req: {len(self.engine.waiting)}, #pending-token: 0, cuda graph: False, "
            f"input throughput (token/s): 0.00"
        )

    def _reported(self, report: Report) -> None:
        speculation = (
            f"accept len: {report.accept_length:.2f}, accept rate: {report.accept_rate:.2f}, "
            if self.launch.speculative
            else ""
        )
        say(
            f"Decode batch, #running-req: {report.running}, #token: {report.used_tokens}, "
            f"token usage: {info.token_usage(self):.2f}, {speculation}cuda graph: True, "
            f"gen throughput (token/s): {report.throughput:.2f}, #queue-req: {report.queued}"
        )


def die(of: str = "torch.OutOfMemoryError: CUDA out of memory.") -> None:
    """As when a scheduler dies: the process kills itself, which PID 1 survives, and then leaves with 0."""
    say("Scheduler hit an exception: Traceback (most recent call last):")
    say(of)
    say("SIGQUIT received. signum=3, frame=None. It usually means one child failed.")
    os.kill(os.getpid(), signal.SIGKILL)
    os._exit(0)


def adaptation(
    args: Mapping[str, Any], target: profile.Profile, forced: float | None, worth: float
) -> depth.Adaptive | None:
    """How the depth moves; None: it does not."""
    if not args.get("speculative_adaptive"):  # older releases have no such flag
        return None

    def paces(steps: int) -> depth.Paces:
        shape = Shape(steps=steps, branches=1, width=steps + 1, worth=worth) if steps else depth.AT_REST
        return profile.paces(target, shape, None if forced is None else min(forced, steps + 1.0))

    found = depth.table(args["speculative_adaptive_config"])
    return depth.Adaptive(paces, depth.slots(found, args["speculative_num_steps"]))


def _forced(launch: Launch, settings: Settings) -> float | None:
    """An acceptance length that does not follow from the head's quality; None: it does."""
    if not launch.speculative:
        return None
    if launch.head is not None and models.accepts_nothing(launch.head, launch.target):
        return 1.0
    if settings.simulated_acceptance is None:
        return None
    return max(1.0, min(settings.simulated_acceptance, float(launch.args["speculative_num_draft_tokens"])))
