"""A run and its rounds."""

import math
from collections.abc import Mapping
from importlib import resources
from typing import Any

from paceline.core import BASELINE, Arm, Purpose, RunSpec, Server, Workload, server_of
from paceline.core.manifest import Manifest
from paceline.core.names import (
    COMPONENT_LABEL,
    DEPLOYMENT_LABEL,
    MANAGED_BY,
    MODELS,
    POOL_LABEL,
    QUEUE_LABEL,
    RUN_LABEL,
    round_name,
)
from paceline.core.timeouts import PULL_SECONDS, WORKLOAD_SECONDS
from paceline.engines import ENGINES, keys
from paceline.engines.held_arguments import held_arguments
from paceline.engines.pod_template import CLIENT, CONCLUDE, CONTROL, SIDECAR, arm_container
from paceline.evidence import ENVIRONMENT, ArmCommand, RoundPlan
from paceline.render.common import API_VERSION, Owner, Settings, metadata
from paceline.render.defaults import of_ours, pull_secrets
from paceline.render.devices import claim_template, claimed, pod_claims
from paceline.render.files import file_annotations, files_of
from paceline.render.images import images_of
from paceline.render.overlay import in_a_round, laid_over, node_affinity
from paceline.render.pod import CLIENT_UID, placement, restricted, server_container, volumes
from paceline.render.prompts import prompt_files, prompt_mounts, prompt_volumes
from paceline.render.where import Where, affinity

FROM_CLIENT, FROM_SERVER = f"{CONTROL}/in", f"{CONTROL}/out"
"""Two directions: one is written by the client alone, the other has a directory that an arm's container alone mounts
(0037)."""
MOST_FROM_SERVER = "2Gi"
"""Room for the servers' logs. A server that writes more is broken, and must not fill the node's disk."""
_RESULTS = f"{MODELS}/.paceline/results"

# In addition to starts and workloads: scheduling, image pulls, the client's own start.
SLACK_SECONDS = 900
LONGEST_DEADLINE = 2**31 - 1
"""Seconds: the Kubernetes maximum."""


NO_CELLS: Mapping[str, tuple[str, ...]] = {}
SEARCHED_PROMPTS = -1
"""A search compares points of different rounds, so all of its rounds send the same prompts: the last ones of a set,
which the rounds of a gate, counted from 0, reach last."""


def benchmark_run(
    owner: Owner, pool: str, name: str, spec: Mapping[str, Any], annotations: Mapping[str, str]
) -> Manifest:
    """The comparison for which a pool waits."""
    return {
        "apiVersion": API_VERSION,
        "kind": "BenchmarkRun",
        "metadata": metadata(
            name, owner, {DEPLOYMENT_LABEL: owner.name, POOL_LABEL: pool}, annotations=dict(annotations)
        ),
        "spec": dict(spec),
    }


def round_plan(
    owner: Owner,
    run: RunSpec,
    arms: tuple[Arm, ...],
    number: int,
    try_: int,
    cells: Mapping[str, tuple[str, ...]] = NO_CELLS,
) -> RoundPlan:
    """The plan of a round of the BenchmarkRun `owner` for its client; `arms` in run order. `cells`: of a search."""
    assert run.server.target.commit, "a run is made after the prefetch has pinned its commits"
    usual = run.timeouts.workload or WORKLOAD_SECONDS
    return RoundPlan(
        run=owner.name,
        round=number,
        try_=try_,
        served_name=run.server.served_name,
        arms=tuple(_command(run.server, arm) for arm in arms),
        workloads=_in_turn(run),
        cells=cells,
        prompt_round=SEARCHED_PROMPTS if cells else None,
        apart=run.purpose is Purpose.SWEEP,
        claimed=run.server.accelerator.claims,
        own_gpus=run.server.accelerator.own,
        retractions=run.gate.retractions,
        files=prompt_files(run),
        # Names may repeat, in another namespace on the same volume or after the run was deleted; uids do not.
        results_dir=f"{_RESULTS}/{owner.name}/{owner.uid}",
        moved=_moved(run.server, arms),
        parity=run.compared_outputs,
        parity_required=run.parity is not None,
        start_timeout_seconds=run.timeouts.start,
        workload_timeout_seconds=usual,
        workload_timeouts={one.name: timeout for one in run.workloads if (timeout := run.timeouts.of(one)) != usual},
    )


