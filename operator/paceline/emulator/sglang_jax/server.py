"""The emulated SGLang's server with sglang-jax's log lines (managers/scheduler_metrics_mixin.py) and counters."""

from paceline.emulator import info, server
from paceline.emulator.engine import Report, Request
from paceline.emulator.log import say


class Server(server.Server):
    """`steps` are decode steps since the last flush."""

    _steps_before = 0

    @property
    def steps(self) -> int:
        return self.engine.totals.decode_steps - self._steps_before

    def flush(self) -> bool:
        flushed = super().flush()
        if flushed:
            self._steps_before = self.engine.totals.decode_steps
        return flushed

    def _prefilled(self, started: list[Request]) -> None:
        new = sum(request.prompt_tokens - request.cached_tokens for request in started)
        cached = sum(request.cached_tokens for request in started)
        say(
            f"Prefill batch. #new-seq: {len(started)}, #new-token: {new}, #cached-token: {cached}, token usage: "
            f"{info.token_usage(self):.2f}, #running-req: {len(self.engine.running) - len(started)}, "
            f"#queue-req: {len(self.engine.waiting)}, "
        )

    def _reported(self, report: Report) -> None:
        """A speculating server's line counts the requests that were verified: the others were being prefilled."""
        width = self.engine.width
        speculation = (
            f"accept-len {report.accept_length:.2f}, accept-ratio {report.accept_length / width:.2f}, "
            if report.verify_calls
            else ""
        )
        say(
            f"Decode batch. #running-req: {report.verify_calls or report.running}, #token: {report.used_tokens}, "
            f"token usage: {info.token_usage(self):.2f}, {speculation}"
            f"gen throughput (token/s): {report.throughput:.2f}, #queue-req: {report.queued}, "
        )
