"""`paceline plan FILE`: the effects and the cost of an apply, before it is applied.

It runs the operator's own planners in a simulated cluster (`paceline.plan.forecast`), twice. Likely: all candidates are
plainly faster. At worst: no candidate is ever decided, servers start slowly and answer at half of the speed.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import yaml

from paceline.api.round import ROUND_KIND
from paceline.api.text import documents
from paceline.cli import cluster, options
from paceline.cli.interruptions import interruptions, opening
from paceline.cli.live.errors import said
from paceline.cli.manifests import RUN, RefusedError, concerned, everything, is_deployment_or_run
from paceline.cli.plan_text import CostRange, capacity, costs, servers_gpus, spec_of, way_out_of_room
from paceline.cli.profiles import may_meet
from paceline.cli.rows import by_pool
from paceline.cli.unchecked import known_of
from paceline.cli.validate import read_file
from paceline.core import DeploymentSpec, Scheme, Server
from paceline.core.manifest import Manifest
from paceline.kube import ApiError
from paceline.plan.costs import Assumptions
from paceline.plan.forecast import ALL_FASTER, UNDECIDED_SCENARIO, Forecast, forecast
from paceline.plan.speeds import alone, size_in_name
from paceline.pods import datasets

GUESSED_START = (180.0, 600.0)
"""Seconds, likely and at worst. A guess: tens of GB from a local disk, some hundred GB from a network volume."""
STREAMS = (171.0, 48.0)
"""Output tokens per second of one request: published for Qwen3-Coder-Next without speculation on four H200, alone
(171.1 at most) and as one of 32 (1529.1 / 32 at least)."""
_PUBLISHED = "Qwen/Qwen3-Coder-Next"
DEPENDS_ON = frozenset({"SpeculativeDeployment", "BenchmarkRun", ROUND_KIND, "BenchmarkProfile", "Deployment",
                        "Service", "ControllerRevision", "PersistentVolumeClaim", "ResourceClaimTemplate"})  # fmt: skip
"""Kinds of existing objects that a plan depends on."""
NO_ROOM = 3
"""Exit code if something would wait for GPUs forever."""


SPREADS = (0.05, None)
"""Assumed standard deviations of ln(speed) between the baseline's requests, at up to 12 at once: a guess with which
later rounds send fewer requests; and None, for one so large that they send as many."""


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "plan",
        epilog="With -n, it is the plan of an edit: what the cluster has in that namespace counts, and what serves is "
        "compared with the changed spec. Without access: kubectl get "
        "specdep,bench,benchround,benchprof,deploy,svc,controllerrevisions,pvc,resourceclaimtemplates -o "
        "yaml > there.yaml; paceline plan FILE --cluster there.yaml. If FILE has a BenchmarkProfile, the plan "
        "also covers every deployment in there.yaml that names it: its pools, and what they would measure. "
        "Exit: 0; 1 if FILE is refused, or would be Stalled; 3 if something waits for GPUs forever "
        "(--gpus-free).",
    )
    options.add_file(parser, "YAML or JSON, any number of documents; - for stdin")
    parser.add_argument(
        "--gpus-free",
        type=_number,
        metavar="N",
        help="show what waits if only N accelerators are free, and what clients notice if N are free besides the "
        "servers'",
    )
    parser.add_argument("--cluster", metavar="FILE", help="existing objects, as kubectl get -o yaml prints them")
    options.add_kubectls(parser)
    parser.add_argument("--start-seconds", type=_count, metavar="S", help="time until a server is ready")
    parser.add_argument("--tokens-per-second", type=_count, metavar="T", help="speed of one request under load")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    try:
        existing = _existing(args)
        objects = everything(args.file, existing)
        others = concerned(objects, existing)
    except RefusedError as refused:
        print(refused, file=sys.stderr)
        return 1
    except ApiError as error:
        print(said(error), file=sys.stderr)
        return 1
    except (OSError, ValueError, yaml.YAMLError) as error:
        print(f"{args.cluster or '-n ' + args.namespace}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    now, codes, manifests = datetime.now(UTC), {0}, [one for one in objects if is_deployment_or_run(one)]
    for manifest in manifests:
        there, bounds, lower, upper = _cases(args, manifest, existing, now)
        crowded = (
            forecast(manifest, there, ALL_FASTER, bounds.lower, args.gpus_free, now)
            if args.gpus_free is not None
            else None
        )
        lines = [
            *costs(manifest, lower, upper, bounds, there),
            *(f"\nKnown problem, {known}." for known in known_of(spec_of(manifest))),
            *opening(spec_of(manifest).window, now),
            *capacity(manifest, upper, crowded, args.gpus_free),
            *way_out_of_room(manifest, there, bounds.lower, crowded, args.gpus_free, now),
            *interruptions(manifest, there, bounds.lower, bounds.upper, args.gpus_free, now),
        ]
        print("\n".join(lines))
        codes |= {1} if lower.stalled else {NO_ROOM} if crowded and crowded.waiting else {0}
    servers = [servers_gpus(spec_of(one)) for one in manifests if one["kind"] != RUN]
    if len(servers) > 1:
        print(f"\nServers of all {len(servers)} deployments take {sum(servers)} GPUs together.")
        if args.gpus_free is not None and sum(servers) > args.gpus_free and not existing:
            print(f"  Not all fit in {args.gpus_free}, whatever is said above for each alone.")
            codes.add(NO_ROOM)
    cases = [(one["metadata"]["name"], *_cases(args, one, existing, now)[2:]) for one in others]
    if cases or not manifests:
        print("\n".join(by_pool(cases)))
    codes |= {1} if any(lower.stalled for _, lower, _ in cases) else {0}
    return 1 if 1 in codes else max(codes)


def _existing(args: argparse.Namespace) -> list[Manifest]:
    if args.cluster:
        return list(documents(read_file(args.cluster)))
    return asyncio.run(cluster.objects(args, DEPENDS_ON)) if args.namespace else []


def _cases(
    args: argparse.Namespace, manifest: Manifest, existing: Sequence[Manifest], now: datetime
) -> tuple[list[Manifest], CostRange, Forecast, Forecast]:
    """The namespace's existing objects, the assumptions, and the likely and the worst case."""
    there = [one for one in existing if may_meet(one, manifest)]
    bounds = _bounds(args.start_seconds, args.tokens_per_second, there, spec_of(manifest))
    lower = forecast(manifest, there, ALL_FASTER, bounds.lower, None, now)
    return there, bounds, lower, forecast(manifest, there, UNDECIDED_SCENARIO, bounds.upper, None, now)


