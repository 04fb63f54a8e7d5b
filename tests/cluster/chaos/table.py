"""All scenarios: AIPerf's 23 in our terms, by their number, and ours."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from tests.cluster.chaos import clusterwide, rounds
from tests.cluster.chaos.story import MOMENTS, Story


class Lane(Enum):
    """Who feels it, and so what runs beside it."""

    OWN = "one deployment: beside others"
    OPERATOR = "the operator: one at a time, beside those of one deployment, which feel it too"
    NODE = "a node: one at a time, beside those of one deployment and of the operator, which feel it too"
    CLUSTER = "everyone: alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """`act` does it, and raises where something does not hold that must."""

    name: str
    does: str
    act: Callable[[Story], None]
    peer: str = ""
    """AIPerf's scenario that it stands for (tests/kubernetes/chaos/README.md of ai-dynamo/aiperf at 139b8f35)."""
    holds: str = "converged"
    sigkill: str = ""
    """What is ended by SIGKILL."""
    seeds: int = 1
    lane: Lane = Lane.OWN


QUIET = (
    Scenario(name="deleted", peer="C1", does="deleted in a round", act=rounds.deleted, holds="gone"),
    Scenario(name="deleted-twice", peer="C3", does="deleted twice at once", act=rounds.deleted_twice, holds="gone"),
    Scenario(
        name="client-killed", peer="C6", does="a round's client", act=rounds.client_killed, sigkill="client", seeds=2
    ),
    Scenario(
        name="round-pod-deleted",
        peer="C7",
        does="a round's pod deleted without grace",
        act=rounds.round_pod_deleted,
        sigkill="benchmark pod",
        seeds=3,
    ),
    Scenario(
        name="server-container-killed",
        peer="C8",
        does="the container beside the client, PID 1",
        act=rounds.server_container_killed,
        sigkill="server's container",
        seeds=2,
    ),
    Scenario(
        name="engine-killed",
        peer="B2",
        does="the engine that is being measured",
        act=rounds.engine_killed,
        sigkill="measured server",
        seeds=3,
    ),
    Scenario(
        name="serving-killed",
        does="the server that serves, beside a run",
        act=rounds.serving_killed,
        sigkill="serving server",
        seeds=2,
    ),
    Scenario(name="fetch-killed", does="the prefetch", act=rounds.fetch_killed, sigkill="prefetch"),
    Scenario(name="remade", peer="C10", does="made, deleted and made again, thrice", act=rounds.remade),
    Scenario(name="invalid-spec", peer="C12", does="an unknown flag; then without it", act=rounds.invalid),
    Scenario(name="answers-fail", peer="B1", does="the measured server says 500 for 10 s", act=rounds.answers_fail),
    Scenario(
        name="answers-late",
        peer="B3",
        does="the measured server writes nothing for 3 s, twice",
        act=rounds.answers_late,
        holds="honest",
    ),
    Scenario(name="no-image", peer="K1", does="an image that is not there; then one that is", act=rounds.no_image),
    Scenario(name="no-hub", peer="K2", does="a hub whose name does not resolve; then one", act=rounds.no_hub),
    Scenario(name="quota", peer="K3", does="a quota refuses the servers; then not", act=rounds.quota),
    Scenario(
        name="no-worker-sets",
        peer="H4",
        does="LeaderWorkerSet is missing and asked for; then not asked for",
        act=rounds.no_worker_sets,
    ),
    Scenario(name="round-job-deleted", does="the Job of a round deleted", act=rounds.round_job_deleted),
    Scenario(name="children-deleted", does="Services and Deployments deleted", act=rounds.children_deleted, seeds=2),
    Scenario(name="run-deleted", does="the BenchmarkRun deleted", act=rounds.run_deleted),
    Scenario(name="suspended", does="suspended in a round; then not", act=rounds.suspended),
    Scenario(
        name="namespace-deleted", does="its namespace deleted in a round", act=rounds.namespace_deleted, holds="gone"
    ),
)
ALONE = (
    *(
        Scenario(
            name=f"operator-killed-{number}",
            peer="C4" if "round runs" in moment else "",
            does=f"the operator: {moment}",
            act=clusterwide.killed_at(moment),
            sigkill="operator",
            lane=Lane.OPERATOR,
        )
        for number, moment in enumerate(MOMENTS)
    ),
    Scenario(
        name="operator-killed-unread",
        peer="C5",
        does="the operator, after a Job is complete and before its result is read",
        act=clusterwide.killed_before_it_reads,
        sigkill="operator",
        lane=Lane.OPERATOR,
    ),
    Scenario(
        name="result-lost",
        peer="C9",
        does="the same, and the pod with the result deleted",
        act=clusterwide.result_lost,
        sigkill="operator",
        lane=Lane.OPERATOR,
    ),
    Scenario(
        name="operator-killed-twice",
        does="the operator, twice in a run",
        act=clusterwide.killed_twice,
        sigkill="operator",
        lane=Lane.OPERATOR,
    ),
    Scenario(
        name="leader-killed",
        does="of two operators the one that works",
        act=clusterwide.leader_killed,
        sigkill="operator",
        seeds=2,
        lane=Lane.OPERATOR,
    ),
    Scenario(
        name="uninstalled",
        peer="H1",
        does="helm uninstall in a round, then install",
        act=clusterwide.uninstalled,
        lane=Lane.OPERATOR,
    ),
    Scenario(name="upgraded", peer="H2", does="helm upgrade in a round", act=clusterwide.upgraded, lane=Lane.OPERATOR),
    Scenario(
        name="invalid-values",
        peer="H3",
        does="helm upgrade with a wrong value in a round; then a right one",
        act=clusterwide.invalid_values,
        lane=Lane.OPERATOR,
    ),
    Scenario(
        name="ten",
        peer="C11",
        does="ten at once, five of them deleted",
        act=rounds.ten,
        holds="five",
        lane=Lane.CLUSTER,
    ),
    Scenario(
        name="api-paused",
        peer="C15",
        does="the API server stopped for 30 s",
        act=clusterwide.api_paused,
        lane=Lane.CLUSTER,
    ),
    Scenario(
        name="servers-unreachable",
        peer="C16",
        does="HTTP from the operator to its pods dropped: the counters of the guard",
        act=clusterwide.servers_unreachable,
        lane=Lane.OPERATOR,
    ),
    Scenario(
        name="api-killed",
        does="the API server, for 5 s",
        act=clusterwide.api_killed,
        sigkill="API server",
        lane=Lane.CLUSTER,
    ),
    Scenario(name="etcd-killed", does="etcd, for 10 s", act=clusterwide.etcd_killed, sigkill="etcd", lane=Lane.CLUSTER),
    Scenario(
        name="managers-killed",
        does="controller manager and scheduler, for 10 s",
        act=clusterwide.managers_killed,
        sigkill="controller manager, scheduler",
        lane=Lane.CLUSTER,
    ),
    Scenario(
        name="kubelet-killed",
        does="the kubelet of a round's node, for 5 s to 30 s",
        act=clusterwide.kubelet_killed,
        sigkill="kubelet",
        seeds=2,
        lane=Lane.NODE,
    ),
    Scenario(
        name="containerd-killed",
        does="containerd of a round's node, for 5 s to 20 s",
        act=clusterwide.containerd_killed,
        sigkill="containerd",
        seeds=2,
        lane=Lane.NODE,
    ),
    Scenario(
        name="node-cut-off",
        does="no packet from a node to the API server, for 20 s to 40 s",
        act=clusterwide.node_cut_off,
        lane=Lane.NODE,
    ),
    Scenario(
        name="rights-revoked",
        does="the ClusterRoleBinding gone for 40 s",
        act=clusterwide.rights_revoked,
        lane=Lane.CLUSTER,
    ),
    Scenario(name="drained", does="the node of a round drained", act=clusterwide.drained, lane=Lane.NODE),
    Scenario(
        name="clock-set-back",
        does="the operator's wall clock set back by 5 min in a round (libfaketime)",
        act=clusterwide.clock_set_back,
        lane=Lane.OPERATOR,
    ),
)
SCENARIOS: Mapping[str, Scenario] = {scenario.name: scenario for scenario in (*QUIET, *ALONE)}
PEERS = (
    *("C1", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "H1", "H2", "H3", "H4", "C10", "C11", "C12", "C15", "C16"),
    *("B1", "B2", "B3", "K1", "K2", "K3"),
)
"""AIPerf's, all of which have a scenario here."""
