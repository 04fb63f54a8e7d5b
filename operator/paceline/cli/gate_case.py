"""A case of `paceline gate FILE`: its fields, and its faults with their places."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import InvalidOperation
from difflib import get_close_matches
from functools import cache
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

from paceline import core
from paceline.core.text import fraction
from paceline.evidence.failures import BLAMES_THE_SERVER, Failure
from paceline.gate.limits import BOUNDED_BY

_DEFAULT = core.Gate()


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("Input should be a number, or one in a string")
    return value


LIGHTEST, HEAVIEST = 1e-6, 1e6


def _weight(value: float) -> float:
    """Refuses weights outside these bounds: the weighted mean would not be finite."""
    if value == 0 or LIGHTEST <= value <= HEAVIEST:
        return value
    raise PydanticCustomError("weight", "a weight is 0 or from 0.000001 to 1000000, as only proportions count")


SLOWEST, FASTEST = 1e-6, 1e9
"""Tokens per second: far beyond any server, but quotients of two are still readable."""
LEAST, MOST = 1e-9, 1e12
"""Bounds of a metric, in seconds or tokens."""


def _throughput(value: float) -> float:
    """NaN and infinities pass; the gate counts them as invalid."""
    if not 0 < value < math.inf or SLOWEST <= value <= FASTEST:
        return value
    raise PydanticCustomError("throughput", "tokens per second are from 0.000001 to 1000000000")


def _share(value: Any) -> Any:
    with suppress(InvalidOperation):
        return fraction(value) if isinstance(value, str) and value.endswith("%") else _number(value)
    return value


InputShare = Annotated[FiniteFloat, BeforeValidator(_share)]
"""A percentage, a JSON number or a decimal string."""
Finite = Annotated[FiniteFloat, BeforeValidator(_number)]
"""JSON numbers and decimal strings; booleans are refused."""
InputNumber = Annotated[float, BeforeValidator(_number)]
"""NaN and infinities pass; the field's reader handles them."""


