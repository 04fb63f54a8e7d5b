"""A row of the table of wrong resources: a good one, what is done to it, and who must say what."""

from copy import deepcopy
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

import yaml
from tests.support.example_files import EXAMPLES, ours

from paceline import core
from paceline.api import deployment, run_manifest_spec

EXAMPLE = EXAMPLES / "qwen3-coder-next-upstream.yaml"
RUN = "run"
"""Of the example's throughput pool, as the operator would write it."""
PROFILE = "profile"
"""That of examples/benchmark-profile.yaml."""
GONE = object()
"""The value of what is taken away."""


class Stage(StrEnum):
    """The earliest place that can know, from the desk to the cluster."""

    SCHEMA = "schema"
    """The CRD's types, bounds and names of fields, on the API server; `paceline validate` says the same."""
    CEL = "CEL"
    """The CRD's rules, on the API server; `paceline validate` says the same."""
    VALIDATE = "validate"
    """`paceline validate`, and the operator: what an engine of that version refuses, and what CEL cannot see."""
    PREFLIGHT = "preflight"
    """The prefetch Job: what only the models' files can tell."""


Change = tuple[str, Any]
"""Where and what. A path is `spec.pools.1.name`; its last step is set, or taken away with `GONE`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`path` is a part of the message, and whole for stage validate and preflight: the API server cannot always say
    which item of a list it means."""

    name: str
    stage: Stage
    changes: tuple[Change, ...]
    path: str
    on: str = "qwen3-coder-next-upstream"
    """The example that is wrong by these changes alone, or `RUN`, or `PROFILE`."""

    def manifest(self) -> dict[str, Any]:
        others = {RUN: example_run, PROFILE: example_profile}
        return changed(others[self.on]() if self.on in others else example(self.on), *self.changes)


def changed(manifest: dict[str, Any], *changes: Change) -> dict[str, Any]:
    """A copy with the changes; maps on the way are made."""
    edited = deepcopy(manifest)
    for path, value in changes:
        *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        node: Any = edited
        for step in way:
            node = node[step] if isinstance(step, int) else node.setdefault(step, {})
        if value is GONE:
            del node[last]
        else:
            node[last] = value
    return edited


def example(name: str = "qwen3-coder-next-upstream") -> dict[str, Any]:
    return deepcopy(_read(name))


@cache
def _read(name: str) -> dict[str, Any]:
    return ours(EXAMPLES / f"{name}.yaml")


def example_profile() -> dict[str, Any]:
    _, profile = yaml.safe_load_all((EXAMPLES / "benchmark-profile.yaml").read_text())
    return dict(profile)


def example_run() -> dict[str, Any]:
    spec = deployment(example())
    pool = spec.pools[1]
    run = core.RunSpec(pool=pool.name, server=spec.server, arms=pool.arms, workloads=pool.workloads, gate=pool.gate)
    return {
        "apiVersion": "paceline.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": "qwen3-coder-next-throughput-0123456789-1"},
        "spec": run_manifest_spec(run),
    }
