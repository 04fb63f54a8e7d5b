"""`kubectl paceline history NAME`: all changes of what a pool serves, newest first."""

import argparse

from paceline.cli.live import command
from paceline.cli.live.lookup import find_name, load_deployment
from paceline.kube import Api


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "history",
        epilog="REVISION of `rollback` is one of these, as long as promotion.revisionHistoryLimit keeps it.",
    )
    command.add_options(parser)
    parser.add_argument("--pool", help="only this pool")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    return command.run(_history, args)


async def _history(api: Api, namespace: str, args: argparse.Namespace) -> int:
    deployment = await load_deployment(api, namespace, await find_name(api, namespace, args.name))
    pools = deployment.chosen(args.pool)
    if args.output == "json":
        entries = [{"name": pool.name, "history": pool.stored.get("history") or []} for pool in pools]
        command.print_json({"namespace": namespace, "name": deployment.name, "pools": entries})
        return 0
    if not any(pool.status.history for pool in pools):
        raise ValueError(f"{deployment.name} has served nothing yet: kubectl paceline why {deployment.name}")
    from paceline.cli.live import table
    from paceline.cli.live.screen import print_styled

    print_styled(table.history_lines(pools))
    return 0
