"""Reports of a simulated cluster's successful pods: a prefetch's commits, a round's measurements."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from paceline.core import ModelFacts, Parity, Workload
from paceline.core.manifest import Object
from paceline.evidence import ArmCommand, Outputs, Point, Replicate, RoundPlan, RoundResult
from paceline.fetching import FETCH_VARIABLE, WHOLE_COMMIT, Artifact, FetchedModel, FetchRequest, FetchResult
from paceline.plan.deployment.servers import pod_template

SpreadOf = Callable[[Workload], float | None]
"""Standard deviation of ln(speed) between a workload's requests; None: not reported."""

SpeedOf = Callable[[ArmCommand, Workload], float]
"""Output tokens per second of an arm under a workload."""

Length = Callable[[ArmCommand, Workload], float]
"""Tokens per verification."""

ACCEPT_LENGTH = 2.8
"""Default tokens per verification. Must be above 1: a candidate with no accepted draft is invalid."""
LATENCY = 0.04
"""Every measured latency, in seconds. No gate of an example has a lower limit."""
MODEL_BYTES = 4_000_000


def fetch_request(job: Object) -> FetchRequest:
    """The request of a prefetch Job."""
    containers = pod_template(job)["spec"]["containers"]
    variables = (variable for container in containers for variable in container.get("env", ()))
    return FetchRequest.from_json(next(v["value"] for v in variables if v["name"] == FETCH_VARIABLE))


def invented_commit(branch: str) -> str:
    return hashlib.sha1(branch.encode(), usedforsecurity=False).hexdigest()


def fetched(
    request: FetchRequest,
    facts: Sequence[ModelFacts] = (),
    commit_of: Callable[[str], str] = invented_commit,
) -> str:
    """The prefetch's message. `facts`: of the models, in order; preflight finds nothing about a model without facts.
    `commit_of` maps SOURCE@BRANCH to the commit there."""
    models, datasets = (
        tuple(_downloaded(artifact, commit_of) for artifact in artifacts)
        for artifacts in (request.models, request.datasets)
    )
    by_source = {model.source: known for model, known in zip(models, facts, strict=False)}
    return FetchResult(models=models, facts=by_source, datasets=datasets).to_message()


def round_result(
    plan: RoundPlan,
    speed: SpeedOf,
    start_seconds: float,
    began: float,
    ended: float,
    length: Length = lambda _arm, _workload: ACCEPT_LENGTH,
    spread: SpreadOf = lambda _workload: None,
    prompts: Mapping[str, int] | None = None,
) -> RoundResult:
    """A result in which every point is valid, all arms give the same answers, and only speeds differ. Times are epoch
    seconds. `prompts`: dataset → its size."""
    return RoundResult(
        round=plan.round,
        try_=plan.try_,
        replicates=tuple(
            Replicate(
                arm=arm.name,
                start_seconds=start_seconds,
                resolved={**dict.fromkeys(arm.compared, "as asked"), **arm.expected},
                points=tuple(
                    replace(
                        _point(arm, workload, speed(arm, workload), length(arm, workload)),
                        request_spread=spread(workload),
                    )
                    for workload in plan.workloads_of(arm)
                ),
                outputs=_outputs(plan.parity, arm),
            )
            for arm in plan.arms
        ),
        engine_version=(plan.baseline or plan.arms[0]).engine_version,
        prompts=prompts or {},
        started=began,
        finished=ended,
    )


def _downloaded(artifact: Artifact, commit_of: Callable[[str], str]) -> FetchedModel:
    source, revision = str(artifact.source), artifact.revision
    pinned = artifact.commit or (revision if WHOLE_COMMIT.fullmatch(revision) else "")
    return FetchedModel(
        source=source,
        revision=revision,
        commit=pinned or commit_of(f"{source}@{revision}"),
        bytes=MODEL_BYTES,
        path=f"/models/hub/{source}",
    )


def _point(arm: ArmCommand, workload: Workload, speed: float, length: float) -> Point:
    """Every answer reaches its maximum length."""
    tokens = workload.dataset.requests * workload.dataset.max_tokens
    return Point(
        workload=workload.name,
        asked=workload.dataset.requests,
        completed=workload.dataset.requests,
        errors=0,
        output_tokens=tokens,
        output_throughput=speed,
        steady_throughput=speed if workload.at_one_load else None,
        fullness=None if workload.rate else 1.0,
        mean_ttft=LATENCY,
        p95_ttft=LATENCY,
        mean_tpot=LATENCY,
        p95_tpot=LATENCY,
        p95_e2e=LATENCY,
        mean_e2e=1 / speed,
        accept_length=length if arm.speculates else None,
        verify_calls=round(tokens / length) if arm.speculates else 0,
        retractions=0,
        client_cpu=0.0,
        client_lag=0.0,
    )


def _outputs(parity: Parity | None, arm: ArmCommand) -> Outputs | None:
    if parity is None:
        return None
    digests = tuple(f"{prompt:04x}" for prompt in range(parity.samples))
    return Outputs(samples=parity.samples) if arm.candidate else Outputs(digests=digests)
