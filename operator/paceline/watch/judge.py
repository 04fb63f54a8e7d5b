"""Judge a pool by its windows: one function per kind; the first with a message wins.

A pool is judged bad if both halves of its window are bad, each with enough traffic, and good again only if it is
clearly better: near a threshold the previous judgement stays.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from paceline.core import GuardSource
from paceline.engines.monitor import Monitor
from paceline.watch.expected import Expectation, at_load
from paceline.watch.model import JudgementKind, Watched, WindowNumbers
from paceline.watch.windows import Increase, ServerWindow, halves, window_increase

LEAST_REQUESTS = 20
"""Requests finished in each half of a window before it is judged, and in the whole window for a judgement to be kept.
The acceptance length of requests of one data set varies by about 0.5, so the mean of 20 varies by 0.11. A drop by a
quarter of the 1.5 accepted drafts of a length of 2.5 is three times as large, and both halves must show it."""
LEAST_STEPS = 200
"""Verify steps in each half: ten per request. Very short answers have fewer and are weaker evidence."""
LONGEST_SILENCE = 300.0
"""Seconds; caps half of a longer window. Watchdogs of SGLang (--watchdog-timeout) and vLLM
(VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS) end a server whose step takes this long, so a longer silence is not slowness."""
SCRAPED_SILENCE = 120.0
"""Minimum seconds if Prometheus reads the servers: it does so once or twice a minute, so that values of a healthy
server may stand still for this long."""
BACK_WITHIN = 0.5
"""A drop is over if less than this share of the allowed drop is missing."""
BACK_BELOW = 0.9
"""Load counts as beyond the crossover until it falls below this share of the crossover."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The input of a judgement. `silent_seconds`: how long no server could be read; `error`: why one of the ready
    servers cannot be read now; `servers`: those read recently, by pod."""

    watched: Watched
    monitor: Monitor
    servers: Mapping[str, ServerWindow]
    silent_seconds: float
    error: str
    before: JudgementKind | None

    @property
    def window(self) -> float:
        return self.watched.window.total_seconds()

    @cached_property
    def full(self) -> tuple[ServerWindow, ...]:
        """Servers whose readings fill the window; a young process has too few."""
        return tuple(each for each in self.servers.values() if each.seconds >= self.window)

    @cached_property
    def whole(self) -> Increase:
        return window_increase(server.readings for server in self.full)

    @cached_property
    def halves(self) -> tuple[Increase, Increase]:
        return halves(self.full)

    @cached_property
    def expected(self) -> Expectation:
        return at_load(self.watched.expected, self.whole.under_way)

    @property
    def numbers(self) -> WindowNumbers:
        expected = self.expected
        least = expected.accept_length and least_accept_length(expected.accept_length, self.watched.acceptance_drop)
        return WindowNumbers(
            accept_length=self.whole.accept_length,
            expected_accept_length=expected.accept_length,
            least_accept_length=least,
            running_requests=self.whole.under_way if self.full else None,
            speculates_up_to=self.watched.speculates_up_to,
            ttft_seconds=self.whole.ttft,
            expected_ttft_seconds=expected.ttft_seconds,
            itl_seconds=self.whole.itl,
            expected_itl_seconds=expected.itl_seconds,
        )


def least_accept_length(expected: float, drop: float) -> float:
    """The acceptance length below which more than the share `drop` of the expected accepted drafts is missing.

    Shares are of length - 1: at length 1 nothing is accepted. For a chain this equals the share of its acceptance rate,
    since the rate is (length - 1) / drafts: "below 60 %" of a chain that was measured at 80 % is a drop of 0.25. A tree
    proposes more drafts than can be accepted, so its rate is meaningless; the share is not.
    """
    return 1 + (1 - drop) * max(0.0, expected - 1)


def _cannot(facts: Facts) -> str | None:
    return facts.monitor.cannot or None


def _hung(facts: Facts) -> str | None:
    scraped = SCRAPED_SILENCE if facts.watched.source is GuardSource.PROMETHEUS else 0.0
    limit = max(min(facts.window / 2, LONGEST_SILENCE), facts.monitor.prefill_seconds, scraped)
    silent = {pod: each for pod, each in sorted(facts.servers.items()) if each.silent_seconds() >= limit}
    if not silent or 2 * len(silent) < len(facts.servers):
        return None
    pod, longest = max(silent.items(), key=lambda item: item[1].silent_seconds())
    return (
        f"{len(silent)} of {len(facts.servers)} ready servers hang: {pod} has had {longest.last.counts.under_way:g} "
        f"requests under way and no token for {_time(longest.silent_seconds())} (limit {_time(limit)})"
    )


def _unread(facts: Facts) -> str | None:
    if not facts.error or facts.silent_seconds < facts.window / 2:
        return None
    return f"no ready server could be read for {_time(facts.silent_seconds)}: {facts.error}"


def _too_little(facts: Facts) -> str | None:
    """The window has too little traffic. This is not said of a pool that was found bad, because a lack of traffic does
    not make it good."""
    if facts.before is JudgementKind.ACCEPTANCE_DROPPED and facts.watched.expected:
        return None
    judged = facts.before in (JudgementKind.AS_EXPECTED, JudgementKind.BEYOND_CROSSOVER)
    parts = (facts.whole,) if judged else facts.halves
    enough = all(part.requests >= LEAST_REQUESTS and _steps(facts, part) >= LEAST_STEPS for part in parts)
    if facts.full and enough:
        return None
    each = (
        f"{LEAST_REQUESTS} and {LEAST_STEPS} in each half" if _speculates(facts) else f"{LEAST_REQUESTS} in each half"
    )
    if not facts.full:
        longest = max((server.seconds for server in facts.servers.values()), default=0.0)
        return f"its servers have been watched for {_time(longest)}, but are judged after {_time(facts.window)}"
    steps = f" and {facts.whole.verify_steps:.0f} verify steps" if _speculates(facts) else ""
    return f"{facts.whole.requests:.0f} requests{steps} in {_time(facts.window)} are too few to judge: {each}"


def _dropped(facts: Facts) -> str | None:
    expected, drop = facts.expected.accept_length, facts.watched.acceptance_drop
    if expected is None:
        return None
    stays = facts.before is JudgementKind.ACCEPTANCE_DROPPED
    traffic = facts.whole.requests >= LEAST_REQUESTS and facts.whole.verify_steps >= LEAST_STEPS
    if (traffic or not stays) and _incomparable(facts):
        return None
    if stays:
        length = facts.whole.accept_length
        least = least_accept_length(expected, drop * BACK_WITHIN)
        bad = not traffic or length is None or length < least
    else:
        least = least_accept_length(expected, drop)
        bad = all(half.accept_length is not None and half.accept_length < least for half in facts.halves)
    return f"{_measured(facts)}; at least {least:.2f} is required" if bad else None


def _incomparable(facts: Facts) -> bool:
    """Whether the load was not measured, so that the load itself may explain a short length: if the engine chooses its
    depth, or if more requests are under way than speculation pays for, which is reported instead. A mean below one
    request comes from batches of one and idle times, so measurements at one apply."""
    alone = facts.whole.under_way <= 1 and any(each.concurrency <= 1 for each in facts.watched.expected)
    if not facts.expected.outside or alone:
        return False
    return facts.watched.depth_follows_load or _beyond(facts) is not None


def _beyond(facts: Facts) -> str | None:
    most = facts.watched.speculates_up_to
    if most is None:
        return None
    stays = facts.before is JudgementKind.BEYOND_CROSSOVER
    loads = (facts.whole.under_way / BACK_BELOW,) if stays else tuple(half.under_way for half in facts.halves)
    if not all(load > most for load in loads):
        return None
    arm = facts.watched.arm
    return f"{facts.whole.under_way:.1f} requests are under way per server, but {arm} was faster up to {most:g}"


def _as_expected(facts: Facts) -> str:
    return _measured(facts)


RULES: Mapping[JudgementKind, Callable[[Facts], str | None]] = {
    JudgementKind.HUNG: _hung,
    JudgementKind.UNREADABLE: lambda facts: _cannot(facts) or _unread(facts),
    JudgementKind.IDLE: _too_little,
    JudgementKind.ACCEPTANCE_DROPPED: _dropped,
    JudgementKind.BEYOND_CROSSOVER: _beyond,
    JudgementKind.AS_EXPECTED: _as_expected,
}
"""Rules in order of priority."""


def judge_servers(facts: Facts) -> tuple[JudgementKind, str]:
    """The kind and its message."""
    found = ((kind, rule(facts)) for kind, rule in RULES.items())
    return next((kind, message) for kind, message in found if message is not None)


def _speculates(facts: Facts) -> bool:
    return facts.watched.verify_tokens > 1


def _steps(facts: Facts, part: Increase) -> float:
    """Verify steps; the minimum for a server without speculation, which needs none."""
    return part.verify_steps if _speculates(facts) else LEAST_STEPS


def _measured(facts: Facts) -> str:
    """`acceptance length 1.62, expected 2.50 at 7.9 requests under way (10m, 480 requests)`, as far as known."""
    whole, expected = facts.whole, facts.expected
    length = f"acceptance length {whole.accept_length:.2f}" if whole.accept_length is not None else "no verify step"
    if not _speculates(facts):
        length = "no speculation"
    hoped = f", expected {expected.accept_length:.2f}" if expected.accept_length is not None else ""
    outside = f" ({expected.outside})" if expected.outside else ""
    load = f" at {whole.under_way:.1f} requests under way per server{outside}"
    itl = f"; {whole.itl * 1000:.1f} ms a token" if whole.itl is not None else ""
    if itl and expected.itl_seconds is not None:
        itl += f", expected {expected.itl_seconds * 1000:.1f}"
    return f"{length}{hoped}{load}, over {whole.requests:.0f} requests in {_time(facts.window)}{itl}"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
