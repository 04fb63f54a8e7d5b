"""What the operator is to watch, from status; whether the engine chooses the served arm's depth is the spec's. An entry
that is kept while a spec cannot be carried out counts."""

from collections.abc import Iterable, Iterator

from paceline.api.status import Expected as Remembered
from paceline.api.status import PoolStatus
from paceline.core import DeploymentSpec, GuardAction, PoolSpec
from paceline.watch import Expected, Watched


def watched(spec: DeploymentSpec | None, entries: Iterable[PoolStatus]) -> dict[str, Watched]:
    """Pool → its servers, where all of them were of the revision that is to serve."""
    if spec is None or spec.guard.action is GuardAction.NONE:
        return {}
    pools = {pool.name: pool for pool in spec.pools}
    return {
        entry.name: found
        for entry in entries
        if entry.name in pools and (found := _watched(spec, pools[entry.name], entry))
    }


def _watched(spec: DeploymentSpec, pool: PoolSpec, entry: PoolStatus) -> Watched | None:
    serving, target = entry.serving, entry.target
    if serving is None or target is None or serving.revision != target.revision:
        return None
    known = entry.expected if entry.expected and entry.expected.revision == serving.revision else Remembered()
    return Watched(
        revision=serving.revision,
        arm=serving.arm,
        engine=spec.server.engine.type,
        version=spec.server.engine.version,
        verify_tokens=known.verify_tokens or 1,
        expected=tuple(_loads(known)),
        acceptance_drop=spec.guard.acceptance_drop,
        window=spec.guard.window,
        speculates_up_to=known.crossover,
        source=spec.guard.source,
        depth_follows_load=any(arm.engine_chooses_depth for arm in pool.arms if arm.name == serving.arm),
    )


def _loads(known: Remembered) -> Iterator[Expected]:
    for load in known.loads:
        if load.concurrency is not None:
            yield Expected(
                concurrency=load.concurrency,
                accept_length=load.accept_length,
                ttft_seconds=load.mean_ttft,
                itl_seconds=load.mean_tpot,
            )
