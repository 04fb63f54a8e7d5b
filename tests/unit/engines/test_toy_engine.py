"""A fourth engine is its own package and a line of the table: it is served, measured and refused by what serves,
measures and refuses the others. Each test runs the programs with the toy registered, as a release with it would."""

import dataclasses
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.containers import container
from tests.support.edits import GONE, Change, changed
from tests.support.messages import Says
from tests.support.running import free_port
from tests.support.toy_engine import NAME, PORT, RESOURCE
from tests.unit.round.pod import begin, workload, write_models

from paceline.cli.options import EXIT
from paceline.evidence import ENVIRONMENT, RoundPlan
from paceline.evidence.result_log import PREFIX

ROOT = Path(__file__).parents[3]
PATHS = f"{ROOT / 'tests/support/toy_engine'}{os.pathsep}{ROOT}"
"""On PYTHONPATH they register the toy in every process."""
HEAD = {"algorithm": "EAGLE3", "source": "hf://toys/head"}
CHAIN = {"numSteps": 4, "topK": 1, "numDraftTokens": 5}
ENGINE = {"type": NAME, "version": "1.2", "image": "toys.example/server:1.2", "args": ["--slots=32"]}
ACCELERATOR = {"product": "toy-npu-16GB", "productLabel": "toys.example/product", "resourceName": RESOURCE, "count": 2}
DEPLOYMENT: Mapping[str, Any] = {
    "apiVersion": "paceline.dev/v1alpha1",
    "kind": "SpeculativeDeployment",
    "metadata": {"name": "pair"},
    "spec": {
        "target": {"source": "hf://toys/target", "servedName": "pair"},
        "draft": HEAD,
        "engine": ENGINE,
        "accelerator": {**ACCELERATOR, "memory": "16Gi"},
        "cache": {"claim": {"name": "models", "size": "60Gi", "accessModes": ["ReadWriteMany"]}},
        "candidates": [{"name": "chain", "tree": CHAIN}, {"name": "free", "adaptive": {}}],
        "pools": [{"name": "chat", "replicas": 1, "load": [{"concurrency": [4], "datasets": ["code"]}]}],
    },
}  # fmt: skip
RUN: Mapping[str, Any] = {
    "apiVersion": "paceline.dev/v1alpha1",
    "kind": "BenchmarkRun",
    "metadata": {"name": "pair-chat"},
    "spec": {
        "pool": "chat",
        "target": {"source": "pvc://models/target", "servedName": "pair"},
        "engine": ENGINE,
        "accelerator": ACCELERATOR,
        "cache": {"claimName": "models"},
        "arms": [
            {"name": "baseline"},
            {"name": "chain", "draft": {**HEAD, "source": "pvc://models/head"}, "tree": CHAIN},
        ],
        "workloads": [{"name": "code", "source": "builtin://code", "concurrency": 4}],
        "gate": {},
    },
}


def run(*argv: str) -> tuple[str, int]:
    """What `paceline` prints, and its exit code."""
    command, environ = (sys.executable, "-m", "paceline.cli", *argv), {**os.environ, "PYTHONPATH": PATHS}
    ended = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    return ended.stdout + ended.stderr, ended.returncode


def paceline(command: str, manifests: Sequence[Mapping[str, Any]], directory: Path, *more: str) -> tuple[str, int]:
    file = directory / "toy.yaml"
    file.write_text(yaml.safe_dump_all([dict(manifest) for manifest in manifests]))
    return run(command, str(file), *more)


def test_it_is_served(tmp_path: Path) -> None:
    printed, code = paceline("render", [DEPLOYMENT], tmp_path, "--arm", "chain")
    assert code == 0, printed
    objects = {each["kind"]: each for each in yaml.safe_load_all(printed)}
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    (server,) = pod["containers"]
    head = f"/models/hub/models--toys--head/snapshots/{'0' * 40}"
    assert server["command"][2:4] == ["--port", str(PORT)]
    assert server["command"][-7:] == ["--parallel", "2", "--draft", head, "--depth", "4", "--slots=32"]
    assert server["livenessProbe"]["httpGet"] == {"path": "/toy/alive", "port": "http"}
    assert server["resources"]["limits"][RESOURCE] == "2"
    assert {"name": "TOY_KERNELS", "value": "/toy-kernels"} in server["env"]


