"""A network that keeps policies, for one story: the local cluster's own keeps none (docs/cluster.md).

Of the NetworkPolicy API it knows what Paceline renders, and fails on anything else. As the API has it: policies add up,
a pod may always speak to itself, its own node may always speak to it, and answers pass.
"""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event

from tests.support.kubernetes import MADE_BY, STATE, Manifest, Namespace, ended, labels_of, listed

EVERY_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """Its words in a policy and in iptables."""

    kind: str
    rules: str
    peers: str
    chain: str
    pod: str
    peer: str


DIRECTIONS = (
    Direction(kind="Egress", rules="egress", peers="to", chain="STORY-OUT", pod="-s", peer="-d"),
    Direction(kind="Ingress", rules="ingress", peers="from", chain="STORY-IN", pod="-d", peer="-s"),
)


@dataclass(slots=True)
class Network:
    """What is kept by now of the policies of one namespace: as with any network, a moment after the pod is there."""

    here: Namespace
    kept: str = ""

    def holds(self, address: str) -> bool:
        return any(f" {direction.pod} {address} -j DROP" in self.kept for direction in DIRECTIONS)

    def keep(self, over: Event) -> None:
        while not over.wait(EVERY_SECONDS):
            found = listed("networkpolicies,pods", "--namespace", self.here.name)
            policies = [one for one in found if one["kind"] == "NetworkPolicy"]
            pods = [one for one in found if one["kind"] == "Pod" and one["status"].get("podIP") and not ended(one)]
            if (wanted := rules(policies, pods)) != self.kept:
                _load(wanted)
                self.kept = wanted


@contextmanager
def enforced(here: Namespace) -> Iterator[Network]:
    """The policies of this namespace are kept on every node, those of pods to come too, to the end of the block."""
    network, over = Network(here), Event()
    _leave()  # what a story that was killed has left
    _load(rules([], []))
    for direction in reversed(DIRECTIONS):
        _on_nodes("iptables", "--wait", "--insert", "FORWARD", "--jump", direction.chain)
    try:
        with ThreadPoolExecutor(1) as threads:
            keeping = threads.submit(network.keep, over)
            try:
                yield network
            finally:
                over.set()
            keeping.result()
    finally:
        _leave()


def rules(policies: Sequence[Manifest], pods: Sequence[Manifest]) -> str:
    """For iptables-restore: both chains anew. Who may pass returns from them, so both ends have their say."""
    lines = [
        "*filter",
        *(f":{direction.chain} - [0:0]" for direction in DIRECTIONS),
        *(f"-A {direction.chain} -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN" for direction in DIRECTIONS),
        *(line for direction in DIRECTIONS for pod in pods for line in _of_pod(direction, pod, policies, pods)),
        "COMMIT",
    ]
    return "".join(f"{line}\n" for line in lines)


def _of_pod(
    direction: Direction, pod: Manifest, policies: Sequence[Manifest], pods: Sequence[Manifest]
) -> Iterator[str]:
    specs = [policy["spec"] for policy in policies]
    mine = [spec for spec in specs if direction.kind in spec["policyTypes"] and _selects(spec["podSelector"], pod)]
    if not mine:
        return
    own = f"-A {direction.chain} {direction.pod} {_address(pod)}"
    yield f"{own} {direction.peer} {_address(pod)} -j RETURN"
    for spec in mine:
        for rule in spec.get(direction.rules, ()):
            for peer in _peers(direction, rule, pods):
                yield from (f"{own}{peer}{port} -j RETURN" for port in _ports(rule))
    yield f"{own} -j DROP"


def _peers(direction: Direction, rule: Manifest, pods: Sequence[Manifest]) -> Iterator[str]:
    if direction.peers not in rule:
        yield ""
    for peer in rule.get(direction.peers, ()):
        assert set(peer) == {"podSelector"}, f"a peer that this network does not know: {peer}"
        yield from (f" {direction.peer} {_address(pod)}" for pod in pods if _selects(peer["podSelector"], pod))


def _ports(rule: Manifest) -> Iterator[str]:
    if "ports" not in rule:
        yield ""
    for port in rule.get("ports", ()):
        assert set(port) == {"port", "protocol"}, f"a port that this network does not know: {port}"
        assert isinstance(port["port"], int), f"a port that this network does not know: {port}"
        yield f" -p {port['protocol'].lower()} --dport {port['port']}"


def _selects(selector: Mapping[str, Mapping[str, str]], pod: Manifest) -> bool:
    assert set(selector) <= {"matchLabels"}, f"a selector that this network does not know: {selector}"
    return selector.get("matchLabels", {}).items() <= labels_of(pod).items()


def _address(pod: Manifest) -> str:
    found: str = pod["status"]["podIP"]
    return found


def _load(text: str) -> None:
    _on_nodes("iptables-restore", "--wait", "--noflush", feed=text)


def _leave() -> None:
    for direction in DIRECTIONS:
        for words in (("--delete", "FORWARD", "--jump"), ("--flush",), ("--delete-chain",)):
            _on_nodes("iptables", "--wait", *words, direction.chain, check=False)


def _on_nodes(*command: str, feed: str = "", check: bool = True) -> None:
    ways = INTO_NODES[MADE_BY]()
    assert ways, f"no node of the local cluster runs on this machine: {STATE}"
    for way in ways:
        done = subprocess.run((*way, *command), input=feed, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0 or not check, f"{' '.join((*way, *command))}: {done.stderr}"


def _into_own() -> list[tuple[str, ...]]:
    anchors = sorted((STATE / "run").glob("anchor-*.pid"))
    return [("nsenter", "--target", anchor.read_text().strip(), "--net", "--mount", "--") for anchor in anchors]


def _into_kinds() -> list[tuple[str, ...]]:
    return [("docker", "exec", "--interactive", node["metadata"]["name"]) for node in listed("nodes")]


INTO_NODES = {"own": _into_own, "kind": _into_kinds}
"""A command line for each node, before a command that is to run in it."""
