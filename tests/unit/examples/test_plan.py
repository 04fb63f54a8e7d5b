"""`paceline plan` of examples/qwen3-coder-next.yaml, in figures.

With 120 s a start and 100 tokens a second, one arm of the latency pool takes 120 + 4 x 64 x 512 / 100 = 1430.72 s, one
of the throughput pool 120 + 4 x 160 / 32 x 512 / 100 = 222.4 s; each holds four GPUs.
"""

import io
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import imported
from tests.support.messages import Says
from tests.support.rendered import EXAMPLES, example
from tests.support.searched import searching
from tests.support.world import World
from tests.support.world import example as in_world

from paceline.cli import main
from paceline.cli.plan import NO_ROOM
from paceline.measure import record
from paceline.plan.costs import Assumptions
from paceline.plan.forecast import ALL_FASTER, UNDECIDED_SCENARIO, Forecast, Scenario, forecast

NEXT = str(EXAMPLES / "qwen3-coder-next.yaml")
NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
BUILT_IN = {f"builtin://{name}": 512 for name in ("code", "swe", "terminal", "chat")}
ASSUMED = Assumptions(start_seconds=120, stream=100, sizes=BUILT_IN)
LATENCY_ARM, THROUGHPUT_ARM = 1430.72, 222.4


def forecast_of(scenario: Scenario, *, free: int | None = None, **edits: Any) -> Forecast:
    manifest = example("qwen3-coder-next")
    manifest["spec"] |= edits
    return forecast(manifest, (), scenario, ASSUMED, free, NOW)


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["plan", NEXT, "--start-seconds", "120", "--tokens-per-second", "100", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def test_rounds_starts_and_seconds_if_all_goes_well() -> None:
    pools = forecast_of(ALL_FASTER).pools
    assert {name: (cost.jobs, cost.server_starts) for name, cost in pools.items()} == {
        "latency": (4, 4 * 2),
        "throughput": (3, 3 * 3),
    }
    assert pools["latency"].accelerator_seconds == pytest.approx(4 * 2 * LATENCY_ARM * 4)
    assert pools["throughput"].accelerator_seconds == pytest.approx(3 * 3 * THROUGHPUT_ARM * 4)


def test_rounds_starts_and_seconds_if_nothing_is_ever_decided() -> None:
    pools = forecast_of(UNDECIDED_SCENARIO).pools
    assert {name: (cost.jobs, cost.server_starts) for name, cost in pools.items()} == {
        "latency": (8, 8 * 2),
        "throughput": (9, 9 * 3),
    }
    assert pools["latency"].accelerator_seconds == pytest.approx(8 * 2 * LATENCY_ARM * 4)


def test_answers_that_are_compared_take_their_time_too(capsys: pytest.CaptureFixture[str]) -> None:
    """16 prompts of 128 tokens, one after another: 20.48 s on each arm."""
    compared = {**example("qwen3-coder-next")["spec"].get("benchmark", {}), "parity": {"samples": 16}}
    pools = forecast_of(ALL_FASTER, benchmark=compared).pools
    assert pools["latency"].jobs == 4
    assert pools["latency"].accelerator_seconds == pytest.approx(4 * 2 * (LATENCY_ARM + 20.48) * 4)
    assert main(["plan", str(EXAMPLES / "ngram-no-draft.yaml"), "--tokens-per-second", "100"]) == 0
    assert re.search(r"\b16 .* 128 tokens: 0\.3 min", capsys.readouterr().out)


def test_it_begins_with_the_answer(capsys: pytest.CaptureFixture[str], says: Says) -> None:
    """8 servers of the latency pool and 9 of the other: 2.2 h and 0.6 h of four GPUs; 6.4 h and 1.7 h at worst."""
    says(output(capsys)[0])


def test_it_says_what_that_costs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    manifest = example("qwen3-8b")
    manifest["spec"]["accelerator"]["pricePerHour"] = "2.50"
    file = tmp_path / "priced.yaml"
    file.write_text(yaml.safe_dump(manifest))
    assert main(["plan", str(file)]) == 0
    hours, money = re.search(r"likely ([0-9.]+) GPU-hours for ([0-9.]+) ", capsys.readouterr().out).groups()  # type: ignore[union-attr]
    assert float(money) == pytest.approx(2.5 * float(hours), rel=0.1)


def plan_of(tmp_path: Path, target: str, *arguments: str, **pool: Any) -> int:
    """The exit code for one pool of examples/qwen3-8b.yaml with another target."""
    manifest = example("qwen3-8b")
    manifest["spec"]["target"]["source"] = target
    manifest["spec"]["pools"] = [manifest["spec"]["pools"][0] | pool]
    file = tmp_path / "planned.yaml"
    file.write_text(yaml.safe_dump(manifest))
    return main(["plan", str(file), *arguments])


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("hf://acme/Wonder-8B", " 100 tokens/s"),
        ("hf://acme/Wonder-70B", " 14 tokens/s"),
        ("hf://acme/wonder", " hf://acme/wonder "),  # of which nothing tells the size
    ],
)
def test_the_speed_is_guessed_by_the_models_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str, told: str
) -> None:
    assert plan_of(tmp_path, target) == 0
    assert told in capsys.readouterr().out


