"""The plan of a round: everything that its client needs, in one environment variable."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.core import Arrivals, Dataset, Parity, Slo, Workload
from paceline.core.manifest import Scalar
from paceline.core.text import error_text, printable

ENVIRONMENT = "PACELINE_ROUND"
"""The variable of the client's container that holds `RoundPlan.to_json()`."""

_OFTEN_ALIKE = ("engine", "engine_version", "port", "compared", "unseen", "cuts_drafts")
"""Fields of an arm that JSON leaves out where they equal the first arm's: the plan is an environment variable."""
_NAMES = {"try_": "attempt"}
"""Field of a plan → its name in JSON; it must never change, so that rounds of all releases can read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmCommand:
    """One arm and its command, exactly the argv that would serve.

    `port`: the server's port on localhost; `expected`: values that the server's resolved arguments must have
    (`speculative_num_steps: 3`); `compared`: resolved arguments that the server must report.
    """

    name: str
    engine: str
    engine_version: str = ""
    """Release of the image; paths and names of metrics depend on it."""
    port: int
    argv: tuple[str, ...]
    candidate: bool
    plain: bool = False
    """A candidate without a draft."""
    compared: tuple[str, ...] = ()
    held: tuple[str, ...] | None = None
    """Resolved arguments that must be as the baseline's, on an arm with an engine of its own; others may differ, and
    are shown. None: all but `moved`."""
    unseen: tuple[str, ...] = ()
    """Numbers of a point that this engine does not report; their absence does not invalidate a point."""
    cuts_drafts: bool = False
    """There may be no verify calls under a grammar: the engine cuts forbidden drafts and does not count them."""
    drafts: int | None = None
    """Draft tokens checked per verify call, excluding the bonus token. None for the baseline and for arms whose depth
    varies."""
    expected: Mapping[str, Scalar] = dataclasses.field(default_factory=dict)
    engine_chooses_depth: bool = False
    """The engine chooses how many tokens it drafts; at some loads, but not at all of them, it may choose none."""

    @property
    def speculates(self) -> bool:
        return self.candidate and not self.plain

    def other_than_expected(self, resolved: Mapping[str, Scalar]) -> str | None:
        """How a server with these resolved arguments differs from this arm; None if it does not. `resolved` holds
        printable values, as in a round's result."""
        for key, expected in self.expected.items():
            if key not in resolved:
                return f"the server does not report its {key}"
            value = printable(expected) if isinstance(expected, str) else expected
            if resolved[key] != value:
                return f"the server runs with {key}={resolved[key]}, not {value}"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundPlan:
    """One replicate of each arm, in this order, each on all workloads or on its workloads in `cells`.

    `results_dir`: directory of the full lines (on the cache volume; best effort). Timeouts are in seconds: from an
    arm's start to ready, and for one workload or one prompt of parity.
    """

    run: str
    round: int
    try_: int
    served_name: str
    arms: tuple[ArmCommand, ...]
    workloads: tuple[Workload, ...]
    results_dir: str
    moved: tuple[str, ...] | None = None
    """Resolved arguments that are not compared because speculation changes them; None: compare only `compared`."""
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Dataset → its file, for datasets that are not built in."""
    parity: Parity | None = None
    """None: the arms' answers are not compared."""
    parity_required: bool = False
    """A round in which the answers could not be compared is invalid."""
    retractions: int = 0
    """Maximum requests of a point that a server may retract when memory runs out; more invalidate the point."""
    apart: bool = False
    """Each workload is a separate question: if the server dies under one, points measured before it stay valid."""
    cells: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    """In a search: arm → the workloads that it is measured on. Its rounds may lack the baseline, so nothing is compared
    within one. Empty: every arm is measured on all workloads."""
    claimed: bool = False
    """The accelerators come by a claim of the pod: the kubelet gives the same to each container that names it."""
    own_gpus: int = 0
    """GPUs of each arm that no other pod shares; 0 if others may: then nobody knows an arm's energy."""
    prompt_round: int | None = None
    """The round whose prompts are sent; None: this round's own prompts."""
    start_timeout_seconds: float = 1800.0
    workload_timeout_seconds: float = 3600.0
    workload_timeouts: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Workload → its timeout, where that differs from `workload_timeout_seconds`."""

    @property
    def lines_path(self) -> str:
        """File of the full lines: gzip, one JSON object per line."""
        return f"{self.results_dir}/{self.round}-{self.try_}.jsonl.gz"

    @property
    def drawn(self) -> int:
        """The round number that selects the prompts."""
        return self.round if self.prompt_round is None else self.prompt_round

    def workloads_of(self, arm: ArmCommand) -> tuple[Workload, ...]:
        """The workloads that the arm is measured on."""
        if not self.cells:
            return self.workloads
        return tuple(workload for workload in self.workloads if workload.name in self.cells.get(arm.name, ()))

    def timeout_of(self, workload: Workload) -> float:
        return self.workload_timeouts.get(workload.name, self.workload_timeout_seconds)

    @property
    def baseline(self) -> ArmCommand | None:
        """None in a round of a search that lacks it."""
        return next((arm for arm in self.arms if not arm.candidate), None)

    def watched(self, arm: ArmCommand) -> tuple[str, ...]:
        """The resolved arguments that a replicate reports: the compared ones, then those an arm of its engine
        expects."""
        alike = (other for other in self.arms if other.engine == arm.engine)
        return tuple(dict.fromkeys([*arm.compared, *(key for other in alike for key in other.expected)]))

    def to_json(self) -> str:
        """Omits defaults, and the datasets' revision and commit, which the client takes from `files`."""
        raw = {_NAMES.get(name, name): value for name, value in dataclasses.asdict(self).items()}
        for workload in raw["workloads"]:
            for key in ("revision", "commit"):
                del workload["dataset"][key]
            if workload["dataset"]["arrivals"] == Arrivals.RANDOM:
                del workload["dataset"]["arrivals"]
            for key in ("adapter", "response_format"):
                if not workload["dataset"][key]:
                    del workload["dataset"][key]
            if workload["dataset"]["turns"] == 1:
                del workload["dataset"]["turns"]
            if workload["dataset"]["temperature"] == 0:
                del workload["dataset"]["temperature"]
            for key in ("slo", "min_requests", "part", "ramp_from"):
                if workload["dataset"][key] is None:
                    del workload["dataset"][key]
        first = dict(next(iter(raw["arms"]), {}))
        for i, arm in enumerate(raw["arms"]):
            for key in _OFTEN_ALIKE if i else ():
                if arm[key] == first[key]:
                    del arm[key]
            for key in ("engine_chooses_depth", "held", "plain"):
                if not arm[key] and arm[key] != ():
                    del arm[key]
        if self.parity is None:
            del raw["parity"]
        for key in ("parity_required", "apart", "cells", "claimed", "own_gpus", "retractions", "workload_timeouts"):
            if not raw[key]:
                del raw[key]
        for key in ("moved", "prompt_round"):
            if raw[key] is None:
                del raw[key]
        return json.dumps(raw, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "RoundPlan":
        """The plan; fields unknown to this release are dropped. Raises ValueError if `text` is not a plan."""
        try:
            raw: dict[str, Any] = json.loads(text)
            raw["try_"] = raw["attempt"]
            first: Mapping[str, Any] = next(iter(raw["arms"]), {})
            alike = {key: value for key, value in first.items() if key in _OFTEN_ALIKE}
            raw["arms"] = tuple(_arm({**alike, **arm}) for arm in raw["arms"])
            raw["workloads"] = tuple(
                Workload(dataset=_dataset(load["dataset"]), concurrency=load["concurrency"])
                for load in raw["workloads"]
            )
            raw["cells"] = {arm: tuple(names) for arm, names in raw.get("cells", {}).items()}
            raw["moved"] = None if raw.get("moved") is None else tuple(raw["moved"])
            raw["parity"] = Parity(**_declared(Parity, raw["parity"])) if raw.get("parity") else None
            return cls(**_declared(cls, raw))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"not a round's plan: {error_text(error)}") from error


def _arm(raw: Mapping[str, Any]) -> ArmCommand:
    lists = {key: tuple(raw[key]) for key in ("argv", "compared", "held", "unseen") if raw.get(key) is not None}
    return ArmCommand(**_declared(ArmCommand, {**raw, **lists}))


def _dataset(raw: Mapping[str, Any]) -> Dataset:
    slo = raw.get("slo")
    return Dataset(**_declared(Dataset, {**raw, "slo": slo and Slo(**_declared(Slo, slo))}))


def _declared(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that the dataclass has a field for."""
    names = {field.name for field in dataclasses.fields(kind)}
    return {name: value for name, value in values.items() if name in names}
