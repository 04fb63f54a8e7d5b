"""Results of rounds."""

import dataclasses
import random

from paceline.engines import ENGINES
from paceline.evidence import Outputs, Point, Replicate, RoundResult
from paceline.evidence.clocks import Clocks, Throttled

CUTS = [(2, 24), (3, 16), (12, 4), (24, 2), (48, 1)]
"""Arms and workloads of 48 points."""
RESOLVED = dict.fromkeys(ENGINES["SGLang"].compared, "triton") | {
    "served_model_name": "qwen3-coder-next",
    "speculative_algorithm": "EAGLE3",
    "speculative_num_steps": 3,
    "speculative_eagle_topk": 4,
}


def realistic_point(workload: str, rng: random.Random) -> Point:
    """Every number with all its noise, as a client would measure it."""
    tokens = rng.randint(20_000, 40_000)
    duration = rng.uniform(10, 200)
    return Point(
        workload=workload,
        asked=96,
        completed=96,
        errors=0,
        output_tokens=tokens,
        output_throughput=tokens / duration,
        steady_throughput=tokens / duration * rng.uniform(1, 1.1),
        fullness=rng.uniform(0.9, 1),
        p99_itl=rng.uniform(0.01, 0.1),
        mean_ttft=rng.uniform(0.02, 0.2),
        p95_ttft=rng.uniform(0.05, 0.5),
        mean_tpot=rng.uniform(0.003, 0.03),
        p95_tpot=rng.uniform(0.003, 0.03),
        mean_e2e=rng.uniform(1, 10),
        p95_e2e=rng.uniform(1, 20),
        p50_ttft=rng.uniform(0.02, 0.2),
        p90_ttft=rng.uniform(0.02, 0.2),
        p99_ttft=rng.uniform(0.05, 0.5),
        p50_tpot=rng.uniform(0.003, 0.03),
        p99_tpot=rng.uniform(0.003, 0.03),
        accept_length=rng.uniform(1, 4),
        verify_calls=rng.randint(5_000, 20_000),
        retractions=0,
        client_cpu=rng.uniform(0.01, 0.5),
        client_lag=rng.uniform(0.0001, 0.002),
    )


def result_of(arms: int, workloads: int, seed: int = 1) -> RoundResult:
    rng = random.Random(seed)
    replicates = tuple(
        Replicate(
            arm=f"candidate-{arm}" if arm else "baseline",
            start_seconds=rng.uniform(60, 300),
            resolved=RESOLVED | {"speculative_num_draft_tokens": arm or None},
            rest_sha256="0f1e2d3c",
            differs=(),
            kv_tokens=rng.randint(500_000, 1_000_000),
            points=tuple(realistic_point(f"terminal-{number}@32", rng) for number in range(workloads)),
        )
        for arm in range(arms)
    )
    return RoundResult(
        round=7,
        try_=1,
        replicates=replicates,
        gpus=tuple(f"GPU-{rng.getrandbits(128):032x}" for _ in range(8)),
        gpu_model="NVIDIA H200",
        driver="550.127.08",
        datasets={f"terminal-{number}": f"{rng.getrandbits(48):012x}" for number in range(workloads)},
        engine_version="0.5.23",
        paceline="0.1.0",
        emulated=False,
        started=1_795_245_504.25,
        finished=1_795_249_004.5,
        overhead_seconds=41.7,
        lines_sha256=f"{rng.getrandbits(256):064x}",
        lines_bytes=rng.randint(1_000_000, 9_000_000),
    )


def compared(result: RoundResult, samples: int, seed: int = 3) -> RoundResult:
    """Every candidate left the baseline at about half of the prompts, each at others and by another gap."""
    rng = random.Random(seed)
    candidate = [
        Outputs(
            samples=samples,
            near_ties=rng.randint(0, samples // 4),
            diverged=tuple(n for n in range(samples) if rng.random() < 0.5),
            first=rng.randint(0, 4096),
            gap=round(rng.uniform(0, 20), 2),
        )
        for _ in result.replicates[1:]
    ]
    baseline = Outputs(digests=tuple(f"{rng.getrandbits(16):04x}" for _ in range(samples)))
    pairs = zip(result.replicates, (baseline, *candidate), strict=True)
    return dataclasses.replace(result, replicates=tuple(dataclasses.replace(one, outputs=o) for one, o in pairs))


def with_positions(result: RoundResult, seed: int = 1) -> RoundResult:
    """As vLLM tells it of eight draft tokens: none at the baseline."""
    rng = random.Random(seed)
    replicates = [
        dataclasses.replace(
            one,
            points=tuple(
                dataclasses.replace(point, accepted_at=tuple(sorted((rng.random() for _ in range(8)), reverse=True)))
                for point in one.points
            ),
        )
        for one in result.replicates[1:]
    ]
    return dataclasses.replace(result, replicates=(result.replicates[0], *replicates))


def with_requests(result: RoundResult, seed: int = 1) -> RoundResult:
    """What is told of requests one by one; the prompts of a workload are the same on all arms."""
    rng = random.Random(seed)
    inputs = [(rng.uniform(100, 900), rng.randint(100, 900), rng.randint(900, 9000)) for _ in range(48)]

    def told(point: Point, place: int, candidate: bool) -> Point:
        mean, p50, p99 = inputs[place]
        ratios = sorted(rng.uniform(0.5, 2) for _ in range(3))
        more = {"slower_prompts": rng.random(), "worst_decile": ratios[0], "median_prompt": ratios[1]}
        return dataclasses.replace(
            point,
            good_requests=rng.randint(0, 96),
            good_tokens=rng.randint(0, 20_000),
            mean_input=mean,
            p50_input=p50,
            p99_input=p99,
            p50_output=rng.randint(100, 512),
            p99_output=512,
            request_spread=rng.uniform(0.01, 0.3),
            **(more | {"best_decile": ratios[2]} if candidate else {}),
        )

    replicates = [
        dataclasses.replace(one, points=tuple(told(point, n, place > 0) for n, point in enumerate(one.points)))
        for place, one in enumerate(result.replicates)
    ]
    return dataclasses.replace(result, replicates=tuple(replicates))


def with_clocks(result: RoundResult, seed: int = 1) -> RoundResult:
    """Every load of every arm was throttled, each for another share of its time."""
    rng = random.Random(seed)
    replicates = [
        dataclasses.replace(
            one,
            clocks=Clocks(
                sm_mhz=rng.randint(1000, 1980),
                most_sm_mhz=1980,
                limit_watts=700,
                celsius=rng.randint(50, 90),
                throttled=tuple(
                    Throttled(workload=point.workload, reasons=rng.choice((0x4, 0x44)), percent=rng.randint(1, 100))
                    for point in one.points
                ),
            ),
        )
        for one in result.replicates
    ]
    return dataclasses.replace(result, replicates=tuple(replicates))
