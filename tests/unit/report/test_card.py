"""`paceline card`: what a run's model card claims, what the hub's own client reads of it, and what is never claimed."""

import io
import re
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard
from tests.support.campaigns import THROUGHPUT
from tests.support.golden import WRITE
from tests.support.memory import Cluster, MemoryApi
from tests.support.messages import Says
from tests.support.reports import evil, listed, over
from tests.support.runs import BASELINE, WIDE, latency, manifest, throughput
from tests.unit.cli.states import both_promoted

from paceline import cli, core, gate
from paceline.api.round import rounds_of
from paceline.cli.report_source import source_named
from paceline.controller.kinds import RECONCILED_KINDS
from paceline.evidence.round_status import measurements
from paceline.report.card import model_card

GOLDEN = Path(__file__).with_name("golden")
HEAD, TARGET = "thoughtworks/Qwen3-Coder-Next-Eagle3", "Qwen/Qwen3-Coder-Next"


def on_gpus(run: dict[str, Any]) -> dict[str, Any]:
    """As measured by a real engine, with what a driver reports."""
    run["status"]["emulated"] = False
    for entry in run["rounds"]:
        entry |= {"emulated": False, "driver": "580.95.05", "gpuModel": "NVIDIA H200", "paceline": "0.1.0"}
        for point in entry["points"]:
            if point["arm"] != "baseline":
                point["acceptLength"] = "2.81"
    return run


def rejected() -> dict[str, Any]:
    """The wide tree at 32 requests, which is slower on terminal prompts."""
    truth = {arm: THROUGHPUT[arm] for arm in ("baseline", "wide")}
    return on_gpus(manifest("throughput", 32, (BASELINE, WIDE), truth, core.Gate(), seed=5))


def over_loads() -> dict[str, Any]:
    """One dataset at 1, 8 and 32 requests, of which the last gains nothing; a latency nearly at its limit."""
    run = on_gpus(over((1, 25.0, 36.0), (8, 180.0, 216.0), (32, 400.0, 400.0)))
    run["spec"]["gate"] = {"limits": [{"metric": "p95TTFT", "maxIncrease": "10%"}]}
    for point in (point for entry in run["rounds"] for point in entry["points"]):
        point["p95TTFT"] = "0.108" if point["arm"] == "wide" else "0.1"
    workloads = {f"code@{load}": 1.0 for load in (1, 8, 32)}
    verdict = gate.decide(core.Gate(), ["baseline", "wide"], workloads, measurements(rounds_of(run)))
    found = {"mean": verdict.arms["wide"].mean, **verdict.arms["wide"].workloads}
    run["status"]["results"] = [
        {"arm": "wide", "workload": name}
        | {part: f"{getattr(bounds, part):.4f}" for part in ("ratio", "lower", "upper")}
        for name, bounds in found.items()
    ]
    return run


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("promote", on_gpus(latency())),
        ("promote_over_loads", over_loads()),
        ("reject", rejected()),
        ("emulated", throughput()),
    ],
)
def test_the_card(name: str, run: dict[str, Any]) -> None:
    golden, card = GOLDEN / f"card_{name}.md", model_card(run)
    if WRITE:
        golden.write_text(card)
    assert card == golden.read_text()


def test_the_hubs_client_reads_each_speed_up_and_its_interval() -> None:
    card = ModelCard(model_card(on_gpus(latency())))
    assert (card.data.model_name, card.data.base_model) == (HEAD, TARGET)
    speed_ups = [one for one in card.data.eval_results or () if one.metric_type == "speedup"]
    assert {one.dataset_config: one.metric_value for one in speed_ups} == {
        "code@1": 1.3863, "swe@1": 1.5168, "terminal@1": 1.3873, "chat@1": 1.1785,
    }  # fmt: skip
    assert speed_ups[0].metric_args == {"lower": 1.3717, "upper": 1.4011}
    assert speed_ups[0].metric_name == "Speed-up (1.372–1.401)"
    assert "| wide | code@1 | 1.386x | 1.372–1.401 | faster | 171 | 237 | 2.81 |" in card.text


def test_each_concurrency_has_results_of_its_own() -> None:
    found = ModelCard(model_card(over_loads())).data.eval_results or ()
    assert {one.dataset_config for one in found} == {"code@1", "code@8", "code@32"}
    kinds = ["speedup", "output_tokens_per_second", "output_tokens_per_second_baseline", "acceptance_length"]
    assert [one.metric_type for one in found] == kinds * 3


def when_not(run: dict[str, Any]) -> str:
    return model_card(run).partition("## When not to use it")[2].partition("##")[0]


def test_it_says_where_not_to_use_the_head() -> None:
    said = when_not(over_loads())
    assert re.search(r"wide, code@32: 1\.000x \(.*\), not shown to be faster\.", said)
    assert re.search(r"p95TTFT on code@1: 1\.080x \(.*\); the limit of 1\.10x is nearly hit\.", said)
    assert "wide, code@1:" not in said
    assert "wide, terminal@32: 0.890x (0.883–0.897), slower than without speculation." in when_not(rejected())


