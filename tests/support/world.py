"""A story in the simulated cluster of `paceline plan`: a test moves it, `settle` reconciles until nothing changes, and
every pass that did something is recorded.

    world = World()
    world.apply(example())
    world.prefetch_ends()
    world.servers_ready()
    world.round_ends("latency")
    assert world.serving("latency") == "wide"
"""

import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Any

import yaml
from tests.support import admitted
from tests.support.answers import ALL_ALIKE, HEAD_FACTS, TARGET_FACTS, Lengths, Spoiled, Truth, answer, fetched
from tests.support.campaigns import LATENCY, THROUGHPUT
from tests.support.containers import arms_of
from tests.support.faults import Faults
from tests.support.passes import Pass, action_text, changed_conditions
from tests.support.states import as_seen, words

from paceline.api.round import with_rounds
from paceline.core import INCUMBENT, ModelFacts
from paceline.core.manifest import Manifest
from paceline.engines.pod_template import CONCLUDE, arm_container
from paceline.evidence import decode, encode
from paceline.fetching import FetchFailure
from paceline.fetching.failure import ModelPart
from paceline.kube.difference import needs_status
from paceline.plan import deployment, run
from paceline.plan.deployment.servers import pod_template
from paceline.plan.objects import finished
from paceline.plan.run.snapshot import RoundJob
from paceline.plan.simulation import controllers, kubelet, reconciler
from paceline.plan.simulation.answers import fetch_request
from paceline.plan.simulation.cluster import Cluster, Handle
from paceline.plan.simulation.reconciler import owned_handles
from paceline.plan.simulation.scheduler import ALIVE
from paceline.plan.step import Action, Apply, Plan, timestamp
from paceline.plan.trouble import silent, waiting
from paceline.render import Settings
from paceline.watch import Judgement, Watched

EXAMPLE = Path(__file__).parents[2] / "examples" / "qwen3-coder-next.yaml"
START = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
TRUTHS: Mapping[str, Truth] = {"latency": LATENCY, "throughput": THROUGHPUT}
MOST_PASSES = 40


def example(*pools: str) -> Manifest:
    """examples/qwen3-coder-next.yaml with these of its pools, all of them if none is named; looked at as early as three
    rounds allow, which makes short stories. Of one pool the candidates are its own."""
    manifest: Manifest = yaml.safe_load(EXAMPLE.read_text())
    spec = manifest["spec"]
    spec |= {"gate": {"decideAfterRounds": [3, 5, 8]}, "benchmark": {}}
    manifest["metadata"]["namespace"] = "models"
    spec["pools"] = [pool for pool in spec["pools"] if not pools or pool["name"] in pools]
    if len(spec["pools"]) == 1:
        every = [candidate["name"] for candidate in spec["candidates"]]
        named = spec["pools"][0].pop("candidates", every)
        spec["candidates"] = [candidate for candidate in spec["candidates"] if candidate["name"] in named]
    return manifest


