"""What is done to one deployment and its rounds; nothing else of the cluster feels it."""

import json
import time
from pathlib import Path

import yaml
from tests.cluster.chaos.story import NAME, BrokenError, Story, converged, gone, honest, whole
from tests.cluster.example import small
from tests.support.containers import status_of
from tests.support.kubernetes import GPU, Manifest, ended, gpus_of, kubectl, listed, run
from tests.support.processes import kill, process
from tests.support.queries import name_of

REFUSED: Manifest = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "nogpu"},
    "spec": {"hard": {f"requests.{GPU}": "0"}},
}
SOON = {"progressDeadline": "1m"}
ROUND_PORT = 30000


def deleted(story: Story) -> None:
    story.apply()
    story.moment(("the first round runs", "the second round runs"))
    story.here.kubectl("delete", "specdep", NAME)
    gone(story)


def deleted_twice(story: Story) -> None:
    story.apply()
    story.moment()
    command = ["delete", "specdep", NAME, "--wait=false", "--ignore-not-found=false"]
    codes = [run("--namespace", story.here.name, *command).returncode for _ in range(2)]
    story.note(f"exit codes of the two deletes: {codes}")
    if codes[0]:
        raise BrokenError("the first delete was refused")
    gone(story)


def remade(story: Story) -> None:
    """The same name three times; the last one stays."""
    for number in range(3):
        story.apply()
        if number < 2:
            story.pause(1, 15)
            story.here.kubectl("delete", "specdep", NAME, "--wait=false")
    converged(story)


def client_killed(story: Story) -> None:
    story.apply()
    kill(process(story.in_round(story.dice.choice((0, 1))), "client"))
    converged(story)


def server_container_killed(story: Story) -> None:
    story.apply()
    kill(process(story.in_round(story.dice.choice((0, 1))), "server"))
    converged(story)


def engine_killed(story: Story) -> None:
    """The engine's own process, of whichever arm runs; its container goes on."""
    story.apply()
    pod = story.in_round(story.dice.choice((0, 1)))
    kill(story.wait("an engine to run", lambda: engine(pod), 30))
    converged(story)


def round_pod_deleted(story: Story) -> None:
    story.apply()
    pod = story.in_round(story.dice.choice((0, 1)))
    story.here.kubectl("delete", "pod", name_of(pod), "--grace-period=0", "--force")
    converged(story)


def round_job_deleted(story: Story) -> None:
    story.apply()
    number = story.dice.choice((0, 1))
    story.in_round(number)
    for job in story.jobs(number):
        story.here.kubectl("delete", "job", name_of(job))
    converged(story)


def fetch_killed(story: Story) -> None:
    story.apply()
    pod = story.wait("the prefetch to run", lambda: running_fetch(story), 60)
    kill(process(pod, "fetch"))
    converged(story)


def running_fetch(story: Story) -> Manifest | None:
    for pod in story.pods("fetch"):
        if any("running" in one["state"] for one in pod["status"].get("containerStatuses", ())):
            return pod
    return None


def serving_killed(story: Story) -> None:
    story.apply()
    story.moment(("the first round runs", "the second round runs", "the verdict"))
    (pod,) = [pod for pod in story.pods("server") if "containerStatuses" in pod["status"]][:1]
    kill(story.wait("it to run", lambda: engine(pod), 30))
    converged(story)


def children_deleted(story: Story) -> None:
    story.apply()
    story.moment(("the first round runs", "the second round runs", "the verdict"))
    story.here.kubectl("delete", "service,deployment", "--selector", f"paceline.dev/deployment={NAME}", "--wait=false")
    converged(story)


def run_deleted(story: Story) -> None:
    """It is the evidence: what it had measured is measured anew, by a run of another uid."""
    story.apply()
    story.moment(("the first round runs", "the second round runs"))
    story.here.kubectl("delete", "bench", "--all")
    converged(story)


def suspended(story: Story) -> None:
    story.apply()
    story.moment(("the first round runs", "the second round runs"))
    story.apply(suspend=True)
    story.wait("its rounds to end", lambda: not [pod for pod in story.pods("round") if not ended(pod)], 60)
    story.apply()
    converged(story)


def namespace_deleted(story: Story) -> None:
    story.apply()
    story.moment(("the first round runs", "the second round runs"))
    kubectl("delete", "namespace", story.here.name, "--wait=false")
    story.wait("its pods to be gone", lambda: not story.pods(), 120)
    story.wait("it to be gone", lambda: run("get", "namespace", story.here.name).returncode, 120)
    held = [name_of(pod) for pod in listed("pods", "-A") if gpus_of(pod) and story.here.name in str(pod["metadata"])]
    if held:
        raise BrokenError(f"holds GPUs: {held}")


