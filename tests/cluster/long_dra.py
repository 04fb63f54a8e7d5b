"""Accelerators that pods claim, with a DRA driver on every node: `dev/cluster/dra-up`, then a deployment to its
verdict. It builds a program and an image first: `make test-all`."""

import subprocess
from pathlib import Path

import pytest
from tests.cluster.example import IMAGE, candidate, small
from tests.support.kubernetes import Manifest, Namespace, says

DRA_UP = Path(__file__).parents[2] / "dev" / "cluster" / "dra-up"
DRIVER = "gpu.example.com"
NAME = "claimed"


@pytest.fixture(scope="module", autouse=True)
def _driver() -> None:
    subprocess.run([DRA_UP], check=True)


def claiming(hub: str) -> Manifest:
    own = {"image": IMAGE, "type": "vLLM", "version": "0.33.0"}
    manifest = small(NAME, hub, candidates=[candidate(), {"name": "vllm", "engine": own}])
    accelerator = manifest["spec"]["accelerator"]
    product = f"device.attributes['{DRIVER}'].productName == '{accelerator['product']}'"
    accelerator |= {"deviceClassName": DRIVER, "deviceSelectors": [product]}
    return manifest


def devices(here: Namespace) -> list[tuple[str, str]]:
    """Node and name of each device that a claim of this namespace holds."""
    allocated = (claim.get("status", {}).get("allocation") for claim in here.list("resourceclaims"))
    return [(one["pool"], one["device"]) for each in allocated if each for one in each["devices"]["results"]]


@pytest.mark.timeout(600)
def test_a_deployment_goes_to_its_verdict_on_claims(here: Namespace, hub: str) -> None:
    here.apply(claiming(hub))
    here.wait("the baseline to serve", lambda: says(here.get("specdep", NAME), "Ready", "True", "Serving"), 180)
    for pod in here.list("pods", "paceline.dev/component=server"):
        assert DRIVER not in pod["spec"]["containers"][0]["resources"].get("limits", {})
        assert pod["spec"]["resourceClaims"][0]["name"] == "accelerators"
    held = here.wait("devices of server and round", lambda: (found := devices(here)) and len(found) >= 2 and found, 120)
    assert len(set(held)) == len(held), "no device is allocated twice"
    here.wait("the promotion", lambda: says(here.get("specdep", NAME), "Promoted", "True", "AllPromoted"), 300)

    (run,) = here.list("bench", f"paceline.dev/deployment={NAME}")
    assert run["status"]["verdict"]["outcome"] == "Promote"
    assert "vllm differs in engine" in run["status"]["verdict"]["message"]
    notes = [note for one in here.list("benchround") for note in one["spec"].get("notes", ())]
    assert not [note for note in notes if "devices were not compared" in note], "all containers share the claim"
    here.kubectl("delete", "specdep", NAME)
    here.wait("templates and claims to go", lambda: not _left(here), 300)


def _left(here: Namespace) -> list[Manifest]:
    return [*here.list("resourceclaimtemplates"), *here.list("resourceclaims")]
