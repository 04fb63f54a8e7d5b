"""Up to which concurrency speculation pays: the gate's own table, by dataset."""

from collections import Counter
from collections.abc import Sequence

from paceline import core, gate
from paceline.api.round import Round
from paceline.core.manifest import Object
from paceline.evidence.round_status import measurements
from paceline.report.model import MEAN_OVER_WORKLOADS, CrossoverView, Curve, CurvePoint
from paceline.report.read import at_one_load, named_workload
from paceline.report.text import capital


def crossover_view(spec: Object, rule: core.Gate, rounds: Sequence[Round]) -> CrossoverView | None:
    """The table by concurrency; None if no dataset was measured at two concurrencies, or none in two rounds."""
    arms = [arm["name"] for arm in spec["arms"] if arm["name"] != core.INCUMBENT]
    loops = [one for one in spec["workloads"] if at_one_load(one)]
    times = Counter(one["name"] for one in loops)
    placed = {named_workload(one): one for one in loops if times[one["name"]] > 1}
    loads = {
        name: gate.LoadLevel(concurrency=one["concurrency"], weight=float(one.get("weight", 1)))
        for name, one in placed.items()
    }
    if not loads or len(arms) < 2:
        return None
    table = gate.crossover(rule, arms, loads, measurements(rounds))
    if sum(bool(result.effects) for result in table.results) < 2:
        return None
    datasets = list(dict.fromkeys(one["name"] for one in placed.values()))
    names = [*([MEAN_OVER_WORKLOADS] if len(datasets) > 1 else []), *datasets]
    spots: dict[str, dict[str, list[CurvePoint]]] = {name: {arm: [] for arm in arms[1:]} for name in names}
    for result in table.results:
        for arm, effect in result.effects.items():
            here = {placed[name]["name"]: bounds for name, bounds in effect.workloads.items()} | {
                MEAN_OVER_WORKLOADS: effect.mean
            }
            for name in names:
                if name in here:
                    spots[name][arm].append(CurvePoint(concurrency=result.concurrency, bounds=here[name]))
    curves = {
        name: tuple(Curve(arm=arm, spots=tuple(of)) for arm, of in each.items() if of) for name, each in spots.items()
    }
    sentence, *numbers = table.message.split("; ")
    return CrossoverView(
        sentence=capital(f"{sentence}."), numbers=capital("; ".join(numbers)), between=table.between, curves=curves
    )
