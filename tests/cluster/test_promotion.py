"""The main job: a pool serves the baseline, measures a candidate beside it, serves the winner, starts over with a
changed spec and leaves nothing but its models. One deployment from beginning to end, in the order of the tests."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.conftest import namespace_for
from tests.cluster.example import SIX_CONTAINERS, small
from tests.support.containers import container
from tests.support.kubernetes import KUBECTL, STATE, Manifest, Namespace, condition, kubectl, says
from tests.support.queries import RUN, finished, lines_of, pool_of, run_of, served

from paceline.core.names import snapshot_path

NAME = "coder"
PUBLISHED = """
    --speculative-algorithm EAGLE3 --speculative-num-steps 3 --speculative-num-draft-tokens 8 --speculative-eagle-topk 4
    --trust-remote-code --attention-backend triton
"""  # how to use it, huggingface.co/thoughtworks/Qwen3-Coder-Next-Eagle3; --tp 4 is short for --tp-size 4


def deployment(hub: str) -> Manifest:
    return small(NAME, hub, accelerator={"count": 4}, engine=SIX_CONTAINERS)


@pytest.fixture(scope="module")
def here(hub: str) -> Iterator[Namespace]:
    with namespace_for("promotion") as fresh:
        fresh.apply(deployment(hub))
        fresh.wait("the winner to be served", served(fresh, NAME, "wide"), 200)
        yield fresh


def test_one_line_says_it(here: Namespace) -> None:
    columns = here.kubectl("get", "specdep", "--no-headers").split()
    assert columns[:3] == [NAME, "True", "Serving"]
    verdict = pool_of(here.get("specdep", NAME))["verdict"]
    assert float(verdict["evidence"]["speedup"]) == pytest.approx(1.39, rel=0.05)  # published; the machine may be busy
    assert f"latency=wide {float(verdict['evidence']['speedup']):.2f}x" in here.kubectl("get", "specdep")
    run = here.kubectl("get", "bench", "--no-headers").split()
    assert run[1:5] == ["latency", "2", "Promote", "wide"]


def test_events_tell_the_story(here: Namespace) -> None:
    """What is worth knowing is told whenever it is found, before models are there or after."""
    told = events(here, "SpeculativeDeployment")
    story = [reason for reason in told if reason != "Preflight"]
    assert story == ["Cached", "Starting", "Serving", "Measuring", "VerdictPromote", "Promoting", "Promoted"]
    assert "Preflight" in told
    assert events(here, "BenchmarkRun") == ["RoundMeasured", "RoundMeasured", "Promote"]


def test_a_served_pod_is_what_was_published(here: Namespace) -> None:
    pod = server(here)
    container = pod["spec"]["containers"][0]
    flags = flags_of(container["command"])
    assert flags["--tp-size"] == "4"
    assert flags_of(PUBLISHED.split()).items() <= flags.items()
    assert pod["spec"]["nodeSelector"] == {"nvidia.com/gpu.product": "NVIDIA-H200"}
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "4"}


def test_its_models_are_in_the_cache_at_their_commits(here: Namespace) -> None:
    pod = server(here)
    flags = flags_of(pod["spec"]["containers"][0]["command"])
    models = {model["source"]: model for model in here.get("specdep", NAME)["status"]["artifacts"]}
    for flag, source in (
        ("--model-path", "hf://Qwen/Qwen3-Coder-Next"),
        ("--speculative-draft-model-path", "hf://your-org/Qwen3-Coder-Next-Eagle3"),
    ):
        assert flags[flag] == snapshot_path(source, models[source]["commit"])
        config = here.kubectl("exec", pod["metadata"]["name"], "--", "cat", f"{flags[flag]}/config.json")
        assert json.loads(config)["hidden_size"] == 2048


def test_what_is_served_is_what_was_measured(here: Namespace) -> None:
    """The same argv, byte for byte."""
    jobs = here.list("jobs", "paceline.dev/component=round")
    for job in jobs:
        client = container(job["spec"]["template"], "client")
        plan = json.loads(next(v["value"] for v in client["env"] if v["name"] == "PACELINE_ROUND"))
        wide = next(arm["argv"] for arm in plan["arms"] if arm["name"] == "wide")
        assert wide == server(here)["spec"]["containers"][0]["command"]
    assert len(jobs) == 2


def test_a_round_in_a_pod_of_eight_containers_loses_no_number(here: Namespace) -> None:
    """Its result comes by the log of its client: a real kubelet would cut a message in such a pod."""
    for job in here.list("jobs", "paceline.dev/component=round"):
        spec = job["spec"]["template"]["spec"]
        assert len(spec["containers"]) + len(spec["initContainers"]) == 8
    points = [point for run in here.list("bench") for entry in run["rounds"] for point in entry["points"]]
    assert len(points) == 4
    assert [point["why"] for point in points if not point["valid"]] == []
    assert all(point["p50TTFT"] and point["p99TTFT"] for point in points)
    assert all(load["clientCPU"] for run in here.list("bench") for entry in run["rounds"] for load in entry["inputs"])


def test_the_pool_answers_at_its_address(here: Namespace) -> None:
    address = pool_of(here.get("specdep", NAME))["endpoint"]
    question = {"model": "qwen3-coder-next", "max_tokens": 8, "messages": [{"role": "user", "content": "Hello"}]}
    answer = json.loads(
        here.kubectl(
            *("exec", server(here)["metadata"]["name"], "--", "curl", "--silent", "--fail", "--max-time", "20"),
            *("--json", json.dumps(question), f"{address}/v1/chat/completions"),
        )
    )
    assert answer["model"] == "qwen3-coder-next"
    assert answer["usage"]["completion_tokens"] == 8
    assert answer["choices"][0]["message"]["content"]


def test_the_evidence_says_where_and_on_what(here: Namespace) -> None:
    run = here.wait("the run", run_of(here, NAME), 1)
    status = run["status"]
    assert status["emulated"]
    assert "emulated" in status["engineVersion"]
    assert {round["node"] for round in run["rounds"]} == {status["node"]}
    for round in run["rounds"]:
        assert len(set(round["gpus"])) == 4
        assert all(gpu.startswith(f"GPU-{status['node']}-") for gpu in round["gpus"])
        assert [point["valid"] for point in round["points"]] == [True, True]
    assert {replicate["arm"] for replicate in run["rounds"][0]["replicates"]} == {"baseline", "wide"}


def test_every_answer_is_on_the_cache_volume(here: Namespace) -> None:
    run = here.wait("the run", run_of(here, NAME), 1)
    for measured in run["rounds"]:
        reports = {line["arm"]: line["report"] for line in lines_of(here, measured) if "report" in line}
        assert {arm: report["errors"] for arm, report in reports.items()} == {"baseline": [""] * 6, "wide": [""] * 6}


def test_a_second_apply_measures_nothing(here: Namespace, hub: str) -> None:
    """Neither at once nor after the operator has looked again."""
    before = measured(here)
    here.apply(deployment(hub))
    here.kubectl("annotate", "specdep", NAME, "looked=again")
    here.wait("it to be looked at", served(here, NAME, "wide"), 5)
    time.sleep(10)
    assert measured(here) == before
    assert pool_of(here.get("specdep", NAME))["serving"]["evidence"]["run"] == before[0][0]


def test_the_plugin_tells_what_serves_and_why(here: Namespace) -> None:
    evidence = pool_of(here.get("specdep", NAME))["serving"]["evidence"]["run"]
    status = plugin(here, "status").stdout
    assert re.search(r"serves +wide 1\.\d\dx \(emulated\) at \w{10}, since .* 1 of 1 servers ready", status), status
    assert f"Its evidence is {evidence}, 1." in plugin(here, "why", NAME).stdout
    gate = plugin(here, "gate", NAME, "--wait", "20s", "-o", "json")
    assert (gate.returncode, json.loads(gate.stdout)["pools"][0]["winner"]) == (0, "wide")
    nobody = plugin(here, "status", "nobody")
    assert nobody.stderr.endswith(f"has no SpeculativeDeployment nobody; name one of: {NAME}\n")


def test_top_reads_the_servers_through_the_api_server(here: Namespace) -> None:
    """While one answers."""
    pool = pool_of(here.get("specdep", NAME))
    question = {"model": "qwen3-coder-next", "prompt": "Hello", "max_tokens": 4000, "ignore_eos": True, "stream": True}
    pod, address = server(here)["metadata"]["name"], f"{pool['endpoint']}/v1/completions"
    curl = ("curl", "--silent", "--no-buffer", "--max-time", "15", "--json", json.dumps(question), address)
    command = [str(KUBECTL), "--kubeconfig", str(STATE / "kubeconfig"), "-n", here.name, "exec", pod, "--", *curl]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as asking:
        assert asking.stdout
        assert asking.stdout.readline()
        shown = json.loads(plugin(here, "top", "--interval", "2s", "-o", "json").stdout)
        asking.terminate()
    (seen,) = shown["pools"]
    assert (seen["servers"], seen["errors"], seen["measured"][0]["workload"]) == (1, [], "code@1")
    assert float(seen["now"]["tokensPerSecond"]) > 0


def test_a_person_goes_back_and_promotes_again(here: Namespace) -> None:
    """By the plugin; nothing is measured for it, and history says who asked."""
    runs = measured(here)
    back = plugin(here, "rollback", NAME, "--token", "ticket-1")
    assert back.stdout.startswith("latency: held (RolledBack): a person has rolled back from wide"), back.stderr
    here.wait("the baseline to be served", served(here, NAME, "baseline"), 60)
    assert "rollback=@ticket-1" in plugin(here, "history").stdout
    again = plugin(here, "promote")
    assert "the hold of wide (RolledBack) is released" in again.stdout, again.stderr
    here.wait("the winner to be served", served(here, NAME, "wide"), 60)
    refused = plugin(here, "promote", NAME, "0123456789")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "promotion.mode is Automatic" in refused.stderr
    assert measured(here) == runs


def test_what_serves_goes_on_until_a_changed_spec_is_measured(here: Namespace) -> None:
    before, serving = here.wait("the first run", run_of(here, NAME), 1), server(here)
    change(here, "--mem-fraction-static=0.8")
    asked = here.wait("a run of the new question", lambda: other_than(here, before), 20)
    assert "--mem-fraction-static=0.8" in asked["spec"]["engine"]["args"]
    assert [arm["name"] for arm in asked["spec"]["arms"]] == ["baseline", "wide", "incumbent"]
    deployment = here.get("specdep", NAME)
    assert says(deployment, "ChangePending", "True", "Measuring")
    assert says(deployment, "Promoted", "True", "StillPromoted")
    assert pool_of(deployment)["serving"]["evidence"]["run"] == before["metadata"]["name"]
    assert server(here)["metadata"]["uid"] == serving["metadata"]["uid"]
    assert asked["status"].get("verdict") is None
    assert finished(here, before)() is not None
    undecided = plugin(here, "gate", NAME)
    assert (undecided.returncode, undecided.stdout[:20]) == (13, "latency: Undecided: "), undecided


def test_an_old_question_is_answered_by_its_evidence(here: Namespace, hub: str) -> None:
    """The spec of before: its winner serves on, and no GPU has measured for that."""
    first = here.wait("the first run", run_of(here, NAME), 1)
    superseded = here.wait("the second run", lambda: other_than(here, first), 1)
    here.apply(deployment(hub))
    name = superseded["metadata"]["name"]
    here.wait("the run to end", lambda: says(here.get("bench", name), "Failed", "True", "Superseded"), 60)
    found = here.wait("the winner to be served", served(here, NAME, "wide"), 90)
    assert pool_of(found)["serving"]["evidence"]["run"] == first["metadata"]["name"]
    assert not condition(found, "ChangePending")
    jobs = {job["metadata"]["labels"][RUN] for job in here.list("jobs", "paceline.dev/component=round")}
    assert jobs <= {run["metadata"]["name"] for run in (first, superseded)}
    assert len(here.list("bench")) == 2


def test_deleting_it_leaves_nothing_but_its_models(here: Namespace) -> None:
    """In the middle of a round, as it happens."""
    change(here, "--mem-fraction-static=0.82")
    here.wait("a round of the new run", lambda: any(running(pod) for pod in rounds(here)), 60)
    here.kubectl("delete", "specdep", NAME)
    here.wait("all of it to go", lambda: objects(here) == {"persistentvolumeclaim/models"}, 60)


def plugin(here: Namespace, *words: str) -> subprocess.CompletedProcess[str]:
    """kubectl paceline, which kubectl finds in the PATH."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = [str(KUBECTL), "paceline", *words, "-n", here.name]
    environment = {**os.environ, "PATH": path, "KUBECONFIG": str(STATE / "kubeconfig")}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def change(here: Namespace, fraction: str) -> None:
    patch = {"spec": {"engine": {"args": ["--attention-backend=triton", fraction]}}}
    here.kubectl("patch", "specdep", NAME, "--type", "merge", "--patch", json.dumps(patch))


