"""Suggests a command for a pool that needs a person now."""

import re
from collections.abc import Callable

from paceline.cli.live.deployment import ObservedDeployment, ObservedPool

UNDECIDED_OUTCOMES = ("Error", "Inconclusive")


def advice(deployment: ObservedDeployment, pool: ObservedPool) -> str:
    """The first advice that applies; empty if the pool does not need a person."""
    return next((found for ask in ADVICE if (found := ask(deployment, pool))), "")


def asked_to_promote(pool: ObservedPool) -> str:
    """The revision that status asks a person to promote; empty if none."""
    for condition in (pool.condition("Promoted"), pool.condition("ChangePending")):
        if condition and condition.reason == "AwaitingPromote":
            found = re.search(rf"promote\.paceline\.dev/{re.escape(pool.name)}=(\w+)@", condition.message)
            return found[1] if found else ""
    return ""


def _promote(deployment: ObservedDeployment, pool: ObservedPool) -> str:
    revision = asked_to_promote(pool)
    return _command("promote", deployment, pool, revision) if revision else ""


def _retry(deployment: ObservedDeployment, pool: ObservedPool) -> str:
    undecided = pool.status.verdict and pool.status.verdict.outcome in UNDECIDED_OUTCOMES
    return _command("retry", deployment, pool) if pool.status.holds or undecided else ""


def _command(verb: str, deployment: ObservedDeployment, pool: ObservedPool, revision: str = "") -> str:
    return " ".join(filter(None, ("kubectl paceline", verb, deployment.name, revision, "--pool", pool.name)))


ADVICE: tuple[Callable[[ObservedDeployment, ObservedPool], str], ...] = (_promote, _retry)