def test_what_never_finds_room_has_a_way_out_and_a_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    """Two servers of one GPU on a machine of two: a round finds room only on a GPU of theirs."""
    assert plan_of(tmp_path, "hf://acme/Wonder-8B", "--gpus-free", "2", replicas=2) == NO_ROOM
    assert "spec.benchmark.capacityPolicy: Borrow" in capsys.readouterr().out
    assert plan_of(tmp_path, "hf://acme/Wonder-8B", "--gpus-free", "1", replicas=2) == NO_ROOM
    says(*(line for line in capsys.readouterr().out.splitlines() if "replicas" in line))
    assert plan_of(tmp_path, "hf://acme/Wonder-8B", "--gpus-free", "3", replicas=2) == 0


def test_deployments_of_one_file_share_what_is_free(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    """One server of one GPU each, and a round beside it: two GPUs are enough for one, and not for three."""
    one, file = example("qwen3-8b"), tmp_path / "planned.yaml"
    for many, code in ((1, 0), (3, NO_ROOM)):
        file.write_text(yaml.safe_dump_all([one | {"metadata": {"name": f"chat-{number}"}} for number in range(many)]))
        assert main(["plan", str(file), "--gpus-free", "2"]) == code
    says(*capsys.readouterr().out.splitlines()[-2:])


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line.split() for line in output(capsys)[2:6]]
    assert rows == [
        ["POOL", "ROUNDS", "JOBS", "SERVER", "STARTS", "GPU-HOURS"],
        ["latency", "4-8", "4-8", "8-16", "8.8-25.4"],
        ["throughput", "3-9", "3-9", "9-27", "2.2-6.7"],
        ["all", "7-17", "8-18", "17-43", "11.0-32.1", "with", "the", "prefetch"],
    ]


def test_what_a_verdict_can_show_and_its_floor_stand_beside_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    """Four rounds of two arms: 8 x 120 s x 4 GPUs = 1.1 h of starts, 8 x 1310.72 s x 4 = 11.7 h of answers; 7.7 h where
    three of the rounds send 35 requests and not 64."""
    lines = output(capsys)
    begin = next(number for number, line in enumerate(lines) if line.startswith("What a verdict can show"))
    assert [line.split() for line in lines[begin + 1 : begin + 6]] == [
        ["POOL", "ROUNDS", "SHOWS", "STARTS", "TOKENS", "TOGETHER"],
        ["latency", "4", "+9.0%", "1.1", "7.7-11.7", "8.8-12.7"],
        ["latency", "8", "+7.0%", "2.1", "14.1-23.3", "16.2-25.4"],
        ["throughput", "3", "+14.2%", "1.2", "1.0", "2.2"],
        ["throughput", "9", "+4.3%", "3.6", "3.1", "6.7"],
    ]
    assert any(re.match(r"    latency +2\.0% .* 3\.2% ", line) for line in lines)
    first = next(line for line in lines if "code@1 " in line)
    assert re.search(r"\b64 .* 512 tokens \(35 .*\): 5\.5 min", first)


def test_the_steps_are_those_of_the_planner(says: Says) -> None:
    """Claim, prefetch, the baseline of each pool, a run for each, and the candidates."""
    steps = forecast_of(ALL_FASTER).steps
    kinds = [kind for (kind, _), _ in steps]
    servers = ["ControllerRevision", "Deployment", "Service"]
    promotion = ["ControllerRevision", "Deployment"]
    assert kinds == [
        *("PersistentVolumeClaim", "Job", *servers, *servers, "BenchmarkRun", "BenchmarkRun"),
        *(*promotion, *promotion),
    ]
    whys = [why for _, why in steps]
    assert [whys[3].partition(":")[0], *(why.partition(",")[0] for why in whys[-4::2])] == [
        *("serve baseline", "serve narrow", "serve wide")
    ]
    says(whys[3])
    assert not any("1.50x" in why for why in whys)  # what was made up is not told


