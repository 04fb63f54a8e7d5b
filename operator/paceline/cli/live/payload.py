"""A deployment as JSON: status under its own names, plus values that a reader would compute."""

from typing import Any

from paceline.cli.live.deployment import ObservedDeployment, ObservedPool
from paceline.cli.live.progress import Progress
from paceline.core.record import to_camel, to_status

COMPUTED = (
    "rounds",
    "looks",
    "next_look",
    "going_on",
    "seconds_per_round",
    "seconds_to_next_look",
    "seconds_to_last_look",
    "gpu_seconds",
    "emulated",
    "waits",
)


def payload(deployment: ObservedDeployment) -> dict[str, Any]:
    """All of status, with `pools` in the form of `pool_payload`."""
    return {
        "namespace": deployment.namespace,
        "name": deployment.name,
        "generation": deployment.generation,
        "current": deployment.seen,
        **deployment.stored,
        "pools": [pool_payload(pool) for pool in deployment.pools],
    }


def pool_payload(pool: ObservedPool) -> dict[str, Any]:
    """The pool's status entry, plus `replicas` (requested), `run` (the current run or null) and `emulated` (whether the
    serving revision was promoted by a run without a real model)."""
    return {
        "name": pool.name,
        **pool.stored,
        "replicas": pool.asked,
        "emulated": on_emulated_evidence(pool),
        "run": run(pool.progress) if pool.progress else None,
    }


def on_emulated_evidence(pool: ObservedPool) -> bool:
    return pool.status.serving is not None and pool.status.serving.evidence.run in pool.emulated


def run(progress: Progress) -> dict[str, Any]:
    """A search includes the state of its arms, as in its run's status."""
    search = {} if progress.search is None else {"search": to_status(progress.search)}
    return {"name": progress.run, **{to_camel(name): getattr(progress, name) for name in COMPUTED}, **search}
