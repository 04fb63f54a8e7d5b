"""From the release before this one (dev/previous-release), with a run under way: nothing is measured or served anew.

It replaces the operator that the cluster has: `make test-all`.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.chaos.machines import CLUSTER, helm, installed
from tests.cluster.example import small
from tests.support.kubernetes import Manifest, Namespace, listed
from tests.support.processes import home
from tests.support.queries import finished, jobs_of, measuring, name_of, pool_of, run_of, served, uid_of

PREVIOUS = "localhost/paceline-previous"


@pytest.fixture
def previous() -> Iterator[None]:
    """Its chart and its image are installed; afterwards this one's are."""
    built = subprocess.run([CLUSTER / "build-previous"], capture_output=True, text=True, timeout=600, check=False)
    assert built.returncode == 0, built.stderr
    chart = Path(built.stdout.strip()) / "charts" / "paceline"
    image = f"image.repository={PREVIOUS},image.tag=dev,image.pullPolicy=IfNotPresent"
    helm("uninstall", "paceline", "--wait", check=False)
    helm("install", "paceline", str(chart), "--set", image, "--set", "evidence.imported=true", "--wait")
    yield
    installed()


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("previous")
def test_runs_under_way_keep_their_evidence_and_servers_stay(here: Namespace, hub: str) -> None:
    """One deployment has promoted its winner, another is in its second round of three, when the operator
    is replaced."""
    assert images() == {f"{PREVIOUS}:dev"}
    here.apply(small("done", hub))
    done = here.wait("the first winner to be served", served(here, "done", "wide"), 180)
    (promoted,) = here.list("bench")
    standing = servers(here, "done")

    here.apply(small("going", hub, gate={"decideAfterRounds": [3]}))
    run = here.wait("a run", run_of(here, "going"), 90)
    here.wait("the second round to measure", measuring(here, run, 1), 120)
    jobs = {name_of(job): uid_of(job) for job in jobs_of(here, run)}
    (first,) = here.get("bench", name_of(run))["rounds"]
    baseline = servers(here, "going")
    installed()
    assert images() == {"localhost/paceline:dev"}
    helm("test", "paceline")

    decided = here.wait("the verdict", finished(here, run), 180)
    status = decided["status"]
    assert (status["verdict"]["outcome"], status["verdict"]["winner"]) == ("Promote", "wide")
    assert [(entry["round"], entry["try"], entry["error"]) for entry in decided["rounds"]] == [
        (0, 0, ""),
        (1, 0, ""),
        (2, 0, ""),
    ]
    assert subset(first, decided["rounds"][0]), "what the release before has recorded stays"
    now = {name_of(job): uid_of(job) for job in jobs_of(here, run)}
    assert {name: now.get(name, uid) for name, uid in jobs.items()} == jobs, "no Job is made again"
    here.wait("the second winner to be served", served(here, "going", "wide"), 90)
    assert servers(here, "going").isdisjoint(baseline)

    assert servers(here, "done") == standing, "no server is replaced by an upgrade"
    after = here.get("specdep", "done")
    assert pool_of(after)["serving"]["revision"] == pool_of(done)["serving"]["revision"]
    again = here.get("bench", name_of(promoted))
    assert (uid_of(again), again["spec"]) == (uid_of(promoted), promoted["spec"])
    assert (again["rounds"], again["status"]["verdict"]) == (
        promoted["rounds"],
        promoted["status"]["verdict"],
    )
    assert sorted(name_of(one) for one in here.list("bench")) == sorted([name_of(promoted), name_of(run)])


def servers(here: Namespace, name: str) -> set[tuple[str, str]]:
    """Uid of each pod that serves, and since when it has been ready."""
    pods = here.list("pods", f"paceline.dev/deployment={name},paceline.dev/component=server")
    standing = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    ready = {uid_of(pod): {one["type"]: one for one in pod["status"]["conditions"]}["Ready"] for pod in standing}
    return {(uid, said["lastTransitionTime"]) for uid, said in ready.items() if said["status"] == "True"}


def images() -> set[str]:
    """Of the operators that there are."""
    pods = listed("pods", "--namespace", home.name, "--selector", "app.kubernetes.io/name=paceline")
    return {pod["spec"]["containers"][0]["image"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}


def subset(less: Manifest, more: Manifest) -> bool:
    return all(more.get(key) == value for key, value in less.items())
