"""One node with an agent that enforces NetworkPolicies: SIG Network's kube-network-policies on real packets.

`unshare --net --mount python -m tests.api.policed DIRECTORY AGENT`, as root: prints as JSON what became of each way. A
network namespace stands for each pod; an etcd and an API server on its loopback hold the objects.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.apiserver import Running, start
from tests.support.example import DEPLOYED, RUN, SETTINGS, arm, run, server

from paceline.core.manifest import Manifest
from paceline.render import revision_of, round_job
from paceline.render.guards import rounds_network, servers_network
from paceline.render.round_job import round_plan
from paceline.render.serving import template
from paceline.render.where import ANYWHERE

NODE = "node"
QUEUE = "100"
"""The agent's default."""
PORTS = (53, 80, 30000)
"""On which every pod listens."""
READY_SECONDS = 30
KNOCK = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 2).close()
except TimeoutError:
    print("kept out", end="")
except ConnectionRefusedError:
    print("nobody there", end="")
else:
    print("reached", end="")
"""
LISTEN = """
import selectors, socket, sys
ready = selectors.DefaultSelector()
for port in map(int, sys.argv[1:]):
    ready.register(socket.create_server(("0.0.0.0", port)), selectors.EVENT_READ)
while True:
    for key, _ in ready.select():
        key.fileobj.accept()[0].close()
"""
POLICIES = ("servers", "rounds")


def labels() -> Mapping[str, Mapping[str, str]]:
    """Of pods as they are rendered, and of two that are nobody's."""
    plan = round_plan(RUN, run(), run().arms, 0, 0)
    measured = round_job(RUN, run(), plan, ANYWHERE, SETTINGS)["spec"]["template"]
    served = template(DEPLOYED, "latency", server(), arm("wide"), revision_of(server(), arm("wide")), SETTINGS)
    return {
        "round": measured["metadata"]["labels"],
        "server": served["metadata"]["labels"],
        "stranger": {},
        "hub": {"app": "hub"},
    }


def policies() -> list[Manifest]:
    made = (servers_network(DEPLOYED, "latency", [server()]), rounds_network(RUN, "latency"))
    return [{**one, "metadata": {**one["metadata"], "namespace": "default", "ownerReferences": []}} for one in made]


def sh(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def pod(number: int) -> tuple[str, "subprocess.Popen[bytes]"]:
    """Its address, and the process in it that listens."""
    here, there, veth = f"10.99.{number}.1", f"10.99.{number}.2", f"pod{number}"
    listener = subprocess.Popen(["unshare", "--net", sys.executable, "-c", LISTEN, *map(str, PORTS)])
    own = Path("/proc/self/ns/net").readlink()
    while Path(f"/proc/{listener.pid}/ns/net").readlink() == own:
        time.sleep(0.01)
    inside = ("nsenter", "--target", str(listener.pid), "--net")
    sh("ip", "link", "add", veth, "type", "veth", "peer", "name", "eth0", "netns", str(listener.pid))
    sh("ip", "addr", "add", f"{here}/30", "dev", veth)
    sh("ip", "link", "set", veth, "up")
    sh(*inside, "ip", "addr", "add", f"{there}/30", "dev", "eth0")
    sh(*inside, "ip", "link", "set", "eth0", "up")
    sh(*inside, "ip", "link", "set", "lo", "up")
    sh(*inside, "ip", "route", "add", "default", "via", here)
    return there, listener


def stored(api: Running, name: str, told: Mapping[str, str], address: str) -> None:
    """A pod that a kubelet has started."""
    path = "/api/v1/namespaces/default/pods"
    spec = {"nodeName": NODE, "containers": [{"name": "x", "image": "x"}]}
    made = api.request("POST", path, {"metadata": {"name": name, "labels": told}, "spec": spec})
    made["status"] |= {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "hostIP": "10.99.0.1"}
    answer = api.request("PUT", f"{path}/{name}/status", made)
    assert answer["kind"] == "Pod", answer


def steer() -> None:
    """New connections that leave for a pod wait for the agent's word. It does that by itself where the kernel has
    nft_queue, which this one need not have."""
    for rule in (("-o", "lo", "-j", "ACCEPT"), ("-m", "conntrack", "--ctstate", "ESTABLISHED,RELATED", "-j", "ACCEPT"),
                 ("-j", "NFQUEUE", "--queue-num", QUEUE)):  # fmt: skip
        sh("iptables", "--wait", "-t", "mangle", "-A", "POSTROUTING", *rule)


def agent(api: Running, program: str, log: Path) -> "subprocess.Popen[bytes]":
    """It reads its token where a pod has it: below a /run of this namespace's own."""
    sh("mount", "-t", "tmpfs", "none", "/run")
    account = Path("/run/secrets/kubernetes.io/serviceaccount")
    account.mkdir(parents=True)
    (account / "token").write_text(api.token)
    (account / "ca.crt").write_text(api.certificate.read_text())
    host, port = api.url.removeprefix("https://").split(":")
    env = os.environ | {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    options = (f"--hostname-override={NODE}", "--disable-nri", "--netfilter-bug-1766-fix=false", "--v=2")
    with log.open("wb") as out:
        return subprocess.Popen([program, *options], env=env, stdout=out, stderr=out)


def main() -> None:
    directory, program = Path(sys.argv[1]), sys.argv[2]
    sh("ip", "link", "set", "lo", "up")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    api = start(directory / "api")
    started: list[subprocess.Popen[bytes]] = []
    try:
        api.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        addresses: dict[str, str] = {}
        for number, (name, told) in enumerate(labels().items(), start=1):
            addresses[name], listener = pod(number)
            started.append(listener)
            stored(api, name, told, addresses[name])
        pids = dict(zip(addresses, (one.pid for one in started), strict=True))
        started.append(agent(api, program, directory / "agent.log"))

        def knock(who: str, whom: str, port: int) -> str:
            inside = ("nsenter", "--target", str(pids[who]), "--net", sys.executable, "-c", KNOCK)
            return sh(*inside, addresses[whom], str(port))

        def all_ways() -> dict[str, str]:
            ways = [(who, whom, port) for who in pids for whom in pids if who != whom for port in PORTS]
            return {f"{who} {whom} {port}": knock(who, whom, port) for who, whom, port in ways}

        before = all_ways()
        for one in policies():
            answer = api.request("POST", "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", one)
            assert answer["kind"] == "NetworkPolicy", answer
        steer()
        until = time.monotonic() + READY_SECONDS
        while knock("stranger", "round", 80) == "reached" and time.monotonic() < until:
            time.sleep(0.2)
        time.sleep(1)
        found: dict[str, Any] = {"before": before, "under": all_ways()}
        print(json.dumps(found))
    finally:
        for process in started:
            process.kill()
            process.wait()
        api.stop()


if __name__ == "__main__":
    main()
