"""`paceline gate FILE`: the operator's rule on measurements of your own (docs/design.md#the-command-line)."""

import argparse
import gc
import json
import math
import os
import sys
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    StrictBool,
    StrictInt,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel, to_snake
from pydantic_core import PydanticCustomError

from paceline import core, gate
from paceline.cli import options
from paceline.evidence.failures import BLAMES_THE_SERVER, Failure
from paceline.gate.limits import BOUNDED_BY

EXIT = {core.Outcome.PROMOTE: 0, core.Outcome.REJECT: 10, core.Outcome.INCONCLUSIVE: 11, core.Outcome.ERROR: 12}

NOTES = """\
FILE is {"gate": {...as spec.gate}, "decideAfterRounds": [4, 6, 8], "arms": ["baseline", ...],
"workloads": [{"name": ..., "weight": 1, "rate": null}], "measurements": [{"round": 0, "arm": ..., "workload": ...,
"outputThroughput": ..., "valid": true, "metrics": {...}, "nothingAccepted": false, "ended": "", "saturated": false}]}.
Defaults of decideAfterRounds: [4, 6, 8] for two arms, [3, 6, 9] for three, [4, 8] for more. metrics: values above 0 of
the metrics that limits name, and outputTokens to compare the length of answers. For a workload with a rate,
outputThroughput is the speed of a request, and such workloads have their own mean. ended: why the arm's server failed
in the round (ServerCrashed). saturated: the arm did not keep the rate.
Exit: 0 Promote, 10 Reject, 11 Inconclusive, 12 Error, 1 if FILE cannot be judged.
A FILE named *.jsonl holds one case per line and gives one result per line; its exit code is 0.

Of a NAME, the verdict is on the spec as it is now. With several pools the highest code counts. Two more codes:
13 no verdict yet, or none in the time of --wait; 14 none before a person acts (the deployment is Stalled).
"""


DEFAULT = core.Gate()


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("Input should be a number, or one in a string")
    return value


LIGHTEST, HEAVIEST = 1e-6, 1e6


def _weight(value: float) -> float:
    """Weights outside these bounds are refused: the weighted mean would not be finite."""
    if value == 0 or LIGHTEST <= value <= HEAVIEST:
        return value
    raise PydanticCustomError("weight", "a weight is 0 or from 0.000001 to 1000000, as only their proportions count")


SLOWEST, FASTEST = 1e-6, 1e9
"""Tokens per second: far beyond what a server gives, and a quotient of two is still a number that one can read."""
LEAST, MOST = 1e-9, 1e12
"""Of a metric: seconds or tokens."""


def _throughput(value: float) -> float:
    """NaN and infinities pass: the gate counts them as invalid."""
    if not 0 < value < math.inf or SLOWEST <= value <= FASTEST:
        return value
    raise PydanticCustomError("throughput", "tokens per second are from 0.000001 to 1000000000")


Finite = Annotated[FiniteFloat, BeforeValidator(_number)]
"""JSON numbers and decimal strings; booleans are refused."""
Measured = Annotated[float, BeforeValidator(_number)]
"""NaN and infinities pass; the reader of the field decides about them."""


