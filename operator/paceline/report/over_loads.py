"""Throughput over concurrency: which arm is the fastest at which load, and where a schedule changes its depth."""

from collections.abc import Iterator, Sequence

from paceline.core.manifest import Object
from paceline.report.model import Value
from paceline.report.read import at_one_load, named_workload
from paceline.report.search_model import Threshold, Throughput
from paceline.report.trade_off import THROUGHPUT

_MOST = 6
"""Arms of a chart of a search, the best first: as many as have colours of their own."""


def over_loads(spec: Object, values: Sequence[Value], *, of_a_search: bool = False) -> Iterator[Throughput]:
    """Of each dataset that was measured in closed loops at two concurrencies or more, a line per arm. `found`: of a
    search, whose chart has the best of its arms, those that were the fastest at some load, and what it has written."""
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
    """A schedule begins with batches of one: that is no threshold."""
    for arm in spec["arms"]:
        for depth in (arm.get("depthByBatchSize") or ())[1:]:
            yield Threshold(arm=arm["name"], batch_size=depth["fromBatchSize"], steps=depth["numSteps"])
