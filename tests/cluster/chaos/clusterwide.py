"""What is done to the operator, to nodes and to the cluster's own programs: everyone in the cluster feels it."""

import time
from collections.abc import Callable
from pathlib import Path

from tests.cluster.chaos import machines
from tests.cluster.chaos.machines import CHART, helm
from tests.cluster.chaos.story import NAME, BrokenError, Story, converged
from tests.support.kubernetes import OPERATOR, kubectl, listed
from tests.support.processes import kill, process
from tests.support.queries import complete, name_of

IN_A_ROUND = ("the first round runs", "the second round runs")
TAKEN_OVER = 15.0
"""Seconds from a leader's end to the next leader's first write of the lease, at most."""


def killed_at(moment: str) -> Callable[[Story], None]:
    def act(story: Story) -> None:
        story.apply()
        story.moment((moment,))
        story.operator.kill()
        converged(story)

    return act


def killed_before_it_reads(story: Story) -> None:
    """A Job is complete, and nobody has read its result when the operator dies."""
    story.apply()
    story.moment(("the first round runs",))
    story.operator.freeze()
    story.wait("the Job to be complete", lambda: [job for job in story.jobs(0) if complete(job)], 60)
    story.operator.kill()
    converged(story)


def result_lost(story: Story) -> None:
    """And the pod that has the result is gone with it."""
    story.apply()
    story.moment(("the first round runs",))
    story.operator.freeze()
    story.wait("the Job to be complete", lambda: [job for job in story.jobs(0) if complete(job)], 60)
    story.here.kubectl("delete", "pods", "--selector", "paceline.dev/component=round")
    story.operator.kill()
    converged(story)


def killed_twice(story: Story) -> None:
    """Once while models are fetched, once in the second round: the kubelet starts it again."""
    story.apply()
    for moment in ("the models are fetched", "the second round runs"):
        story.moment((moment,))
        story.operator.kill()
    converged(story)


def leader_killed(story: Story) -> None:
    """Of two operators the one that works."""
    with machines.scaled(2):
        story.wait("two operators", lambda: ready_operators() == 2, 60)
        story.apply()
        story.moment(IN_A_ROUND)
        story.note(f"taken over after {take_over(story):.1f} s")
        converged(story)


def take_over(story: Story) -> float:
    """Seconds from the leader's death to the next holder of the lease."""
    holder = story.wait("a leader", machines.lease, 30)
    pods = listed("pods", "--namespace", OPERATOR)
    pod = next(pod for pod in pods if name_of(pod) == holder.rpartition("_")[0])
    kill(process(pod, "operator"))
    died = time.monotonic()
    story.wait("another leader", lambda: machines.lease() not in ("", holder), 60)
    return time.monotonic() - died


def ready_operators() -> int:
    pods = listed("pods", "--namespace", OPERATOR, "--selector", "app.kubernetes.io/name=paceline")
    return sum(one["ready"] for pod in pods for one in pod["status"].get("containerStatuses", ()))


def uninstalled(story: Story) -> None:
    """Uninstalled in a round and installed again: what it had made goes on."""
    story.apply()
    story.moment(IN_A_ROUND)
    helm("uninstall", "paceline", "--wait")
    story.pause(2, 10)
    machines.installed()
    converged(story)


def upgraded(story: Story) -> None:
    story.apply()
    story.moment(IN_A_ROUND)
    helm("upgrade", "paceline", str(CHART), "--reuse-values", "--set-string", "podAnnotations.chaos=again", "--wait")
    converged(story)


def invalid_values(story: Story) -> None:
    """Refused at once, nothing of it installed; then a good upgrade."""
    story.apply()
    story.moment(IN_A_ROUND)
    began = time.monotonic()
    refused = helm("upgrade", "paceline", str(CHART), "--reuse-values", "--set", "replicas=many", check=False)
    story.note(f"refused after {time.monotonic() - began:.1f} s")
    if not refused.returncode or "replicas" not in refused.stderr:
        raise BrokenError(f"not refused: {refused.stdout} {refused.stderr}")
    helm("upgrade", "paceline", str(CHART), "--reuse-values", "--set-string", "podAnnotations.chaos=good", "--wait")
    converged(story)


