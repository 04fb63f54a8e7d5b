"""What `paceline report` shows of a BenchmarkRun: its manifest as words, numbers and places in charts. Pure."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from paceline import core

Manifest = Mapping[str, Any]

MEAN = "mean"
"""The workload that `status.results` calls the weighted mean by."""

# What the template shows. Positions are per cent of the width of a chart.


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A ratio and its interval, against the threshold that it is judged by."""

    label: str
    ratio: str
    interval: str
    dot: float
    left: float
    right: float
    threshold: float
    tone: str
    """good: shown to be above the threshold; bad: shown to be below; open."""
    length: str
    """Acceptance length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    name: str
    tone: str
    verdict: str
    reason: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One arm's rounds in a panel of 160 × 84: `points` as SVG writes them."""

    arm: int
    points: str
    dots: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    workload: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicate:
    """A row of the table of rounds."""

    round: str
    arm: str
    start: str
    cells: tuple[tuple[str, str], ...]
    """Per workload: tokens per second, and why they are not valid."""
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A run as the page shows it."""

    name: str
    pool: str
    tone: str
    badge: str
    speed_up: str
    sentence: str
    emulated: bool
    arms: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    ticks: tuple[tuple[float, str], ...]
    asked: str
    panels: tuple[Panel, ...]
    spread: str
    workloads: tuple[str, ...]
    rounds: tuple[Replicate, ...]
    differences: tuple[tuple[str, tuple[str, ...]], ...]
    provenance: tuple[tuple[str, str], ...]


TONES = {"Promote": "good", "Reject": "bad", "promotable": "good", "rejected": "bad"}


def view(manifest: Manifest) -> View:
    spec, status = manifest["spec"], manifest.get("status") or {}
    arms = tuple(arm["name"] for arm in spec["arms"])
    workloads = tuple(f"{w['name']}@{w['concurrency']}" for w in spec["workloads"])
    rounds = status.get("rounds") or ()
    scale = Scale.around(status.get("results") or (), _gate(spec))
    panels, spread = _panels(arms, workloads, rounds)
    verdict = status.get("verdict") or {}
    outcome = verdict.get("outcome", "")
    mean = _mean(status, verdict.get("winner", ""))
    return View(
        name=manifest["metadata"]["name"],
        pool=spec["pool"],
        tone=TONES.get(outcome, "open"),
        badge=outcome or ("Ended" if status.get("finishedAt") else "Measuring"),
        speed_up=f"{mean[0]:.2f}x" if mean else "",
        sentence=_sentence(status, len(rounds)),
        emulated=bool(status.get("emulated")) or any(r.get("emulated") for r in rounds),
        arms=arms,
        candidates=tuple(_candidates(spec, status, scale)),
        ticks=tuple((scale.at(tick), f"{tick:.2f}".rstrip("0").rstrip(".") + "x") for tick in scale.ticks),
        asked=_asked(_gate(spec)),
        panels=panels,
        spread=spread,
        workloads=workloads,
        rounds=tuple(_table(workloads, rounds)),
        differences=tuple(_differences(spec, rounds)),
        provenance=tuple(_provenance(manifest)),
    )


def _gate(spec: Manifest) -> core.Gate:
    given, default = spec.get("gate") or {}, core.Gate()
    return core.Gate(
        minimum_improvement=float(given.get("minimumImprovement", default.minimum_improvement)),
        regression_tolerance=float(given.get("regressionTolerance", default.regression_tolerance)),
        confidence=float(given.get("confidence", default.confidence)),
        decide_after_rounds=tuple(given.get("decideAfterRounds", default.decide_after_rounds)),
    )


def _asked(gate: core.Gate) -> str:
    looks = ", ".join(str(n) for n in gate.decide_after_rounds)
    return (
        f"Asked for: the mean above {1 + gate.minimum_improvement:.2f}x and every workload above "
        f"{1 - gate.regression_tolerance:.2f}x, with {gate.confidence:.0%} confidence in the whole decision, "
        f"looked at after {looks} rounds."
    )


# The sentence.


def _sentence(status: Manifest, rounds: int) -> str:
    verdict = status.get("verdict") or {}
    used, message, winner = verdict.get("rounds", 0), verdict.get("message", ""), verdict.get("winner", "")
    match verdict.get("outcome"):
        case "Promote":
            mean = _mean(status, winner)
            by = f"{mean[0]:.2f}x as fast as the baseline ({mean[1]:.2f}–{mean[2]:.2f})" if mean else "faster"
            return f"{winner} is {by}, shown in {used} rounds."
        case "Reject":
            return f"The baseline stays: no candidate does what is asked, shown in {_rounds(used)}."
        case "Inconclusive":
            return f"The baseline stays: {_rounds(used)} did not show enough to decide."
        case "Error":
            return f"Nothing is said about the candidates, because the measurement failed: {message}"
        case _:
            ended = [c for c in status.get("conditions") or () if c["type"] == "Failed" and c["status"] == "True"]
            if ended:
                return f"Ended without a verdict: {ended[0]['message'] or ended[0]['reason']}"
            return f"Not decided yet: {_rounds(rounds)} so far."


def _rounds(count: int) -> str:
    return f"{count} round" if count == 1 else f"{count} rounds"


def _mean(status: Manifest, arm: str) -> tuple[float, float, float] | None:
    results = status.get("results") or ()
    found = (_bounds(r) for r in results if (r["arm"], r["workload"]) == (arm, MEAN))
    return next(found, None)


def _number(text: Any) -> float | None:
    """Status has numbers as decimal strings; what is absent or not finite is None."""
    value = math.nan if text is None else float(text)
    return value if math.isfinite(value) else None


def _bounds(result: Manifest) -> tuple[float, float, float] | None:
    ratio, lower, upper = (_number(result.get(key)) for key in ("ratio", "lower", "upper"))
    return None if ratio is None or lower is None or upper is None else (ratio, lower, upper)


# Dots and intervals.


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Of ratios, linear; all charts of a run share it."""

    low: float
    high: float

    @classmethod
    def around(cls, results: Iterable[Manifest], gate: core.Gate) -> "Scale":
        """Everything that is shown, and the thresholds; an interval wider than fourfold is cut."""
        shown = [x for result in results for x in (_bounds(result) or ())]
        inside = [min(max(x, 0.25), 4.0) for x in shown]
        values = [*inside, 1 - gate.regression_tolerance, 1 + gate.minimum_improvement]
        room = 0.06 * (max(values) - min(values))
        return cls(low=min(values) - room, high=max(values) + room)

    def at(self, ratio: float) -> float:
        return round(100 * min(max((ratio - self.low) / (self.high - self.low), 0.0), 1.0), 2)

    @property
    def ticks(self) -> list[float]:
        """At most seven round numbers."""
        step = next(s for s in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 50) if (self.high - self.low) / s <= 6)
        return [n * step for n in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def _candidates(spec: Manifest, status: Manifest, scale: Scale) -> Iterator[Candidate]:
    gate = _gate(spec)
    said = {entry["arm"]: entry for entry in status.get("armVerdicts") or ()}
    for arm in spec["arms"]:
        name = arm["name"]
        if name == core.BASELINE:
            continue
        verdict = said.get(name, {}).get("outcome", "")
        yield Candidate(
            name=name,
            tone=TONES.get(verdict, "open"),
            verdict=verdict or "not judged yet",
            reason=said.get(name, {}).get("reason", ""),
            rows=tuple(_row(r, gate, scale) for r in status.get("results") or () if r["arm"] == name and _bounds(r)),
        )


def _row(result: Manifest, gate: core.Gate, scale: Scale) -> Row:
    bounds = _bounds(result)
    assert bounds is not None
    ratio, lower, upper = bounds
    is_mean = result["workload"] == MEAN
    threshold = 1 + gate.minimum_improvement if is_mean else 1 - gate.regression_tolerance
    length = _number(result.get("acceptLength"))
    return Row(
        label="all, by weight" if is_mean else result["workload"],
        ratio=f"{ratio:.3f}x",
        interval=f"{lower:.3f}–{upper:.3f}",
        dot=scale.at(ratio),
        left=scale.at(lower),
        right=scale.at(upper),
        threshold=scale.at(threshold),
        tone="good" if lower > threshold else "bad" if upper < threshold else "open",
        length=f"{length:.2f}" if length is not None else "",
    )


# Rounds: drift shows as a slope that all arms share, noise as scatter.

WIDTH, HEIGHT, EDGE = 160, 84, 10
LEAST_SPREAD = 0.01


def _panels(arms: Sequence[str], workloads: Sequence[str], rounds: Sequence[Manifest]) -> tuple[tuple[Panel, ...], str]:
    """A panel a workload: every arm's throughput over its own mean, all on one scale; and what half that scale is."""
    series = {(arm, workload): _series(arm, workload, rounds) for workload in workloads for arm in arms}
    numbers = [n for found in series.values() for n, _ in found]
    if not numbers:
        return (), ""
    last = max(*numbers, 1)
    spread = max(LEAST_SPREAD, *(abs(x) for found in series.values() for _, x in found))

    def place(n: int, x: float) -> tuple[float, float]:
        across = EDGE + (WIDTH - 2 * EDGE) * n / last
        return round(across, 1), round(HEIGHT / 2 - (HEIGHT / 2 - EDGE) * x / spread, 1)

    panels = []
    for workload in workloads:
        dots = {i: tuple(place(n, x) for n, x in series[arm, workload]) for i, arm in enumerate(arms)}
        lines = (Line(arm=i, points=" ".join(f"{x},{y}" for x, y in at), dots=at) for i, at in dots.items() if at)
        panels.append(Panel(workload=workload, lines=tuple(lines)))
    return tuple(panels), f"±{spread:.1%}"


def _series(arm: str, workload: str, rounds: Sequence[Manifest]) -> list[tuple[int, float]]:
    """Round → ln of the throughput over the mean of all valid rounds."""
    logs = {
        entry["round"]: math.log(value)
        for entry in rounds
        for point in entry.get("points") or ()
        if (point["arm"], point["workload"]) == (arm, workload) and point.get("valid")
        if (value := _number(point.get("outputThroughput"))) and value > 0
    }
    mean = math.fsum(logs.values()) / len(logs) if logs else 0.0
    return [(n, log - mean) for n, log in logs.items()]


def _table(workloads: Sequence[str], rounds: Sequence[Manifest]) -> Iterator[Replicate]:
    for entry in rounds:
        again = f", try {entry['try'] + 1}" if entry.get("try") else ""
        number = f"{entry['round'] + 1}{again}"
        if entry.get("error"):
            yield Replicate(round=number, arm="", start="", cells=(), error=entry["error"])
            continue
        points = {(point["arm"], point["workload"]): point for point in entry.get("points") or ()}
        for replicate in entry.get("replicates") or ():
            start = _number(replicate.get("startSeconds"))
            yield Replicate(
                round=number,
                arm=replicate["arm"],
                start=f"{start:.0f} s" if start is not None else "",
                cells=tuple(_cell(points.get((replicate["arm"], workload), {})) for workload in workloads),
                error=replicate.get("error", ""),
            )


def _cell(point: Manifest) -> tuple[str, str]:
    value = _number(point.get("outputThroughput"))
    return f"{value:,.1f}" if value is not None else "–", "" if point.get("valid") else point.get("why", "not measured")


# What differs, and where it comes from.


def _differences(spec: Manifest, rounds: Sequence[Manifest]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What was asked of the arms, then those of the servers' own arguments that are not the same on all arms."""
    columns = [_asked_of(arm) for arm in spec["arms"]]
    resolved = {r["arm"]: r.get("resolved") or {} for entry in rounds for r in entry.get("replicates") or ()}
    said = [resolved.get(arm["name"], {}) for arm in spec["arms"]]
    for key in dict.fromkeys(key for column in columns for key in column):
        yield key, tuple(column.get(key, "–") for column in columns)
    for key in dict.fromkeys(key for column in said for key in column):
        values = tuple(column.get(key, "–") for column in said)
        if len(set(values)) > 1:
            yield f"server says {key}", values


def _asked_of(arm: Manifest) -> dict[str, str]:
    draft, tree = arm.get("draft") or {}, arm.get("tree") or {}
    commit = f"@{draft['commit'][:12]}" if draft.get("commit") else ""
    told = {
        "algorithm": draft.get("algorithm", ""),
        "draft": f"{draft.get('source', '')}{commit}",
        **{key: str(tree[key]) for key in ("numSteps", "topK", "numDraftTokens") if key in tree},
        "arguments": " ".join(arm.get("args") or ()),
    }
    return {key: value for key, value in told.items() if value}


def _provenance(manifest: Manifest) -> Iterator[tuple[str, str]]:
    spec, status = manifest["spec"], manifest.get("status") or {}
    target, engine, accelerator = spec["target"], spec["engine"], spec["accelerator"]
    cost, noise = status.get("cost") or {}, _number(status.get("noise"))
    yield "Run", "/".join(filter(None, [manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"]]))
    yield "Fingerprint", status.get("fingerprint", "")
    yield "Target", "@".join(filter(None, [target["source"], target.get("commit", "")[:12]]))
    yield "Engine", f"{engine['name']} {status.get('engineVersion') or engine.get('version', '')}"
    yield "Image", engine.get("image", "")
    for container, digest in (status.get("imageDigests") or {}).items():
        yield f"Image that ran ({container})", digest
    yield "Shared arguments", " ".join(engine.get("args") or ())
    yield "Accelerators", f"{accelerator['count']} × {accelerator['product']}"
    yield "Node", status.get("node", "")
    yield "GPUs", ", ".join(status.get("gpus") or ())
    yield "Driver", status.get("driver", "")
    yield "Measured", _when(status)
    yield "Noise of a point", f"{noise:.2%} between rounds" if noise is not None else ""
    if "gpuSeconds" in cost:
        yield "Cost", f"{cost['gpuSeconds'] / 3600:.2f} GPU-hours, {cost.get('serverStarts', 0)} server starts"


def _when(status: Manifest) -> str:
    times = [
        datetime.fromisoformat(text)
        for entry in status.get("rounds") or ()
        for text in (entry.get("startedAt"), entry.get("finishedAt"))
        if text
    ]
    if not times:
        return ""
    return f"{min(times):%Y-%m-%d %H:%M} to {max(times):%Y-%m-%d %H:%M} {min(times).tzname() or ''}".rstrip()
