"""Throughput over latency: output of a GPU for all users and for one user, load by load."""

from collections.abc import Iterator, Sequence

from paceline.core.manifest import Object
from paceline.report.model import LoadView, TradeOff, Value
from paceline.report.read import at_one_load, gpus_of, named_workload

THROUGHPUT, TPOT = "steadyThroughput", "meanTPOT"


def trade_offs(spec: Object, values: Sequence[Value]) -> Iterator[TradeOff]:
    """For each dataset measured in closed loops at two or more concurrencies, a line per arm. At a rate a dataset has
    only one load."""
    gpus = gpus_of(spec)
    typical = {(value.metric, value.arm, value.workload): value.typical for value in values}
    loops = [one for one in spec["workloads"] if at_one_load(one)]
    for dataset in dict.fromkeys(one["name"] for one in loops):
        rising = sorted((one for one in loops if one["name"] == dataset), key=lambda one: one["concurrency"])
        lines = {}
        for arm in (arm["name"] for arm in spec["arms"]):
            found = [
                LoadView(
                    concurrency=one["concurrency"],
                    per_gpu=typical[THROUGHPUT, arm, named_workload(one)] / gpus,
                    per_user=1 / typical[TPOT, arm, named_workload(one)],
                )
                for one in rising
                if (THROUGHPUT, arm, named_workload(one)) in typical
                and typical.get((TPOT, arm, named_workload(one)), 0) > 0
            ]
            if len(found) > 1:
                lines[arm] = tuple(found)
        if lines:
            yield TradeOff(dataset=dataset, lines=lines)
