"""A workload as the benchmark client gets it: which prompts, in a file, and the command line.

Every arm is sent the same prompts in the same order: the file holds just the requests of the workload, the client
shuffles it by a fixed seed, and one worker thread keeps to that order (two were seen to race for the places).
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paceline.core import Scheme, Workload
from paceline.engines import ENGINES
from paceline.evidence import ArmCommand, RoundPlan
from paceline.pods import datasets
from paceline.pods.prompt_file import DatasetError, Prompts, read
from paceline.pods.round import choose
from paceline.pods.round.contamination import ALIKE, alike
from paceline.pods.round.parity import asked

SEED = 42
WARM_UP_TOKENS = 32
PARITY = "parity"
"""Of the prompts that are compared: a name as `name_of` gives loads."""
COUNTED = {"stream_options": {"include_usage": True}}
"""Of every request. An answer that does not tell its tokens has, for the client, as many as it was told to expect."""
UNCOUNTED = 1
"""So it is told to expect one more than an answer can have, and such an answer is known by that."""
BEARER = "OPENAI_API_KEY"
"""Where the benchmark client looks for what it is to send as Authorization: Bearer."""
PROXIES = frozenset({"http_proxy", "https_proxy", "all_proxy"})


LARGEST_REPORT = 256 << 20
"""Bytes of the benchmark client's report, which has every answer in it. A million tokens are some 5 MB."""


class LoadError(RuntimeError):
    """The benchmark client gave no report."""


def prompts(plan: RoundPlan, workload: Workload) -> tuple[str, ...]:
    """As many prompts as the workload has requests, others in each round (`choose`). A built-in set that has not even
    as many begins again within a round; a user's is refused, with DatasetError: repeated prompts flatter a cache."""
    there, asked = _all(plan, workload).usable, workload.dataset.requests
    if len(there) < asked and workload.dataset.address.scheme is not Scheme.BUILTIN:
        raise DatasetError(
            f"{workload.name}: {workload.dataset.source} has {len(there)} usable prompts, and {asked} requests are to "
            f"be sent (requests, or five times the concurrency if that is more): add prompts, or lower these"
        )
    return choose.measured(there, plan.round, asked)


def warm_up_prompts(plan: RoundPlan, workload: Workload) -> tuple[str, ...]:
    """One for each place, and different ones as far as the set has them: a prompt that is in the cache warms up no
    prefill."""
    there = _all(plan, workload).usable
    return choose.warm_up(there, plan.round, workload.dataset.requests, workload.concurrency)


def compared_prompts(plan: RoundPlan) -> tuple[str, ...]:
    """Those of parity: the first of the first dataset. Raises DatasetError where there are too few: one asked twice
    shows nothing."""
    assert plan.parity
    there, first = _all(plan, plan.workloads[0]).usable, plan.workloads[0].dataset
    if len(there) < plan.parity.samples:
        raise DatasetError(
            f"parity: {first.source} has {len(there)} usable prompts, and {plan.parity.samples} are to be compared: "
            "lower parity.samples"
        )
    return there[: plan.parity.samples]


def question(plan: RoundPlan, arm: ArmCommand, prompt: int) -> Mapping[str, Any]:
    """The request for one prompt of parity."""
    assert plan.parity
    probe = ENGINES[plan.engine].probe(plan.engine_version)
    body = asked(plan.parity, plan.served_name, compared_prompts(plan)[prompt], candidate=arm.candidate)
    return {**probe.body(PARITY), **probe.whole, **body}


def digests(plan: RoundPlan) -> dict[str, str]:
    """Dataset → the first 12 hex digits of its SHA-256: of a file, as sha256sum shows it."""
    return {workload.dataset.name: _all(plan, workload).sha256[:12] for workload in plan.workloads}


def sizes(plan: RoundPlan) -> dict[str, int]:
    """Dataset → how many usable prompts it has."""
    return {workload.dataset.name: len(_all(plan, workload).usable) for workload in plan.workloads}


def _all(plan: RoundPlan, workload: Workload) -> Prompts:
    dataset = workload.dataset
    source = dataset.address
    if source.scheme is Scheme.BUILTIN:
        usable = datasets.load(source.name)
        return Prompts(usable=usable, sha256=hashlib.sha256(json.dumps(usable).encode()).hexdigest())
    if dataset.name not in plan.files:
        raise DatasetError(f"{workload.name}: cannot read {dataset.source}")
    return read(Path(plan.files[dataset.name]), source)


