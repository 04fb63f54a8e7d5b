"""How many requests the rounds after the first send."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support.rendered import example
from tests.support.rounds import arm_command

from paceline import api
from paceline.api.load import MOST_REQUESTS
from paceline.api.round import PointRecord, ReplicateRecord, Round
from paceline.core import BASELINE, Dataset, Limit, Purpose, RunSpec, Timeouts, Workload
from paceline.core.record import from_status
from paceline.evidence import RoundPlan, judge_points
from paceline.evidence.round_status import round_record
from paceline.gate import enough_requests
from paceline.plan.costs import Assumptions
from paceline.plan.forecast import ALL_FASTER, forecast
from paceline.plan.run.next_requests import next_workloads, with_enough_requests
from paceline.plan.simulation.answers import round_result
from paceline.pods.conversation import Conversation
from paceline.pods.round.choose import measured_prompts

EVEN = [1.0] * 4
NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)


def asked(**changes: Any) -> RunSpec:
    """What the latency pool of the example asks."""
    deployment = api.deployment(example("qwen3-coder-next"))
    pool = deployment.pools[0]
    found = RunSpec(pool=pool.name, server=deployment.server, arms=pool.arms, workloads=pool.workloads, gate=pool.gate)
    return replace(found, **changes)


def measured(number: int, spread: float | None, ratio: float = 1.3, *, valid: bool = True) -> Round:
    points = tuple(
        PointRecord(
            arm=arm,
            workload=workload.name,
            valid=valid,
            steady_throughput=100.0 * (1.0 if arm == BASELINE else ratio),
            request_spread=spread if arm == BASELINE else 9.0,
        )
        for arm in (BASELINE, "wide")
        for workload in asked().workloads
    )
    return Round(round=number, points=points)


def sent(*records: Round, run: RunSpec | None = None) -> list[int]:
    return [workload.dataset.requests for workload in next_workloads(run or asked(), records)]


def test_the_first_round_sends_all() -> None:
    assert sent() == [64] * 4


def test_later_ones_as_many_as_make_the_noise_of_requests_as_large_as_that_of_starts() -> None:
    """(2 x 0.05^2 + 0.15^2) / (4 x 2 x 0.01^2) = 34.4."""
    assert enough_requests(0.05, EVEN) == 35
    found = next_workloads(asked(), [measured(0, 0.05)])
    assert {(one.dataset.requests, one.dataset.part) for one in found} == {(35, 64)}


def test_a_noisier_baseline_needs_more_and_never_more_than_all() -> None:
    assert [sent(measured(0, spread))[0] for spread in (0.0, 0.05, 0.1, 0.3)] == [29, 35, 54, 64]


def test_fewer_workloads_need_more_of_each_and_a_heavy_one_counts_as_few() -> None:
    assert enough_requests(0.0, [1.0]) == 113
    assert enough_requests(0.0, [9.0, 1.0, 1.0, 1.0]) > enough_requests(0.0, EVEN)


def test_a_spread_that_no_server_has_asks_for_all() -> None:
    assert sent(measured(0, 1e308)) == [64] * 4


@pytest.mark.parametrize("odd", [None, 0, -1, "nan", "1e308", "-1e200", 2**53])
@pytest.mark.parametrize("field", ["requestSpread", "asked", "outputTokens", "outputThroughput", "start", "size"])
def test_odd_stored_numbers_stop_no_pass_and_ask_for_no_more_than_a_spec_may(field: str, odd: Any) -> None:
    dataset = Dataset(name="many", source="pvc://models/a.json", requests=160, max_tokens=192, min_requests=160)
    told = {"requestSpread": "9", "asked": 160, "outputTokens": 9, "outputThroughput": "1e9", "start": 300, "size": 1e9}
    told[field] = odd
    point = {"arm": BASELINE, "workload": "many@32", "valid": True, **told}
    server = {"arm": BASELINE, "startSeconds": told["start"]}
    record = from_status(Round, {"points": [point], "replicates": [server], "prompts": {"many": told["size"]}})
    (requests,) = sent(record, run=asked(workloads=(Workload(dataset=dataset, concurrency=32),)))
    assert 160 <= requests <= MOST_REQUESTS


@pytest.mark.parametrize("ratio", [0.5, 1.0, 3.0])
def test_no_ratio_moves_them(ratio: float) -> None:
    assert sent(measured(0, 0.05, ratio)) == sent(measured(0, 0.05))


def test_they_are_those_of_the_first_round_that_tells_for_good() -> None:
    assert sent(measured(0, 0.05), measured(1, 0.3)) == [35] * 4
    assert sent(measured(0, None), measured(1, 0.1)) == [54] * 4, "the message had no room, or the client is older"
    assert sent(measured(0, 0.3, valid=False), measured(1, 0.05)) == [35] * 4
    assert sent(Round(round=0, error="ServerCrashed"), measured(0, 0.05)) == [35] * 4


def test_never_fewer_than_the_steady_window_and_the_spec_allow() -> None:
    few = tuple(replace(one, dataset=replace(one.dataset, min_requests=40)) for one in asked().workloads)
    assert sent(measured(0, 0.0), run=asked(workloads=few)) == [40] * 4
    written = tuple(replace(one, dataset=replace(one.dataset, min_requests=None)) for one in asked().workloads)
    assert sent(measured(0, 0.0), run=asked(workloads=written)) == [64] * 4


@pytest.mark.parametrize(("metric", "requests"), [("p95TTFT", 64), ("p95E2E", 64), ("meanTTFT", 29), ("p99ITL", 29)])
def test_a_limit_on_a_percentile_of_requests_needs_all(metric: str, requests: int) -> None:
    gate = replace(asked().gate, limits=(Limit(metric=metric, max_increase=0.2),))
    assert sent(measured(0, 0.0), run=asked(gate=gate)) == [requests] * 4


def test_only_a_verdict_is_asked_for_with_fewer() -> None:
    assert sent(measured(0, 0.0), run=asked(purpose=Purpose.SWEEP)) == [64] * 4


def many(size: int, requests: int | None = None, start: float | None = 300.0, **changes: Any) -> list[int]:
    """Of the loads that an H200 measured (docs/reports/gpu.md, 26 November): what the rounds after its first send if
    nobody writes a number and the sets have so many prompts. `requests` at 32 are written."""
    own = {"max_tokens": 192, "source": "pvc://models/functions.json"}
    one = Dataset(name="one", requests=64, min_requests=16, **own)
    at_32 = Dataset(name="many", requests=requests or 160, min_requests=None if requests else 160, **own)
    run = asked(workloads=(Workload(dataset=one, concurrency=1), Workload(dataset=at_32, concurrency=32)), **changes)
    spreads = {"one@1": 0.085, "many@32": 0.369}
    points = tuple(
        PointRecord(
            arm=BASELINE, workload=name, valid=True, request_spread=spread, asked=160, output_tokens=19_406,
            output_throughput=3296.9,
        )
        for name, spread in spreads.items()
    )  # fmt: skip
    server = ReplicateRecord(arm=BASELINE, start_seconds=start)
    return sent(Round(points=points, prompts={"one": size, "many": size}, replicates=(server,)), run=run)


def test_above_12_at_once_later_rounds_send_more() -> None:
    """(2 x 0.369^2 + 0.15^2) / (2 x 2 x 0.01^2) = 737.1."""
    assert enough_requests(0.369, [1.0, 1.0]) == 738
    assert many(size=10_000) == [64, 738]


@pytest.mark.parametrize(("size", "requests"), [(600, 160), (512, 160), (1440, 160), (1449, 161), (0, 160)])
def test_never_more_than_the_set_has_for_each_round_and_one_lost(size: int, requests: int) -> None:
    """Looks are after 4, 6 and 8 rounds: nine parts. Of a set of unknown size nothing is assumed."""
    assert many(size) == [64, requests]


@pytest.mark.parametrize(("start", "requests"), [(51.6, 701), (47.0, 638), (10.0, 160), (None, 160)])
def test_all_loads_together_last_no_longer_than_the_servers_start(start: float | None, requests: int) -> None:
    """Two loads in 51.6 s: 25.8 s x 3296.9 tokens a second / (19,406 tokens / 160) = 701."""
    assert many(size=10_000, start=start) == [64, requests]


def test_a_quiet_baseline_needs_no_more_than_the_steady_window() -> None:
    dataset = Dataset(name="many", source="pvc://models/a.json", requests=160, max_tokens=192, min_requests=160)
    workload = Workload(dataset=dataset, concurrency=32)
    assert with_enough_requests(workload, 0.05, EVEN, most=10_000) is workload


@pytest.mark.parametrize(
    "changes",
    [{"requests": 200}, {"gpu_hours": 4.0}, {"timeouts": Timeouts(workload=600)}, {"purpose": Purpose.SWEEP}],
    ids=lambda change: next(iter(change)),
)
def test_what_a_person_has_limited_is_not_lengthened(changes: Mapping[str, Any]) -> None:
    assert many(size=10_000, **changes)[1] == changes.get("requests", 160)


def test_rounds_of_more_send_other_prompts_than_the_first_and_each_other() -> None:
    """The first round's part is smaller than theirs, so theirs begin after it."""
    one = Conversation(messages=(), turns=(0,))
    prompts = tuple(replace(one, options={"number": number}) for number in range(10_000))
    rounds = [measured_prompts(prompts, 0, 160, 160), *(measured_prompts(prompts, n, 738, 738) for n in range(1, 9))]
    assert len(set(itertools.chain(*rounds))) == 160 + 8 * 738