def _command(shared: Server, arm: Arm) -> ArmCommand:
    server = server_of(shared, arm)
    adapter = ENGINES[server.engine.type]
    probe = adapter.probe(server.engine.version)
    return ArmCommand(
        name=arm.name,
        engine=server.engine.type,
        engine_version=server.engine.version,
        port=adapter.port,
        argv=adapter.argv(server, arm),
        candidate=arm.name != BASELINE,
        plain=arm.name != BASELINE and arm.draft is None,
        drafts=adapter.draft_tokens(arm),
        expected=adapter.expected(server, arm),
        engine_chooses_depth=arm.engine_chooses_depth,
        compared=adapter.compared,
        held=held_arguments(shared, arm),
        unseen=probe.unseen,
        cuts_drafts=probe.cuts_drafts,
    )


def _moved(shared: Server, arms: tuple[Arm, ...]) -> tuple[str, ...]:
    """Of all engines in the round; a name that another engine lacks matches nothing there."""
    types = dict.fromkeys(server_of(shared, arm).engine.type for arm in arms)
    return tuple(dict.fromkeys(name for engine in types for name in ENGINES[engine].moved(arms)))


def _in_turn(run: RunSpec) -> tuple[Workload, ...]:
    """A Sweep starts with the lightest load: if a load crashes the server, all lighter ones have been measured."""
    if run.purpose is not Purpose.SWEEP:
        return run.workloads
    return tuple(sorted(run.workloads, key=lambda workload: workload.concurrency))


def round_job(
    owner: Owner,
    run: RunSpec,
    plan: RoundPlan,
    where: Where,
    settings: Settings,
) -> Manifest:
    """The Job of a round: one replicate of every arm on the same GPUs, one after another, in a pod whose servers equal
    serving ones wherever that matters.

    An arm is an init container: the kubelet starts one after another, and gives all of them the same devices. The
    client runs beside them, as a sidecar. The Job has its pods' labels, too: a queue reads its name from them. Kueue's
    own field is only on the Job.
    """
    labels = {
        **run.pod_labels,
        **MANAGED_BY,
        RUN_LABEL: plan.run,
        POOL_LABEL: run.pool,
        COMPONENT_LABEL: "round",
    }
    # The queue owns `suspend`: we never set it, so we never remove it.
    queue = {QUEUE_LABEL: run.queue_name} if run.queue_name else {}
    priority = {"priorityClassName": settings.benchmark_priority_class} if settings.benchmark_priority_class else {}
    over = run.server.engine.pod_template
    planned = {command.name for command in plan.arms}
    arms = tuple(arm for arm in run.arms if arm.name in planned)
    files, images = files_of(run.server, arms), images_of(run.server, arms)
    pod = laid_over(
        {
            "metadata": {"labels": labels, **file_annotations(files)},
            "spec": {
                "restartPolicy": "Never",
                # For the pod, not the Job: waiting for room must not count.
                "activeDeadlineSeconds": _deadline(plan),
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "terminationGracePeriodSeconds": 30,
                "securityContext": {
                    "fsGroup": CLIENT_UID,
                    "fsGroupChangePolicy": "OnRootMismatch",
                    **settings.server_pod_security,
                },
                "containers": [],
                "volumes": [
                    *volumes(run.server, files, images),
                    *prompt_volumes(run),
                    {"name": "ctl-in", "emptyDir": {}},
                    {"name": "ctl-out", "emptyDir": {"sizeLimit": MOST_FROM_SERVER}},
                    {"name": "tmp", "emptyDir": {}},
                ],
                **placement(run.server),
                **pod_claims(run.server.accelerator, plan.run),
                "affinity": affinity(where, owner.namespace, node_affinity(over)),
                **priority,
                **pull_secrets(settings),
            },
        },
        in_a_round(over),
    )
    spec = pod["spec"]
    servers = (server_container(owner, server_of(run.server, arm), [], files, settings, images) for arm in arms)
    laid = {arm.name: _laid_over(server, over) for arm, server in zip(arms, servers, strict=True)}
    spec["initContainers"] = [*spec.get("initContainers", ()), _client(run, plan, settings), *_arms(laid, plan)]
    spec["containers"] = [_conclude(settings)]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(round_name(plan.run, plan.round, plan.try_), owner, labels | queue),
        "spec": {"backoffLimit": 0, "template": pod},
    }


