"""The emulated SGLang's server with sglang-jax's log lines (managers/scheduler_metrics_mixin.py) and counters.

Under the overlap scheduler, the default, a step is launched before the result of the one before is known: its line
counts the requests that ended there once more, and after the last of all there is a line of those alone.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence

from paceline.emulator import info, server
from paceline.emulator.engine import Report, Request
from paceline.emulator.log import say
from paceline.emulator.resolve import Launch
from paceline.emulator.server import Job
from paceline.emulator.settings import Settings
from paceline.emulator.sglang_jax import ends


class Server(server.Server):
    """`steps` are decode steps since the last flush, `tasks` what runs beside the requests."""

    def __init__(self, launch: Launch, settings: Settings, argv: Sequence[str]) -> None:
        super().__init__(launch, settings, argv)
        self.tasks: set[asyncio.Task[None]] = set()
        self._steps_before = 0
        self._ended: Counter[int] = Counter()
        """Decode steps before → how many requests ended in the one that followed."""

    @property
    def steps(self) -> int:
        return self.engine.totals.decode_steps - self._steps_before

    def flush(self) -> bool:
        flushed = super().flush()
        if flushed:
            self._steps_before = self.engine.totals.decode_steps
        return flushed

    def die(self) -> None:
        ends.scheduler_failed(RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 2 GiB."), serving=True)

    def _deliver(self, job: Job, tokens: int, finish: str | None, counted: bool) -> None:
        if finish is not None and job.request.produced > 1 and not self.launch.args["disable_overlap_schedule"]:
            self._ended[self.engine.totals.decode_steps] += 1
        super()._deliver(job, tokens, finish, counted)

    def _prefilled(self, started: list[Request]) -> None:
        new = sum(self._in_pages(request.prompt_tokens - request.cached_tokens) for request in started)
        cached = sum(request.cached_tokens for request in started)
        say(
            f"Prefill batch. #new-seq: {len(started)}, #new-token: {new}, #cached-token: {cached}, "
            f"token usage: {self._used() / info.kv_tokens(self):.2f}, "
            f"#running-req: {len(self.engine.running) - len(started)}, #queue-req: {len(self.engine.waiting)}, "
        )

    def _reported(self, report: Report) -> None:
        """A speculating server's line tells the acceptance of the requests that were verified: others were being
        prefilled, or had ended."""
        width = self.engine.width
        speculation = (
            f"accept-len {report.accept_length:.2f}, accept-ratio {report.accept_length / width:.2f}, "
            if report.verify_calls
            else ""
        )
        this = self.engine.totals.decode_steps - 1
        self._decoded((report.verify_calls or report.running) + self._ended[this - 1], speculation, report.throughput)
        ended = self._ended[this]
        self._ended = Counter({this: ended})
        if ended and not any(request.produced for request in self.engine.running):
            self._decoded(ended, "", 0.0)
            self._ended.clear()

    def _decoded(self, requests: int, speculation: str, throughput: float) -> None:
        used = self._used()
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
