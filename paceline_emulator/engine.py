"""The decode loop as a function of time: no clock, no sockets, no threads of its own.

Steps lie on an absolute clock: a step begins when the one before it ended, however late somebody asks, so lateness
never adds up. In a step every running request gets its acceptance length A as credit; whole tokens are handed out, the
rest is kept; the first step of a request is its prefill and yields one token. A step takes the sum over its requests of

    credit / throughput(batch)

and as a request's credits sum to its length, a constant batch of b yields exactly throughput(b) tokens a second,
prefill included, at any length of output.

The published throughputs are those of closed loops, so a client's turn-around is part of them: the slot of a finished
request is held for HOLD seconds and counts as running meanwhile, and a request that takes it counts from the moment it
was freed. Other arrivals join at the next step.
"""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from paceline_emulator.depth import Drafting
from paceline_emulator.profile import Pace

HOLD = 0.1
ROUNDING = 1e-9


@dataclass(slots=True, kw_only=True, eq=False)
class Request:
    """`length` output tokens are coming, then `finish` is said. `deliver(tokens, finish)`: None while it runs."""

    id: str
    dataset: str | None
    prompt_tokens: int
    cached_tokens: int
    length: int
    finish: str
    deliver: Callable[[int, str | None], None]
    produced: int = 0
    credit: float = 0.0
    verify_calls: int = 0
    proposed: int = 0
    """Draft tokens, over those calls."""
    accepted: int = 0
    """Tokens that verify steps yielded, those beyond the end included, as the real server counts them."""
    behind: int = 0
    """Steps it takes at the next boundary besides that boundary's own: those since its slot was freed."""


@dataclass(slots=True, kw_only=True)
class Slot:
    """Freed, and held for the next request of the same client. `steps` have ended since."""

    since: float
    dataset: str | None
    steps: int = 0


@dataclass(slots=True, kw_only=True)
class Interval:
    """What happened since the last report, which comes every `decode_log_interval` decode steps."""

    accepted: int = 0
    verify_calls: int = 0
    proposed: int = 0
    tokens: int = 0


@dataclass(slots=True, kw_only=True)
class Report:
    """What the log line and the gauges say; they hold it until the next report."""

    running: int = 0
    queued: int = 0
    verify_calls: int = 0
    accept_length: float = 0.0
    accept_rate: float = 0.0
    width: int = 0
    """Tokens that its last step verified of a request."""
    throughput: float = 0.0
    used_tokens: int = 0


@dataclass(slots=True, kw_only=True)
class Totals:
    """Since the start."""

    prefill_computed: int = 0
    prefill_cached: int = 0
    decoded: int = 0
    prefills: int = 0
    decode_steps: int = 0
    busy_seconds: float = 0.0


