"""Reports about a deployment of a story, and about two runs of one question."""

import copy
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml
from tests.support.looked_at import looked_at
from tests.support.reports import EVIL, runs_of
from tests.support.runs import latency
from tests.support.world import World

from paceline.cli.live.page import page, shown
from paceline.cli.live.traffic import Traffic
from paceline.report import Report, comparison, report, runs

RELEASES = Path(__file__).with_name("releases.yaml")


def deployed(
    world: World, *, revisions: Collection[str] | None = None, traffic: Mapping[str, Traffic] | None = None
) -> Report:
    """The page about the story's deployment as it is now; rounds under way began five minutes ago."""
    manifests = world.all_runs()
    seen = looked_at(world, into_the_round=timedelta(minutes=5))
    told = page(seen, runs(manifests), manifests, revisions=revisions, traffic=traffic)
    by_name = {run["metadata"]["name"]: run for run in manifests}
    return report([by_name[name] for name in shown(told, by_name)], "", [told])


def kept(world: World) -> frozenset[str]:
    """Revisions of which a ControllerRevision is kept."""
    labels = (one["metadata"]["labels"] for one in world.cluster.of("ControllerRevision"))
    return frozenset(each["paceline.dev/revision"] for each in labels)


def releases() -> list[dict[str, Any]]:
    """Two emulated runs of one question: with the second image fewer draft tokens are accepted."""
    return runs_of(yaml.safe_load(RELEASES.read_text())["items"])


def later(run: dict[str, Any], **factors: float) -> dict[str, Any]:
    """The same question asked of another release, in which an arm's speed is so many times what it was."""
    now = copy.deepcopy(run)
    now["metadata"]["name"] = f"{now['metadata']['name'].removesuffix('-1')}-2"
    now["spec"]["engine"] |= {"image": "lmsysorg/sglang:v0.5.24", "version": "0.5.24"}
    now["status"]["engineVersion"] = "0.5.24"
    for entry in now["rounds"]:
        for point in entry["points"]:
            speed = float(point["steadyThroughput"]) * factors.get(point["arm"], 1.0)
            point["steadyThroughput"] = f"{speed:.6g}"
    return now


def compared(change: Callable[[dict[str, Any]], Any] = lambda run: None, **factors: float) -> Report:
    """latency then, and on the next release; `change` edits the later run."""
    then = latency()
    now = later(then, **factors)
    change(now)
    return comparison(then, now)


def evil_comparison() -> Report:
    """Two runs of somebody who means harm."""
    then = yaml.safe_load(yaml.safe_dump(latency()).replace("qwen3-coder-next", "EVIL").replace("gpu-0", "EVIL"))
    then = _with(then, "EVIL", EVIL)
    return comparison(then, _with(later(then, wide=0.8), "v0.5.24", EVIL))


def evil_deployment(world: World) -> Report:
    """A deployment of which status says whatever somebody who means harm wants it to."""
    safe = deployed(world).deployments[0]
    return report(
        [_with(run, run["spec"]["pool"], EVIL) for run in world.all_runs()],
        EVIL,
        [_evil(safe)],
    )


def _with(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {key: _with(one, old, new) for key, one in value.items()}
    if isinstance(value, list):
        return [_with(one, old, new) for one in value]
    return value.replace(old, new) if isinstance(value, str) else value


def _evil(value: Any) -> Any:
    """Every text of a frozen dataclass, but the names of colours."""
    if is_dataclass(value) and not isinstance(value, type):
        texts = {one.name: _evil(getattr(value, one.name)) for one in fields(value) if one.name != "tone"}
        return replace(value, **texts)
    if isinstance(value, tuple):
        return tuple(map(_evil, value))
    return EVIL if isinstance(value, str) else value