def invalid(story: Story) -> None:
    story.apply(engine={"args": ["--attention-backend=triton", "--no-such-flag=1"]})
    said = story.wait("Stalled", lambda: story.stalled("InvalidSpec"), 60)
    if "--no-such-flag" not in said["message"]:
        raise BrokenError(f"it does not name the flag: {said['message']}")
    story.apply()
    converged(story)


def no_hub(story: Story) -> None:
    story.here.apply(small(NAME, "http://no-such-hub.invalid"))
    said = story.wait("Stalled", lambda: story.stalled("PrefetchFailed"), 200)
    if "no-such-hub.invalid" not in said["message"]:
        raise BrokenError(f"it does not name the hub: {said['message']}")
    story.apply()
    converged(story)


def no_image(story: Story) -> None:
    absent = {
        "image": "localhost/paceline-absent:0",
        "podTemplate": {"spec": {"containers": [{"name": "server", "imagePullPolicy": "Never"}]}},
    }
    story.apply(engine=absent, promotion=SOON)
    said = story.wait("the image to be named", lambda: says_somewhere(story, "paceline-absent:0"), 150)
    story.note(said)
    story.apply(promotion=SOON)
    converged(story)


def says_somewhere(story: Story, what: str) -> str:
    for found in story.deployment().get("status", {}).get("conditions", ()):
        if what in found["message"]:
            return f"{found['type']}={found['reason']}"
    return ""


def quota(story: Story) -> None:
    story.here.apply(REFUSED)
    story.apply(promotion=SOON)
    story.wait("the quota to be told", lambda: says_somewhere(story, "exceeded quota: nogpu"), 120)
    story.here.kubectl("delete", "resourcequota", "nogpu")
    converged(story)


def no_worker_sets(story: Story) -> None:
    """A kind that the operator builds on is missing, and is asked for."""
    manifest = story.manifest()
    manifest["spec"]["accelerator"] |= {"nodes": 2, "tensorParallelSize": 2}
    story.here.apply(manifest)
    story.wait("Stalled", lambda: story.stalled("NoLeaderWorkerSet"), 90)
    story.here.kubectl("delete", "specdep", NAME)
    gone(story)
    story.apply()
    converged(story)


def answers_fail(story: Story) -> None:
    """Ten seconds of 500 from a server that is being measured."""
    story.apply()
    pod = story.in_round(0)
    told(story, pod, failing=1)
    time.sleep(10)
    told(story, pod, failing=0)
    converged(story)


def answers_late(story: Story) -> None:
    """Three seconds without a token from a server that is being measured, twice."""
    story.apply()
    for number in (0, 1):
        pod = story.in_round(number)
        told(story, pod, hung=True)
        time.sleep(3)
        told(story, pod, hung=False)
    honest(story)


def told(story: Story, pod: Manifest, **words: float) -> None:
    """The server of the round, where one listens just now."""
    curl = ["curl", "--silent", "--fail", "--json", json.dumps(words), f"localhost:{ROUND_PORT}/emulate"]
    command = (
        "--namespace",
        story.here.name,
        "exec",
        name_of(pod),
        "--container",
        status_of(pod, "server")["name"],
        "--",
        *curl,
    )
    deadline = time.monotonic() + 6
    while (done := run(*command)).returncode and time.monotonic() < deadline:
        time.sleep(0.3)
    story.note(f"{words}" + (": nobody heard" if done.returncode else ""))


def engine(pod: Manifest) -> int:
    """The process of a pod's engine; 0 while there is none."""
    identity = status_of(pod, "server").get("containerID", "").partition("://")[2]
    if not identity:
        return 0
    for place in Path("/proc").glob("[0-9]*"):
        try:
            mine = identity in (place / "cgroup").read_text()
            if mine and b"launch_server" in (place / "cmdline").read_bytes():
                return int(place.name)
        except OSError:  # it ended
            continue
    return 0


def ten(story: Story) -> None:
    """Five of ten are deleted while all are at work; the others are as if alone."""
    names = [f"{NAME}-{number}" for number in range(10)]
    manifests = [story.manifest(name) for name in names]
    story.here.kubectl("apply", "-f", "-", feed=yaml.safe_dump_all(manifests))
    story.name = names[0]
    story.wait("five runs", lambda: len(story.runs()) >= 5)
    story.pause(0, 20)
    left = sorted(story.dice.sample(names, 5))
    story.here.kubectl("delete", "specdep", *[name for name in names if name not in left], "--wait=false")
    for name in left:
        story.wait(f"the winner of {name}", lambda name=name: story.served(name=name))  # type: ignore[misc]
    whole(story, names=left)