@dataclass(slots=True, kw_only=True)
class Engine:
    """`paces` by dataset; `factor` is the noise on throughput of the current point. `drafting`, by batch size, takes
    the place of `paces` and `width` where the depth moves, and `learn` is told what each step accepted."""

    paces: Mapping[str | None, Pace]
    limit: int
    speculative: bool
    width: int
    log_interval: int
    factor: float = 1.0
    on_prefill: Callable[[list[Request]], None] = lambda started: None
    on_report: Callable[[Report], None] = lambda report: None
    drafting: Callable[[int], Drafting] | None = None
    learn: Callable[[int, Sequence[int]], None] | None = None
    accepting: float = 1.0
    """Fraction of the accepted draft tokens that is left: the head has gone stale."""
    hung: bool = False
    """No step ends any more."""
    running: list[Request] = field(default_factory=list)
    waiting: deque[Request] = field(default_factory=deque)
    held: list[Slot] = field(default_factory=list)
    report: Report = field(default_factory=Report)
    totals: Totals = field(default_factory=Totals)
    interval: Interval = field(default_factory=Interval)
    folded_accepted: int = 0
    folded_verify_calls: int = 0
    _began: float = 0.0
    _reported: float = 0.0
    _steps: int = 0

    @property
    def idle(self) -> bool:
        return not self.running and not self.waiting

    @property
    def average_accept_length(self) -> float | None:
        """Since the start or the last flush, in whole reports; None before the first."""
        return self.folded_accepted / self.folded_verify_calls if self.folded_verify_calls else None

    def submit(self, request: Request, now: float) -> None:
        """A new request; the caller has called `advance(now)` before."""
        if not self.running:
            self._wake(now)
        if self.held and not self.waiting and len(self.running) < self.limit:
            slot = self.held.pop(0)
            request.behind = slot.steps
            self._start([request])
        else:
            self.waiting.append(request)
            if not self.running:
                self._admit()

    def abort(self, request: Request) -> None:
        """Leaves at once, without another word to its client."""
        if request in self.running:
            self.running.remove(request)
        elif request in self.waiting:
            self.waiting.remove(request)

    def advance(self, now: float) -> float | None:
        """Does every step that has ended by `now`. Returns when the next one ends; None: nothing runs, or it hangs."""
        if self.hung:
            self._began = now
            return None
        while self.running or self.waiting:
            if not self.running:
                self._admit()
            end = self._began + self._duration()
            if end > now:
                return end
            self._step(end)
        return None

    def flush(self, factor: float) -> bool:
        """Forgets counters of speculation and begins a point with new noise; refused unless idle."""
        if not self.idle:
            return False
        self.held.clear()
        self.factor = factor
        self.interval = Interval()
        self.folded_accepted = self.folded_verify_calls = self._steps = 0
        return True

    def _wake(self, now: float) -> None:
        """Out of idleness: the clock goes on from where it stopped if a held slot is being taken, else from now."""
        self.held = [slot for slot in self.held if now - slot.since <= HOLD]
        if not self.held:
            self._began = now
            self._reported = max(self._reported, now)

    def _admit(self) -> None:
        started: list[Request] = []
        while self.waiting and len(self.running) + len(started) < self.limit:
            started.append(self.waiting.popleft())
            if self.held:
                self.held.pop(0)
        self._start(started)

    def _start(self, started: list[Request]) -> None:
        if not started:
            return
        self.running.extend(started)
        self.totals.prefills += len(started)
        self.totals.prefill_computed += sum(request.prompt_tokens - request.cached_tokens for request in started)
        self.totals.prefill_cached += sum(request.cached_tokens for request in started)
        self.on_prefill(started)

    def _duration(self) -> float:
        """Seconds of the current step, held slots included."""
        batch = len(self.running) + len(self.held)
        seconds, paces = 0.0, self._drafting().paces
        speeds = {name: pace.throughput(batch) for name, pace in paces.items()}
        for request in self.running:
            pace = paces[request.dataset]
            credit = min(pace.acceptance, request.length - request.credit) if request.credit or request.behind else 1.0
            seconds += credit / speeds[request.dataset]
        for slot in self.held:
            seconds += (paces[slot.dataset].acceptance if slot.steps else 1.0) / speeds[slot.dataset]
        return seconds / self.factor

    def _step(self, end: float) -> None:
        """One step ends: tokens go out, finished requests leave their slots, the next ones come in."""
        self.totals.busy_seconds += end - self._began
        self._began = end
        decoding, drafted = any(request.credit for request in self.running), self._drafting()
        batch, accepted = len(self.running) + len(self.held), list[int]()
        for slot in self.held:
            slot.steps += 1
        self.held = [slot for slot in self.held if end - slot.since <= HOLD]
        running, self.running = self.running, []
        for request in running:
            before, calls, correct = request.produced, request.verify_calls, request.accepted
            for _ in range(request.behind + 1):
                self._advance_request(request, drafted)
            if calls := request.verify_calls - calls:
                accepted.append(request.accepted - correct - calls)
            request.behind = 0
            tokens = request.produced - before
            finished = request.produced >= request.length
            self.interval.tokens += tokens
            if finished:
                self.held.append(Slot(since=end, dataset=request.dataset))
            else:
                self.running.append(request)
            if tokens:
                request.deliver(tokens, request.finish if finished else None)
        self._admit()
        if decoding:
            if self.learn:
                self.learn(batch, accepted)
            self.totals.decode_steps += 1
            self._steps += 1
            if self._steps % self.log_interval == 0:
                self._make_report(end, len(running), drafted)

    def _drafting(self) -> Drafting:
        if self.drafting:
            drafted = self.drafting(len(self.running) + len(self.held))
        else:
            drafted = Drafting(paces=self.paces, proposed=self.width - 1, counted=self.speculative)
        if self.accepting == 1:
            return drafted
        return replace(drafted, paces={name: pace.accepting(self.accepting) for name, pace in drafted.paces.items()})

    def _advance_request(self, request: Request, drafted: Drafting) -> None:
        """One forward pass of one request: its prefill, or a decode or verify step."""
        if request.produced >= request.length:
            return
        if not request.credit:
            request.credit = 1.0
            request.produced = 1
            return
        before = math.floor(request.credit + ROUNDING)
        request.credit += drafted.paces[request.dataset].acceptance
        whole = math.floor(request.credit + ROUNDING)
        request.produced = min(whole, request.length)
        self.totals.decoded += whole - before
        if drafted.counted:
            request.verify_calls += 1
            request.proposed += drafted.proposed
            self.interval.proposed += drafted.proposed
            request.accepted += whole - before
            self.interval.verify_calls += 1
            self.interval.accepted += whole - before

    def _make_report(self, now: float, running: int, drafted: Drafting) -> None:
        interval, self.interval = self.interval, Interval()
        elapsed = now - self._reported
        self._reported = now
        self.folded_accepted += interval.accepted
        self.folded_verify_calls += interval.verify_calls
        self.report = Report(
            running=running,
            queued=len(self.waiting),
            verify_calls=interval.verify_calls,
            accept_length=interval.accepted / interval.verify_calls if interval.verify_calls else 0.0,
            accept_rate=(interval.accepted - interval.verify_calls) / interval.proposed if interval.proposed else 0.0,
            width=drafted.proposed + 1,
            throughput=interval.tokens / elapsed if elapsed > 0 else 0.0,
            used_tokens=sum(request.prompt_tokens + request.produced for request in self.running),
        )
        self.on_report(self.report)