@dataclass(repr=False)
class World:
    """Time stands still but for the steps of a story.

    `crash` says which of a pass's actions are carried out: the operator may die after any of them, and starts again.
    While it is `away` the cluster goes on without it. It does not know the `absent` kinds. `image` is what the servers'
    image is by its digest; "": the kubelets do not say.
    """

    nodes: Mapping[str, int] = field(default_factory=lambda: {"gpu-0": 8, "gpu-1": 8})
    truths: Mapping[str, Truth] = field(default_factory=lambda: TRUTHS)
    crash: Callable[[Sequence[Action]], Sequence[Action]] = lambda actions: actions
    away: bool = False
    absent: frozenset[str] = frozenset()
    image: str = ""
    refusals: Mapping[Handle, str] = field(default_factory=dict)
    """What the API server says it refused of the deployment's objects."""
    config_maps: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    """Keys of those with prompts; None: it is not there."""
    judgements: dict[str, Judgement] = field(default_factory=dict)
    """Pool → what the watcher has found of its servers."""
    told: list[Pass] = field(default_factory=list)
    seen: dict[str, Manifest] = field(default_factory=dict)
    """The states of our objects before and after each pass: what kubectl would have shown."""
    sees_events: bool = True
    """Whether the operator may read Events."""
    cluster: Cluster = field(init=False)
    faults: Faults = field(default_factory=Faults)
    settings: Settings = reconciler.SETTINGS
    wakes: dict[Handle, datetime | None] = field(default_factory=dict)
    _after: str = ""

    def __post_init__(self) -> None:
        self.cluster = Cluster(now=START, nodes=self.nodes, admit=self.faults.admit)

    def __repr__(self) -> str:
        return f"World after: {'; '.join(one.after for one in self.told if one.after)}; unseen: {self._after}"

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """How hypothesis prints it."""
        printer.text(repr(self))

    # What people do.

    def apply(self, manifest: Manifest) -> None:
        self.cluster.apply({**manifest, "metadata": {**manifest["metadata"], "labels": {}}})
        self.settle(f"kubectl apply {manifest['kind']} {manifest['metadata']['name']}", 0)

    def edit(self, what: str, change: Callable[[Manifest], object]) -> None:
        """`change` edits the spec in place."""
        deployed = self._deployed()
        change(deployed["spec"])
        deployed["metadata"]["generation"] += 1
        self.settle(f"the spec is edited: {what}", 5)

    def annotate(self, key: str, value: str) -> None:
        self._deployed()["metadata"].setdefault("annotations", {})[key] = value
        self.settle(f"kubectl annotate {key}={value}", 5)

    def delete(self, kind: str, name: str) -> None:
        self.cluster.delete(kind, name)
        self.settle(f"kubectl delete {kind} {name}", 5)

    def install(self, kind: str) -> None:
        self.absent -= {kind}
        self.settle(f"{kind} is installed", 5)

    # What the cluster does.

    def wait(self, minutes: int) -> None:
        self.settle(f"{minutes} minutes pass", minutes)

    def until_wake(self) -> None:
        """Time passes until a planner wants to look again."""
        times = [time for time in self.wakes.values() if time]
        assert times, "nobody waits for a time"
        self.settle("the time has come that a planner waited for", 0, at=min(times))

    def prefetch_ends(self, head: ModelFacts = HEAD_FACTS, today: str = "", target: ModelFacts = TARGET_FACTS) -> None:
        """`today`: what every branch has moved to meanwhile."""
        job = self.under_way("fetch")[0]
        self._end(job, "fetch", 0, fetched(fetch_request(job), head, today, target))
        self.settle("the prefetch has ended", 4)

    def prefetch_fails(self, line: str, code: int = 2, source: str = "", part: ModelPart = "source") -> None:
        """As the prefetch's pod says it; `source`: the model or dataset that could not be fetched."""
        failure = FetchFailure(sentence=f"{source}: {line}" if source else line, source=source, part=part)
        self._advance(4)
        self._end(self.under_way("fetch")[0], "fetch", code, failure.to_message())
        self.settle("the prefetch has failed", 0)

    def servers_ready(self) -> None:
        for pod in self._servers():
            if "nodeName" in pod["spec"]:
                kubelet.mark_ready(pod)
        self.settle("the servers that have a node are ready", 2)

    def servers_run(self, image: str, *pools: str) -> None:
        """The image's tag was moved: a kubelet reports this one for the servers that are ready."""
        for pod in (pod for pool in pools or ("",) for pod in self._servers(**({"pool": pool} if pool else {}))):
            pod["status"]["containerStatuses"] = [{"name": "server", "imageID": image, "state": {}}]
        self.settle(f"the servers run {image}", 0)

    def server_exits(self, pool: str, code: int, log: str) -> None:
        for pod in self._newest(pool):
            state = {"terminated": {"exitCode": code, "message": log}}
            pod["status"] = {"phase": "Pending", "containerStatuses": [{"name": "server", "state": state}]}
        self.settle(f"the server of {pool} exits with {code}", 1)

    def server_loops(self, pool: str, code: int, log: str, lived: timedelta = timedelta(seconds=20)) -> None:
        """The servers that have a node have ended so often that their kubelets let them wait; each `lived` so long."""
        ended = timestamp(self.cluster.now)
        last = {"exitCode": code, "message": log, "finishedAt": ended, "startedAt": timestamp(self.cluster.now - lived)}
        waits = {"waiting": {"reason": "CrashLoopBackOff"}}
        self._servers_show(pool, {"restartCount": 4, "state": waits, "lastState": {"terminated": last}})
        self.settle(f"the server of {pool} has exited with {code} again and again", 1)

    def server_is_refused(self, pool: str, reason: str, message: str) -> None:
        """By the kubelets of the servers that have a node."""
        self._servers_show(pool, {"state": {"waiting": {"reason": reason, "message": message}}})
        self.settle(f"the server of {pool} is not started: {reason}", 0)

    def server_lost(self, pool: str, number: int = 0) -> None:
        """It does not answer any more; no reason was reported."""
        pod = self._servers(pool=pool)[number]
        pod["status"] = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}
        self.settle(f"server {number} of {pool} is not ready", 0)

    def server_ready(self, pool: str, number: int) -> None:
        kubelet.mark_ready(self._servers(pool=pool)[number])
        self.settle(f"server {number} of {pool} is ready", 2)

    def rounds_placed(self) -> None:
        """Nothing happens but that the operator sees where the rounds' pods are."""
        self.settle("the rounds' pods are placed", 1)

    def round_ends(
        self, *pools: str, truth: Truth | None = None, lengths: Lengths = ALL_ALIKE, **spoiled: Spoiled
    ) -> None:
        """The rounds under way of these pools (of all, if none is named) end with the published throughputs; an arm
        named in `spoiled` with something else."""
        self._advance(20)
        for job in self._rounds(pools):
            self._end(job, CONCLUDE, 0, self._answer(job, truth, spoiled, lengths))
        self.settle(f"a round of {' and '.join(pools) or 'every pool'} has ended{_spoiled(spoiled)}", 0)

    def clients_end(self) -> None:
        """Those of the rounds under way have given their answers, and their last containers have ended."""
        self._advance(20)
        for job in self._rounds(()):
            (pod,) = self.cluster.owned("Pod", job)
            self.cluster.logs[pod["metadata"]["name"]] = self._answer(job, None, {}, ALL_ALIKE)
            pod["status"]["containerStatuses"] = [{"name": CONCLUDE, "state": {"terminated": {"exitCode": 0}}}]
        self.settle("the clients of the rounds are done", 0)

    def prefetch_vanishes(self) -> None:
        """Its Job is Complete, its pod gone."""
        job = self.under_way("fetch")[0]
        self._end(job, "fetch", 0, "")
        self.cluster.delete("Pod", f"{job['metadata']['name']}-pod")
        self.settle("the prefetch has ended and its pod is gone", 4)

    def round_dies(self, pool: str, code: int, line: str) -> None:
        self._end(self._rounds([pool])[0], CONCLUDE, code, line)
        self.settle(f"the round of {pool} dies", 3)

    def arm_is_killed(self, arm: str, reason: str = "OOMKilled") -> None:
        """The arm's whole container, in the rounds under way; the arms before it had told their results."""
        self._advance(20)
        for job in self._rounds(()):
            kubelet.end_job(self.cluster, job, arm_container(arm), 137, "")
            pod = self.pod_of(job)
            pod["status"]["initContainerStatuses"][0]["state"]["terminated"] |= {"reason": reason}
            self.cluster.logs[pod["metadata"]["name"]] = self._answer(job, None, {}, ALL_ALIKE, before=arm)
        self.settle(f"the container of {arm} is killed", 1)

    def image_is_missing(self, arm: str) -> None:
        """The arm's image cannot be pulled when its turn comes, until the operator gives the rounds up."""
        message = "docker.io/lmsysorg/sglang:v0.5.24: not found"
        for job in self._rounds(()):
            pod = self.pod_of(job)
            self.cluster.logs[pod["metadata"]["name"]] = self._answer(job, None, {}, ALL_ALIKE, before=arm)
        waiting = {"waiting": {"reason": "ImagePullBackOff", "message": message}}
        states = [
            {"name": "client", "state": {"running": {}}},
            {"name": arm_container(arm), "state": waiting},
        ]
        self.round_shows(f"the image of {arm} is missing", initContainerStatuses=states)
        self.until_wake()
        self.wait(1)

    def round_shows(self, what: str, minutes: int = 0, **status: Any) -> None:
        """The pods of the rounds under way say so."""
        for job in self._rounds(()):
            (pod,) = self.cluster.owned("Pod", job)
            pod["status"] |= {"phase": "Pending", "startTime": timestamp(self.cluster.now), **status}
        self.settle(what, minutes)

    def node_goes(self, node: str) -> None:
        """It does not answer: the pods on it are deleted, which it never hears of."""
        self.cluster.nodes = {name: gpus for name, gpus in self.cluster.nodes.items() if name != node}
        for pod in self.cluster.of("Pod", component="round"):
            if pod["spec"].get("nodeName") == node and pod["status"]["phase"] in ALIVE:
                pod["metadata"]["deletionTimestamp"] = timestamp(self.cluster.now)
                lost = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
                pod["status"]["conditions"].append({**lost, "message": "Taint manager: NoExecute taint"})
        self.settle(f"{node} goes", 6)

    # What the story asks.

    def status(self) -> Mapping[str, Any]:
        return dict(self._deployed().get("status") or {})

    def artifacts(self, *, datasets: bool = False) -> list[Manifest]:
        """Of status: models, or datasets."""
        found = self.status().get("artifacts", ())
        return [one for one in found if one["source"].startswith("hf://datasets/") is datasets]

    def pool(self, name: str) -> Mapping[str, Any]:
        return next(entry for entry in self.status()["pools"] if entry["name"] == name)

    def memory(self, pool: str) -> Mapping[str, Any]:
        """The operator's, of the pool."""
        return dict(self.pool(pool).get("internal") or {})

    def serving(self, pool: str) -> str:
        return str(self.pool(pool)["serving"]["arm"])

    def condition(self, kind: str, found: Manifest | None = None) -> str:
        """`True Serving`; "" where there is none."""
        status = (found or self._deployed()).get("status") or {}
        said = [c for c in status.get("conditions", ()) if c["type"] == kind]
        return f"{said[0]['status']} {said[0]['reason']}" if said else ""

    def message(self, kind: str) -> str:
        return str(next(c["message"] for c in self.status()["conditions"] if c["type"] == kind))

    def requests(self, verb: str) -> list[tuple[str, str]]:
        """The annotations that status tells a person to write: key and value."""
        said = " ".join(c["message"] for c in self.status()["conditions"])
        return re.findall(rf"({verb}\.paceline\.dev/\w+)=(\S+)", said)

    def spec(self) -> Mapping[str, Any]:
        return dict(self._deployed()["spec"])

    def pod_of(self, job: Manifest) -> Manifest:
        """Of a round."""
        (pod,) = self.cluster.owned("Pod", job)
        return pod

    def under_way(self, component: str) -> list[Manifest]:
        """Jobs that have not ended: `fetch` or `round`."""
        return [job for job in self.cluster.of("Job", component=component) if not finished(job)]

    def runs(self, pool: str) -> list[Manifest]:
        """As they are now, with their rounds."""
        return [
            run for run in self.all_runs() if (run["metadata"].get("labels") or {}).get("paceline.dev/pool") == pool
        ]

    def all_runs(self) -> list[Manifest]:
        rounds = self.cluster.of("BenchmarkRound")
        return [with_rounds(run, rounds) for run in self.cluster.of("BenchmarkRun")]

    def outcome(self, pool: str) -> str:
        """Of the pool's latest run."""
        return str(self.runs(pool)[-1]["status"].get("verdict", {}).get("outcome", ""))

    # One reconcile after another.

    def settle(self, after: str, minutes: int, at: datetime | None = None) -> None:
        """Time passes; then everybody acts until there is nothing left to do."""
        self._advance(minutes, at)
        self._after = after
        for _ in range(MOST_PASSES):
            self._advance_cluster()
            reconciled = [] if self.away else [self.reconcile(key) for key in owned_handles(self.cluster)]
            if not any(reconciled):
                return
        raise AssertionError(f"the planners never come to rest after {after}")

    def reconcile(self, key: Handle) -> bool:
        """Status first, then actions. False if nothing changed."""
        if key not in self.cluster.objects:
            return False
        found, plan = self.cluster.objects[key], self.plan(key)
        was = found.get("status") or {}
        self._see(found)
        published = plan.status is not None and needs_status(found, dict(plan.status))
        if plan.status is not None:
            admitted.check(key[0], plan.status)
            found["status"] = deepcopy(dict(plan.status))
            self._see(found)
            conditions = {one["type"] for one in plan.status["conditions"]}
            assert not {"Stalled", "Reconciling"} <= conditions, "kstatus, Argo and Flux would take it for broken"
        survived = self.crash(plan.actions)
        sent = [action_text(action) for action in survived if self._act(action)]
        self.wakes[key] = plan.requeue_at
        if key[0] == "SpeculativeDeployment":
            self._watch(plan.watched)
        if not (published or sent or len(survived) < len(plan.actions)):
            late = plan.requeue_at is None or plan.requeue_at > self.cluster.now
            assert late, f"{key} would be reconciled in an endless loop"
            return False
        self._record(key, was, plan, sent)
        return True

    def _see(self, found: Manifest) -> None:
        shown = as_seen(found)
        self.seen.setdefault(words(shown), shown)

    def plan(self, key: Handle) -> Plan:
        if key[0] == "BenchmarkRun":
            return run.plan(self.run_snapshot(key[1]), self.cluster.now)
        return deployment.plan(self.deployment_snapshot(key[1]), self.cluster.now)

    def deployment_snapshot(self, name: str = "") -> deployment.Snapshot:
        snapshot = reconciler.deployment_snapshot(
            self.cluster, name or self._deployed()["metadata"]["name"], self.settings
        )
        return replace(
            snapshot,
            absent=self.absent,
            warnings=self._warnings(snapshot.children),
            refusals=self.refusals,
            config_maps=self.config_maps,
            judgements=self.judgements,
        )

    def run_snapshot(self, name: str) -> run.Snapshot:
        snapshot = reconciler.run_snapshot(self.cluster, name, self.settings)
        jobs = [one.job for one in snapshot.jobs]
        pods = [one.pod for one in snapshot.jobs if one.pod]
        return replace(snapshot, warnings=self._warnings({"Job": jobs, "Pod": pods}))

    def _warnings(self, children: Mapping[str, Sequence[Manifest]]) -> Mapping[str, str]:
        """The operator asks for Events of silent objects only."""
        if not self.sees_events:
            return {}
        uids = (waiter["metadata"]["uid"] for waiter in silent(waiting(children), self.cluster.now))
        return {uid: self.faults.events[uid] for uid in uids if uid in self.faults.events}

    def _act(self, action: Action) -> bool:
        if isinstance(action, Apply):
            assert action.manifest["kind"] not in self.absent, "the API server would answer 404"
            if action.manifest["kind"] == "BenchmarkRound":
                admitted.check("BenchmarkRound", action.manifest["spec"])
        return reconciler.apply_action(self.cluster, action)

    def _advance_cluster(self) -> None:
        self.faults.open_gates(self.cluster)
        controllers.step(self.cluster)
        self.faults.report(self.cluster)

    def _watch(self, watched: Mapping[str, Watched]) -> None:
        """What is not to be watched any more is forgotten."""
        revisions = {pool: servers.revision for pool, servers in watched.items()}
        self.judgements = {pool: one for pool, one in self.judgements.items() if one.revision == revisions.get(pool)}

    def _record(self, key: Handle, before: Mapping[str, Any], plan: Plan, sent: Sequence[str]) -> None:
        """A pass that changes nothing visible is left out."""
        after = plan.status or before
        recorded = Pass(
            at=self.cluster.now,
            after=self._after,
            of=key[1],
            actions=sent,
            conditions=changed_conditions(before, after),
            summary=after.get("summary", "") if after.get("summary") != before.get("summary") else "",
            events=[f"{event.type} {event.reason}: {event.note}" for event in plan.events],
        )
        if recorded.actions or recorded.conditions or recorded.summary or recorded.events:
            self.told.append(recorded)
            self._after = ""

    def _advance(self, minutes: int, at: datetime | None = None) -> None:
        self.cluster.now = at or self.cluster.now + timedelta(minutes=minutes)

    def _deployed(self) -> Manifest:
        (found,) = self.cluster.of("SpeculativeDeployment")
        return found

    def _servers(self, **labels: str) -> list[Manifest]:
        return self.cluster.of("Pod", component="server", **labels)

    def _newest(self, pool: str) -> list[Manifest]:
        """The servers of the revision that there is to be, not those that serve until it is ready."""
        wanted = {controllers.revision(pod_template(servers)) for servers in controllers.workloads_of(self.cluster)}
        return [pod for pod in self._servers(pool=pool) if controllers.revision(pod) in wanted]

    def _servers_show(self, pool: str, status: Manifest) -> None:
        for pod in self._newest(pool):
            if "nodeName" in pod["spec"]:
                placed = [one for one in pod["status"].get("conditions", ()) if one["type"] == "PodScheduled"]
                shown = [{"name": "server", **status}]
                pod["status"] = {"phase": "Pending", "conditions": placed, "containerStatuses": shown}

    def _rounds(self, pools: Sequence[str]) -> list[Manifest]:
        found = [
            job
            for job in self.under_way("round")
            if "nodeName" in self.cluster.owned("Pod", job)[0]["spec"]
            and (not pools or job["metadata"]["labels"]["paceline.dev/pool"] in pools)
        ]
        assert found, "no round is under way"
        return found

    def _answer(
        self, job: Manifest, truth: Truth | None, spoiled: Mapping[str, Spoiled], lengths: Lengths, before: str = ""
    ) -> str:
        """Of all arms, or of those that ran before this one."""
        pool = job["metadata"]["labels"]["paceline.dev/pool"]
        known = truth or self.truths[pool]
        plan = RoundJob(job=job, pod=None).plan
        if INCUMBENT not in known and any(arm.name == INCUMBENT for arm in plan.arms):
            served = self.memory(pool)["target"]["arm"]
            known = {arm.name: known[served if arm.name == INCUMBENT else arm.name] for arm in plan.arms}
        ended_at = self.cluster.now.timestamp()
        log = answer(plan, known, ended_at - 1080, ended_at, spoiled, lengths)
        if not before:
            return log
        whole = decode(log)
        return encode(replace(whole, replicates=tuple(takewhile(lambda one: one.arm != before, whole.replicates))))

    def _end(self, job: Manifest, container: str, code: int, message: str) -> None:
        kubelet.end_job(self.cluster, job, container, code, message)
        if self.image:
            pod = self.pod_of(job)
            ran = [{"name": one["name"], "imageID": self.image, "state": {}} for one in arms_of(pod)]
            pod["status"]["initContainerStatuses"] = ran


def _spoiled(spoiled: Mapping[str, Spoiled]) -> str:
    faults = [f"{arm} {fault.__name__.replace('_', ' ')}" for arm, fault in spoiled.items()]
    return f", {', '.join(faults)}" if faults else ""
