"""Accelerators that pods claim, on a real API server, controller manager and scheduler. DeviceClass and ResourceSlice
are those of a driver with eight GPUs on one node. No kubelet is there: a pod's story ends with its node and devices."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.support.apiserver import BINARIES, BUILD, Running, _free_ports, _run, start
from tests.support.example import DEPLOYED, RUN, arm, pool, run, server
from tests.support.several_nodes import over

from paceline.api import Reason
from paceline.core import Accelerator, Cache, Server
from paceline.core.manifest import Manifest
from paceline.kube import needs_apply, stamped
from paceline.plan.run.lacking import waits_for
from paceline.plan.trouble import unplaced
from paceline.render import Owner, Settings, claim_templates, rendering, revision_of, round_claims, round_job, servers
from paceline.render.round_job import round_plan
from paceline.render.where import ANYWHERE

DRIVER, CLASS, PRODUCT = "gpu.example.com", "gpu.example.com", "NVIDIA H200"
SETTINGS = Settings(image="paceline")
NODE = "gpu-0"
PARTS = ("kube-scheduler", "kube-controller-manager")
CONTROLLERS = "resourceclaim-controller,deployment-controller,replicaset-controller,job-controller"


def claiming(product: str = PRODUCT, of: str = CLASS, base: Server | None = None) -> Server:
    """Of four devices a server, wherever their driver has them; its models are on the node."""
    selector = f"device.attributes['{DRIVER}'].productName == '{product}'"
    found = base or server()
    accelerator = replace(found.accelerator, device_class_name=of, device_selectors=(selector,))
    return replace(found, accelerator=accelerator, cache=Cache(host_path="/models"))


def served(asked: Server, owner: Owner = DEPLOYED, replicas: int = 1) -> list[Manifest]:
    kept = rendering(owner, "latency", asked, arm("wide"), revision_of(asked, arm("wide")), SETTINGS)
    made = servers(owner, "latency", kept, replicas, timedelta(minutes=30), {"paceline.dev/why": "it was shown"}, True)
    return [*claim_templates(owner, "latency", kept), made]


def measured(asked: Server, try_: int = 0, owner: Owner = RUN) -> list[Manifest]:
    spec = replace(run(), server=asked)
    plan = round_plan(owner, spec, pool().spec.arms, number=0, try_=try_)
    return [*round_claims(owner, spec), round_job(owner, spec, plan, ANYWHERE, SETTINGS)]


class Devices:
    """A cluster of one node with eight devices."""

    def __init__(self, running: Running) -> None:
        self.running = running

    def apply(self, manifest: Manifest) -> Manifest:
        """As the operator does; refused where a field is unknown."""
        strictly = ("--server-side", "--field-manager=paceline", "--validate=strict", "-o", "json", "-f", "-")
        stored: Manifest = json.loads(self.running.kubectl("apply", *strictly, given=manifest).stdout)
        return stored

    def all(self, kind: str) -> list[Manifest]:
        found: list[Manifest] = json.loads(
            self.running.kubectl("get", kind, "-n", DEPLOYED.namespace, "-o", "json").stdout
        )["items"]
        return found

    def until(self, what: str, found: Callable[[], Any]) -> Any:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if there := found():
                return there
            time.sleep(0.2)
        raise AssertionError(f"gave up waiting for {what}: {json.dumps(self.all('pods,resourceclaims'), indent=1)}")

    def placed(self, component: str) -> Manifest:
        return self.until(f"a node for a {component}", lambda: next(filter(_node, self.pods(component)), None))  # type: ignore[no-any-return]

    def pods(self, component: str) -> list[Manifest]:
        return [pod for pod in self.all("pods") if pod["metadata"]["labels"]["paceline.dev/component"] == component]

    def devices_of(self, pod: Manifest) -> set[str]:
        """What the scheduler has allocated to its claims."""
        names = {one["resourceClaimName"] for one in pod["status"]["resourceClaimStatuses"]}
        claims = [one for one in self.all("resourceclaims") if one["metadata"]["name"] in names]
        return {one["device"] for claim in claims for one in claim["status"]["allocation"]["devices"]["results"]}


def _node(pod: Manifest) -> bool:
    return "nodeName" in pod["spec"]


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devices]:
    subprocess.run([BUILD, *PARTS], check=True, stdout=subprocess.DEVNULL)
    directory = tmp_path_factory.mktemp("devices")
    running = start(directory)
    processes = []
    try:
        devices = Devices(running)
        driver(devices)
        for part, port, more in zip(PARTS, _free_ports(2), ([], [f"--controllers={CONTROLLERS}"]), strict=True):
            flags = (
                f"--kubeconfig={running.kubeconfig}",
                "--leader-elect=false",
                f"--secure-port={port}",
                "--bind-address=127.0.0.1",
                *more,
            )
            processes.append(_run(directory / f"{part}.log", BINARIES / part, *flags))
        yield devices
    finally:
        for process in processes:
            process.kill()
            process.wait()
        running.stop()


def driver(devices: Devices) -> None:
    """What a DRA driver publishes, of a node that a kubelet has told to be ready."""
    devices.running.kubectl("create", "namespace", DEPLOYED.namespace)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
    stored = devices.running.request("POST", "/api/v1/nodes", node)
    room = {"cpu": "64", "memory": "512Gi", "pods": "110", "ephemeral-storage": "1Ti"}
    stored["status"] = {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]}
    stored = devices.running.request("PUT", f"/api/v1/nodes/{NODE}/status", stored)
    stored["spec"]["taints"] = []  # a new node has that of one that is not ready
    devices.running.request("PUT", f"/api/v1/nodes/{NODE}", stored)
    group = "resource.k8s.io/v1"
    of_driver = {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}
    devices.running.request(
        "POST",
        f"/apis/{group}/deviceclasses",
        {"apiVersion": group, "kind": "DeviceClass", "metadata": {"name": CLASS}, "spec": of_driver},
    )
    eight = [{"name": f"gpu-{i}", "attributes": {"productName": {"string": PRODUCT}}} for i in range(8)]
    pool_of_node = {"name": NODE, "generation": 1, "resourceSliceCount": 1}
    devices.running.request(
        "POST",
        f"/apis/{group}/resourceslices",
        {
            "apiVersion": group,
            "kind": "ResourceSlice",
            "metadata": {"name": NODE},
            "spec": {"driver": DRIVER, "nodeName": NODE, "pool": pool_of_node, "devices": eight},
        },
    )


def test_what_is_rendered_is_taken_and_needs_no_second_apply(there: Devices) -> None:
    away = replace(DEPLOYED, name="nowhere")
    for one in (*served(claiming("none"), away), *measured(claiming("none"), owner=replace(RUN, name="nowhere"))):
        wanted = stamped(one)
        assert not needs_apply(there.apply(wanted), wanted)


def test_a_server_and_a_round_get_four_devices_each_and_the_next_round_waits(there: Devices) -> None:
    """The scheduler's words about the third one are those that are taken for a lack of capacity."""
    for one in (*served(claiming()), *measured(claiming())):
        there.apply(one)
    held = [there.devices_of(there.placed(component)) for component in ("server", "round")]
    assert [len(each) for each in held] == [4, 4]
    assert held[0].isdisjoint(held[1])

    later = replace(RUN, name="later")
    for one in measured(claiming(), owner=later):
        there.apply(one)

    def waiting() -> Manifest | None:
        of_run = (pod for pod in there.pods("round") if pod["metadata"]["labels"]["paceline.dev/run"] == "later")
        return next(filter(unplaced, of_run), None)

    pod = there.until("the scheduler to say why", waiting)
    assert "cannot allocate all claims" in pod["status"]["conditions"][0]["message"]
    problem = unplaced(pod)
    assert problem is not None
    assert problem.reason is Reason.NoCapacity
    assert waits_for(claiming().accelerator, pod) == 4


