"""Where `paceline report` finds runs: in files, on stdin, in the cluster."""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from paceline.api.text import items, of_yaml
from paceline.cli import cluster
from paceline.cli.validate import SUFFIXES
from paceline.controller.kinds import BENCHMARK_RUN, SPECULATIVE_DEPLOYMENT
from paceline.core.names import DEPLOYMENT_LABEL
from paceline.kube import Api, Ref, Resource, selector

Manifest = dict[str, Any]

KINDS: dict[str, tuple[Resource, ...]] = {
    "": (BENCHMARK_RUN, SPECULATIVE_DEPLOYMENT),
    **dict.fromkeys(("bench", "benchmarkrun", "benchmarkruns"), (BENCHMARK_RUN,)),
    **dict.fromkeys(("specdep", "speculativedeployment", "speculativedeployments"), (SPECULATIVE_DEPLOYMENT,)),
}
"""What stands before a name's slash → where the name is looked for."""


def read(names: Sequence[str], args: argparse.Namespace) -> list[Manifest]:
    """The BenchmarkRuns that are meant, at least one. Raises OSError, ValueError, ApiError."""
    runs = [run for name in names for run in (of_file(name) if is_file(name) else of_cluster(name, args))]
    if not runs:
        raise ValueError(f"no BenchmarkRun in {', '.join(names)}")
    return runs


def is_file(name: str) -> bool:
    return name == "-" or Path(name).suffix in SUFFIXES or Path(name).is_file()


def of_file(name: str) -> list[Manifest]:
    """The BenchmarkRuns of a file, those of a List too; other kinds are passed over."""
    text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    try:
        documents = [json.loads(text)] if text.lstrip().startswith("{") else of_yaml(text)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"{name}: {error}") from error
    objects = [one for document in documents for one in items(document)]
    return [one for one in objects if isinstance(one, dict) and one.get("kind") == BENCHMARK_RUN.kind]


def of_cluster(name: str, args: argparse.Namespace) -> list[Manifest]:
    async def fetch() -> list[Manifest]:
        async with cluster.connection(args) as (api, namespace):
            return await named(api, namespace, name)

    return asyncio.run(fetch())


async def named(api: Api, namespace: str, name: str) -> list[Manifest]:
    """The run of that name, else the latest run of each pool of the deployment of that name."""
    kind, _, bare = name.rpartition("/")
    if kind.lower() not in KINDS:
        raise ValueError(f"{name}: must be an existing file, NAME, bench/NAME or specdep/NAME")
    for resource in KINDS[kind.lower()]:
        manifest = await api.get(Ref(resource, namespace, bare))
        if manifest and resource is BENCHMARK_RUN:
            return [manifest]
        if manifest:
            listing = await api.list(BENCHMARK_RUN, namespace, selector({DEPLOYMENT_LABEL: bare}))
            pools = [pool["name"] for pool in manifest["spec"]["pools"]]
            return latest(listing.items, pools)
    kinds = " or ".join(resource.kind for resource in KINDS[kind.lower()])
    raise ValueError(
        f"{bare}: is not a file, and namespace {namespace} has no {kinds} of that name: see kubectl get bench"
    )


def latest(runs: Sequence[Manifest], pools: Sequence[str]) -> list[Manifest]:
    """One run a pool, in the order of pools."""
    rising = sorted(runs, key=lambda run: (run["metadata"].get("creationTimestamp", ""), run["spec"].get("attempt", 1)))
    newest = {run["spec"]["pool"]: run for run in rising}
    return [newest[pool] for pool in pools if pool in newest]
