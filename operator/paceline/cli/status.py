"""`kubectl paceline status NAME`: a tree of pools, what serves, what is being measured, what is held."""

import argparse
from datetime import UTC, datetime

from paceline.api.status import SpeculativeDeploymentStatus
from paceline.cli.live import command
from paceline.cli.live.lookup import find_name, load_deployment
from paceline.cli.live.payload import payload
from paceline.controller.kinds import SPECULATIVE_DEPLOYMENT
from paceline.core.record import from_status
from paceline.core.text import in_all_texts, printable
from paceline.kube import Api

HEADS = ("NAMESPACE", "NAME", "STATE", "SUMMARY")


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "status",
    )
    command.add_options(parser)
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="list the deployments of all namespaces")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    return command.run(_status, args)


async def _status(api: Api, namespace: str, args: argparse.Namespace) -> int:
    if args.all_namespaces:
        return await _list(api, args)
    deployment = await load_deployment(api, namespace, await find_name(api, namespace, args.name))
    if args.output == "json":
        command.print_json(payload(deployment))
        return 0
    from paceline.cli.live.screen import print_styled
    from paceline.cli.live.tree import tree

    print_styled(tree(deployment, datetime.now(UTC)))
    return 0


async def _list(api: Api, args: argparse.Namespace) -> int:
    """One line per deployment, as in `kubectl get`, plus what it serves."""
    found = in_all_texts((await api.list(SPECULATIVE_DEPLOYMENT)).items, printable)
    rows = [
        (one["metadata"]["namespace"], one["metadata"]["name"], status.state or "-", status.summary)
        for one in sorted(found, key=lambda one: (one["metadata"]["namespace"], one["metadata"]["name"]))
        for status in [from_status(SpeculativeDeploymentStatus, one.get("status"))]
    ]
    if args.output == "json":
        command.print_json([dict(zip(("namespace", "name", "state", "summary"), row, strict=True)) for row in rows])
        return 0
    if not rows:
        raise ValueError("the cluster has no SpeculativeDeployment")
    widths = [max(len(row[i]) for row in (*rows, HEADS)) for i in range(len(HEADS) - 1)]
    for row in (HEADS, *rows):
        print("   ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[-1]]).rstrip())
    return 0
