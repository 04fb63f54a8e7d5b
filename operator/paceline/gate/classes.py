"""From rounds to the fastest arm of each dataset: which tree for which prompts. It promotes nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from paceline.core import Bounds, Gate, Measurement
from paceline.gate.interval import interval
from paceline.gate.rounds import Rounds, rounds_table, weighted_means


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassResult:
    """One dataset. `arm` is the fastest of those compared with all others, `rival` the arm that it is least shown to be
    faster than, and `bounds` those of arm/rival."""

    dataset: str
    arm: str
    rival: str
    bounds: Bounds
    rounds: int

    @property
    def best(self) -> str | None:
        """The arm, if it is shown to be faster than every other one."""
        return self.arm if self.bounds.lower > 1 else None


def best_by_class(
    gate: Gate, arms: Sequence[str], classes: Mapping[str, Mapping[str, float]], measurements: Sequence[Measurement]
) -> tuple[ClassResult, ...]:
    """`classes`: dataset → its workloads → weight. Two arms are compared in the rounds up to the last look in which
    both are valid on all workloads of the dataset. Only an arm that was compared with each other one that was valid in
    any round is best: a candidate that lost rounds, or joined later, has others. Without a best arm, a dataset is left
    out unless all of them were compared with each other.

    The error probability 1 − confidence of the whole table is split over datasets, ordered pairs of arms and looks, so
    all datasets may be read together.
    """
    claims = len(classes) * len(arms) * (len(arms) - 1) * len(gate.decide_after_rounds)
    found = []
    for dataset, loads in classes.items():
        rounds = rounds_table(arms[0], loads, measurements)
        groups = [list(_beside(gate, rounds, arms, arm, dataset, claims)) for arm in arms]
        ran = sum(bool(rounds.usable.get(arm)) for arm in arms)
        leads = [min(group, key=_lower) for group in groups if group and len(group) == ran - 1]
        lead = max(leads, key=_lower, default=None)
        if lead and (lead.best or len(leads) == ran):
            found.append(lead)
    return tuple(found)


def _beside(
    gate: Gate, rounds: Rounds, arms: Sequence[str], arm: str, dataset: str, claims: int
) -> Iterator[ClassResult]:
    """The arm beside each other one."""
    for rival in arms:
        beside = replace(rounds, baseline=rival)
        complete = beside.complete(arm)
        used = max((look for look in gate.decide_after_rounds if look <= len(complete)), default=0)
        if rival == arm or used < 2:
            continue
        logs = {load: beside.speed_ups(arm, complete[:used], load) for load in rounds.workloads}
        means = weighted_means(rounds.workloads, logs)
        bounds = interval(means, error=(1 - gate.confidence) / claims, floor=gate.variance_floor).bounds
        yield ClassResult(dataset=dataset, arm=arm, rival=rival, bounds=bounds, rounds=used)


def _lower(result: ClassResult) -> float:
    return result.bounds.lower
