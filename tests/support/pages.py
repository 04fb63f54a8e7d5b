"""Reports about a deployment of a story."""

from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from typing import Any

from tests.support.looked_at import looked_at
from tests.support.reports import EVIL
from tests.support.world import World

from paceline.cli.live.report_page import page, shown_runs
from paceline.cli.live.traffic import Traffic
from paceline.report import Report, build_report, runs


def deployed(
    world: World, *, revisions: Collection[str] | None = None, traffic: Mapping[str, Traffic] | None = None
) -> Report:
    """The page about the story's deployment as it is now; rounds under way began five minutes ago."""
    manifests = world.all_runs()
    seen = looked_at(world, into_the_round=timedelta(minutes=5))
    told = page(seen, runs(manifests), manifests, revisions=revisions, traffic=traffic)
    by_name = {run["metadata"]["name"]: run for run in manifests}
    return build_report([by_name[name] for name in shown_runs(told, by_name)], "", [told])


def kept(world: World) -> frozenset[str]:
    """Revisions of which a ControllerRevision is kept."""
    labels = (one["metadata"]["labels"] for one in world.cluster.of("ControllerRevision"))
    return frozenset(each["paceline.dev/revision"] for each in labels)


def evil_deployment(world: World) -> Report:
    """A deployment of which status says whatever somebody who means harm wants it to."""
    safe = deployed(world).deployments[0]
    return build_report(
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