class Part(BaseModel):
    """Unknown fields are refused: a misspelt `valid` must not count as valid."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)


def _limited(metric: str) -> str:
    if metric not in BOUNDED_BY:
        raise PydanticCustomError(
            "metric", "no metric that can be limited; there are {all}", {"all": ", ".join(BOUNDED_BY)}
        )
    return metric


class Limit(Part):
    """One of the three bounds: a latency may rise by a fraction, kvTokens fall by one, a count be at most so large."""

    metric: Annotated[str, AfterValidator(_limited)]
    maximum_increase: Annotated[Finite, Field(ge=0, lt=10)] | None = None
    maximum_decrease: Annotated[Finite, Field(ge=0, lt=1)] | None = None
    maximum: Annotated[StrictInt, Field(ge=0, le=100_000)] | None = None

    @model_validator(mode="after")
    def _one_bound(self) -> "Limit":
        given = (self.maximum_increase, self.maximum_decrease, self.maximum)
        if sum(bound is not None for bound in given) != 1:
            raise PydanticCustomError("bound", "one of maximumIncrease, maximumDecrease and maximum bounds a metric")
        if getattr(self, to_snake(right := BOUNDED_BY[self.metric])) is None:
            raise PydanticCustomError(
                "bound", "{metric} is bounded by {right}", {"metric": self.metric, "right": right}
            )
        return self


def _once(limits: tuple[Limit, ...]) -> tuple[Limit, ...]:
    """Else the laxer of two would do nothing, or be all there is."""
    metrics = [limit.metric for limit in limits]
    if twice := next((metric for i, metric in enumerate(metrics) if metric in metrics[:i]), None):
        raise PydanticCustomError("twice", "{metric} is limited twice; keep one", {"metric": twice})
    return limits


class Thresholds(Part):
    """As spec.gate, with its bounds: decimal strings, or numbers."""

    minimum_improvement: Annotated[Finite, Field(ge=0, lt=10)] = DEFAULT.minimum_improvement
    regression_tolerance: Annotated[Finite, Field(ge=0, lt=1)] = DEFAULT.regression_tolerance
    confidence: Annotated[Finite, Field(ge=0.5, lt=1)] = DEFAULT.confidence
    variance_floor: Annotated[Finite, Field(ge=0, lt=1)] = DEFAULT.variance_floor
    limits: Annotated[tuple[Limit, ...], AfterValidator(_once)] = ()


class Workload(Part):
    name: str
    weight: Annotated[Finite, AfterValidator(_weight)] = 1.0
    rate: Annotated[Finite, Field(gt=0)] | None = None
    """Requests a second; None: a closed loop."""


class Measurement(Part):
    round: StrictInt
    arm: str
    workload: str
    output_throughput: Annotated[Measured, AfterValidator(_throughput)] | None = None
    valid: StrictBool = True
    nothing_accepted: StrictBool = False
    ended: str = ""
    saturated: StrictBool = False
    metrics: dict[str, Measured | None] = Field(default_factory=dict)
    """By a factory: of a default in place pydantic makes a deep copy for each measurement, half of their parsing."""


class Case(BaseModel):
    """One question. A title or a note beside it does no harm."""

    model_config = ConfigDict(alias_generator=to_camel)

    gate: Thresholds
    decide_after_rounds: tuple[StrictInt, ...] | None = None
    arms: tuple[str, ...]
    workloads: tuple[Workload, ...]
    measurements: tuple[Measurement, ...]


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "gate",
        help="judge measurements by the operator's own rule",
        description="Judge measurements by the rule that the operator uses for promotion.",
        epilog=NOTES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE|NAME",
        help="a case as JSON, or cases as JSON lines (*.jsonl); otherwise the name of a SpeculativeDeployment in the "
        "cluster, which may be left out where there is only one",
    )
    parser.add_argument("--pool", help="of a NAME: only this pool")
    parser.add_argument(
        "--wait",
        type=options.seconds,
        default=0,
        metavar="DURATION",
        help="of a NAME: wait so long for verdicts, such as 2h [not at all]",
    )
    options.add_json(parser)
    options.add_kubectls(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the verdict; the exit code tells it too."""
    if not is_file(args.file):
        from paceline.cli import gate_live

        return gate_live.run(args)
    if args.pool or args.wait:
        print(f"{args.file}: --pool and --wait are for the NAME of a SpeculativeDeployment", file=sys.stderr)
        return 1
    gc.disable()  # A hundred thousand measurements are read in a third of the time, and hold no cycles.
    try:
        return _run(Path(args.file))
    except BrokenPipeError:  # Whoever reads has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    finally:
        gc.enable()


def is_file(name: str | None) -> bool:
    return name is not None and (Path(name).suffix in (".json", ".jsonl") or "/" in name or Path(name).is_file())


def _run(file: Path) -> int:
    try:
        text = file.read_bytes().removeprefix(BOM_UTF8)
    except OSError as error:
        print(f"{file}: {error.strerror}", file=sys.stderr)
        return 1
    place = str(file)
    try:
        if file.suffix != ".jsonl":
            verdict = judged(text)
            print(json.dumps(result(verdict), indent=2, allow_nan=False))
            return EXIT[verdict.outcome]
        for number, line in enumerate(text.splitlines(), start=1):
            place = f"{file}:{number}"
            if line.strip():
                print(json.dumps(result(judged(line)), allow_nan=False))
    except ValueError as error:
        print(f"{place}: {error}", file=sys.stderr)
        return 1
    return 0


def judged(text: bytes) -> core.Verdict:
    """The verdict on one case in JSON. ValueError says what is wrong with it, and where."""
    try:
        case = Case.model_validate_json(text)
    except ValidationError as error:
        raise ValueError("; ".join(_places(error))) from None
    names = [workload.name for workload in case.workloads]
    if len(set(names)) < len(names):
        raise ValueError("workloads: each name once")
    for fault in (*_ends(case), *_metrics(case), *_rates(case)):
        raise ValueError(fault)
    weights, rated = {w.name: w.weight for w in case.workloads}, [w.name for w in case.workloads if w.rate]
    return gate.decide(_gate(case), case.arms, weights, _measurements(case), rated=rated)


def _ends(case: Case) -> Iterator[str]:
    """What counts against a candidate is what its own server came to, by a name that is known to be that."""
    of_any = sorted(failure.name for failure in Failure)
    for i, m in enumerate(case.measurements):
        known = of_any if (m.arm,) == case.arms[:1] else OWN_ENDS
        if m.ended and m.ended not in known:
            yield (
                f"measurements[{i}].ended: what a server came to is expected: {', '.join(known)}; for anything else "
                f"write valid: false alone; found {json.dumps(m.ended)}"
            )


def _metrics(case: Case) -> Iterator[str]:
    """Refuse values that are not numbers: ignoring them would silently drop the limit or comparison that needs them."""
    for i, m in enumerate(case.measurements):
        for name, value in m.metrics.items():
            place, counted = f"measurements[{i}].metrics.{name}", BOUNDED_BY.get(name) == "maximum"
            if name not in BOUNDED_BY and name not in _known_metrics():
                yield f"{place}: unknown metric; there are {', '.join(_known_metrics())}"
            elif value is not None and not (LEAST <= value <= MOST or (counted and value == 0)):
                wanted = "from 0 on" if counted else "above 0"
                bounds = " (1e-09 to 1e+12)" if 0 < value < math.inf else ""
                yield f"{place}: a number {wanted}{bounds} is expected, or null where it is not known; found {value:g}"


