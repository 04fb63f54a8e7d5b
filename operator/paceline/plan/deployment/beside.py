"""Where a search begins: at the tree that the pool serves, or that another pool has found, as the best tree of one load
is near that of the next."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from paceline.core import PoolSpec, Tree
from paceline.plan.deployment.earned import still_rendered
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.runs import Run


def begins_at(pool: Pool) -> Tree | None:
    """The tree that serves, which must not lose its place to one that is slower; else that of the pool whose
    concurrency is nearest; None without one."""
    served = still_rendered(pool)
    if served and served.tree:
        return served.tree
    own = _load(pool.spec)
    nearest = sorted(_others(pool), key=lambda found: (abs(math.log(found[0] / own)), found[0]))
    return nearest[0][1] if nearest else None


def _others(pool: Pool) -> Iterator[tuple[float, Tree]]:
    """Concurrency and tree, of each other pool with a search that has found one."""
    for other in pool.deployment.pools:
        if other.name == pool.name or other.search is None:
            continue
        runs = [Run(manifest=manifest) for manifest in pool.snapshot.owned("BenchmarkRun", other.name)]
        found = sorted((run for run in runs if run.found), key=lambda run: run.finished_at)
        if found and (tree := _tree(found[-1])):
            yield _load(other), tree


def _tree(run: Run) -> Tree | None:
    """That of its winner, if it has one."""
    arms: Mapping[str, Any] = {arm["name"]: arm for arm in run.spec["arms"]}
    shape = arms.get(run.found, {}).get("tree")
    if not shape:
        return None
    return Tree(num_steps=shape["numSteps"], top_k=shape["topK"], num_draft_tokens=shape["numDraftTokens"])


def _load(pool: PoolSpec) -> float:
    """The concurrency that the pool is for: the geometric mean of its levels."""
    levels = {workload.concurrency for workload in pool.workloads}
    return math.exp(sum(map(math.log, levels)) / len(levels))
