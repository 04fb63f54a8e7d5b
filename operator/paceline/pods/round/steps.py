"""The protocol of a round without I/O: the steps for one arm's server, in order, and the replicate that results.

`replicate` is a generator: it yields a step and is sent the step's answer. The caller does the I/O. If the server
fails, the caller throws `ServerFailed` into the generator; it becomes the replicate's error, and later arms still run.
"""

from collections import defaultdict
from collections.abc import Generator, Mapping
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Any

from paceline.core import Workload
from paceline.core.text import error_text
from paceline.engines import ENGINES, Histogram, Probe, ProbeError, Scrape, json_object
from paceline.engines.starts import start_parts
from paceline.evidence import ArmCommand, Failure, Replicate, RoundPlan
from paceline.evidence.arguments import arguments_digest, comparable, pick, publishable
from paceline.evidence.clocks import Reading, clocks_around
from paceline.evidence.energy import energy_between
from paceline.evidence.result import MOST_WINDOWS, WARM, Parts, Point
from paceline.pods.round.contamination import contamination, without_aborted
from paceline.pods.round.parity import Answer, Incomparable, read_answer
from paceline.pods.round.per_request import request_rows, request_speeds
from paceline.pods.round.positions import by_position
from paceline.pods.round.report import point

MODELS_PAGE = "/v1/models"

UNREADABLE_PAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""Exceptions caused by nonsense in a well-formed answer: a list where a number belongs, or endless nesting."""


class ServerFailed(Exception):  # noqa: N818
    """The arm's server failed; the message says how. `failure` is its kind, if that is known here; otherwise the exit
    code or the server's log shows it."""

    def __init__(self, message: str, failure: Failure | None = None) -> None:
        super().__init__(message)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class ServerEnd:
    """How a server ended: `exit_code` is None if it ran until it was stopped. `seconds`: how long it took to stop."""

    exit_code: int | None
    last_words: str
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """Start the server. Answer: seconds until it was ready."""

    arm: ArmCommand


@dataclass(frozen=True, slots=True)
class Get:
    """Request a path of the server. Answer: the body, as text."""

    path: str


@dataclass(frozen=True, slots=True)
class Log:
    """Read the server's log since its start. Answer: text."""


@dataclass(frozen=True, slots=True)
class StartLog:
    """Read what the server has logged until it was ready. Answer: text; "" if it is longer than `starts.LONGEST`."""


@dataclass(frozen=True, slots=True)
class Flush:
    """Empty the server's cache and reset its counters, by a POST to this path. Answer: None."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A finished load: the client's `report`; `shared_prompts`, the shared share of its prompts; and, for an arm whose
    engine chooses its depth, the mean draft tokens per verify call during the load."""

    report: Mapping[str, Any]
    shared_prompts: float = 0.0
    draft_tokens: float | None = None


@dataclass(frozen=True, slots=True)
class SendLoad:
    """Send a workload's requests, or those of a window of its warm-up, counted from 1. Answer: `Loaded`."""

    arm: ArmCommand
    workload: Workload
    window: int = 0


@dataclass(frozen=True, slots=True)
class ReadClocks:
    """Read the GPUs' clocks, power and temperature from the driver while no load runs. Answer: a `Reading` per GPU;
    empty without a driver."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Send a parity prompt, by its number, and wait for the whole response. Answer: its JSON, or a str that says why
    there is none."""

    arm: ArmCommand
    prompt: int


@dataclass(frozen=True, slots=True)
class SampleAgain:
    """Send some of a workload's prompts again, all at once, with fields that add acceptance by position to the answers
    (`positions`). Answer: each one's JSON, or a str that says why there is none."""

    arm: ArmCommand
    workload: Workload


@dataclass(frozen=True, slots=True)
class SaveLine:
    """Append a line to the results on the cache volume, if possible. Answer: None."""

    line: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Stop:
    """End the server, if it still runs. Answer: `ServerEnd`."""


Instruction = Start | StartLog | Get | Log | Flush | SendLoad | ReadClocks | Ask | SampleAgain | SaveLine | Stop


