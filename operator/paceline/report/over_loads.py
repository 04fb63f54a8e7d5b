"""Throughput over concurrency: the fastest arm at each load, and where a schedule changes its depth."""

from collections.abc import Iterator, Sequence

from paceline.core.manifest import Object
from paceline.report.model import Value
from paceline.report.read import at_one_load, named_workload
from paceline.report.search_model import Threshold, Throughput
from paceline.report.trade_off import THROUGHPUT

_MOST = 6
"""Arms in a chart of a search, best first: as many as there are colours."""


def over_loads(spec: Object, values: Sequence[Value], *, of_a_search: bool = False) -> Iterator[Throughput]:
    """For each dataset measured in closed loops at two or more concurrencies, a line per arm. A search's chart
    (`of_a_search`) has only its first arms, the best."""
    typical = {(value.arm, value.workload): value.typical for value in values if value.metric == THROUGHPUT}
    arms = [arm for i, arm in enumerate(spec["arms"]) if not of_a_search or i < _MOST]
    loops = [one for one in spec["workloads"] if at_one_load(one)]
    for dataset in dict.fromkeys(one["name"] for one in loops):
        rising = sorted((one for one in loops if one["name"] == dataset), key=lambda one: one["concurrency"])
        lines = {
            arm["name"]: {
                one["concurrency"]: typical[arm["name"], named_workload(one)]
                for one in rising
                if (arm["name"], named_workload(one)) in typical
            }
            for arm in arms
        }
        lines = {arm: line for arm, line in lines.items() if len(line) > 1}
        if lines:
            thresholds = tuple(one for one in _thresholds(spec) if one.arm in lines)
            yield Throughput(dataset=dataset, lines=lines, thresholds=thresholds)


def _thresholds(spec: Object) -> Iterator[Threshold]:
    """A schedule's first entry, for batches of one, is not a threshold."""
    for arm in spec["arms"]:
        for depth in (arm.get("depthByBatchSize") or ())[1:]:
            yield Threshold(arm=arm["name"], batch_size=depth["fromBatchSize"], steps=depth["numSteps"])