class InputPart(BaseModel):
    """Unknown fields are refused: a misspelt `valid` must not count as valid."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)


def _limited(metric: str) -> str:
    if metric not in BOUNDED_BY:
        raise PydanticCustomError(
            "metric", "not a metric that can be limited; use one of {all}", {"all": ", ".join(BOUNDED_BY)}
        )
    return metric


FORMER = {
    "minimumImprovement": "minImprovement",
    "regressionTolerance": "maxRegression",
    "maximumIncrease": "maxIncrease",
    "maximumDecrease": "maxDecrease",
    "maximum": "max",
}
"""Names in files older than the API's names → the API's names."""


class RuleInput(InputPart):
    """Accepts the API's names with percentages, or former names with decimals."""

    @model_validator(mode="before")
    @classmethod
    def _former_names(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        former = {name: now for name, now in FORMER.items() if now not in given}  # if both are given: refused
        return {former.get(name, name): value for name, value in given.items()}


class LimitInput(RuleInput):
    """One of three bounds: a latency or the energy may rise, kvTokens may fall by a fraction, a count has a maximum."""

    metric: Annotated[str, AfterValidator(_limited)]
    max_increase: Annotated[InputShare, Field(ge=0, lt=10)] | None = None
    max_decrease: Annotated[InputShare, Field(ge=0, lt=1)] | None = None
    max: Annotated[StrictInt, Field(ge=0, le=100_000)] | None = None

    @model_validator(mode="after")
    def _one_bound(self) -> "LimitInput":
        given = (self.max_increase, self.max_decrease, self.max)
        if sum(bound is not None for bound in given) != 1:
            raise PydanticCustomError("bound", "give exactly one of maxIncrease, maxDecrease and max")
        if getattr(self, to_snake(right := BOUNDED_BY[self.metric])) is None:
            raise PydanticCustomError(
                "bound", "{metric} is bounded by {right}", {"metric": self.metric, "right": right}
            )
        return self


def _once(limits: tuple[LimitInput, ...]) -> tuple[LimitInput, ...]:
    """Refuses two limits for one metric: the laxer one would have no effect, or would replace the other."""
    metrics = [limit.metric for limit in limits]
    if twice := next((metric for i, metric in enumerate(metrics) if metric in metrics[:i]), None):
        raise PydanticCustomError("twice", "{metric} is limited twice; keep one", {"metric": twice})
    return limits


class Thresholds(RuleInput):
    """Like spec.gate, with its bounds: percentages, decimal strings, or numbers."""

    min_improvement: Annotated[InputShare, Field(ge=0, lt=10)] = _DEFAULT.min_improvement
    max_regression: Annotated[InputShare, Field(ge=0, lt=1)] = _DEFAULT.max_regression
    max_slowdown: Annotated[InputShare, Field(ge=0, lt=1)] = _DEFAULT.max_slowdown
    confidence: Annotated[InputShare, Field(ge=0.5, lt=1)] = _DEFAULT.confidence
    variance_floor: Annotated[Finite, Field(ge=0, lt=1)] = _DEFAULT.variance_floor
    limits: Annotated[tuple[LimitInput, ...], AfterValidator(_once)] = ()


class WorkloadInput(InputPart):
    name: str
    weight: Annotated[Finite, AfterValidator(_weight)] = 1.0
    rate: Annotated[Finite, Field(gt=0)] | None = None
    """Requests per second; None for a closed loop."""


class MeasurementInput(InputPart):
    round: StrictInt
    arm: str
    workload: str
    output_throughput: Annotated[InputNumber, AfterValidator(_throughput)] | None = None
    valid: StrictBool = True
    nothing_accepted: StrictBool = False
    ended: str = ""
    saturated: StrictBool = False
    metrics: dict[str, InputNumber | None] = Field(default_factory=dict)
    """A factory, because pydantic deep-copies a default for each measurement, which is half of the parsing time."""


LOOKS = "decideAfterRounds"


class CaseInput(BaseModel):
    """One question. Unknown fields, such as a title, are ignored unless they resemble a known field."""

    model_config = ConfigDict(alias_generator=to_camel, extra="allow")

    gate: Thresholds
    decide_after_rounds: tuple[StrictInt, ...] | None = None
    arms: tuple[str, ...]
    workloads: tuple[WorkloadInput, ...]
    measurements: tuple[MeasurementInput, ...]

    @model_validator(mode="before")
    @classmethod
    def _as_in_a_spec(cls, given: Any) -> Any:
        """Accepts decideAfterRounds inside the gate too, where a spec has it."""
        gate = given.get("gate") if isinstance(given, dict) else None
        if not isinstance(gate, dict) or LOOKS not in gate or LOOKS in given:
            return given
        return {**given, LOOKS: gate[LOOKS], "gate": {name: value for name, value in gate.items() if name != LOOKS}}


def read_case(text: bytes) -> CaseInput:
    """One case in JSON. Raises ValueError with the fault and its place."""
    try:
        case = CaseInput.model_validate_json(text, by_alias=True, by_name=False)
    except ValidationError as error:
        raise ValueError("; ".join(_places(error))) from None
    names = [workload.name for workload in case.workloads]
    if len(set(names)) < len(names):
        raise ValueError("workloads: a name is repeated")
    for fault in (*_misspelt(case), *_ends(case), *_metrics(case), *_rates(case)):
        raise ValueError(fault)
    return case


def _misspelt(case: CaseInput) -> Iterator[str]:
    fields = [str(field.alias) for field in CaseInput.model_fields.values()]
    for name in case.model_extra or ():
        if near := get_close_matches(to_camel(name), fields, n=1):
            yield f"{name}: unknown field; did you mean {near[0]}?"


def _ends(case: CaseInput) -> Iterator[str]:
    """Refuse unknown ends of a candidate: only a known failure of its own server counts against it."""
    of_any = sorted(failure.name for failure in Failure)
    for i, m in enumerate(case.measurements):
        known = of_any if (m.arm,) == case.arms[:1] or m.arm == core.INCUMBENT else OWN_ENDS
        if m.ended and m.ended not in known:
            yield (
                f"measurements[{i}].ended: must be one of {', '.join(known)}; for anything else write only valid: "
                f"false; found {json.dumps(m.ended)}"
            )


def _metrics(case: CaseInput) -> Iterator[str]:
    """Refuse values that are not numbers: ignoring them would silently drop the limit or comparison that needs them."""
    for i, m in enumerate(case.measurements):
        for name, value in m.metrics.items():
            place, counted = f"measurements[{i}].metrics.{name}", BOUNDED_BY.get(name) == "max"
            if name not in BOUNDED_BY and name not in _known_metrics():
                yield f"{place}: unknown metric; there are {', '.join(_known_metrics())}"
            elif value is not None and not (LEAST <= value <= MOST or (counted and value == 0)):
                wanted = "from 0 on" if counted else "above 0"
                bounds = " (1e-09 to 1e+12)" if 0 < value < math.inf else ""
                yield f"{place}: a number {wanted}{bounds} is expected, or null if it is not known; found {value:g}"


@cache
def _known_metrics() -> tuple[str, ...]:
    """Imported on first use: the API's models are most of this command's import time."""
    from paceline.evidence.round_status import METRICS

    return tuple(dict.fromkeys((*BOUNDED_BY, *METRICS)))


def _rates(case: CaseInput) -> Iterator[str]:
    rated = {workload.name for workload in case.workloads if workload.rate}
    for i, m in enumerate(case.measurements):
        if m.saturated and m.workload not in rated:
            yield f"measurements[{i}].saturated: {m.workload} has no rate to keep; write its rate, or false"


def _places(error: ValidationError) -> Iterator[str]:
    """One line per fault, at most five: `measurements[3].round: what is wrong`."""
    faults = error.errors(include_url=False)
    for fault in faults[:5]:
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in fault["loc"]).lstrip(".")
        yield f"{path}: {_wrong(fault)}" if path else _wrong(fault)
    if len(faults) > 5:
        yield f"and {len(faults) - 5} more"


OWN_ENDS = sorted(failure.name for failure in BLAMES_THE_SERVER)
_PARTS: Mapping[str, type[BaseModel]] = {
    "gate": Thresholds,
    "limits": LimitInput,
    "workloads": WorkloadInput,
    "measurements": MeasurementInput,
}
EXPECTED = {
    "float_parsing": "a number is expected, such as 171.3, or 0.05 for 5 %",
    "float_type": "a number is expected, such as 171.3, or 0.05 for 5 %",
    "value_error": "a number is expected, such as 171.3, or 0.05 for 5 %",
    "int_type": "a whole number is expected",
    "bool_type": "true or false is expected",
    "string_type": "a string is expected",
    "tuple_type": "a list is expected: [...]",
    "model_type": "an object is expected: {...}",
    "dict_type": "an object is expected: {...}",
}


def _wrong(fault: Mapping[str, Any]) -> str:
    """The value found, and the value expected."""
    kind, value = fault["type"], json.dumps(fault["input"], default=str)
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        part = next(step for step in reversed(fault["loc"][:-1]) if isinstance(step, str))
        known = ", ".join(field.alias or name for name, field in _PARTS[part].model_fields.items())
        return f"unknown field; there are {known}"
    if kind == "json_invalid":
        return str(fault["msg"])
    shown = value if len(value) <= 40 else f"{value[:37]}..."
    return f"{EXPECTED.get(kind, fault['msg'])}; found {shown}"