@dataclass(frozen=True, slots=True)
class ArmResult:
    """A replicate; its answers to the parity prompts, or why there are none; and the arguments to compare with the
    baseline's (empty if the server did not report any)."""

    replicate: Replicate
    answers: tuple[Answer, ...] | str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    speeds: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Workload → the speed of each request (`requests.speeds`)."""


def replicate(plan: RoundPlan, arm: ArmCommand) -> Generator[Instruction, Any, ArmResult]:
    """Measure one fresh server process of `arm` on every workload."""
    probe, starts = ENGINES[arm.engine].probe(arm.engine_version), ENGINES[arm.engine].starts
    noted: dict[str, Any] = {}
    took: dict[str, float] = defaultdict(float)
    """Part of the server's time → seconds."""
    points: list[Point] = []
    answers: tuple[Answer, ...] | str = f"{arm.name} was not asked"
    arguments: Mapping[str, str] = {}
    fast: dict[str, tuple[float, ...]] = {}
    try:
        idle: tuple[Reading, ...] = yield ReadClocks()
        noted["start_seconds"] = yield Start(arm)
        if starts:
            took.update(start_parts(starts, (yield StartLog()), noted["start_seconds"]))
        _check_models(plan, (yield Get(MODELS_PAGE)))
        first = yield from _look(probe)
        resolved = probe.resolved(first)
        noted["version"] = str(resolved.get("version", ""))
        arguments = comparable(resolved, plan.moved or ())
        noted |= {"resolved": pick(resolved, plan.watched(arm)), "rest_sha256": arguments_digest(arguments)}
        noted["kv_tokens"] = probe.kv_tokens(first)
        told = {"resolved": publishable(resolved), "kv_tokens": noted["kv_tokens"]}
        yield SaveLine({"arm": arm.name, "start_seconds": noted["start_seconds"], **told})
        if other := arm.other_than_expected(noted["resolved"]):
            raise ServerFailed(other)
        for workload in plan.workloads_of(arm):
            warmed_up = yield from _warm_up(arm, workload, probe, plan.timeout_of(workload))
            took["warm_up"] += warmed_up.seconds
            before = yield from _look(probe)
            cold: tuple[Reading, ...] = yield ReadClocks()
            loaded: Loaded = yield SendLoad(arm, workload)
            report = loaded.report
            took["loads"] += report["duration"]
            warm: tuple[Reading, ...] = yield ReadClocks()
            after = yield from _look(probe)
            noted["clocks"] = clocks_around(noted.get("clocks"), workload.name, cold, warm, report["duration"])
            speculated, work = probe.speculation(before, after), probe.work(before, after)
            if speculated.draft_tokens is None:
                speculated = replace(speculated, draft_tokens=loaded.draft_tokens)
            counted = {"speculation": asdict(speculated), "work": asdict(work), "shared_prompts": loaded.shared_prompts}
            read_twice = {"gpus": [[asdict(one) for one in moment] for moment in (cold, warm)]} if cold or warm else {}
            yield SaveLine({"arm": arm.name, "workload": workload.name, "report": report, **counted, **read_twice})
            measured = without_aborted(point(workload, report, speculated), report, work)
            measured = replace(
                measured,
                warm_up_windows=warmed_up.windows,
                warm_up_gain=warmed_up.gain,
                cache_hit_rate=work.cache_hit_rate,
            )
            if idle or cold or warm:
                used = energy_between(idle, cold, warm, plan.own_gpus)
                noted["no_energy"] = noted.get("no_energy") or used.unknown
                if used.joules and measured.output_tokens:
                    measured = replace(measured, energy_per_token=used.joules / measured.output_tokens)
            # The bare request shows the template's length. If that request failed, the shortest prompt bounds it.
            template = warmed_up.template or min(report["input_lens"])
            if why := contamination(measured, loaded.shared_prompts, template, work):
                points.clear()  # if the server ends now, its exit replaces this error, and the points would look valid
                raise ServerFailed(why)
            points.append(measured)
            fast[workload.name] = request_speeds(report)
            asks_again = arm.speculates and workload.dataset.turns == 1  # a later turn has another acceptance
            if asks_again and probe.histogram and not measured.accepted_at:
                points[-1] = replace(measured, accepted_at=(yield from _positions(arm, workload, probe.histogram)))
        if plan.parity:
            answers = yield from _answers(arm, probe, plan.parity.samples)
    except ServerFailed as failed:
        noted |= {"error": str(failed), "failure": failed.failure}
    except ProbeError as failed:
        noted["error"] = str(failed)
    except UNREADABLE_PAGE as error:
        noted["error"] = f"the server's response cannot be read: {error_text(error)}"
    ended: ServerEnd = yield Stop()
    if ended.seconds is not None:
        took["end"] = ended.seconds
    if ended.exit_code is not None:
        noted |= {"exit_code": ended.exit_code, "error": ended.last_words or noted.get("error", "")}
    replicated = Replicate(arm=arm.name, points=tuple(points), seconds=Parts(**took), **noted)
    return ArmResult(replicated, answers, arguments, fast)


