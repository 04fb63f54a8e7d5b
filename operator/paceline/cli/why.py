"""`kubectl paceline why NAME`: a paragraph for each pool."""

import argparse
import shutil
import sys
import textwrap
from datetime import UTC, datetime

from paceline.cli.live import command
from paceline.cli.live.lookup import find_name, joined, load_deployment
from paceline.cli.live.why_text import paragraph
from paceline.controller.kinds import BENCHMARK_RUN
from paceline.core.names import RUN_LABEL
from paceline.core.text import in_all_texts, printable_lines
from paceline.kube import Api, Ref, selector
from paceline.report.spent import time_lines


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "why",
    )
    command.add_options(parser)
    parser.add_argument("--pool", help="only this pool")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    return command.run(_why, args)


async def _why(api: Api, namespace: str, args: argparse.Namespace) -> int:
    deployment = await load_deployment(api, namespace, await find_name(api, namespace, args.name))
    now = datetime.now(UTC)
    texts = {
        pool.name: " ".join(
            [paragraph(deployment, pool, now), *await time_of_run(api, namespace, pool.status.benchmark_run)]
        )
        for pool in deployment.chosen(args.pool)
    }
    if args.output == "json":
        command.print_json({"namespace": namespace, "name": deployment.name, "pools": texts})
    else:
        print("\n\n".join(_wrapped(text) for text in texts.values()))
    return 0


async def time_of_run(api: Api, namespace: str, run: str) -> tuple[str, ...]:
    """What the time of the pool's run goes into, if it is odd."""
    stored = await api.get(Ref(BENCHMARK_RUN, namespace, run)) if run else None
    if stored is None:
        return ()
    (found,) = in_all_texts(await joined(api, namespace, [stored], selector({RUN_LABEL: run})), printable_lines)
    return time_lines(found)


def _wrapped(text: str) -> str:
    """Wraps only on a terminal."""
    if not sys.stdout.isatty():
        return text
    width = min(100, shutil.get_terminal_size().columns)
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