def test_its_promotion_is_forecast(tmp_path: Path) -> None:
    """By the operator's own planners: both candidates are measured, and what is lost once one serves is said."""
    printed, code = paceline("plan", [DEPLOYMENT], tmp_path)
    assert code == 0, printed
    assert "the toy forgets what a request asks for once it drafts" in printed


def test_it_is_measured(tmp_path: Path) -> None:
    """A round as it is rendered, but for the port, the paths of the machine and the size of the load."""
    printed, code = paceline("render", [RUN], tmp_path)
    assert code == 0, printed
    job = yaml.safe_load(printed)
    environment = {each["name"]: each.get("value") for each in container(job["spec"]["template"], "client")["env"]}
    rendered, port = RoundPlan.from_json(environment[ENVIRONMENT]), free_port()
    arms = tuple(
        dataclasses.replace(arm, port=port, argv=tuple(str(port) if word == str(PORT) else word for word in arm.argv))
        for arm in rendered.arms
    )

    def here(plan: RoundPlan) -> RoundPlan:
        load = workload("code", 4, 12, 48)
        return dataclasses.replace(rendered, arms=arms, workloads=(load,), results_dir=plan.results_dir)

    models = tmp_path / "models"
    models.mkdir()
    pod = begin(write_models(models), port, (), change=here, PYTHONPATH=PATHS)
    try:
        outcome = pod.finish()
    finally:
        pod.end()
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.log
    assert {judged.why for judged in outcome.judged.values()} == {""}
    assert outcome.result.engine_version == "1.2+toy"
    chain, baseline = (outcome.judged[arm, "code@4"].point for arm in ("chain", "baseline"))
    assert chain is not None
    assert baseline is not None
    assert chain.accept_length == pytest.approx(3, rel=0.1)
    assert chain.output_throughput > baseline.output_throughput


def test_it_is_measured_without_an_accelerator(tmp_path: Path) -> None:
    """To a verdict; which one depends on how busy this machine is."""
    benchmark = {"datasets": [{"name": "code", "source": "builtin://code", "requests": 12, "maxTokens": 32}]}
    spec = {**DEPLOYMENT["spec"], "gate": {"decideAfterRounds": [2]}, "benchmark": benchmark}
    spec["candidates"] = spec["candidates"][:1]
    options = ("--emulated", "--emulated-size=8B", f"--output={tmp_path / 'run.yaml'}")
    printed, code = paceline("measure", [{**DEPLOYMENT, "spec": spec}], tmp_path, *options)
    assert code in EXIT.values(), printed
    assert {*re.findall(r"(\w+) code@4: \d+\.\d+ tok/s", printed)} == {"baseline", "chain"}
    assert "invented speeds of a generic 8B model" in printed
    assert PREFIX not in printed


def test_it_is_imported(tmp_path: Path) -> None:
    container = {
        "name": "server",
        "image": "toys.example/toy:1.2.0",
        "command": ["python", "-m", "toy.server", "--model=toys/target", "--slots=32", "--draft=toys/head"],
        "resources": {"limits": {RESOURCE: "2"}},
    }
    metadata = {"labels": {"app": "pair"}}
    template = {"metadata": metadata, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "pair"}}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "pair"}, "spec": spec}
    printed, code = paceline("import", [deployment], tmp_path, "--product=toy-npu-16GB")
    assert code == 0, printed
    imported = next(yaml.safe_load_all(printed))["spec"]
    assert imported["engine"]["type"] == NAME
    assert imported["engine"]["version"] == "1.2.0"
    assert imported["engine"]["args"] == ["--slots=32"]
    assert imported["draft"] == HEAD
    assert imported["candidates"] == [{"name": "current", "tree": CHAIN}]


