"""Who reaches whom where a network keeps the policies that Paceline makes, and where it does not."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from tests.cluster.example import POOL, small
from tests.cluster.network import enforced
from tests.support.kubernetes import Manifest, Namespace
from tests.support.queries import finished, measuring, run_of

NAME = "coder"
CLOSED = 9
"""A port that no container declares and on which nobody listens."""
KNOCK = """
import os, socket, sys
os.environ["RES_OPTIONS"] = "timeout:1 attempts:1"
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 3).close()
except TimeoutError:
    print("kept out")
except ConnectionRefusedError:
    print("nobody there")
except socket.gaierror:
    print("no such name")
else:
    print("reached")
"""
"""No request: what a round measures is not disturbed."""

ROUND, SERVER, STRANGER, SERVICE, HUB = "round", "server", "stranger", "service", "hub"
Way = tuple[str, str, int]
POLICIES_KEPT: Mapping[Way, str] = {
    (STRANGER, ROUND, 30000): "kept out",
    (STRANGER, SERVER, 30000): "reached",
    (STRANGER, SERVER, CLOSED): "kept out",
    (STRANGER, SERVICE, 80): "reached",
    (ROUND, HUB, 80): "kept out",  # and not "no such name": it may ask for names
    (ROUND, SERVER, 30000): "kept out",
    (SERVER, HUB, 80): "reached",
}
NOTHING_KEPT: Mapping[Way, str] = {
    **dict.fromkeys(POLICIES_KEPT, "reached"),
    (STRANGER, SERVER, CLOSED): "nobody there",
}


def test_policies_keep_out_who_has_no_business_and_let_all_work_through(here: Namespace, hub: str) -> None:
    """Models are fetched, servers become ready and rounds are whole under them; without them all doors are open."""
    here.apply(stranger())
    with enforced(here) as network:
        here.apply(small(NAME, hub))
        run = here.wait("a run", run_of(here, NAME), 90)
        first = here.wait("the first round to measure", measuring(here, run, 0), 60)
        here.wait("its policy to be kept", lambda: network.holds(address(here, first)), 10)
        assert knocked(here, first, hub) == POLICIES_KEPT
        here.wait("its result", lambda: here.get("bench", run["metadata"]["name"])["rounds"], 60)
    second = here.wait("the second round to measure", measuring(here, run, 1), 60)
    assert knocked(here, second, hub) == NOTHING_KEPT
    decided = here.wait("the verdict", finished(here, run), 60)
    assert [(entry["round"], entry["try"]) for entry in decided["rounds"]] == [(0, 0), (1, 0)]
    assert [point["why"] for entry in decided["rounds"] for point in entry["points"] if not point["valid"]] == []


def stranger() -> Manifest:
    idle = {"name": "idle", "image": "localhost/paceline:dev", "command": ["sleep", "infinity"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": STRANGER}, "spec": {"containers": [idle]}}


def address(here: Namespace, pod: Manifest) -> str:
    name = pod["metadata"]["name"]
    return here.wait(f"the address of {name}", lambda: str(here.get("pod", name)["status"].get("podIP", "")), 10)


def knocked(here: Namespace, measured: Manifest, hub: str) -> dict[Way, str]:
    """What becomes of every way, all of them tried at the same time."""
    (server,) = here.list("pods", f"paceline.dev/deployment={NAME},paceline.dev/component=server")
    addresses = {
        ROUND: address(here, measured),
        SERVER: address(here, server),
        SERVICE: f"{NAME}-{POOL}.{here.name}.svc",
        HUB: str(urlsplit(hub).hostname),
    }
    containers = {
        ROUND: (measured["metadata"]["name"], "client"),
        SERVER: (server["metadata"]["name"], "server"),
        STRANGER: (STRANGER, "idle"),
    }

    def knock(way: Way) -> str:
        who, whom, port = way
        pod, container = containers[who]
        program = ("python3", "-c", KNOCK, addresses[whom], str(port))
        return here.kubectl("exec", pod, "--container", container, "--", *program).strip()

    with ThreadPoolExecutor(len(POLICIES_KEPT)) as threads:
        return dict(zip(POLICIES_KEPT, threads.map(knock, POLICIES_KEPT), strict=True))