@cache
def _known_metrics() -> tuple[str, ...]:
    """Imported when first needed: the models of the API are most of what this command could import."""
    from paceline.evidence.round_status import METRICS

    return tuple(dict.fromkeys((*BOUNDED_BY, *METRICS)))


def _rates(case: Case) -> Iterator[str]:
    rated = {workload.name for workload in case.workloads if workload.rate}
    for i, m in enumerate(case.measurements):
        if m.saturated and m.workload not in rated:
            yield f"measurements[{i}].saturated: {m.workload} has no rate to keep; give it its rate, or say false"


def result(verdict: core.Verdict) -> dict[str, Any]:
    """As docs/design.md#the-command-line, and for each candidate its margin, the mean at a rate beside that of closed
    loops (`rated`), the length of its answers (`tokens`, by workload) and its lost rounds. Without a look
    `mean`, `rated` and the margin are null, `workloads` is empty.
    """
    return {
        "outcome": verdict.outcome,
        "winner": verdict.winner,
        "rounds": verdict.rounds,
        "arms": {
            name: {
                "mean": _bounds(arm.mean) if arm.mean else None,
                "workloads": {workload: _bounds(bounds) for workload, bounds in arm.workloads.items()},
                "verdict": arm.outcome,
                "reason": gate.explain(arm),
                "margin": _finite(arm.margin),
                "rated": _bounds(arm.rated) if arm.rated else None,
                "tokens": {workload: _bounds(bounds) for workload, bounds in arm.lengths.items()},
                "lost": arm.lost,
            }
            for name, arm in verdict.arms.items()
        },
    }


def _bounds(bounds: core.Bounds) -> dict[str, float | None]:
    return {"ratio": _finite(bounds.ratio), "lower": _finite(bounds.lower), "upper": _finite(bounds.upper)}


def _finite(value: float | None) -> float | None:
    """JSON has no infinity: what overflows is null."""
    return value if value is not None and math.isfinite(value) else None


def _gate(case: Case) -> core.Gate:
    return core.Gate(
        minimum_improvement=case.gate.minimum_improvement,
        regression_tolerance=case.gate.regression_tolerance,
        confidence=case.gate.confidence,
        variance_floor=case.gate.variance_floor,
        limits=tuple(core.Limit(**limit.model_dump()) for limit in case.gate.limits),
        decide_after_rounds=core.default_looks(len(case.arms))
        if case.decide_after_rounds is None
        else case.decide_after_rounds,
    )


def _measurements(case: Case) -> list[core.Measurement]:
    return [
        core.Measurement(
            round=m.round,
            arm=m.arm,
            workload=m.workload,
            output_throughput=m.output_throughput,
            valid=m.valid and not m.ended,
            nothing_accepted=m.nothing_accepted,
            ended=m.ended,
            saturated=m.saturated,
            metrics={name: value for name, value in m.metrics.items() if value is not None},
        )
        for m in case.measurements
    ]


def _places(error: ValidationError) -> Iterator[str]:
    """`measurements[3].round: what is wrong`, one a fault, at most five."""
    faults = error.errors(include_url=False)
    for fault in faults[:5]:
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in fault["loc"]).lstrip(".")
        yield f"{path}: {_wrong(fault)}" if path else _wrong(fault)
    if len(faults) > 5:
        yield f"and {len(faults) - 5} more"


OWN_ENDS = sorted(failure.name for failure in BLAMES_THE_SERVER)
PARTS: Mapping[str, type[BaseModel]] = {
    "gate": Thresholds,
    "limits": Limit,
    "workloads": Workload,
    "measurements": Measurement,
}
EXPECTED = {
    "float_parsing": "a number is expected, such as 171.3, or 0.05 for 5 %",
    "float_type": "a number is expected, such as 171.3, or 0.05 for 5 %",
    "value_error": "a number is expected, such as 171.3, or 0.05 for 5 %",
    "int_type": "a whole number is expected",
    "bool_type": "true or false is expected",
    "string_type": "a text is expected",
    "tuple_type": "a list is expected: [...]",
    "model_type": "an object is expected: {...}",
    "dict_type": "an object is expected: {...}",
}


def _wrong(fault: Mapping[str, Any]) -> str:
    """What was found, and what belongs there."""
    kind, value = fault["type"], json.dumps(fault["input"], default=str)
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        part = next(step for step in reversed(fault["loc"][:-1]) if isinstance(step, str))
        known = ", ".join(field.alias or name for name, field in PARTS[part].model_fields.items())
        return f"unknown field; there are {known}"
    if kind == "json_invalid":
        return str(fault["msg"])
    shown = value if len(value) <= 40 else f"{value[:37]}..."
    return f"{EXPECTED.get(kind, fault['msg'])}; found {shown}"
