"""Finds the requested deployment in the cluster."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from paceline.api.round import with_rounds
from paceline.api.run_status import BenchmarkRunStatus, RunProgress
from paceline.cli.live.deployment import ObservedDeployment, observe_deployment
from paceline.cli.live.wording import time_of
from paceline.controller.kinds import BENCHMARK_ROUND, BENCHMARK_RUN, SPECULATIVE_DEPLOYMENT
from paceline.core.manifest import Object
from paceline.core.names import DEPLOYMENT_LABEL
from paceline.core.record import from_status
from paceline.core.text import in_all_texts, printable_lines
from paceline.kube import Api, Forbidden, Ref, selector
from paceline.kube.resources import JOB
from paceline.plan import objects


async def find_name(api: Api, namespace: str, name: str | None) -> str:
    """The deployment's name. Raises ValueError with the existing names; NotFound if the kind is not installed."""
    if name and await api.get(Ref(SPECULATIVE_DEPLOYMENT, namespace, name)):
        return name
    there = [one["metadata"]["name"] for one in (await api.list(SPECULATIVE_DEPLOYMENT, namespace)).items]
    if not name and len(there) == 1:
        return str(there[0])
    if not there:
        raise ValueError(
            f"namespace {namespace} has no SpeculativeDeployment; name another one with -n, or list all namespaces: "
            "kubectl get specdep -A"
        )
    what = f"has no SpeculativeDeployment {name}" if name else "has several SpeculativeDeployments"
    raise ValueError(f"namespace {namespace} {what}; name one of: {', '.join(there)}")


def clock() -> datetime:
    return datetime.now(UTC)


async def load_deployment(
    api: Api, namespace: str, name: str, now: Callable[[], datetime] = clock
) -> ObservedDeployment:
    """The deployment's current state. Raises ValueError if it was deleted."""
    manifest = await api.get(Ref(SPECULATIVE_DEPLOYMENT, namespace, name))
    if manifest is None:
        raise ValueError(f"the SpeculativeDeployment {name} of namespace {namespace} has been deleted")
    runs = (await api.list(BENCHMARK_RUN, namespace, selector({DEPLOYMENT_LABEL: name}))).items
    safe = in_all_texts([manifest, *runs], printable_lines)
    return observe_deployment(safe[0], safe[1:], await _started(api, namespace, runs), now())


async def load_runs(api: Api, namespace: str, mine: str) -> list[dict[str, Any]]:
    """The runs with the labels `mine`, with their rounds."""
    return await joined(api, namespace, (await api.list(BENCHMARK_RUN, namespace, mine)).items, mine)


async def joined(api: Api, namespace: str, runs: Sequence[Object], mine: str) -> list[dict[str, Any]]:
    """The runs, each with its rounds, which have the labels `mine`; without rounds if the caller may not read them."""
    try:
        rounds = (await api.list(BENCHMARK_ROUND, namespace, mine)).items
    except Forbidden:
        rounds = []
    return [with_rounds(run, rounds) for run in runs]


async def _started(api: Api, namespace: str, runs: Sequence[Object]) -> Mapping[str, datetime]:
    """Start times by Job of the current rounds. Without permission to read Jobs, only finished rounds have times."""
    started: dict[str, datetime] = {}
    for run in runs:
        progress = from_status(BenchmarkRunStatus, run.get("status")).progress or RunProgress()
        if not progress.job or objects.finished(run):
            continue
        try:
            job = await api.get(Ref(JOB, namespace, progress.job))
        except Forbidden:
            return started
        if time := time_of(str(((job or {}).get("status") or {}).get("startTime", ""))):
            started[progress.job] = time
    return started
