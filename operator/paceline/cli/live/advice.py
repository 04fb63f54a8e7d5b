"""What a person can do about a pool now, as a command."""

import re
from collections.abc import Callable

from paceline.cli.live.deployment import Deployment, Pool

UNDECIDED = ("Error", "Inconclusive")


def advice(deployment: Deployment, pool: Pool) -> str:
    """The first that applies; empty where nothing waits for a person."""
    return next((found for ask in ADVICE if (found := ask(deployment, pool))), "")


def promotable(pool: Pool) -> str:
    """The revision that status asks a person to promote; empty if it asks for none."""
    promoted = pool.condition("Promoted")
    if promoted is None or promoted.reason != "AwaitingPromote":
        return ""
    found = re.search(rf"promote\.paceline\.dev/{re.escape(pool.name)}=(\w+)@", promoted.message)
    return found[1] if found else ""


def _promote(deployment: Deployment, pool: Pool) -> str:
    revision = promotable(pool)
    return _command("promote", deployment, pool, revision) if revision else ""


def _retry(deployment: Deployment, pool: Pool) -> str:
    undecided = pool.status.verdict and pool.status.verdict.outcome in UNDECIDED
    return _command("retry", deployment, pool) if pool.status.holds or undecided else ""


def _command(verb: str, deployment: Deployment, pool: Pool, revision: str = "") -> str:
    return " ".join(filter(None, ("kubectl paceline", verb, deployment.name, revision, "--pool", pool.name)))


ADVICE: tuple[Callable[[Deployment, Pool], str], ...] = (_promote, _retry)