def test_nothing_is_promoted_that_nobody_has_decided() -> None:
    kinds = [kind for (kind, _), _ in forecast_of(UNDECIDED_SCENARIO).steps]
    assert kinds[-2:] == ["BenchmarkRun", "BenchmarkRun"]


@pytest.mark.parametrize(
    ("free", "waits"),
    [
        (4, "throughput: not placed"),  # the second pool's server
        (8, "latency: qwen3-coder-next-latency"),  # both servers stand, no round does
    ],
)
def test_too_few_gpus(free: int, waits: str) -> None:
    outcome = forecast_of(ALL_FASTER, free=free)
    assert any(waits in message for message in outcome.waiting)
    assert outcome.serving == min(free, 8)


def test_room_for_one_round(capsys: pytest.CaptureFixture[str], says: Says) -> None:
    outcome = forecast_of(ALL_FASTER, free=12)
    assert (outcome.waiting, outcome.most_at_once) == ((), 2)
    says(*output(capsys, "--gpus-free", "12")[-8:-4])


def test_a_pool_without_replicas_begins_with_one_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a Deployment that names no number of them; an autoscaler may set another."""
    manifest = example("qwen3-coder-next")
    del manifest["spec"]["pools"][0]["replicas"]
    (file := tmp_path / "one.yaml").write_text(yaml.safe_dump(manifest))
    assert main(["plan", str(file)]) == 0
    assert re.search(r" 8 GPUs .* 4 on one node", capsys.readouterr().out)


def test_room_for_both_rounds() -> None:
    assert forecast_of(ALL_FASTER, free=16).most_at_once == 0


def test_what_is_known_already_is_reused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the throughput pool has changed: the latency pool's verdict stands, and its models are there."""
    world = in_production(in_world())
    there = tmp_path / "there.yaml"
    listing = {
        "kind": "List",
        "items": [stored for (kind, _), stored in world.cluster.objects.items() if kind != "Pod"],
    }
    there.write_text(json.dumps(listing))

    manifest = in_world()
    manifest["spec"]["candidates"][1]["tree"] = {"numSteps": 4}  # of which nothing is measured
    changed = tmp_path / "changed.yaml"
    changed.write_text(yaml.safe_dump(manifest))
    assert main(["plan", str(changed), "--cluster", str(there)]) == 0

    lines = capsys.readouterr().out.splitlines()
    (run,) = (stored["metadata"]["name"] for stored in world.runs("latency"))
    assert lines[3].split() == ["latency", "0", "0", "0", "0.0", "reuses", run]
    # Four arms: what serves is among them, and beside that nothing was measured yet.
    assert lines[4].split()[:4] == ["throughput", "3-8", "3-8", "12-32"]
    assert any(re.search(r" 60 s .* 15 starts ", line) for line in lines)
    assert not any("Job " in line for line in lines)

    # Its earlier rounds agreed to the gate's floor of 0.2 %; with what serves, alpha has three parts a look:
    # 1.02 x exp(9.408 x 0.002 / sqrt(3)) = 1.0311.
    assert any(" 3 rounds of earlier runs:" in line for line in lines)
    assert any(line.split()[:3] == ["throughput", "3", "+3.1%"] for line in lines)


def in_production(manifest: Any) -> World:
    """Both pools serve the candidates that have won."""
    world = World()
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    for _ in range(3):
        world.round_ends()
    world.servers_ready()
    return world


def test_applied_again_nothing_happens() -> None:
    again = forecast(in_world(), listed(in_production(in_world())), ALL_FASTER, ASSUMED, None, NOW)
    assert again.steps == ()
    assert {name: cost.jobs for name, cost in again.pools.items()} == {"latency": 0, "throughput": 0}


def test_its_own_servers_are_there_whatever_is_free() -> None:
    """Nothing waits, as nothing is started: what is free is free beside the eight accelerators that they hold."""
    existing = listed(in_production(in_world()))
    assert forecast(in_world(), existing, ALL_FASTER, ASSUMED, 0, NOW).waiting == ()


