"""What the pods of a story answer: a prefetch its commits, a round the published throughputs with a little noise."""

import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from paceline.core import ModelFacts, Parity, Workload
from paceline.evidence import ArmCommand, Failure, Outputs, Point, Replicate, RoundPlan, RoundResult, encode
from paceline.fetching import FetchedModel, FetchResult

Truth = Mapping[str, Mapping[str, float]]
"""Arm → dataset, or workload where its concurrency makes a difference → output tokens per second."""
Spoiled = Callable[[Replicate], Replicate]

NOISE = 0.002
"""Standard deviation of a point, as a fraction; the same arm, workload and round always give the same number."""
ACCEPT_LENGTH = 2.8
TARGET_FACTS = ModelFacts(architectures=("Qwen3NextForCausalLM",), hidden_size=2048, num_attention_heads=16)
HEAD_FACTS = ModelFacts(architectures=("LlamaForCausalLMEagle3",), hidden_size=2048)


def fetched(request: Mapping[str, Any], head: ModelFacts, today: str = "", target: ModelFacts = TARGET_FACTS) -> str:
    """The prefetch's message."""
    models, datasets = (tuple(_brought(one, today) for one in request.get(kind, ())) for kind in ("models", "datasets"))
    facts = {model.source: head if number else target for number, model in enumerate(models)}
    return FetchResult(models=models, facts=facts, datasets=datasets).to_message()


def _brought(asked: Mapping[str, str], today: str) -> FetchedModel:
    """A commit stays what it is; that of a branch is a function of the repository's name, the branch's and `today`."""
    source, revision = asked["source"], asked["revision"]
    known = asked.get("commit") or (revision if re.fullmatch("[0-9a-f]{40}", revision) else "")
    return FetchedModel(
        source=source,
        revision=revision,
        commit=known or random.Random(f"{source}@{revision}{today}").randbytes(20).hex(),
        bytes=4_000_000,
        path=f"/models/hub/{source}",
    )


def answer(asked: RoundPlan, truth: Truth, began: float, ended: float, spoiled: Mapping[str, Spoiled]) -> str:
    """The client's message after all arms of `asked` ran. `spoiled` says by arm what went wrong with its replicate."""
    replicates = [_replicate(asked, arm, truth[arm.name]) for arm in asked.arms]
    return encode(
        RoundResult(
            round=asked.round,
            attempt=asked.attempt,
            replicates=tuple(spoiled[one.arm](one) if one.arm in spoiled else one for one in replicates),
            gpus=("GPU-0", "GPU-1", "GPU-2", "GPU-3"),
            gpu_model="NVIDIA H200",
            driver="550.127.08",
            engine_version=asked.engine_version,
            paceline="0.1.0",
            emulated=True,
            started=began,
            finished=ended,
        )
    )


def _replicate(asked: RoundPlan, arm: ArmCommand, truth: Mapping[str, float]) -> Replicate:
    return Replicate(
        arm=arm.name,
        start_seconds=60.0,
        resolved={**dict.fromkeys(asked.compared, "as asked"), **arm.expected},
        points=tuple(
            Point(
                workload=workload.name,
                asked=workload.dataset.requests,
                completed=workload.dataset.requests,
                errors=0,
                output_tokens=(tokens := workload.dataset.requests * workload.dataset.max_tokens),
                output_throughput=(speed := _speed(arm, workload, asked.round, truth)),
                steady_throughput=None if workload.rate else speed,
                fullness=None if workload.rate else 1.0,
                mean_ttft=0.04,
                p95_ttft=0.05,
                accept_length=ACCEPT_LENGTH if arm.candidate else None,
                verify_calls=round(tokens / ACCEPT_LENGTH) if arm.candidate else 0,
                retractions=0,
            )
            for workload in asked.workloads
        ),
        outputs=_alike(asked.parity, arm),
    )


def _speed(arm: ArmCommand, workload: Workload, number: int, truth: Mapping[str, float]) -> float:
    noise = random.Random(f"{arm.name} {workload.name} {number}").gauss(0, NOISE)
    return (truth.get(workload.name) or truth[workload.dataset.name]) * math.exp(noise)


def _alike(parity: Parity | None, arm: ArmCommand) -> Outputs | None:
    """Where outputs are compared they are the same, on all servers."""
    if parity is None:
        return None
    digests = tuple(f"{prompt:04x}" for prompt in range(parity.samples))
    return Outputs(samples=parity.samples) if arm.candidate else Outputs(digests=digests)


def nearly_alike(found: Replicate) -> Replicate:
    """One of its answers goes on with the baseline's second choice, which was as good as the first."""
    assert found.outputs
    return replace(found, outputs=replace(found.outputs, near_ties=1, first=31, gap=0.06))


def otherwise(found: Replicate) -> Replicate:
    """Two of its answers are others than the baseline's, and not by rounding."""
    assert found.outputs
    return replace(found, outputs=replace(found.outputs, diverged=(1, 3), first=12, gap=2.4))


def anew(found: Replicate) -> Replicate:
    """A baseline that answers most prompts otherwise on each of its servers."""
    assert found.outputs
    speed = round(1000 * sum(point.output_throughput or 0 for point in found.points))
    digests = tuple(f"{prompt * 4096 + speed % 4096:04x}" for prompt in range(len(found.outputs.digests)))
    return replace(found, outputs=replace(found.outputs, digests=digests))


def not_compared(found: Replicate) -> Replicate:
    return replace(found, outputs=Outputs(unknown="baseline on prompt 0: HTTP 400: logprobs are disabled"))


def nothing_accepted(found: Replicate) -> Replicate:
    """The head runs and drafts, and the target takes none of it."""
    return _points(found, lambda point: replace(point, accept_length=1.0))


def half_failed(found: Replicate) -> Replicate:
    return _points(
        found, lambda point: replace(point, completed=point.asked // 2, errors=point.asked - point.asked // 2)
    )


def shared(found: Replicate) -> Replicate:
    """Somebody else asked the server for something meanwhile."""
    return replace(found, error="code@1: 64 requests were answered, and the server counted 65: somebody else used it")


def died(found: Replicate) -> Replicate:
    """The server ended between the first workload and the second."""
    return replace(found, exit_code=-9, error="CUDA error: an illegal memory access", points=found.points[:1])


def refused(found: Replicate) -> Replicate:
    """Its command line is none that the server knows."""
    said = "launch_server.py: error: unrecognized arguments: --fast-please"
    return replace(found, start_seconds=None, exit_code=2, error=said, points=())


def out_of_memory(found: Replicate) -> Replicate:
    said = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    return replace(found, start_seconds=None, exit_code=1, error=said, points=())


def too_slow(found: Replicate) -> Replicate:
    return replace(found, start_seconds=None, error="not ready after 1800 s", failure=Failure.StartTimeout, points=())


def noisy(found: Replicate) -> Replicate:
    """A neighbour takes a fifth of the machine, now and then."""
    dice = random.Random(f"{found.arm} {found.points[0].output_throughput}")
    return _points(found, lambda p: replace(p, steady_throughput=(p.steady_throughput or 0) * dice.uniform(0.8, 1)))


def _points(found: Replicate, change: Callable[[Point], Point]) -> Replicate:
    return replace(found, points=tuple(map(change, found.points)))
