"""`kubectl paceline promote | promote-anyway | abort | retry | rollback`: one-time requests, outside the spec.

Each writes an annotation with a fresh token and, by default, waits until the operator has executed or refused it. A
refused request is withdrawn: otherwise it would take effect later, when it becomes possible.
"""

import argparse
import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime

from paceline.cli import options
from paceline.cli.live import command
from paceline.cli.live.advice import asked_to_promote
from paceline.cli.live.deployment import ObservedDeployment, ObservedPool
from paceline.cli.live.lookup import find_name, load_deployment
from paceline.cli.live.payload import pool_payload
from paceline.cli.live.poll import looks
from paceline.cli.live.request import (
    Asked,
    answer,
    effect,
    fresh_token,
    handled,
    refusal_reason,
    request_value,
    take_back,
    write,
)
from paceline.kube import Api

EVERY = 0.5
"""Seconds between two polls for an answer."""
_LONGEST_TOKEN = 200
KNOWINGLY = "--against-the-verdict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    revision: str = ""
    """The revision that REVISION resolves to; empty if the request names none."""


_VERBS = {
    "promote": Verb(revision="what to serve, as status names it; left out: the winner"),
    "promote-anyway": Verb(revision="the candidate to serve; left out: the only one"),
    "abort": Verb(),
    "retry": Verb(),
    "rollback": Verb(revision="what to go back to, as history names it; left out: what served before"),
}


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    for name, verb in _VERBS.items():
        parser = subparsers.add_parser(
            name,
            epilog="Exit: 0 if it is carried out; 1 if it is refused, or no operator answers.",
        )
        parser.add_argument("name", nargs="?", metavar="NAME", help="a SpeculativeDeployment, if there are several")
        if verb.revision:
            parser.add_argument("revision", nargs="?", default="", metavar="REVISION", help=verb.revision)
        parser.add_argument("--pool", help="the pool, if there are several")
        if name == "promote-anyway":
            parser.add_argument(KNOWINGLY, action="store_true", dest="knowingly", help="confirms that you know it")
        parser.add_argument("--token", default="", help="word by which history names the request [time and a number]")
        parser.add_argument("--no-wait", action="store_true", help="do not wait for the operator's answer")
        parser.add_argument(
            "--timeout", type=options.seconds, default=30, metavar="DURATION", help="wait this long for it [30s]"
        )
        options.add_json(parser)
        options.add_kubectls(parser)
        parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    return command.run(ask, args)


async def ask(api: Api, namespace: str, args: argparse.Namespace) -> int:
    deployment = await load_deployment(api, namespace, await find_name(api, namespace, args.name))
    pool = one_pool(deployment, args.pool)
    asked = request(pool, args)
    await write(api, deployment, asked)
    if args.no_wait:
        return _said(args, asked, pool, f"{asked} is written")
    seen = looks(api, namespace, deployment.name, EVERY)
    return await _answered(api, args, asked, pool, await heard(seen, asked, args.timeout))


def one_pool(deployment: ObservedDeployment, name: str | None) -> ObservedPool:
    """A request needs exactly one pool."""
    found = deployment.chosen(name)
    if len(found) > 1:
        raise ValueError(f"--pool: {deployment.name} has several; name one of {', '.join(pool.name for pool in found)}")
    return found[0]


def request(pool: ObservedPool, args: argparse.Namespace) -> Asked:
    """Raises ValueError if the request needs more information."""
    verb, token = args.command, args.token
    if verb == "promote-anyway" and not args.knowingly:
        verdict = pool.status.verdict
        what = f"{verdict.outcome}: {verdict.message}" if verdict else "there is none yet"
        raise ValueError(f"it overrides the verdict on {pool.name} ({what}); if you mean to, add {KNOWINGLY}")
    if not token.isprintable() or "@" in token or len(token) > _LONGEST_TOKEN:
        raise ValueError(f"--token: must be printable, without @, and of at most {_LONGEST_TOKEN} characters")
    revision = getattr(args, "revision", "") or (asked_to_promote(pool) if verb == "promote" else "")
    written = request_value(
        revision, token or fresh_token(datetime.now(UTC)), names_revision=bool(_VERBS[verb].revision)
    )
    return Asked(verb=verb, pool=pool.name, value=written)


async def heard(seen: AsyncIterator[ObservedDeployment], asked: Asked, longest: float) -> ObservedDeployment | None:
    """The deployment with its answer; None after `longest` seconds without one."""
    try:
        async with asyncio.timeout(longest):
            return await answer(seen, asked)
    except TimeoutError:
        return None


async def _answered(
    api: Api, args: argparse.Namespace, asked: Asked, before: ObservedPool, found: ObservedDeployment | None
) -> int:
    if found is None:
        raise ValueError(
            f"{asked} is written, but the operator has not answered in {args.timeout} s: is it running? It will act "
            "once it runs; to take the request back, remove the annotation"
        )
    if handled(found, asked):
        (after,) = found.chosen(asked.pool)
        return _said(args, asked, after, f"{asked.pool}: {effect(before, after)}")
    why = refusal_reason(found, asked)
    await take_back(api, found, asked)
    again = await load_deployment(api, found.namespace, found.name)
    if handled(again, asked):  # answered in the meantime
        return await _answered(api, args, asked, before, again)
    if args.output == "json":
        command.print_json({"request": asked.key, "value": asked.value, "handled": False, "refused": why})
        return 1
    raise ValueError(f"{asked.pool}: {why} (the request is taken back)")


def _said(args: argparse.Namespace, asked: Asked, pool: ObservedPool, text: str) -> int:
    if args.output == "json":
        done = {"request": asked.key, "value": asked.value, "handled": not args.no_wait, "refused": ""}
        command.print_json({**done, "pool": pool_payload(pool)})
    else:
        print(text)
    return 0