def _bounds(
    start_seconds: int | None, tokens_per_second: int | None, existing: Sequence[Manifest], spec: DeploymentSpec
) -> CostRange:
    """The assumptions of both cases: the arguments, else the numbers of earlier runs, else a guess by the model's
    size."""
    measured = sorted(
        float(replicate["startSeconds"])
        for stored in existing
        if stored.get("kind") == ROUND_KIND
        for replicate in stored["spec"].get("replicates", ())
        if "startSeconds" in replicate
    )
    starts, first = GUESSED_START, "a guess; set --start-seconds"
    if measured:
        starts, first = (
            (measured[len(measured) // 2], measured[-1]),
            f"measured in {len(measured)} starts of earlier runs",
        )
    if start_seconds is not None:
        starts, first = (float(start_seconds), float(start_seconds)), "as you say"
    streams, second, shared = _streams(tokens_per_second, spec.server)
    lower, upper = (
        Assumptions(start_seconds=start, stream=stream, spread=spread, shared=shared, sizes=_sizes(spec))
        for start, stream, spread in zip(starts, streams, SPREADS, strict=True)
    )
    return CostRange(lower=lower, upper=upper, starts=first, streams=second)


def _sizes(spec: DeploymentSpec) -> dict[str, int]:
    """Built-in sets → their number of prompts."""
    sets = {workload.dataset.source: workload.dataset for pool in spec.pools for workload in pool.workloads}
    return {
        source: len(datasets.load_dataset(dataset.address.name))
        for source, dataset in sets.items()
        if dataset.address.scheme is Scheme.BUILTIN
    }


def _streams(tokens_per_second: int | None, server: Server) -> tuple[tuple[float, float], str, bool]:
    """Tokens per second of one request, likely and at worst; their source; and whether the request runs alone."""
    if tokens_per_second is not None:
        return (float(tokens_per_second), float(tokens_per_second)), "as you say", False
    size, source = size_in_name(server.target.source), server.target.source
    if size is None:
        whose = "published for" if _PUBLISHED in source else f"the name of {source} does not tell its size, so those of"
        return STREAMS, f"{whose} Qwen3-Coder-Next on 4x H200, alone and as one of 32; set --tokens-per-second", False
    guess = alone(size, server.accelerator)
    cards = f"{server.accelerator.count * server.accelerator.nodes}x {server.accelerator.product}"
    return (guess, guess / 2), f"a guess by its size, {size}, on {cards}; set --tokens-per-second", True


def _number(text: str) -> int:
    """The `type` of an argparse option that may be zero."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number; got {text}")
    return int(text)


def _count(text: str) -> int:
    """The `type` of an argparse option."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a whole number above zero; got {text}")
    return int(text)
