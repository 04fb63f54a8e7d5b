"""What the pods of a story answer: a prefetch its commits, a round the published throughputs with a little noise."""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import replace

from paceline.core import ModelFacts, Workload
from paceline.evidence import ArmCommand, Failure, Outputs, Point, Replicate, RoundPlan, encode
from paceline.evidence.result import Parts
from paceline.fetching import FetchRequest
from paceline.plan.simulation import answers

Truth = Mapping[str, Mapping[str, float]]
"""Arm → dataset, or workload where its concurrency makes a difference → output tokens per second."""
Spoiled = Callable[[Replicate], Replicate]
Lengths = Callable[[str, str], float]
"""Arm and dataset → acceptance length."""
ALL_ALIKE: Lengths = lambda _arm, _dataset: answers.ACCEPT_LENGTH  # noqa: E731

NOISE = 0.002
"""Standard deviation of a point, as a fraction; the same arm, workload and round always give the same number."""
START_SECONDS = 60.0
TARGET_FACTS = ModelFacts(architectures=("Qwen3NextForCausalLM",), hidden_size=2048, num_attention_heads=16)
HEAD_FACTS = ModelFacts(architectures=("LlamaForCausalLMEagle3",), hidden_size=2048)


def fetched(request: FetchRequest, head: ModelFacts, today: str = "", target: ModelFacts = TARGET_FACTS) -> str:
    """The prefetch's message: the first model is the target, all others are heads. `today` is a word that moves every
    branch."""

    def commit_of(branch: str) -> str:
        return random.Random(f"{branch}{today}").randbytes(20).hex()

    return answers.fetched(request, (target, *[head] * (len(request.models) - 1)), commit_of)


def answer(
    plan: RoundPlan,
    truth: Truth,
    began: float,
    ended: float,
    spoiled: Mapping[str, Spoiled],
    lengths: Lengths = ALL_ALIKE,
) -> str:
    """The client's log after all arms of `plan` ran. `spoiled` maps arms to what went wrong with their
    replicates."""

    def speed_of(arm: ArmCommand, workload: Workload) -> float:
        noise = random.Random(f"{arm.name} {workload.name} {plan.round}").gauss(0, NOISE)
        return (truth[arm.name].get(workload.name) or truth[arm.name][workload.dataset.name]) * math.exp(noise)

    def length_of(arm: ArmCommand, workload: Workload) -> float:
        return lengths(arm.name, workload.dataset.name)

    result = answers.round_result(plan, speed_of, START_SECONDS, began, ended, length_of)
    return encode(
        replace(
            result,
            replicates=tuple(
                spoiled[replicate.arm](replicate) if replicate.arm in spoiled else replicate
                for replicate in result.replicates
            ),
            gpus=("GPU-0", "GPU-1", "GPU-2", "GPU-3"),
            gpu_model="NVIDIA H200",
            driver="550.127.08",
            paceline="0.1.0",
            emulated=True,
        )
    )


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


def using(joules: float) -> Spoiled:
    """So many joules per output token."""
    return lambda found: _points(found, lambda point: replace(point, energy_per_token=joules))


def taking(**seconds: float) -> Spoiled:
    """So many seconds for these parts."""
    return lambda found: replace(found, seconds=Parts(**seconds))


def shared(found: Replicate) -> Replicate:
    """Somebody else asked the server for something meanwhile."""
    return replace(
        found, error="code@1: 64 requests were answered, but the server counted 65: it received other requests"
    )


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