def test_a_class_that_is_not_there_is_no_lack_of_capacity(there: Devices) -> None:
    owner = replace(RUN, name="astray")
    for one in measured(claiming(of="gpu.nowhere.example"), owner=owner):
        there.apply(one)

    def waiting() -> Manifest | None:
        of_run = (pod for pod in there.pods("round") if pod["metadata"]["labels"]["paceline.dev/run"] == "astray")
        return next(filter(unplaced, of_run), None)

    problem = unplaced(there.until("the scheduler to say why", waiting))
    assert problem is not None
    assert "device class gpu.nowhere.example does not exist" in problem.message
    assert problem.reason is Reason.Unplaceable


def test_a_selector_that_is_wrong_is_refused_with_its_place(there: Devices) -> None:
    broken = claiming()
    asked: Accelerator = replace(broken.accelerator, device_selectors=("device.attributes[",))
    (template, _) = served(replace(broken, accelerator=asked))
    with pytest.raises(RuntimeError, match=r"selectors\[0\].cel.expression: Invalid value"):
        there.apply(template)


def test_each_node_of_a_server_claims_its_own(there: Devices) -> None:
    """LeaderWorkerSet's schema has what a pod has: its pods name the template that the Deployment's would."""
    template, group = served(claiming(base=over(2)))
    of_group = group["spec"]["leaderWorkerTemplate"]
    named = [of_group[name]["spec"]["resourceClaims"] for name in ("leaderTemplate", "workerTemplate")]
    assert named == [[{"name": "accelerators", "resourceClaimTemplateName": template["metadata"]["name"]}]] * 2
