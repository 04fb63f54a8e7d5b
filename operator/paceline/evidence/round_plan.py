"""What a round is asked: everything the client of a round needs, in one environment variable."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.core import Dataset, Parity, Workload

ENVIRONMENT = "PACELINE_ROUND"
"""The variable of the client's container that holds `RoundPlan.to_json()`."""

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmCommand:
    """One arm as it is started: the argv that would be served, byte for byte.

    `expected` are values that the server's resolved arguments must have (`speculative_num_steps: 3`).
    """

    name: str
    argv: tuple[str, ...]
    candidate: bool
    drafts: int | None = None
    """Draft tokens that a verify call checks; None: none, or not always as many."""
    expected: Mapping[str, Scalar] = dataclasses.field(default_factory=dict)
    engine_chooses_depth: bool = False
    """How many tokens are proposed is the engine's choice: it may rest at some loads, not at all of them (0028)."""

    def other_than_expected(self, resolved: Mapping[str, Scalar]) -> str | None:
        """How a server with these resolved arguments differs from this arm; None if it does not."""
        for key, value in self.expected.items():
            if key not in resolved:
                return f"the server does not report its {key}"
            if resolved[key] != value:
                return f"the server runs with {key}={resolved[key]}, not {value}"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundPlan:
    """One replicate of each arm, in this order, each on all workloads.

    `tokenizer` is a directory that the client can read, `port` the server's on localhost, `results_dir` where the full
    lines go (the cache volume; best effort), `compared` the resolved arguments that every server must say and that must
    be equal on all arms. The timeouts are in seconds: from an arm's start to ready, and for one workload or one prompt
    of parity.
    """

    run: str
    round: int
    attempt: int
    engine: str
    served_name: str
    tokenizer: str
    port: int
    arms: tuple[ArmCommand, ...]
    workloads: tuple[Workload, ...]
    results_dir: str
    compared: tuple[str, ...] = ()
    moved: tuple[str, ...] | None = None
    """Resolved arguments that are not compared, as speculation changes them by itself; None: `compared` alone are."""
    engine_version: str = ""
    """What the image speaks: names of pages and metrics depend on it."""
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Dataset → where the client finds it, of those that are not built in."""
    unseen: tuple[str, ...] = ()
    """Numbers of a point that this engine cannot show: no point is refused for want of them."""
    parity: Parity | None = None
    """None: what the arms answer is not compared."""
    retractions: int = 0
    """Requests of a point that a server may take back for want of memory: where it takes more, the point is invalid."""
    apart: bool = False
    """Each workload is a question of its own: a server that ends under one has answered those before it."""
    start_timeout_seconds: float = 1800.0
    workload_timeout_seconds: float = 3600.0
    workload_timeouts: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """By name, of the workloads that get another time."""

    @property
    def lines_path(self) -> str:
        """Where the full lines are kept: gzip of one JSON object a line."""
        return f"{self.results_dir}/{self.round}-{self.attempt}.jsonl.gz"

    def timeout_of(self, workload: Workload) -> float:
        return self.workload_timeouts.get(workload.name, self.workload_timeout_seconds)

    @property
    def watched(self) -> tuple[str, ...]:
        """The resolved arguments that a replicate reports: the compared ones, then those some arm expects."""
        return tuple(dict.fromkeys([*self.compared, *(key for arm in self.arms for key in arm.expected)]))

    def to_json(self) -> str:
        """Where a dataset is from is told by `files`: its revision and commit are not repeated."""
        said = dataclasses.asdict(self)
        for workload in said["workloads"]:
            for key in ("revision", "commit"):
                del workload["dataset"][key]
            if workload["dataset"]["temperature"] == 0:
                del workload["dataset"]["temperature"]
        for arm in said["arms"]:
            if not arm["engine_chooses_depth"]:
                del arm["engine_chooses_depth"]
        if self.parity is None:
            del said["parity"]
        for key in ("apart", "retractions", "workload_timeouts"):
            if not said[key]:
                del said[key]
        if self.moved is None:
            del said["moved"]
        return json.dumps(said, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "RoundPlan":
        """The plan, without what only another release knows; raises ValueError if `text` is none."""
        try:
            raw: dict[str, Any] = json.loads(text)
            raw["arms"] = tuple(
                ArmCommand(**_known(ArmCommand, {**arm, "argv": tuple(arm["argv"])})) for arm in raw["arms"]
            )
            raw["workloads"] = tuple(
                Workload(dataset=Dataset(**_known(Dataset, one["dataset"])), concurrency=one["concurrency"])
                for one in raw["workloads"]
            )
            raw["compared"] = tuple(raw["compared"])
            raw["unseen"] = tuple(raw.get("unseen", ()))
            raw["moved"] = None if raw.get("moved") is None else tuple(raw["moved"])
            raw["parity"] = Parity(**_known(Parity, raw["parity"])) if raw.get("parity") else None
            return cls(**_known(cls, raw))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a round's plan: {type(error).__name__}: {error}") from error


def _known(kind: type, said: Mapping[str, Any]) -> dict[str, Any]:
    """What has a field of this name."""
    names = {field.name for field in dataclasses.fields(kind)}
    return {name: value for name, value in said.items() if name in names}
