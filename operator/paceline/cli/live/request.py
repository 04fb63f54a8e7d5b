"""A person's request: its annotation, and its outcome."""

import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from paceline.cli.live.deployment import ObservedDeployment, ObservedPool
from paceline.controller.kinds import SPECULATIVE_DEPLOYMENT
from paceline.kube import Api

_MANAGER = "kubectl-paceline"
"""Each request has its own field manager, so that it can be withdrawn without removing another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    verb: str
    pool: str
    value: str

    @property
    def key(self) -> str:
        """The annotation's key."""
        return f"{self.verb}.{SPECULATIVE_DEPLOYMENT.group}/{self.pool}"

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


def request_value(revision: str, token: str, *, names_revision: bool) -> str:
    """[REVISION]@TOKEN, or only the token if the request has no revision."""
    return f"{revision}@{token}" if names_revision else token


def fresh_token(now: datetime) -> str:
    """A token that was not used before."""
    return f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


async def write(api: Api, deployment: ObservedDeployment, asked: Asked) -> None:
    await _apply(api, deployment, asked, {asked.key: asked.value})


async def take_back(api: Api, deployment: ObservedDeployment, asked: Asked) -> None:
    await _apply(api, deployment, asked, {})


async def _apply(api: Api, deployment: ObservedDeployment, asked: Asked, annotations: Mapping[str, str]) -> None:
    """Apply only these annotations. The uid is included, so that a new deployment with the same name is not changed."""
    metadata: dict[str, Any] = {"name": deployment.name, "namespace": deployment.namespace, "uid": deployment.uid}
    manifest = {
        "apiVersion": SPECULATIVE_DEPLOYMENT.api_version,
        "kind": SPECULATIVE_DEPLOYMENT.kind,
        "metadata": metadata | ({"annotations": dict(annotations)} if annotations else {}),
    }
    await api.apply(manifest, manager=f"{_MANAGER}-{asked.verb}-{asked.pool}")


async def answer(seen: AsyncIterator[ObservedDeployment], asked: Asked) -> ObservedDeployment:
    """The deployment once the request was executed or refused. Waits forever without an operator."""
    async for deployment in seen:
        if handled(deployment, asked) or refusal_reason(deployment, asked):
            return deployment
    raise AssertionError("who looks again and again does not end")


def handled(deployment: ObservedDeployment, asked: Asked) -> bool:
    (pool,) = deployment.chosen(asked.pool)
    return getattr(pool.status.handled, asked.verb.replace("-", "_"), "") == asked.value


def refusal_reason(deployment: ObservedDeployment, asked: Asked) -> str:
    """The reason of a refusal; "" if there was none."""
    begins = f"{asked}: "
    return next((text.removeprefix(begins) for text in deployment.status.refused if text.startswith(begins)), "")


def effect(before: ObservedPool, after: ObservedPool) -> str:
    """What a request changed, as a sentence without a full stop."""
    was, now = before.status, after.status
    changes = []
    gone = (hold for hold in was.holds if hold not in now.holds)
    changes += [f"the hold of {hold.arm or 'the run'} ({hold.reason}) is released" for hold in gone]
    changes += [f"held ({hold.reason}): {hold.message}" for hold in now.holds if hold not in was.holds]
    if now.retried and now.retried != was.retried:
        changes.append(f"another attempt follows attempt {now.retried.attempt}")
    if now.target and (not was.target or now.target.revision != was.target.revision):
        changes.append(f"{now.target.arm} at {now.target.revision} is being rolled out, because {now.target.message}")
    return "; ".join(changes) or "there was nothing to do"