def test_runs_that_are_no_longer_kept_are_deleted() -> None:
    """Beyond promotion.revisionHistoryLimit, in the same pass in which their own planner would look at them."""
    existing = listed(in_production(in_world()))
    (run,) = (one for one in existing if one["kind"] == "BenchmarkRun" and one["spec"]["pool"] == "latency")
    for number in range(5):
        name = f"{run['metadata']['name']}{number}"
        metadata = {**run["metadata"], "name": name, "uid": name, "creationTimestamp": "2026-11-01T00:00:00Z"}
        existing.append({**run, "metadata": metadata, "status": {**run["status"], "fingerprint": f"other{number}"}})
    steps = forecast(in_world(), existing, ALL_FASTER, ASSUMED, None, NOW).steps
    assert [kind for (kind, _), _ in steps] == ["delete BenchmarkRun"] * 2


def test_a_quantity_that_the_api_server_writes_otherwise_is_no_step() -> None:
    """Half a core comes back as 500m."""
    manifest = in_world()
    half_a_core = {"containers": [{"name": "server", "resources": {"requests": {"cpu": "0.5"}}}]}
    manifest["spec"]["engine"]["podTemplate"] = {"spec": half_a_core}
    existing = listed(in_production(manifest))
    for stored in existing:
        if stored["kind"] == "Deployment":
            (server,) = stored["spec"]["template"]["spec"]["containers"]
            assert server["resources"]["requests"].pop("cpu") == "0.5"
            server["resources"]["requests"]["cpu"] = "500m"
    assert forecast(manifest, existing, ALL_FASTER, ASSUMED, None, NOW).steps == ()


def listed(world: World) -> list[Any]:
    """What kubectl get lists as the help of `paceline plan` advises: no pods."""
    return [stored for (kind, _), stored in world.cluster.objects.items() if kind != "Pod"]


def test_servers_of_several_nodes_are_served_and_not_measured() -> None:
    outcome = forecast_of(ALL_FASTER, accelerator={**example("qwen3-coder-next")["spec"]["accelerator"], "nodes": 2})
    assert outcome.serving == 2 * 2 * 4
    assert {cost.jobs for cost in outcome.pools.values()} == {0}
    assert "nodes" in outcome.never[0]


def test_suspended_nothing_is_measured() -> None:
    assert [kind for (kind, _), _ in forecast_of(ALL_FASTER, suspend=True).steps][-1] == "Service"


def test_the_single_gpu_is_measured_on_because_nothing_holds_it() -> None:
    """examples/gb10-single-gpu.yaml: both verdicts with one GPU, one run after the other."""
    outcome = forecast(example("gb10-single-gpu"), [], ALL_FASTER, ASSUMED, 1, NOW)
    assert (outcome.waiting, outcome.serving, outcome.most_at_once) == ((), 0, 2)
    assert {name: cost.jobs for name, cost in outcome.pools.items()} == {"alone": 4, "parallel": 4}


def test_what_validate_refuses_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = example("qwen3-coder-next")
    manifest["spec"]["candidates"][0]["tree"]["numDraftTokens"] = 99
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(yaml.safe_dump(manifest))
    for command in ("plan", "render"):
        assert main([command, str(wrong)]) == 1
        assert "spec.candidates[0].tree.numDraftTokens: " in capsys.readouterr().err


@pytest.mark.parametrize("command", ["render", "plan"])
def test_standard_input(command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = Path(NEXT).read_text()
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert main([command, "-"]) == 0
    assert "PersistentVolumeClaim" in capsys.readouterr().out
    monkeypatch.setattr(
        "sys.stdin", io.StringIO(text.replace("{numSteps: 5}", "{numSteps: 5, topK: 1, numDraftTokens: 8}"))
    )
    assert main([command, "-"]) == 1
    assert capsys.readouterr().err.startswith("-:41:51: spec.candidates[1].tree.numDraftTokens: ")


@pytest.mark.parametrize("command", ["render", "plan"])
def test_a_file_that_is_not_there_is_named(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "nowhere.yaml"]) == 1
    assert capsys.readouterr().err.startswith("nowhere.yaml: ")