def test_a_round_of_more_says_so() -> None:
    dataset = Dataset(name="many", source="builtin://code", requests=160, max_tokens=192, min_requests=160)
    workload = with_enough_requests(Workload(dataset=dataset, concurrency=32), 0.369, [1.0, 1.0], most=10_000)
    arms = (arm_command(BASELINE, candidate=False), arm_command("narrow"))
    plan = RoundPlan(
        run="run", round=1, try_=0, served_name="pair", arms=arms, workloads=(workload,), results_dir="/models",
    )  # fmt: skip
    result = round_result(plan, lambda _arm, _workload: 100.0, 1.0, 0.0, 10.0)
    notes = round_record(plan, result, judge_points(plan, result), "job", "node").notes
    assert "more requests were sent, as the noise of the first round's baseline asks for: 738 on many@32" in notes


def test_a_round_of_fewer_says_so() -> None:
    """And one of all says nothing."""
    for spread, note in ((0.05, "35 of 64 on code@1, 35 of 64 on swe@1"), (0.3, "")):
        workloads = next_workloads(asked(), [measured(0, spread)])
        arms = (arm_command(BASELINE, candidate=False), arm_command("wide"))
        plan = RoundPlan(
            run="run", round=1, try_=0, served_name="pair", arms=arms, workloads=workloads, results_dir="/models",
        )  # fmt: skip
        result = round_result(plan, lambda _arm, _workload: 100.0, 1.0, 0.0, 10.0)
        notes = " ".join(round_record(plan, result, judge_points(plan, result), "job", "node").notes)
        assert ("fewer requests were sent, as more would not tighten" in notes) is bool(note)
        assert note in notes
        assert RoundPlan.from_json(plan.to_json()) == plan


def test_the_planner_sends_fewer_from_the_second_round_on_to_every_arm() -> None:
    """At 100 tokens a second an arm's load takes 4 x 64 x 5.12 s, and 4 x 35 x 5.12 s."""
    assumed = Assumptions(start_seconds=120, stream=100, spread=0.05)
    by_round = forecast(example("qwen3-coder-next"), (), ALL_FASTER, assumed, None, NOW).pools["latency"].by_round
    assert [round(cost.answering / (2 * 4 * 4 * 5.12)) for cost in by_round] == [64, 35, 35, 35]
