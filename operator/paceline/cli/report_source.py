"""Finds runs and deployments for `paceline report`, `card` and `evidence`: in files, on stdin, in the cluster."""

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import yaml

from paceline.api.round import with_rounds
from paceline.api.text import items, of_yaml
from paceline.cli import cluster, top
from paceline.cli.live.deployment import ObservedDeployment, observe_deployment
from paceline.cli.live.errors import said
from paceline.cli.live.lookup import joined, load_deployment, load_runs
from paceline.cli.live.traffic import Traffic
from paceline.cli.validate import SUFFIXES
from paceline.controller.kinds import BENCHMARK_ROUND, BENCHMARK_RUN, SPECULATIVE_DEPLOYMENT
from paceline.core.manifest import Manifest
from paceline.core.names import DEPLOYMENT_LABEL, RUN_LABEL
from paceline.core.text import error_text, in_all_texts, printable_lines
from paceline.kube import ApiError, Forbidden, Ref, Resource, Transport, selector
from paceline.kube.resources import REVISION
from paceline.render.serving import REVISION_LABEL

_KINDS: dict[str, tuple[Resource, ...]] = {
    "": (BENCHMARK_RUN, SPECULATIVE_DEPLOYMENT),
    **dict.fromkeys(("bench", "benchmarkrun", "benchmarkruns"), (BENCHMARK_RUN,)),
    **dict.fromkeys(("specdep", "speculativedeployment", "speculativedeployments"), (SPECULATIVE_DEPLOYMENT,)),
}
"""Prefix before a name's slash → kinds to look in."""
_ODD = (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""Errors for a file with field types that the API server would refuse: a report does not check them."""
UNREPORTABLE = (OSError, ValueError, ApiError, *_ODD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A deployment and its objects. `revisions`: those with a ControllerRevision, None if they could not be read.
    `traffic` by pool; `unread`: why there is no traffic."""

    deployment: ObservedDeployment
    runs: Sequence[Manifest]
    revisions: frozenset[str] | None = None
    traffic: Mapping[str, Traffic] = field(default_factory=dict)
    unread: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSources:
    """`runs` are those that were named directly."""

    deployments: tuple[Served, ...] = ()
    runs: tuple[Manifest, ...] = ()


def read_sources(names: Sequence[str], args: argparse.Namespace) -> ReportSources:
    """The requested runs and deployments, at least one. Raises OSError, ValueError, ApiError."""
    found = [of_file(name) if _is_file(name) else of_cluster(name, args) for name in names]
    deployments = tuple(one for each in found for one in each.deployments)
    runs = tuple(run for each in found for run in each.runs)
    if not (deployments or runs):
        raise ValueError(f"no BenchmarkRun or SpeculativeDeployment in {', '.join(names)}")
    return ReportSources(deployments=deployments, runs=runs)


def only_run(name: str, args: argparse.Namespace) -> Manifest:
    """Raises ValueError, which names the runs, for a deployment and for several runs; else as `read_sources`."""
    found = read_sources([name], args)
    if len(found.runs) == 1 and not found.deployments:
        return found.runs[0]
    every = [*found.runs, *(run for one in found.deployments for run in one.runs)]
    names = ", ".join(str(run["metadata"]["name"]) for run in every)
    raise ValueError(f"{name}: name one BenchmarkRun; it has {names or 'none'}")


def cannot_be_written(command: str, names: Sequence[str], error: Exception) -> int:
    """Says on stderr why, for one of UNREPORTABLE; the exit code."""
    why = " ".join(str(error).split())
    if not isinstance(error, OSError | ValueError | ApiError):
        why = (
            f"{', '.join(names)}: holds a value that the API server never stores ({error_text(error)}); "
            "`paceline validate` names it"
        )
    print(f"paceline {command}: {why}", file=sys.stderr)
    return 1


def _is_file(name: str) -> bool:
    return name == "-" or Path(name).suffix in SUFFIXES or Path(name).is_file()


def of_file(name: str) -> ReportSources:
    """The BenchmarkRuns and SpeculativeDeployments of a file, including those in a List; other kinds are ignored. Runs
    of these deployments do not count as named directly."""
    text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    try:
        documents = [json.loads(text)] if text.lstrip().startswith("{") else of_yaml(text)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"{name}: {error_text(error)}") from error
    objects = [one for document in documents for one in items(document) if isinstance(one, dict)]
    runs, rounds, deployments, revisions = (
        [one for one in objects if one.get("kind") == kind]
        for kind in (BENCHMARK_RUN.kind, BENCHMARK_ROUND.kind, SPECULATIVE_DEPLOYMENT.kind, REVISION.kind)
    )
    try:
        runs = [with_rounds(run, rounds) for run in runs]
    except (KeyError, TypeError, AttributeError) as error:
        why = f"its runs and rounds are not as the API server stores them: {error_text(error)}"
        raise ValueError(f"{name}: {why}") from error
    served = [_of_a_file(one, runs, revisions) for one in deployments]
    theirs = [run for one in served for run in one.runs]
    return ReportSources(deployments=tuple(served), runs=tuple(run for run in runs if run not in theirs))