def test_what_is_emulated_even_in_one_round_is_never_read_as_a_result() -> None:
    whole, once = on_gpus(latency()), on_gpus(latency())
    whole["status"]["emulated"] = True
    once["rounds"][2]["emulated"] = True
    for text in map(model_card, (whole, once)):
        assert "Do not publish this card" in text
        assert ModelCard(text).data.eval_results is None


def test_a_reject_is_never_read_as_a_result() -> None:
    card = ModelCard(model_card(rejected()))
    assert "no speed-up is claimed" in card.text
    assert card.data.eval_results is None


@pytest.mark.parametrize("outcome", ["Error", "", "Promote baseline", "Inconclusive"])
def test_without_a_verdict_on_the_head_there_is_no_card(outcome: str, says: Says) -> None:
    run = on_gpus(latency())
    outcome, _, winner = outcome.partition(" ")
    run["status"]["verdict"] = {"outcome": outcome, "winner": winner, "message": "two rounds in a row gave no result"}
    if outcome == "Inconclusive":  # that is a verdict
        assert "no speed-up is claimed" in model_card(run)
        return
    with pytest.raises(ValueError, match="no model card: ") as refused:
        model_card(run)
    says(refused.value)


def test_a_winner_with_an_engine_of_its_own_was_not_beside_the_same_server() -> None:
    run = on_gpus(latency())
    run["spec"]["arms"][1]["engine"] = {"image": "registry.example.com/vllm:0.22.0", "version": "0.22.0"}
    card = model_card(run)
    assert "## Speed beside a baseline of another engine\n" in card
    assert "the same server" not in card


def test_it_names_no_machine_no_other_run_and_no_secret() -> None:
    run = on_gpus(latency())
    for entry in run["rounds"]:
        entry["run"] = "another-of-the-cluster"
    run["spec"]["engine"]["args"] = ["--api-key=abc123def456"]
    card = model_card(run)
    assert "- Rounds: 4, 4 of them judged again by another gate\n" in card
    assert "another-of-the-cluster" not in card
    assert not any(word in card for word in ("GPU-0000", "gpu-0", "models/qwen3-coder-next-latency", "abc123def456"))


@pytest.mark.parametrize(
    ("parity", "said"),
    [
        (
            {"identical": 14, "nearTies": 2, "internal": {"rounds": 4}},
            "in 4 rounds: 14 answers identical, 2 near ties, 0 diverged.",
        ),
        ({"rounds": 0, "unknown": "HTTP 400"}, "its answers could not be compared: HTTP 400."),
    ],
)
def test_what_the_comparison_of_answers_found_is_told(parity: dict[str, Any], said: str) -> None:
    run = on_gpus(latency())
    run["spec"]["gate"] = {"parity": {"samples": 4}}
    run["status"]["armVerdicts"][0]["parity"] = parity
    assert said in when_not(run)


def test_hardware_that_no_driver_has_named_is_not_passed_off_as_measured_on() -> None:
    """`paceline measure` runs the engine wherever it is, also on a CPU beside a spec that names an H200."""
    run = on_gpus(latency())
    assert "No driver has named" not in model_card(run)
    for entry in run["rounds"]:
        entry["gpuModel"] = ""
    assert "> **No driver has named the accelerator of these measurements" in model_card(run)
    assert "- GPU by its driver: unknown" in model_card(run)


def test_whoever_means_harm_writes_no_markup_and_no_front_matter() -> None:
    run = evil()
    run["status"] |= {"emulated": False, "verdict": {"outcome": "Promote", "winner": run["spec"]["arms"][1]["name"]}}
    for entry in run["rounds"]:
        entry["emulated"] = False
    card = ModelCard(model_card(run))
    assert re.findall(r"(?<!\\)<", re.sub(r"(?ms)^```.*?^```$", "", card.text)) == []
    assert set(card.data.to_dict()) <= {"base_model", "tags", "model-index"}


# The command.


def test_a_file_of_measure_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.json").write_text(listed(on_gpus(latency())))
    assert cli.main(["card", str(tmp_path / "run.json")]) == 0
    assert capsys.readouterr().out == (GOLDEN / "card_promote.md").read_text()


def test_a_card_is_of_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(listed(latency(), throughput())))
    assert cli.plugin(["card", "-"]) == 1
    says(capsys.readouterr().err)
    cluster = both_promoted().cluster
    items = [one for kind in ("SpeculativeDeployment", "BenchmarkRun", "BenchmarkRound") for one in cluster.of(kind)]
    (tmp_path / "all.json").write_text(listed(*items))
    assert cli.plugin(["card", str(tmp_path / "all.json")]) == 1
    says(capsys.readouterr().err)


def test_a_run_of_the_cluster_is_looked_for_as_for_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert cli.plugin(["card", "bench/some-run"]) == 1
    says(capsys.readouterr().err)


async def test_a_run_of_the_cluster_has_a_card() -> None:
    api = MemoryApi(Cluster(kinds=RECONCILED_KINDS))
    await api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "models"}})
    run = latency()
    created = await api.create({key: value for key, value in run.items() if key != "rounds"})
    api.cluster.set_status(created, run["status"])
    (found,) = (await source_named(api, "models", f"bench/{run['metadata']['name']}")).runs  # type: ignore[arg-type]
    assert model_card(found).startswith(f"# {HEAD}\n")
