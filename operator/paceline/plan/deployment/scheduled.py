"""What a gate compares after a search: the tree that was found; and where a schedule was written, that too, beside the
engine's adaptive mode, also at loads on both sides of each of its thresholds and on a ramp through all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from paceline.api.gate import MOST_MEASURED, MOST_POINTS
from paceline.core import BASELINE, WAVES, Arm, Dataset, Depth, Gate, PoolSpec, Workload, default_looks
from paceline.core.canonical import digest
from paceline.engines.grid import ADAPTIVE
from paceline.plan.deployment.runs import Run

MOST_OF_A_NAME = 30
"""Characters of a dataset's name (`api.types.ArmName`)."""
HEAVIER, MOST_WEIGHT = 100.0, 1000.0
"""How much a load of the pool counts beside one at a threshold, and the most that a weight may be."""
RAMP = "-ramp"
"""Ends the name of the dataset that the gate's ramp is of."""
WRITTEN = "schedule-"
"""Begins the names of arms whose schedule a search has written; the hash of the table follows."""


def is_written(arm: Arm) -> bool:
    return bool(arm.schedule) and arm.name == _name(arm.schedule)


def schedules(pool: PoolSpec, runs: Sequence[Run]) -> tuple[Arm, ...]:
    """An arm for each schedule that searches of this pool have written: what serves may be of an earlier one."""
    if pool.search is None or not pool.search.schedule:
        return ()
    written = {_table(run) for run in runs} | {table for run in runs for table in _compared(run)}
    named = {arm.schedule for arm in pool.arms}
    return tuple(
        Arm(name=_name(table), draft=pool.search.draft, schedule=table) for table in sorted(written - named - {()})
    )


def of_the_gate(pool: PoolSpec, search: Run) -> tuple[tuple[Arm, ...], tuple[Workload, ...]]:
    """The arms and workloads that decide about what `search` has found. Admission leaves room for each threshold
    (`api.deployment`): four arms at the pool's loads, and one dataset on both sides of each."""
    table = _table(search)
    static = _best_tree(pool, search) if search.found == ADAPTIVE else search.found
    names = {BASELINE, static, *((ADAPTIVE,) if table else (search.found,))}
    arms = tuple(arm for arm in pool.arms if arm.name in names or (table and arm.schedule == table))
    points = min(MOST_POINTS, MOST_MEASURED // looking(pool.gate, len(arms)).decide_after_rounds[-1])
    beside = _beside(pool.workloads, table, points // len(arms) - len(pool.workloads))
    return arms, (*(map(_of_the_pool, pool.workloads) if beside else pool.workloads), *beside)


def _best_tree(pool: PoolSpec, search: Run) -> str:
    """The static one that came nearest to being found, or was; "" if none was measured."""
    trees = {arm.name for arm in pool.arms if arm.tree}
    standing = search.status.search.arms if search.status.search else ()
    return next((one.arm for one in standing if one.arm in trees and one.state != "failed"), "")


def looking(gate: Gate, arms: int) -> Gate:
    """Looks that are the default for two arms are those for so many."""
    if gate.decide_after_rounds != default_looks(2):
        return gate
    return replace(gate, decide_after_rounds=default_looks(arms))


def _beside(workloads: tuple[Workload, ...], table: tuple[Depth, ...], room: int) -> list[Workload]:
    """A ramp through all loads, if a round can report it beside the sides of the thresholds; then just below and at
    each threshold, with as many datasets as there is room for whole. They must not regress, and hardly count in the
    mean: nobody named these loads."""
    known = {workload.concurrency for workload in workloads}
    loads = [load for depth in table[1:] for load in (depth.from_batch_size - 1, depth.from_batch_size)]
    new = [load for load in dict.fromkeys(loads) if load not in known]
    lightest = {workload.dataset.name: workload.dataset for workload in reversed(workloads)}
    ramps = _ramp(workloads) if table and room > len(new) else []
    datasets = list(reversed(lightest.values()))[: max(0, room - len(ramps)) // len(new) if new else 0]
    return ramps + [_at(load, dataset) for dataset in datasets for load in new]


def _at(load: int, dataset: Dataset) -> Workload:
    requests, fewest = max(dataset.requests, WAVES * load), dataset.fewest_requests
    fewest = None if fewest is None or WAVES * load >= requests else max(fewest, WAVES * load)
    return Workload(dataset=replace(dataset, weight=1.0, requests=requests, fewest_requests=fewest), concurrency=load)


def _ramp(workloads: tuple[Workload, ...]) -> list[Workload]:
    """Of the first dataset, with as many requests as it is sent at the pool's largest load: a file that has enough
    prompts for that has enough for this. None if its name is taken."""
    loads = sorted({workload.concurrency for workload in workloads})
    first, top = workloads[0].dataset, loads[-1]
    name = f"{first.name[: MOST_OF_A_NAME - len(RAMP)].rstrip('-')}{RAMP}"
    if name in {workload.dataset.name for workload in workloads} or len(loads) < 2:
        return []
    requests = max(WAVES * top, *(one.dataset.requests for one in workloads if one.dataset.name == first.name))
    ramp = replace(first, name=name, weight=1.0, requests=requests, fewest_requests=None, ramp_from=loads[0])
    return [Workload(dataset=ramp, concurrency=top)]


def _of_the_pool(workload: Workload) -> Workload:
    weight = min(MOST_WEIGHT, HEAVIER * workload.weight)
    return replace(workload, dataset=replace(workload.dataset, weight=weight))


def _name(table: tuple[Depth, ...]) -> str:
    return f"{WRITTEN}{digest([[depth.from_batch_size, depth.num_steps] for depth in table])[:6]}"


def _table(run: Run) -> tuple[Depth, ...]:
    """The one that it has written; empty without one."""
    found = run.status.search if run.searches and run.found else None
    steps = found.schedule if found else ()
    return tuple(Depth(from_batch_size=step.from_batch_size, num_steps=step.num_steps) for step in steps)


def _compared(run: Run) -> Iterator[tuple[Depth, ...]]:
    """Those of a gate's arms."""
    for arm in run.spec["arms"]:
        steps = ((depth["fromBatchSize"], depth["numSteps"]) for depth in arm.get("schedule", ()))
        table = tuple(Depth(from_batch_size=size, num_steps=steps) for size, steps in steps)
        if table and arm["name"] == _name(table):
            yield table