def api_paused(story: Story) -> None:
    story.apply()
    story.moment(IN_A_ROUND)
    with machines.stopped("kube-apiserver"):
        time.sleep(30)
    converged(story)


def api_killed(story: Story) -> None:
    story.apply()
    story.moment(IN_A_ROUND)
    with machines.killed("kube-apiserver"):
        time.sleep(5)
    converged(story)


def etcd_killed(story: Story) -> None:
    story.apply()
    story.moment(IN_A_ROUND)
    with machines.killed("etcd"):
        time.sleep(10)
    converged(story)


def managers_killed(story: Story) -> None:
    story.apply()
    story.moment()
    with machines.killed("kube-controller-manager"), machines.killed("kube-scheduler"):
        time.sleep(10)
    converged(story)


def kubelet_killed(story: Story) -> None:
    """That of the node on which a round runs; a node counts as lost after 50 s."""
    node = node_of_a_round(story)
    with machines.killed("kubelet", node):
        story.pause(5, 30)
    converged(story)


def containerd_killed(story: Story) -> None:
    """Its shims, and with them all containers, go on."""
    node = node_of_a_round(story)
    with machines.killed("containerd", node):
        story.pause(5, 20)
    converged(story)


def node_of_a_round(story: Story) -> int:
    story.apply()
    pod = story.in_round(story.dice.choice((0, 1)))
    story.note(pod["spec"]["nodeName"])
    return machines.number(pod["spec"]["nodeName"])


def node_cut_off(story: Story) -> None:
    """The node without the control plane, and whatever runs there."""
    story.apply()
    story.moment(IN_A_ROUND)
    story.note(f"operator on {node_of_the_operator()}")
    with machines.cut_off(1):
        story.pause(20, 40)
    converged(story)


def servers_unreachable(story: Story) -> None:
    """From the operator, which reads the counters of what serves; half a minute of a round and half a minute after."""
    story.apply(guard={"action": "Fallback", "window": "10s"})
    pods = listed("pods", "--namespace", OPERATOR, "--selector", "app.kubernetes.io/name=paceline")
    address = pods[0]["status"]["podIP"]
    with machines.dropped((0, 1), "-s", f"{address}/32", "-d", "10.245.16.0/20"):
        story.wait("the winner to be served", story.served)
        time.sleep(30)
        if not story.served():
            raise BrokenError("what cannot be read was taken for slow")
    converged(story)


def node_of_the_operator() -> str:
    pods = listed("pods", "--namespace", OPERATOR, "--selector", "app.kubernetes.io/name=paceline")
    return str(pods[0]["spec"].get("nodeName"))


def rights_revoked(story: Story) -> None:
    story.apply()
    story.moment(IN_A_ROUND)
    with machines.without_rights():
        time.sleep(40)
    converged(story)


def drained(story: Story) -> None:
    """The node of a round, with all that this deployment has there."""
    node = f"paceline-{node_of_a_round(story)}"
    options = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=60s")
    try:
        kubectl("drain", node, "--pod-selector", f"paceline.dev/deployment={NAME}", *options)
        story.pause(0, 10)
    finally:
        machines.uncordon()
    converged(story)


def clock_set_back(story: Story) -> None:
    """The operator's wall clock, by five minutes in the middle of a run, and right again in the end."""
    clock = Path("offset")
    with machines.faked(clock):
        story.apply()
        story.moment(IN_A_ROUND)
        machines.set_clock(clock, -300)
        converged(story)
        story.note(f"the operator's log says {story.view.lines(0)[-1][:20]}")
        machines.set_clock(clock, 0)
