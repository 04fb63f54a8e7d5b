"""The emulated SGLang's server with sglang-jax's log lines (managers/scheduler_metrics_mixin.py) and counters.

Under the overlap scheduler, the default, a step is launched before the result of the one before is known: its line
counts the requests that ended there once more, and after the last of all there is a line of those alone. A prefill is
launched behind the step that is running then; EAGLE3 takes its requests through their first decode step by themselves
(managers/scheduler.py:2048), beside which the others wait. Captured: tests/contract/captures/sglang_jax/eagle3.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from paceline_emulator import info, prompts, server
from paceline_emulator.engine import Report, Request
from paceline_emulator.log import say
from paceline_emulator.resolve import Launch
from paceline_emulator.server import Job, Status
from paceline_emulator.settings import Settings
from paceline_emulator.sglang_jax import ends

WARM_UP = "The capital city of France is"
COMPILED = "Prefill batch. #bid: 2, #cache_miss: 1"
"""A program that was compiled in service: of the first request of a server that speculates."""


class Verified(NamedTuple):
    """Of one request in one step. `accepted`: tokens; nothing of a baseline."""

    calls: int
    accepted: int
    first: bool
    ended: bool


class Server(server.Server):
    """`steps` are decode steps since the last flush, `tasks` what runs beside the requests."""

    def __init__(self, launch: Launch, settings: Settings, argv: Sequence[str]) -> None:
        super().__init__(launch, settings, argv)
        self.tasks: set[asyncio.Task[None]] = set()
        self._steps_before = 0
        self._verified: dict[str, tuple[int, int]] = {}
        """Of the requests that run, by id: verify calls and accepted tokens so far."""
        self._step: list[Verified] = []
        self._at = 0
        """The last decode step, and how many there were before it."""
        self._ended = 0
        """In the step before, and not known when the next one was launched."""
        self._prefills: list[str] = []
        """Lines of those beside the step that runs, told behind it."""
        self._next_prefills: list[str] = []
        """Lines of those that were let in when it ended, before it was told."""
        self._overlaps = not launch.args["disable_overlap_schedule"]
        self._alone = self._overlaps and launch.args["speculative_algorithm"] == "EAGLE3"

    @property
    def steps(self) -> int:
        return self.engine.totals.decode_steps - self._steps_before

    async def warm_up(self) -> None:
        """With a request of its own, whose lines are in the log before it says that it is ready."""
        await super().warm_up()
        if self.launch.args["skip_server_warmup"]:
            return
        asked = prompts.prompt(WARM_UP, WARM_UP, {})
        job = self.submit(asked, id="warm-up", limit=2, ignore_eos=True, streaming=False, counted=False)
        while (await job.chunk())[2] is None:
            pass

    def flush(self) -> bool:
        flushed = super().flush()
        if flushed:
            self._steps_before = self.engine.totals.decode_steps
        return flushed

    def die(self) -> None:
        ends.scheduler_failed(RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 2 GiB."), serving=True)

    def abort(self, job: Job, *, told: bool = False) -> None:
        super().abort(job, told=told)
        self._verified.pop(job.request.id, None)

    def _deliver(self, job: Job, tokens: int, finish: str | None, counted: bool) -> None:
        request, now = job.request, self.engine.totals.decode_steps
        if now != self._at:
            self._step, self._at = [], now
        if request.produced > 1:
            before = self._verified.pop(request.id, (0, 0))
            calls, accepted = request.verify_calls - before[0], request.accepted - before[1]
            self._step.append(Verified(calls, accepted, before == (0, 0), finish is not None))
            if finish is None:
                self._verified[request.id] = request.verify_calls, request.accepted
        super()._deliver(job, tokens, finish, counted)

    def _prefilled(self, started: list[Request]) -> None:
        new = sum(self._in_pages(request.prompt_tokens - request.cached_tokens) for request in started)
        cached = sum(request.cached_tokens for request in started)
        line = (
            f"Prefill batch. #new-seq: {len(started)}, #new-token: {new}, #cached-token: {cached}, "
            f"token usage: {self._used() / info.kv_tokens(self):.2f}, "
            f"#running-req: {len(self.engine.running) - len(started)}, #queue-req: {len(self.engine.waiting)}, "
        )
        if not (self._alone and self._decoding()):
            say(line)
            if self._alone and self.status is Status.STARTING:
                say(COMPILED)
        else:
            (self._next_prefills if self._step else self._prefills).append(line)

    def _reported(self, report: Report) -> None:
        """A speculating server's line tells the acceptance of the requests that were verified: others were being
        prefilled, or had ended."""
        step, self._step = self._step, []
        if not report.verify_calls:
            self._decoded([Verified(1, 0, False, one.ended) for one in step], report.throughput)
        else:
            self._decoded([one for one in step if not (self._alone and one.first)], report.throughput)
            self._say_prefills()
            if alone := [one for one in step if self._alone and one.first]:
                self._ended = 0  # it was launched behind a prefill, so what ended in the line above was known
                self._decoded(alone, report.throughput)
        if self._ended and not self._decoding():
            if self.status is Status.STARTING:  # of the warm-up it comes after the word that it is ready
                asyncio.get_running_loop().call_soon(self._decoded, [], 0.0)
            else:
                self._decoded([], 0.0)

    def _decoding(self) -> bool:
        return any(request.produced for request in self.engine.running)

    def _say_prefills(self) -> None:
        for line in self._prefills:
            say(line)
        self._prefills, self._next_prefills = self._next_prefills, []

    def _decoded(self, verified: Sequence[Verified], throughput: float) -> None:
        """The line of a step; none where nothing was in it."""
        calls = sum(one.calls for one in verified)
        requests, used = calls + self._ended, self._used()
        if not requests:
            return
        accepted = sum(one.accepted for one in verified)
        length = accepted / calls if calls else 0.0
        speculation = f"accept-len {length:.2f}, accept-ratio {length / self.engine.width:.2f}, " if accepted else ""
        self._ended = sum(one.ended for one in verified) if self._overlaps else 0
        say(
            f"Decode batch. #running-req: {requests}, #token: {used}, token usage: {used / info.kv_tokens(self):.2f}, "
            f"{speculation}gen throughput (token/s): {throughput:.2f}, #queue-req: {len(self.engine.waiting)}, "
        )

    def _used(self) -> int:
        """Tokens of all pages that are taken."""
        return sum(self._in_pages(request.prompt_tokens + request.produced) for request in self.engine.running)

    def _in_pages(self, tokens: int) -> int:
        size: int = self.launch.args["page_size"]
        return -(-tokens // size) * size