@dataclass(frozen=True, slots=True)
class _WarmedUp:
    """`windows` sent, in so many `seconds`; `gain`: how much faster a request was in the last one than in the one
    before, as a fraction, if known; `template`: tokens of the bare request, 0 if it failed."""

    windows: int
    gain: float | None
    template: int
    seconds: float


def _warm_up(
    arm: ArmCommand, workload: Workload, probe: Probe, most_seconds: float
) -> Generator[Instruction, Any, _WarmedUp]:
    """Send windows until requests become no faster, or another one would last beyond the limit. All windows have the
    same prompts, so their difference is the server's; each begins with an empty cache."""
    medians: list[float | None] = []
    gain, spent = None, 0.0
    for window in range(1, MOST_WINDOWS + 1):
        report = (yield SendLoad(arm, workload, window)).report
        if probe.flush_path:
            yield Flush(probe.flush_path)
        took = [row.seconds for row in request_rows(report) if not row.error]
        medians.append(median(took) if took else None)
        spent += report["duration"]
        if window > 1:
            before, now = medians[-2:]
            gain = max(0.0, before / now - 1) if before and now else None
        warm = window > 1 and (gain is None or gain <= WARM)
        if warm or spent * (window + 1) / window > most_seconds:
            break
    yield SaveLine({"arm": arm.name, "workload": workload.name, "warm_up_medians": medians})
    return _WarmedUp(len(medians), gain, report["input_lens"][-1], spent)


def _positions(arm: ArmCommand, workload: Workload, asked: Histogram) -> Generator[Instruction, Any, tuple[float, ...]]:
    """Acceptance by position from the answers; empty if none reports it, which does not affect the point."""
    answers: list[Mapping[str, Any] | str] = yield SampleAgain(arm, workload)
    histograms = [answer if isinstance(answer, str) else asked.read(answer) for answer in answers]
    yield SaveLine({"arm": arm.name, "workload": workload.name, "accepted_drafts": histograms})
    return by_position([one for one in histograms if not isinstance(one, str)])


def _answers(arm: ArmCommand, probe: Probe, samples: int) -> Generator[Instruction, Any, tuple[Answer, ...] | str]:
    """Ask one prompt at a time: concurrent requests change each other's numerics."""
    if probe.flush_path:
        yield Flush(probe.flush_path)
    answers = []
    for prompt in range(samples):
        found: Mapping[str, Any] | str = yield Ask(arm, prompt)
        yield SaveLine({"arm": arm.name, "prompt": prompt, "answer": found})
        try:
            if isinstance(found, str):
                raise Incomparable(found)
            answers.append(read_answer(found))
        except Incomparable as why:
            return f"{arm.name} on prompt {prompt}: {why}"
    return tuple(answers)


def _look(probe: Probe) -> Generator[Instruction, Any, Scrape]:
    pages: dict[str, str] = {}
    for path in probe.pages:
        pages[path] = yield Get(path)
    log = (yield Log()) if probe.reads_log else ""
    return Scrape(pages=pages, log=log)


def _check_models(plan: RoundPlan, page: str) -> None:
    names = [str(model.get("id")) for model in json_object(page).get("data", [])]
    if plan.served_name not in names:
        raise ServerFailed(f"the server serves {', '.join(names) or 'nothing'}, not {plan.served_name}")
    for workload in plan.workloads:
        if (adapter := workload.dataset.adapter) and adapter not in names:
            raise ServerFailed(f"the server serves {', '.join(names)}, not the adapter {adapter}")
