"""What holds for every set of measurements."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from paceline import core, gate
from paceline.core import ArmOutcome, Bounds, Measurement

ARMS = ("baseline", "a", "b")
WORKLOADS = {"x": 1.0, "y": 2.5}

no_throughput = st.sampled_from([None, math.nan, math.inf, -math.inf, 0.0, -3.0])
unit = st.floats(min_value=-1, max_value=1)


@st.composite
def campaigns(draw: st.DrawFn, *, broken: bool = True) -> list[Measurement]:
    """Up to nine rounds of arms that differ, quietly or loudly; some points may be missing, invalid or no number."""
    speed = {arm: draw(st.sampled_from([80.0, 100.0, 105.0, 106.0, 130.0])) for arm in ARMS}
    noise = draw(st.sampled_from([0.001, 0.01, 0.1]))
    cells = [(n, arm, w) for n in range(draw(st.integers(0, 9))) for arm in ARMS for w in WORKLOADS]
    wrong = (
        draw(st.dictionaries(st.sampled_from(cells), st.sampled_from(["lost", "invalid", "nothing"]), max_size=6))
        if broken and cells
        else {}
    )
    return [
        Measurement(
            round=cell[0],
            arm=cell[1],
            workload=cell[2],
            output_throughput=draw(no_throughput)
            if wrong.get(cell) == "nothing"
            else speed[cell[1]] * math.exp(noise * draw(unit)),
            valid=wrong.get(cell) != "invalid",
        )
        for cell in cells
        if wrong.get(cell) != "lost"
    ]


def decide(measurements: list[Measurement]) -> core.Verdict:
    return gate.decide(core.Gate(variance_floor=0.001), ARMS, WORKLOADS, measurements)


@given(campaigns(), st.randoms(use_true_random=False))
def test_the_order_of_measurements_does_not_matter(measurements: list[Measurement], dice: random.Random) -> None:
    shuffled = list(measurements)
    dice.shuffle(shuffled)
    assert decide(shuffled) == decide(measurements)


@given(campaigns(), st.one_of(st.floats(min_value=1), no_throughput))
def test_an_invalid_measurement_is_as_if_it_had_not_been_made(
    measurements: list[Measurement], anything: float | None
) -> None:
    garbled = [m if m.valid else replace(m, output_throughput=anything) for m in measurements]
    assert decide(garbled) == decide([m for m in measurements if m.valid])


@given(campaigns(), no_throughput, st.sampled_from(sorted(WORKLOADS)))
def test_without_a_throughput_on_one_workload_there_is_no_verdict_on_the_candidate(
    measurements: list[Measurement], nothing: float | None, workload: str
) -> None:
    blind = [
        replace(m, output_throughput=nothing) if (m.arm, m.workload) == ("a", workload) else m for m in measurements
    ]
    verdict = decide(blind)
    assert verdict.winner != "a"
    assert verdict.arms["a"].outcome is ArmOutcome.ERROR


@given(campaigns(), st.floats(min_value=1e-6, max_value=1e6))
def test_only_ratios_matter(measurements: list[Measurement], scale: float) -> None:
    scaled = [
        replace(m, output_throughput=None if m.output_throughput is None else m.output_throughput * scale)
        for m in measurements
    ]
    before, after = decide(measurements), decide(scaled)
    assert (after.outcome, after.winner, after.rounds) == (before.outcome, before.winner, before.rounds)
    for arm in before.arms:
        assert after.arms[arm].outcome is before.arms[arm].outcome
        mean, same = after.arms[arm].mean, before.arms[arm].mean
        assert (mean is None) == (same is None)
        if mean and same:
            assert (mean.ratio, mean.lower, mean.upper) == pytest.approx((same.ratio, same.lower, same.upper))


@settings(deadline=None)
@given(campaigns(broken=False))
def test_asking_after_every_round_comes_to_the_same_as_asking_once(measurements: list[Measurement]) -> None:
    """A candidate's verdict never changes again, nor does a final one; what later rounds leave out is not missed."""
    asked = list(ARMS)
    seen: list[Measurement] = []
    settled: dict[str, core.ArmVerdict] = {}
    verdict = decide(seen)
    for n in range(9):
        seen += [m for m in measurements if m.round == n and m.arm in asked]
        verdict = decide(seen)
        assert all(verdict.arms[arm] == said for arm, said in settled.items())
        settled = {
            arm: said
            for arm, said in verdict.arms.items()
            if said.outcome in (ArmOutcome.PROMOTABLE, ArmOutcome.REJECTED)
        }
        if verdict.final:
            break
        asked = ["baseline", *gate.undecided(verdict)]
    assert verdict == decide(measurements)


@settings(deadline=None)
@given(campaigns(broken=False))
def test_the_bounds_are_those_of_scipy_stats(measurements: list[Measurement]) -> None:
    """The interval that scipy.stats.t gives for the mean of the log ratios, both sides at the look's error."""
    verdict = decide(measurements)
    points = {(m.round, m.arm, m.workload): m.output_throughput or math.nan for m in measurements}
    error = (1 - 0.95) / (2 * 3)
    for arm, said in verdict.arms.items():
        logs = np.array(
            [[math.log(points[n, arm, w] / points[n, "baseline", w]) for w in WORKLOADS] for n in range(said.rounds)]
        )
        series = {w: logs[:, i] for i, w in enumerate(WORKLOADS)} if said.rounds else {}
        if said.mean:
            series["mean"] = np.average(logs, axis=1, weights=list(WORKLOADS.values()))
        assert set(series) == {*said.workloads, *(["mean"] if said.mean else [])}
        for name, values in series.items():
            sd = max(float(np.std(values, ddof=1)), 0.001)
            low, high = stats.t.interval(
                1 - 2 * error, len(values) - 1, loc=values.mean(), scale=sd / math.sqrt(len(values))
            )
            found = said.mean if name == "mean" else said.workloads[name]
            assert isinstance(found, Bounds)
            assert (found.lower, found.upper) == pytest.approx((math.exp(low), math.exp(high)), rel=1e-9)