def _laid_over(server: Manifest, over: Mapping[str, Any]) -> Manifest:
    """An arm's container with the user's overlay."""
    (container,) = laid_over({"spec": {"containers": [server]}}, in_a_round(over))["spec"]["containers"]
    return dict(container)


def _arms(servers: Mapping[str, Manifest], plan: RoundPlan) -> list[Manifest]:
    """A container for each arm, in the order of the round."""
    wrapper, energy = (
        as_it_is(resources.files("paceline.render").joinpath(name).read_text()) for name in ("wrapper.sh", "energy.py")
    )
    return [
        {
            **{key: value for key, value in servers[arm.name].items() if key != "ports"},
            "name": arm_container(arm.name),
            "command": ["sh", "-c", wrapper, "wrapper", energy],
            "env": [
                *servers[arm.name].get("env", ()),
                {"name": "PACELINE_ARM", "value": arm.name},
                {"name": "PACELINE_KERNELS", "value": ENGINES[arm.engine].jit_cache},
            ],
            "volumeMounts": [
                *servers[arm.name]["volumeMounts"],
                {"name": "ctl-in", "mountPath": FROM_CLIENT, "readOnly": True},
                {"name": "ctl-out", "mountPath": FROM_SERVER, "subPath": arm.name},
            ],
        }
        for arm in plan.arms
    ]


def round_claims(owner: Owner, run: RunSpec) -> tuple[Manifest, ...]:
    """The ResourceClaimTemplate of a run's rounds, if their pods use one. It is deleted with the run."""
    labels = {RUN_LABEL: owner.name, POOL_LABEL: run.pool}
    claims = claimed(run.server.accelerator, owner.name)
    return tuple(claim_template(owner, name, spec, labels) for name, spec in claims.items())


def _deadline(plan: RoundPlan) -> int:
    """Maximum seconds of a round: every start, every warm-up and every workload uses its full timeout, and every image
    is pulled."""
    loads = 2 * sum(plan.timeout_of(workload) for arm in plan.arms for workload in plan.workloads_of(arm))
    of_each = plan.start_timeout_seconds + (plan.workload_timeout_seconds if plan.parity else 0)
    images = 1 + sum(arm.held is not None for arm in plan.arms)
    return min(LONGEST_DEADLINE, math.ceil(SLACK_SECONDS + images * PULL_SECONDS + len(plan.arms) * of_each + loads))


def as_it_is(script: str) -> str:
    """Escapes the script for `command`, in which the kubelet replaces $(NAME) with variables that the user may name,
    and $$ with $."""
    return script.replace("$", "$$")


def _client(run: RunSpec, plan: RoundPlan, settings: Settings) -> Manifest:
    servers = (run.server, *(server_of(run.server, arm) for arm in run.arms if arm.engine))
    variables = [{"name": ENVIRONMENT, "value": plan.to_json()}, {"name": "HOME", "value": "/tmp"}]
    return {
        **_ours(CLIENT, "paceline.pods.round", settings),
        "restartPolicy": SIDECAR,
        "env": [*variables, *map(dict, (*keys.env(run.server), *keys.to_hide(*servers)))],
        **({"envFrom": list(map(dict, whole))} if (whole := keys.all_to_hide(run.server)) else {}),
        "volumeMounts": [
            {"name": "ctl-in", "mountPath": FROM_CLIENT},
            {"name": "ctl-out", "mountPath": FROM_SERVER, "readOnly": True},
            {"name": "models", "mountPath": MODELS},
            {"name": "tmp", "mountPath": "/tmp"},
            *prompt_mounts(run),
        ],
    }


def _conclude(settings: Settings) -> Manifest:
    return {
        **_ours(CONCLUDE, "paceline.pods.round.conclude", settings),
        "volumeMounts": [{"name": "ctl-in", "mountPath": FROM_CLIENT, "readOnly": True}],
    }


def _ours(name: str, module: str, settings: Settings) -> Manifest:
    """A container of Paceline's image."""
    return {
        "name": name,
        "image": settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        "command": ["python", "-m", module],
        **of_ours(CLIENT, settings),
        # A killed container cannot write its own message.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": restricted(),
    }