def _of_a_file(manifest: Manifest, runs: Sequence[Manifest], revisions: Sequence[Manifest]) -> Served:
    if not (manifest.get("metadata") or {}).get("name"):
        raise ValueError("metadata.name: must be the name of a SpeculativeDeployment")
    mine = [run for run in runs if _belongs(run, manifest)]
    safe = in_all_texts([manifest, *mine], printable_lines)
    kept = [revision for revision in revisions if _belongs(revision, manifest)]
    return Served(
        deployment=observe_deployment(safe[0], safe[1:], {}, datetime.now(UTC)),
        runs=mine,
        revisions=_names(kept) if revisions else None,
    )


def _belongs(one: Manifest, owner: Manifest) -> bool:
    metadata, theirs = one.get("metadata") or {}, owner["metadata"]
    labelled = (metadata.get("labels") or {}).get(DEPLOYMENT_LABEL) == theirs["name"]
    return bool(labelled) and metadata.get("namespace", "") == theirs.get("namespace", "")


def _names(revisions: Sequence[Manifest]) -> frozenset[str]:
    return frozenset(((one.get("metadata") or {}).get("labels") or {}).get(REVISION_LABEL, "") for one in revisions)


def of_cluster(name: str, args: argparse.Namespace) -> ReportSources:
    async def fetch() -> ReportSources:
        async with cluster.connection(args) as (api, namespace):
            return await source_named(api, namespace, name, args.live)

    return asyncio.run(fetch())


async def source_named(api: Transport, namespace: str, name: str, interval: float = 0) -> ReportSources:
    """The run with that name, else the deployment. Its servers are read twice, `interval` seconds apart; not at all if
    0."""
    kind, _, bare = name.rpartition("/")
    if kind.lower() not in _KINDS:
        raise ValueError(f"{name}: must be an existing file, NAME, bench/NAME or specdep/NAME")
    for resource in _KINDS[kind.lower()]:
        manifest = await api.get(Ref(resource, namespace, bare))
        if manifest and resource is BENCHMARK_RUN:
            (run,) = await joined(api, namespace, [manifest], selector({RUN_LABEL: bare}))
            return ReportSources(runs=(run,))
        if manifest:
            return ReportSources(deployments=(await _served(api, namespace, bare, interval),))
    kinds = " or ".join(resource.kind for resource in _KINDS[kind.lower()])
    no_file, listing = ("", kind) if kind else ("is not a file, and ", "bench,specdep")
    raise ValueError(f"{name}: {no_file}namespace {namespace} has no {kinds} of that name: see kubectl get {listing}")


async def _served(api: Transport, namespace: str, name: str, interval: float) -> Served:
    found, mine = await load_deployment(api, namespace, name), selector({DEPLOYMENT_LABEL: name})
    runs = await load_runs(api, namespace, mine)
    try:
        revisions = _names((await api.list(REVISION, namespace, mine)).items)
    except Forbidden:
        revisions = None
    traffic, unread = await _traffic(api, found, runs, interval)
    return Served(deployment=found, runs=runs, revisions=revisions, traffic=traffic, unread=unread)


async def _traffic(
    api: Transport, found: ObservedDeployment, runs: Sequence[Manifest], interval: float
) -> tuple[Mapping[str, Traffic], str]:
    """The servers' current traffic, or why it is not known: a page about the past needs no server."""
    if not interval:
        return {}, ""
    try:
        read = await top.readings(api, found, found.pools, runs, interval)
    except ApiError as error:
        return {}, said(error)
    except (ValueError, KeyError) as error:
        return {}, str(error)
    return {one.pool: one for one in read}, ""
