"""One deployment, what is done to it at a moment that a seed chooses, and what must hold afterwards."""

import random
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.cluster.chaos.view import View
from tests.cluster.example import small
from tests.support.containers import status_of
from tests.support.kubernetes import Manifest, Namespace, condition, ended, gpus_of, labels_of
from tests.support.processes import Operator
from tests.support.queries import RUN, complete, name_of, pool_of, uid_of

from paceline.controller.kinds import BENCHMARK_RUN, SPECULATIVE_DEPLOYMENT
from paceline.kube.resources import JOB, POD

NAME = "chaos"
PATIENCE = 420.0
"""Seconds in which a run of 45 s must be over, whatever was done to it."""
DATASETS = {
    "datasets": [{"name": "code", "source": "builtin://code", "requests": 6, "maxTokens": 24}],
}
GATE = {"confidence": "80%", "decideAfterRounds": [2, 4, 6]}
"""The first look decides, but for a machine that is busy, and answers that were disturbed on purpose."""
T = TypeVar("T")


class BrokenError(AssertionError):
    """What should have come did not."""


@dataclass
class Story:
    here: Namespace
    hub: str
    view: View
    dice: random.Random
    operator: Operator = field(default_factory=Operator)
    name: str = NAME
    notes: list[str] = field(default_factory=list)
    """What was done, for the report."""

    def apply(self, **spec: Any) -> None:
        self.here.apply(self.manifest(**spec))

    def manifest(self, name: str = NAME, **spec: Any) -> Manifest:
        return small(name, self.hub, **{"benchmark": DATASETS, "gate": GATE, **spec})

    def note(self, what: str) -> None:
        self.notes.append(what)

    def wait(self, what: str, look: Callable[[], T | None], seconds: float = PATIENCE) -> T:
        deadline = time.monotonic() + seconds
        while not (found := look()):
            if time.monotonic() > deadline:
                raise BrokenError(f"waited {seconds:.0f} s in vain for {what}")
            time.sleep(0.2)
        return found

    def pause(self, least: float, most: float) -> None:
        time.sleep(self.dice.uniform(least, most))

    def deployment(self, name: str = "") -> Manifest:
        found = self.view.all(SPECULATIVE_DEPLOYMENT, self.here.name)
        return next((one for one in found if name_of(one) == (name or self.name)), {})

    def runs(self) -> list[Manifest]:
        return self.view.all(BENCHMARK_RUN, self.here.name)

    def jobs(self, number: int | None = None) -> list[Manifest]:
        """Those of rounds; of the round of this number."""
        found = [job for job in self.view.all(JOB, self.here.name) if RUN in labels_of(job)]
        return [job for job in found if number is None or name_of(job).split("-")[-2] == str(number)]

    def pods(self, component: str = "") -> list[Manifest]:
        found = self.view.all(POD, self.here.name)
        return [pod for pod in found if not component or labels_of(pod).get("paceline.dev/component") == component]

    def round_pod(self, number: int) -> Manifest | None:
        """The pod of that round, once its client runs."""
        for pod in self.pods("round"):
            job = labels_of(pod).get("batch.kubernetes.io/job-name", "--")
            running = all("running" in status_of(pod, name).get("state", {}) for name in ("client", "server"))
            if job.split("-")[-2] == str(number) and running and "deletionTimestamp" not in pod["metadata"]:
                return pod
        return None

    def in_round(self, number: int) -> Manifest:
        """The pod of that round, at some time of its quarter of a minute."""
        self.wait(f"round {number} to run", lambda: self.round_pod(number))
        wait = self.dice.uniform(0, 8)
        time.sleep(wait)
        self.note(f"{wait:.1f} s into round {number}")
        return self.wait("its pod", lambda: self.round_pod(number) or self.round_pod(1 - number))

    def moment(self, moments: Collection[str] = ()) -> str:
        """Wait for one of MOMENTS; which, and how long after it begins, the seed says."""
        chosen = self.dice.choice(sorted(moments or MOMENTS))
        began, most = MOMENTS[chosen]
        self.wait(chosen, lambda: began(self))
        wait = self.dice.uniform(0, most)
        time.sleep(wait)
        self.note(f"{chosen} + {wait:.1f} s")
        return chosen

    def served(self, arm: str = "wide", name: str = "") -> Manifest | None:
        found = self.deployment(name)
        ready = condition(found, "Ready")
        calm = ready and (ready["status"], ready["reason"]) == ("True", "Serving")
        calm = calm and not condition(found, "Reconciling") and not condition(found, "Stalled")
        seen = found and found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"]
        return found if calm and seen and pool_of(found).get("serving", {}).get("arm") == arm else None

    def stalled(self, reason: str) -> Manifest | None:
        found = condition(self.deployment(), "Stalled")
        return found if found and found["reason"] == reason else None