@pytest.mark.parametrize("text", ["x", "0", "-1"])
def test_a_number_that_is_none(text: str, capsys: pytest.CaptureFixture[str], says: Says) -> None:
    with pytest.raises(SystemExit):
        main(["plan", NEXT, f"--start-seconds={text}"])
    with pytest.raises(SystemExit):
        main(["plan", NEXT, "--gpus-free=-1"])
    says(*(line for line in capsys.readouterr().err.splitlines() if "error" in line))


def test_what_takes_longer_than_a_round_waits_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    """64 requests of 512 tokens at 100 a second: 327.68 s."""
    manifest = example("qwen3-coder-next")
    manifest["spec"]["benchmark"] = {"timeouts": {"start": "1m", "workload": "5m"}}
    short = tmp_path / "short.yaml"
    short.write_text(yaml.safe_dump(manifest))
    assert main(["plan", str(short), "--start-seconds", "120", "--tokens-per-second", "100"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "spec.benchmark.timeouts." in line]
    assert len(lines) == 1 + 4  # the throughput pool's take a fraction of it
    says(*lines[:2])


def test_as_it_stands_nothing_is_too_slow(capsys: pytest.CaptureFixture[str]) -> None:
    assert not any("spec.benchmark.timeouts." in line for line in output(capsys))


def test_how_long_a_rate_lasts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(EXAMPLES / "qwen3-coder-30b-a3b.yaml")]) == 0
    assert re.search(r"\b480 .* 60 s .* 256 tokens", capsys.readouterr().out)


def test_from_which_round_on_prompts_come_again_is_output(capsys: pytest.CaptureFixture[str]) -> None:
    """512 prompts are eight rounds of 64, and three of 160 and a part of a fourth."""
    lines = [line for line in output(capsys) if "requests of at most" in line]
    assert [line.rpartition(" min")[2] for line in lines] == [
        *[""] * 4,
        *["; its 512 prompts repeat from round 4 on"] * 4,
    ]


def test_a_run_that_brings_its_rounds_along_measures_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump_all(record.as_documents(imported.file())))
    assert main(["plan", str(path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert any(" spec.measured " in line for line in said)
    assert next(line for line in said if line.startswith("all")).split()[1:4] == ["0", "0", "0"]


def searching_briefly(purpose: str) -> dict[str, Any]:
    """The latency pool of the example with few trees to choose from; or the search that is made for it."""
    manifest = searching("latency", numSteps={"min": 1, "max": 3}, topK={"min": 1, "max": 2})
    if purpose == "Gate":
        return manifest
    world = World()
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    (run,) = world.runs("latency")
    return {key: run[key] for key in ("apiVersion", "kind", "metadata", "spec")}


def planned(capsys: pytest.CaptureFixture[str], path: Path, purpose: str) -> list[str]:
    (path / "searching.yaml").write_text(yaml.safe_dump(searching_briefly(purpose)))
    assert main(["plan", str(path / "searching.yaml")]) == 0
    return capsys.readouterr().out.splitlines()


def test_the_rounds_of_a_search_are_a_part_of_its_pools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = planned(capsys, tmp_path, "Gate")
    pool = next(number for number, line in enumerate(lines) if line.startswith("latency "))
    assert lines[pool + 1].startswith("  of which the search ")
    cost = forecast(searching_briefly("Gate"), (), ALL_FASTER, ASSUMED, None, NOW).pools["latency"]
    assert cost.search is not None
    assert cost.jobs == cost.search.jobs + 3
    assert cost.server_starts == cost.search.server_starts + 3 * 2


def test_what_a_gate_can_show_after_a_search_is_of_one_candidate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not of all that the search chooses from."""
    named = searching_briefly("Gate")
    del named["spec"]["pools"][0]["search"]
    named["spec"]["candidates"] = [{"name": "wide", "tree": {"numSteps": 3, "topK": 4, "numDraftTokens": 8}}]
    (tmp_path / "named.yaml").write_text(yaml.safe_dump(named))
    assert main(["plan", str(tmp_path / "named.yaml")]) == 0

    def shown(lines: list[str]) -> list[str]:
        return [line.split()[2] for line in lines if re.match(r"latency .*\+.*%", line)]

    expected = shown(capsys.readouterr().out.splitlines())
    assert shown(planned(capsys, tmp_path, "Gate")) == expected != []


def test_a_search_without_a_gate_is_all_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = "\n".join(planned(capsys, tmp_path, "Search"))
    assert "of which the search" not in out
    assert "What a verdict can show" not in out
