"""What a pool's windows show: one function a kind, the first that has something to say wins.

A pool is judged bad on both halves of its window, each with enough traffic, and good again only when it is clearly
better than that: what is near a threshold stays what it was.
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
"""Finished in each half of a window before it is judged, and in the whole window while it stays judged. The acceptance
length of requests of one data set varies by about 0.5, so the mean of 20 by 0.11: a quarter of the 1.5 accepted drafts
of a length of 2.5 is three times as much, and both halves must show it."""
LEAST_STEPS = 200
"""Verify steps in each half: ten of each of the requests. Very short answers have fewer, and say less."""
LONGEST_SILENCE = 300.0
"""Seconds: where half a window is longer than that. A step that takes as long ends a server of SGLang
(--watchdog-timeout) and of vLLM (VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS) by itself; what is silent longer is not slow."""
SCRAPED_SILENCE = 120.0
"""Seconds at least where Prometheus reads the servers: its values are as old as its last reading, mostly one or two a
minute, so that those of a healthy server stand still for as long."""
BACK_WITHIN = 0.5
"""A drop is over when less than this share of the allowed one is missing."""
BACK_BELOW = 0.9
"""Load counts as beyond the crossover until it is below this share of it."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything that a judgement is made of. `silent_seconds` is how long no server could be read, and `error` why
    one of the ready servers cannot be read now. `servers` are those that were read lately, by pod."""

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
        """The servers whose readings fill the window; a young process has not been watched for long enough."""
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

    Shares are of length - 1: a length of 1 accepts nothing, whatever was expected. For a chain that is the share of its
    acceptance rate, since the rate is (length - 1) / drafts: "below 60 %" of a chain that was measured at 80 % is a
    drop of 0.25. A tree proposes more drafts than can be accepted, so its rate says nothing; the share says the same.
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
        f"{len(silent)} of {len(facts.servers)} ready servers hang: {pod} has had"
        f" {longest.last.counts.under_way:g} requests under way and not a token for {_time(longest.silent_seconds())},"
        f" at most {_time(limit)} is waited for"
    )


def _unread(facts: Facts) -> str | None:
    if not facts.error or facts.silent_seconds < facts.window / 2:
        return None
    return f"no ready server could be read for {_time(facts.silent_seconds)}: {facts.error}"


def _too_little(facts: Facts) -> str | None:
    """Not of a pool that was found bad: no traffic does not make it better."""
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
        return f"its servers have been watched for {_time(longest)}, and are judged after {_time(facts.window)}"
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
    return f"{_measured(facts)}; at least {least:.2f} is asked for" if bad else None


def _incomparable(facts: Facts) -> bool:
    """Whether the load is one that was not measured, so that a short length may be the load's: where the engine chooses
    its depth, or where more requests are under way than speculation pays for, which is told instead. A mean below one
    request is of batches of one and of times without any, so what was measured at one holds for it."""
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
    return f"{facts.whole.under_way:.1f} requests are under way per server, and {arm} was faster up to {most:g}"


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
"""In this order."""


def judge_servers(facts: Facts) -> tuple[JudgementKind, str]:
    """The kind, and its sentence."""
    found = ((kind, rule(facts)) for kind, rule in RULES.items())
    return next((kind, message) for kind, message in found if message is not None)


def _speculates(facts: Facts) -> bool:
    return facts.watched.verify_tokens > 1


def _steps(facts: Facts, part: Increase) -> float:
    """Verify steps, which a server without speculation does not need."""
    return part.verify_steps if _speculates(facts) else LEAST_STEPS


def _measured(facts: Facts) -> str:
    """`acceptance length 1.62, expected 2.50 at 7.9 requests under way (10m, 480 requests)`, as far as it is known."""
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