MOMENTS: dict[str, tuple[Callable[[Story], object], float]] = {
    "the models are fetched": (lambda story: story.pods("fetch"), 1),
    "a run exists": (lambda story: story.runs(), 0.3),
    "the first round runs": (lambda story: story.round_pod(0), 10),
    "the first round is complete": (lambda story: [job for job in story.jobs(0) if complete(job)], 0.3),
    "the second round runs": (lambda story: story.round_pod(1), 10),
    "the verdict": (lambda story: [run for run in story.runs() if "verdict" in run.get("status", {})], 2),
}
"""What begins it, and seconds in which something may be done."""


def converged(story: Story) -> None:
    """The end that an undisturbed run has; raises with all that is otherwise."""
    story.wait("the winner to be served", story.served)
    whole(story)


def honest(story: Story) -> None:
    """Where answers were disturbed on purpose, a verdict may be that nothing was shown; it is never a wrong one."""
    story.wait("a verdict", lambda: [run for run in story.runs() if "verdict" in run.get("status", {})])
    (run,) = story.here.list("bench")
    verdict = run["status"]["verdict"]
    story.note(f"{verdict['outcome']} after {verdict['rounds']} rounds")
    if verdict["outcome"] == "Promote":
        converged(story)
    else:
        story.wait("the baseline to be served", lambda: story.served("baseline"))
        whole(story, winner="baseline", outcome="Inconclusive")


def whole(story: Story, *, winner: str = "wide", outcome: str = "Promote", names: Collection[str] = (NAME,)) -> None:
    wrong: list[str] = []
    runs = story.here.list("bench")
    verdicts = [run.get("status", {}).get("verdict", {}) for run in runs]
    named = winner if outcome == "Promote" else ""
    as_due = [one for one in verdicts if (one.get("outcome"), one.get("winner")) == (outcome, named)]
    if len(as_due) != len(names):
        wrong.append(f"verdicts: {[(one.get('outcome'), one.get('winner')) for one in verdicts]}")
    for run in runs:
        if run.get("status", {}).get("verdict", {}).get("outcome") == outcome:
            wrong += rounds_once(run)
    wrong += repeated(story)
    for name in names:
        entry = pool_of(story.here.get("specdep", name))
        left = {key: entry[key] for key in ("holds",) if key in entry}
        left |= {key: entry["internal"][key] for key in ("borrowed", "loan") if key in entry["internal"]}
        wrong += [f"{name}: {key} is still there: {value}" for key, value in left.items()]
    try:
        story.wait("no GPU to be held but by what serves", lambda: not strangers(story, winner, len(names)), 90)
    except BrokenError:
        wrong += [f"holds GPUs: {line}" for line in strangers(story, winner, len(names))]
    if wrong:
        raise BrokenError("; ".join(wrong))


def rounds_once(run: Manifest) -> list[str]:
    """Every round and try once; every round without an error once."""
    entries = run["rounds"]
    tries = [(entry["round"], entry["try"]) for entry in entries]
    good = sorted(entry["round"] for entry in entries if not entry.get("error"))
    wrong = [] if len(tries) == len(set(tries)) else [f"tries: {tries}"]
    return wrong + ([] if len(good) > 1 and good == list(range(len(good))) else [f"rounds with a result: {good}"])


def repeated(story: Story) -> list[str]:
    """Jobs that were made again when their round was recorded already."""
    wrong = [line for namespace, line in story.view.twice if namespace == story.here.name]
    for (namespace, run, number, tried), (job, at) in list(story.view.recorded.items()):
        if namespace == story.here.name:
            again = [uid for uid, seen in story.view.jobs[namespace, job] if seen > at + 0.5]
            # A deployment that is made again under its name has Jobs of the same names.
            if again and any(uid_of(one) == run for one in story.runs()):
                wrong.append(f"round {number}, try {tried}: its Job {job} was made again: {again}")
    return wrong


def strangers(story: Story, winner: str, pools: int) -> list[str]:
    """Pods that hold GPUs beside one server of the winner for each pool, and what is missing of those."""
    holding = [pod for pod in story.here.list("pods") if gpus_of(pod) and not ended(pod)]
    serving = [pod for pod in holding if labels_of(pod).get("paceline.dev/arm") == winner and _serves(pod)]
    others = [name_of(pod) for pod in holding if pod not in serving]
    return others + ([] if len(serving) == pools else [f"{len(serving)} servers of {winner}, not {pools}"])


def _serves(pod: Manifest) -> bool:
    return labels_of(pod).get("paceline.dev/component") == "server" and "deletionTimestamp" not in pod["metadata"]


def gone(story: Story) -> None:
    """Nothing of the deployment is left, and no GPU is held."""
    kinds = "bench,jobs,deployments,services,controllerrevisions,networkpolicies,poddisruptionbudgets,pods"

    def left() -> list[str]:
        found = [f"{one['kind']} {name_of(one)}" for one in story.here.list(kinds)]
        return [line for line in found if NAME in line]

    try:
        story.wait("all of it to go", lambda: not left(), 120)
    except BrokenError:
        raise BrokenError(f"left: {left()}") from None