def name_of(workload: Workload, *, warm_up: bool) -> str:
    """Of a load: no other load of the same server process has it. Letters, digits and "-" beside the dataset's own."""
    return f"{workload.dataset.name}-{workload.concurrency}{'-warm-up' if warm_up else ''}"


def command(
    plan: RoundPlan,
    workload: Workload,
    *,
    name: str,
    dataset: Path,
    report: Path,
    requests: int,
    tokens: int,
    rate: float | None = None,
) -> list[str]:
    """Of the process that sends `requests` of the file's prompts and writes one line of JSON to `report`.

    At a `rate` nothing holds a request back: the client's times begin when it is sent, so one that had to wait for a
    place would seem faster than it was. The arrivals are of the same seed on every arm.
    """
    pace = ("--request-rate", f"{rate:g}") if rate else ("--max-concurrency", str(workload.concurrency))
    probe = ENGINES[plan.engine].probe(plan.engine_version)
    body = {**probe.body(name), **COUNTED, "max_completion_tokens": tokens, **_sampling(plan, workload)}
    return [
        sys.executable, "-m", "paceline.pods.round.bench_client",
        "--backend", probe.backend,
        "--base-url", f"http://127.0.0.1:{plan.port}",
        "--ready-check-timeout-sec", "0",
        "--model", plan.served_name,
        "--tokenizer", plan.tokenizer,
        "--dataset-name", "sharegpt",
        "--dataset-path", str(dataset),
        "--num-prompts", str(requests),
        "--sharegpt-output-len", str(tokens + UNCOUNTED),
        *pace,
        "--worker-threads", "1",
        "--seed", str(SEED),
        "--temperature", "0",
        "--disable-ignore-eos",
        "--disable-retokenize",
        "--warmup-requests", "0",
        "--disable-tqdm",
        "--output-details",
        "--output-file", str(report),
        "--extra-request-body", json.dumps(body),
    ]  # fmt: skip


def _sampling(plan: RoundPlan, workload: Workload) -> Mapping[str, Any]:
    """Fields of a request. The client says temperature 0 in every one that does not say another; null is none to a
    server that has the model's own, and one that has always the same does not know null and is told that."""
    asked = workload.dataset.temperature
    if asked == 0:
        return {}
    own = ENGINES[plan.engine].probe(plan.engine_version).own_temperature
    return {"temperature": own if asked is None else asked}


def send(plan: RoundPlan, workload: Workload, scratch: Path, key: str, *, warm_up: bool) -> Mapping[str, Any]:
    """Run the client to its end; its report. Raises LoadError, or subprocess.TimeoutExpired."""
    chosen = warm_up_prompts(plan, workload) if warm_up else prompts(plan, workload)
    tokens = min(workload.dataset.max_tokens, WARM_UP_TOKENS) if warm_up else workload.dataset.max_tokens
    dataset, report = scratch / "prompts.json", scratch / "report.jsonl"
    dataset.write_text(json.dumps([_conversation(prompt) for prompt in chosen]))
    report.unlink(missing_ok=True)
    name = name_of(workload, warm_up=warm_up)
    argv = command(
        plan,
        workload,
        name=name,
        dataset=dataset,
        report=report,
        requests=len(chosen),
        tokens=tokens,
        rate=None if warm_up else workload.rate,
    )
    ended = subprocess.run(
        argv,
        env=_environment(key),
        cwd=scratch,
        capture_output=True,
        text=True,
        timeout=plan.timeout_of(workload),
        check=False,
    )
    if ended.returncode != 0:
        said = (ended.stderr or ended.stdout).strip().splitlines() or [""]
        raise LoadError(f"the benchmark client exited with {ended.returncode}: {said[-1]}")
    try:
        if (size := report.stat().st_size) > LARGEST_REPORT:
            raise LoadError(f"{size >> 20} MiB of answers were reported; {LARGEST_REPORT >> 20} are read")
        found: Mapping[str, Any] = json.loads(report.read_text().splitlines()[-1])
    except (OSError, ValueError, IndexError, RecursionError) as error:
        raise LoadError(f"the benchmark client left no report: {error}") from error
    told = {key: value for key, value in found.items() if key != "server_info"}  # that has the server's keys in it
    return {**told, ALIKE: alike(chosen)}


def _environment(key: str) -> dict[str, str]:
    """Past any proxy, and with the server's key if it has one."""
    kept = {name: value for name, value in os.environ.items() if name.lower() not in PROXIES}
    return kept | ({BEARER: key} if key else {})


def _conversation(prompt: str) -> dict[str, Any]:
    said = [{"from": "human", "value": prompt}, {"from": "gpt", "value": datasets.PLACEHOLDER}]
    return {"conversations": said}