def measured(here: Namespace) -> list[tuple[str, list[str]]]:
    """Every run, with the Jobs of its rounds."""
    jobs = here.list("jobs", "paceline.dev/component=round")
    names = [(job["metadata"]["labels"][RUN], job["metadata"]["uid"]) for job in jobs]
    runs = [run["metadata"]["name"] for run in here.list("bench")]
    return [(run, [uid for of, uid in names if of == run]) for run in runs]


def other_than(here: Namespace, first: Manifest) -> Manifest | None:
    runs = [run for run in here.list("bench") if run["metadata"]["uid"] != first["metadata"]["uid"]]
    return runs[0] if runs else None


def events(here: Namespace, kind: str) -> list[str]:
    """Reasons in the order in which they were written."""
    found = here.list("events")
    found.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
    return [event["reason"] for event in found if event["involvedObject"]["kind"] == kind]


def server(here: Namespace) -> Manifest:
    """The pod that serves; one that is on its way out does not."""
    pods = here.list("pods", f"paceline.dev/deployment={NAME},paceline.dev/component=server")
    (pod,) = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    return pod


def rounds(here: Namespace) -> list[Manifest]:
    return here.list("pods", "paceline.dev/component=round")


def running(pod: Manifest) -> bool:
    return bool(pod["status"]["phase"] == "Running")


def flags_of(command: list[str]) -> dict[str, str]:
    """`--flag value`, `--flag=value` and `--flag` as flag → value, "" for none."""
    found, words = {}, [word for argument in command for word in argument.split("=", 1)]
    for word, following in zip(words, [*words[1:], "--"], strict=True):
        if word.startswith("--"):
            found[word] = "" if following.startswith("--") else following
    return found


def objects(here: Namespace) -> set[str]:
    """All that is in the namespace, of every kind that can be listed, but what Kubernetes itself puts there."""
    kinds = kubectl("api-resources", "--namespaced", "--verbs=list", "--output=name").split()
    kinds = [kind for kind in kinds if kind not in ("events", "events.events.k8s.io")]
    found = set(here.kubectl("get", ",".join(kinds), "--output=name", "--ignore-not-found").split())
    return found - {"configmap/kube-root-ca.crt", "serviceaccount/default"}