CANDIDATE = "spec.candidates.0"
TREE = f"{CANDIDATE}.tree"
FALLING = [{"fromBatchSize": 1, "numSteps": 4}, {"fromBatchSize": 8, "numSteps": 0}]
REFUSED: tuple[tuple[str, *tuple[Change, ...]], ...] = (
    # Its own rules.
    ("candidates[0].tree.numSteps", (TREE, {**CHAIN, "numSteps": 3, "numDraftTokens": 4})),
    # Those that all engines share.
    ("engine.args[0]", ("spec.engine.args", ["--depth=3"])),
    ("engine.args[0]", ("spec.engine.args", ["--slotz=3"])),
    ("engine.args[0]", ("spec.engine.args", ["--slots=many"])),
    ("candidates[0].args[0]", (f"{CANDIDATE}.args", ["--slots=8"])),
    ("engine.args[0]", ("spec.engine.args", ["--slots=2"])),
    ("accelerator.nodes", ("spec.accelerator.nodes", 2)),
    # Those of the API, from its capabilities.
    ("candidates[0].tree.topK", (TREE, {**CHAIN, "topK": 2})),
    ("candidates[0].tree.numSteps", (TREE, {**CHAIN, "numSteps": 1, "numDraftTokens": 2})),
    ("candidates[0].depthByBatchSize", (TREE, GONE), (f"{CANDIDATE}.depthByBatchSize", FALLING)),
    ("candidates[0]", ("spec.draft.algorithm", "STANDALONE")),
    ("candidates[0].draft.name", (f"{CANDIDATE}.draft", {"algorithm": "Custom", "name": "toyhead"})),
    ("accelerator.resourceName", ("spec.accelerator.resourceName", "nvidia.com/gpu")),
    ("engine.adminKeySecretRef", ("spec.engine.adminKeySecretRef", {"name": "keys", "key": "admin"})),
)


def test_it_is_refused(tmp_path: Path, says: Says) -> None:
    printed, code = paceline("validate", [changed(dict(DEPLOYMENT), *changes) for _, *changes in REFUSED], tmp_path)
    assert code == 1
    told = [line.partition(": ")[2] for line in printed.splitlines()]
    for number, (path, *_) in enumerate(REFUSED, 1):
        assert any(line.startswith(f"spec.{path}: ") and f"(document {number} of " in line for line in told), path
    says(*told)


def test_a_head_that_does_not_fit_is_refused(tmp_path: Path, says: Says) -> None:
    """By what the models' own files say; the manifest itself is right."""
    configs = {
        "target": {"architectures": ["LlamaForCausalLM"], "hidden_size": 128},
        "head": {"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 64, "num_hidden_layers": 3},
    }
    for name, config in configs.items():
        folder = tmp_path / "models" / "toys" / name
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(config))
    printed, code = paceline("validate", [DEPLOYMENT], tmp_path)
    assert code == 0
    says(printed)
    printed, code = paceline("validate", [DEPLOYMENT], tmp_path, "--models", str(tmp_path / "models"))
    assert code == 1
    lines = printed.splitlines()
    assert [line.split(": ")[1] for line in lines] == ["spec.engine.version", *["spec.draft.source"] * 3, "note"]
    says(*lines)


def test_the_api_server_refuses_it(tmp_path: Path) -> None:
    """The CRD has the engine's name and its rules, in CEL."""
    printed, code = run("crds", "--directory", str(tmp_path))
    assert code == 0, printed
    crd = yaml.safe_load((tmp_path / "paceline.dev_speculativedeployments.yaml").read_text())
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    rules = "\n".join(rule["rule"] for rule in spec["x-kubernetes-validations"])
    engine = spec["properties"]["engine"]
    assert engine["properties"]["type"]["enum"] == ["SGLang", "SGLangJAX", "vLLM", "Toy"]
    for cel in (
        "(e != 'Toy' || a in ['EAGLE3', 'NGRAM'])",
        "e in ['SGLang'] || !has(c.tree) || !has(c.tree.topK) || c.tree.topK == 1",
        "(e != 'Toy' || c.tree.numSteps >= 2)",
        "(e == 'Toy' && a in ['', 'EAGLE3'])",
        f"(e != 'Toy' || self.accelerator.resourceName == '{RESOURCE}')",
    ):
        assert cel in rules
    by_image = (
        "(has(self.type) ? self.type : self.image.matches('(^|/)lmsysorg/sglang([:@]|$)') ? 'SGLang'"
        " : self.image.matches('(^|/)vllm/vllm-openai([:@]|$)') ? 'vLLM' : '')"
    )
    assert [rule["rule"] for rule in engine["x-kubernetes-validations"]][:2] == [
        f"{by_image} in ['SGLang'] || !has(self.adminKeySecretRef)",
        f"{by_image} != ''",
    ]
    assert len(engine["x-kubernetes-validations"]) == 5
