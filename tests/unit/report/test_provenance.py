"""What a report says of where its numbers come from: configuration, cost, versions, data."""

import copy
import json

import pytest
from tests.support.messages import Says
from tests.support.reports import demo, said
from tests.support.runs import latency

from paceline.report.tables import costs_table


def test_what_differs_is_told_and_what_is_equal_too() -> None:
    found = said(demo()[1]).configuration
    asked = {one.name: one.values for one in found.asked}
    assert asked["numSteps"] == ("", "5", "3")
    assert asked["draft"] == ("", *2 * ("hf://thoughtworks/Qwen3-Coder-Next-Eagle3@71ba27c3043a",))
    assert {one.name: one.values for one in found.resolved}["speculative_num_draft_tokens"] == ("null", "6", "8")
    assert ("attention_backend", "triton") in found.equal
    assert found.unequal == ()


def test_a_compared_argument_that_differs_is_named() -> None:
    run = demo()[0]
    run["rounds"][0]["replicates"][1]["resolved"]["page_size"] = "64"
    assert said(run).configuration.unequal == ("page_size",)


def test_commands_are_those_of_the_engines_adapter() -> None:
    (baseline, plain), (wide, speculating) = said(demo()[0]).configuration.commands
    assert (baseline, wide) == ("baseline", "wide")
    assert "--speculative-num-steps" not in " ".join(plain)
    assert "--speculative-num-steps" in " ".join(speculating)


def test_a_spec_of_another_release_has_no_commands_but_a_report() -> None:
    run = demo()[0]
    run["spec"]["ofALaterRelease"] = True
    assert said(run).configuration.commands == ()


def test_a_run_whose_commits_are_not_pinned_has_no_commands_but_a_report() -> None:
    run = demo()[0]
    del run["spec"]["target"]["commit"]
    assert said(run).configuration.commands == ()
    assert said(run).outcome == "Promote"


def test_who_measured_is_named_and_is_not_who_wrote_the_report() -> None:
    run = latency()
    for entry, release in zip(run["rounds"], ("0.0.9", "0.1.0", "0.1.0"), strict=False):
        entry["paceline"] = release
    assert dict(said(run).provenance)["Measured by"] == "Paceline 0.0.9, 0.1.0"
    older = dict(said(latency()).provenance)
    assert "Measured by" not in older


def test_prompts_of_the_hub_are_named_by_their_commit() -> None:
    run = demo()[0]
    run["spec"]["workloads"][0] |= {
        "source": "hf://datasets/team/prompts/code.jsonl",
        "commit": "0123456789ab" + "c" * 28,
    }
    found = dict(said(run).provenance)
    assert found["Data of code@1"].startswith("hf://datasets/team/prompts/code.jsonl@0123456789ab, 6 ")


def test_provenance_names_what_another_would_need_to_measure_it_again(says: Says) -> None:
    found = dict(said(demo()[0]).provenance)
    assert found["Target"] == "hf://Qwen/Qwen3-Coder-Next@41afb1561aca"
    assert found["Engine"] == "SGLang 0.5.23+emulated"
    assert found["Fingerprint"] == "5f189fcaf9"
    assert found["Accelerators"] == "4 × NVIDIA-H200"
    assert found["Node"] == "gpu-0"
    assert found["Started"] == "2026-11-21 15:59 UTC"
    assert found["Seed of the servers"] == "0"
    says(*(f"{name}: {text}" for name, text in found.items()))


def test_provenance_tells_how_the_gpus_were_clocked_if_a_driver_said_so(says: Says) -> None:
    assert "Around its loads" not in dict(said(demo()[0]).provenance)
    run = copy.deepcopy(demo()[0])
    for n, entry in enumerate(run["rounds"]):
        for replicate in entry["replicates"]:
            replicate["clocks"] = {"smMHz": 1980 - n, "mostSMMHz": 1980, "powerLimitWatts": 700, "celsius": 60 + n}
    says(dict(said(run).provenance)["Around its loads"])


def test_cost_is_split_into_starts_and_measuring() -> None:
    cost = said(demo()[0]).cost
    assert (cost.gpu_seconds, cost.server_starts, cost.rounds) == (616, 6, 3)
    assert cost.starting == pytest.approx(17.8, abs=0.5)
    assert cost.measuring == pytest.approx(72, abs=1)
    assert cost.held == pytest.approx(154, abs=10)


def test_what_is_judged_again_has_cost_another_run() -> None:
    run = demo()[0]
    for entry in run["rounds"][:2]:
        entry["run"] = "the-one-before"
    run["status"]["cost"] = {"gpuSeconds": 205, "serverStarts": 2}
    found = said(run)
    assert found.cost.rounds == 1
    assert found.cost.held < 80
    assert dict(found.provenance)["Judged again"] == "2 of 3 rounds, measured by the-one-before"
    assert "Judged again" not in dict(said(demo()[0]).provenance)


def test_what_was_held_for_nothing_is_told() -> None:
    run = demo()[0]
    run["status"]["cost"]["idleGpuSeconds"] = 154
    assert dict(costs_table(said(run)))["Of it neither start nor measurement"] == "25% (154 GPU-seconds)"


def test_the_physical_floor_stands_beside_the_cost() -> None:
    """Of 616 GPU-seconds 154 were neither a start nor an answer; servers took 18 s to start, answers 72 s."""
    run = demo()[0]
    run["status"]["cost"]["idleGpuSeconds"] = 154
    found = said(run)
    assert dict(costs_table(found))["Floor: starts and answers alone"] == "0.13 h, 20% of it starts"
    run["status"]["cost"].pop("idleGpuSeconds")  # of an older release
    assert "Floor: starts and answers alone" not in dict(costs_table(said(run)))


def test_how_a_round_was_sampled_and_of_how_many_prompts_is_part_of_the_provenance(says: Says) -> None:
    run = latency()
    run["spec"]["workloads"][0] |= {"temperature": "model"}
    for entry in run["rounds"]:
        entry["prompts"] = {"code": 512}
    data = dict(said(run).provenance)["Data of code@1"]
    assert "160 of 512 prompts" in data
    says(data)


def test_that_a_load_moved_is_told(says: Says) -> None:
    run = latency()
    run["spec"]["workloads"] = [run["spec"]["workloads"][0] | {"rampFrom": 1, "concurrency": 32}]
    says(dict(said(run).provenance)["Data of code@1-32"])


def test_what_was_asked_of_ones_own_traffic_is_told(says: Says) -> None:
    run = latency()
    form = {"type": "json_schema", "json_schema": {"name": "bug", "schema": {"type": "object"}}}
    own = {"adapter": "sql", "responseFormat": json.dumps(form), "requestRate": "8", "arrivals": "Replayed"}
    run["spec"]["workloads"] = [run["spec"]["workloads"][0] | own]
    rounds = run["rounds"]
    for entry in rounds:
        code = [point for point in entry["points"] if point["workload"] == "code@1"]
        entry["points"] = [
            {**point, "workload": "code@8/s", "malformed": n, "requestSpeed": "100"} for n, point in enumerate(code)
        ]
        entry["prompts"] = {"code": 160}
    data = dict(said(run).provenance)["Data of code@8/s"]
    assert f"{len(rounds)} of {2 * 160 * len(rounds)}" in data
    says(data)
