"""Examples on the cluster, beside those of test_examples.py."""

import hashlib

import pytest
import yaml
from tests.cluster import test_examples as examples
from tests.support.kubernetes import Manifest, Namespace

from paceline_emulator.hub.prompts import files

THINKING = '--default-chat-template-kwargs={"enable_thinking": false}'
CASES = (
    examples.Case(example="qwen3-8b-no-thinking", argument=THINKING, over=examples.H200),
    examples.Case(example="ngram-no-draft", argument="NGRAM", over=examples.H200),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_example_comes_to_its_verdict(here: Namespace, hub: str, case: examples.Case) -> None:
    examples.test_an_example_comes_to_its_verdict(here, hub, case)


def test_the_example_with_prompts_of_the_hub(here: Namespace, hub: str) -> None:
    """Six of its prompts: brought beside the models, and every round says that it read that very file."""
    source = "hf://datasets/paceline-test/prompts/code.jsonl"
    prompts = [{"name": "code", "source": source, "requests": 6, "maxTokens": 24}]
    case = examples.Case(
        example="prompts-of-the-hub", argument="EAGLE3", over={**examples.H200, "benchmark": {"datasets": prompts}}
    )
    manifest = examples.smaller(case, hub)
    here.apply(manifest)
    status = here.wait("its verdict to be served", examples.decided(here, manifest), examples.WHOLE_SECONDS)
    examples.check(here, manifest, status, case.argument)
    artifacts = here.get("specdep", manifest["metadata"]["name"])["status"]["artifacts"]
    (brought,) = (one for one in artifacts if one["source"] == source)
    (run,) = here.list("bench")
    (workload,) = run["spec"]["workloads"]
    assert (workload["source"], workload["commit"]) == (source, brought["commit"])
    read = hashlib.sha256(files()["code.jsonl"]).hexdigest()[:12]
    assert {entry["datasets"]["code"] for entry in run["rounds"]} == {read}


@pytest.mark.timeout(600)
def test_the_example_with_a_tree_for_each_class_of_prompts(here: Namespace, hub: str) -> None:
    """Two pools, each measured on its own prompts; the cluster has no Gateway to send requests by a header."""
    short = [
        {"name": name, "source": f"builtin://{name}", "requests": 6, "maxTokens": 24}
        for name in ("code", "terminal", "chat")
    ]
    case = examples.Case(example="by-class", argument="EAGLE3", over={"benchmark": {"datasets": short}})
    manifest = examples.smaller(case, hub)
    asked = yaml.safe_load((examples.EXAMPLES / "by-class.yaml").read_text())["spec"]["pools"]
    of = {pool["name"]: pool["load"][0]["datasets"] for pool in asked}
    manifest["spec"] |= {
        "pools": [{**pool, "load": [{"concurrency": [1], "datasets": of[pool["name"]]}]} for pool in asked]
    }
    del manifest["spec"]["gateway"]
    here.apply(manifest)
    here.wait("the first verdict", examples.decided(here, manifest), 2 * examples.WHOLE_SECONDS)
    here.wait("both verdicts", lambda: len(ended(here)) == 2, examples.WHOLE_SECONDS)
    assert [one["dataset"] for one in ended(here)["code"]["status"]["classes"]] == of["code"]
    assert "classes" not in ended(here)["chat"]["status"], "of one dataset nothing is said besides its verdict"


def ended(here: Namespace) -> dict[str, Manifest]:
    """Pool → its run, if that has a verdict."""
    return {run["spec"]["pool"]: run for run in here.list("bench") if "verdict" in run["status"]}
