"""`kubectl paceline top NAME`: current acceptance and speed of each pool, next to its evidence.

Reads each server's counters twice, some seconds apart, through the API server's pod proxy.
"""

import argparse
import asyncio
import time
from collections.abc import Mapping, Sequence

import aiohttp

from paceline.cli import options
from paceline.cli.live import command
from paceline.cli.live.deployment import ObservedDeployment, ObservedPool
from paceline.cli.live.lookup import find_name, load_deployment, load_runs
from paceline.cli.live.traffic import Page, Traffic, traffic, traffic_payload
from paceline.controller.pages import FAILURES, LONGEST_PAGE, PAGE_TIMEOUT
from paceline.core.names import COMPONENT_LABEL, DEPLOYMENT_LABEL, POOL_LABEL
from paceline.core.text import in_all_texts, printable
from paceline.engines import ENGINES
from paceline.kube import Api, Manifest, Transport, selector
from paceline.kube.reading import read_body
from paceline.kube.resources import POD
from paceline.plan.objects import condition
from paceline.render.group import LEADER
from paceline.render.serving import ARM_LABEL

monotonic = time.monotonic
DENIED = "may not be read: ask for `get` on pods/proxy in this namespace, which the built-in role edit has"


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "top",
    )
    command.add_options(parser)
    parser.add_argument("--pool", help="only this pool")
    parser.add_argument(
        "--interval",
        type=options.seconds,
        default=5,
        metavar="DURATION",
        help="time between the two readings [5s]",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    return command.run(top, args)


async def top(api: Transport, namespace: str, args: argparse.Namespace) -> int:
    deployment = await load_deployment(api, namespace, await find_name(api, namespace, args.name))
    mine = selector({DEPLOYMENT_LABEL: deployment.name})
    runs = in_all_texts(await load_runs(api, namespace, mine), printable)
    found = await readings(api, deployment, deployment.chosen(args.pool), runs, args.interval)
    if args.output == "json":
        command.print_json(traffic_payload(deployment, found))
        return 0
    from paceline.cli.live.screen import print_styled
    from paceline.cli.live.speeds import speeds_table

    print_styled(speeds_table(found))
    return 0


async def readings(
    api: Transport,
    deployment: ObservedDeployment,
    pools: Sequence[ObservedPool],
    runs: Sequence[Manifest],
    interval: float,
) -> list[Traffic]:
    """Reads every server twice, `interval` seconds apart. Raises ValueError if no server of this engine can be read."""
    if cannot := ENGINES[deployment.engine].monitor(deployment.version).cannot:
        raise ValueError(cannot)
    pods = await answering_pods(api, deployment.namespace, deployment.name)
    began = monotonic()
    before = await pages(api, deployment, pods)
    await asyncio.sleep(interval)
    seconds = monotonic() - began
    after = await pages(api, deployment, pods)
    return [
        traffic(deployment, pool, runs, before.get(pool.name, {}), after.get(pool.name, {}), seconds) for pool in pools
    ]


async def answering_pods(api: Api, namespace: str, name: str) -> list[Manifest]:
    """The pods that currently answer requests."""
    labels = selector({DEPLOYMENT_LABEL: name, COMPONENT_LABEL: "server"})
    pods = (await api.list(POD, namespace, labels)).items
    return [pod for pod in pods if condition(pod, "Ready") and _leads(pod["metadata"]["labels"])]


def _leads(labels: Mapping[str, str]) -> bool:
    return all(labels.get(name, value) == value for name, value in LEADER.items())


async def pages(
    api: Transport, deployment: ObservedDeployment, pods: list[Manifest]
) -> Mapping[str, Mapping[str, Page]]:
    """Pool → pod → its counts, or why they could not be read."""
    found: dict[str, dict[str, Page]] = {}
    async with api.session() as http:
        read = await asyncio.gather(*(_page(http, api.server, deployment, pod) for pod in pods))
    for pod, page in zip(pods, read, strict=True):
        found.setdefault(pod["metadata"]["labels"].get(POOL_LABEL, ""), {})[pod["metadata"]["name"]] = page
    return found


async def _page(http: aiohttp.ClientSession, server: str, deployment: ObservedDeployment, pod: Manifest) -> Page:
    engine, version = deployment.engine_of(pod["metadata"]["labels"].get(ARM_LABEL, ""))
    adapter, name = ENGINES[engine], pod["metadata"]["name"]
    monitor = adapter.monitor(version)
    url = f"{server}{POD.path(deployment.namespace, f'{name}:{adapter.port}', 'proxy')}{monitor.path}"
    try:
        async with http.get(url, timeout=PAGE_TIMEOUT, allow_redirects=False) as answer:
            if answer.status == 200:
                return monitor.read(await read_body(answer.content, LONGEST_PAGE))
            said = printable((await read_body(answer.content, LONGEST_PAGE)).decode(errors="replace"))[:200]
            return f"{name}: {DENIED}" if answer.status == 403 else f"{name}: {monitor.path}: {answer.status} {said}"
    except FAILURES as error:
        return f"{name}: {printable(str(error)) or type(error).__name__}"
