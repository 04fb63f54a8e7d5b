"""What the cluster does to a round: it says nothing about a candidate, and the run goes on where it can."""

import json

import yaml
from tests.cluster.example import small
from tests.cluster.test_examples import EXAMPLES, H200
from tests.cluster.volumes import claim
from tests.support.kubernetes import Manifest, Namespace, ended, kubectl, says
from tests.support.overlay import merged
from tests.support.queries import finished, measuring, run_of

NEVER_PULLED: Manifest = {"spec": {"containers": [{"name": "server", "imagePullPolicy": "Never"}]}}


def test_an_evicted_round_is_tried_again(here: Namespace, hub: str) -> None:
    """As a drain does it."""
    here.apply(small("evicted", hub))
    run = here.wait("a run", run_of(here, "evicted"), 90)
    pod = here.wait("the first round to measure", measuring(here, run, 0), 60)
    evict(here, pod)

    done = here.wait("the verdict", finished(here, run), 150)
    status = done["status"]
    assert tries(done) == [(0, 0, "Evicted"), (0, 1, ""), (1, 0, "")]
    why = done["rounds"][0]["error"]  # as often as not the pod is gone before its Job has ended
    assert "EvictionByEvictionAPI" in why or why == "its pod is gone"
    assert (status["verdict"]["outcome"], status["verdict"]["winner"]) == ("Promote", "wide")


def test_an_image_that_is_not_there_blames_no_candidate(here: Namespace) -> None:
    manifest: Manifest = yaml.safe_load((EXAMPLES / "benchmark-only.yaml").read_text())
    absent = {"image": "localhost/paceline-absent:0", "podTemplate": NEVER_PULLED}
    manifest["spec"] = merged(manifest["spec"], H200 | {"engine": absent})
    here.apply(claim(manifest["spec"]["cache"]["claimName"]))
    here.apply(manifest)

    done = here.wait("the end", finished(here, manifest), 180)  # with 15 and 30 s between tries
    status = done["status"]
    assert tries(done) == [(0, number, "ImagePull") for number in range(3)]
    assert "paceline-absent:0" in done["rounds"][-1]["error"]
    assert (status["verdict"]["outcome"], status["verdict"]["reason"]) == ("Error", "ImagePull")
    assert says(here.get("bench", manifest["metadata"]["name"]), "Failed", "True", "Error")
    here.wait("its GPUs to be free", lambda: all(map(ended, here.list("pods"))), 60)


def tries(run: Manifest) -> list[tuple[int, int, str]]:
    """Round, try and what went wrong with it, "" for nothing."""
    return [(round["round"], round["try"], round.get("reason", "")) for round in run["rounds"]]


def evict(here: Namespace, pod: Manifest) -> None:
    name = pod["metadata"]["name"]
    asked = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": here.name},
    }
    path = f"/api/v1/namespaces/{here.name}/pods/{name}/eviction"
    kubectl("create", "--raw", path, "-f", "-", feed=json.dumps(asked))
