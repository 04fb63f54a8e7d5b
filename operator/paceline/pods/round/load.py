"""The client's file of prompts and its command line, for a workload.

Every arm gets the same prompts in the same order: the file has only the requests of the workload, SGLang's benchmark
client shuffles it with a fixed seed, and one worker thread keeps the order (two threads race for the slots). What that
client cannot send (`Prompts.chats`), Paceline's own sends in the order of the file.
"""

import hashlib
import itertools
import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from paceline.core import Arrivals, Scheme, Workload
from paceline.engines import ENGINES
from paceline.evidence import ArmCommand, RoundPlan
from paceline.pods import datasets
from paceline.pods.conversation import Conversation
from paceline.pods.prompt_file import DatasetError, Prompts, read
from paceline.pods.round import choose, positions, replay
from paceline.pods.round.chat_client import KEY, ChatLoad
from paceline.pods.round.contamination import shared_share, shared_share_of_chats
from paceline.pods.round.parity import request_body
from paceline.pods.round.steps import Loaded

SEED = 42
WARM_UP_TOKENS = 32
PARITY = "parity"
"""The name of the load that compares outputs, as `name_of` names the others."""
COUNTED = {"stream_options": {"include_usage": True}}
"""In every request. If a response omits usage, the client assumes it produced the expected number of tokens."""
UNCOUNTED = 1
"""The expected number is one more than an answer can have, so such an answer is recognised."""
BEARER = KEY
"""The variable whose value both clients send as Authorization: Bearer."""
CHAT = "/v1/chat/completions"
PROXIES = frozenset({"http_proxy", "https_proxy", "all_proxy"})
LARGEST_REPORT = 256 << 20
"""Bytes of the benchmark client's report, which contains every answer. A million tokens are some 5 MB."""


class LoadError(RuntimeError):
    """The benchmark client left no usable report."""


def prompts(plan: RoundPlan, workload: Workload) -> tuple[str, ...]:
    """One prompt per request of the workload, other ones in each round (`choose`). A built-in set that is smaller
    repeats prompts within the round. A user's smaller set raises DatasetError: repeated prompts flatter a cache."""
    usable, requests = _all(plan, workload).usable, workload.dataset.requests
    if len(usable) < requests and workload.dataset.address.scheme is not Scheme.BUILTIN:
        raise DatasetError(
            f"{workload.name}: {workload.dataset.source} has {len(usable)} usable prompts, and {requests} requests are "
            "to be sent (requests, or five times the concurrency if that is more): add prompts, or lower these"
        )
    if workload.dataset.arrivals == Arrivals.REPLAYED:
        return tuple(usable[place] for place in replay.chosen(_times(plan, workload), plan.drawn, requests))
    return choose.measured(usable, plan.drawn, requests, workload.dataset.part)


def _times(plan: RoundPlan, workload: Workload) -> tuple[float, ...]:
    """Of all usable prompts. Raises DatasetError if not all have one."""
    found = _all(plan, workload).times
    times = tuple(time for time in found if time is not None)
    if missing := len(found) - len(times):
        raise DatasetError(
            f"{workload.name}: {missing} of {len(found)} prompts of {workload.dataset.source} have no timestamp: write "
            "one in each entry, or leave arrivals out"
        )
    return times


def replayed(plan: RoundPlan, workload: Workload, rate: float) -> tuple[float, ...]:
    """When the requests of this round arrive. Raises DatasetError."""
    times = _times(plan, workload)
    try:
        places = replay.chosen(times, plan.drawn, workload.dataset.requests)
        return replay.arrivals([times[place] for place in places], rate)
    except ValueError as error:
        raise DatasetError(f"{workload.name}: {workload.dataset.source}: {error}") from error


def warm_up_prompts(plan: RoundPlan, workload: Workload) -> tuple[str, ...]:
    """One prompt per concurrent slot, different ones if the set has enough: a cached prompt does not warm up the
    prefill."""
    usable, dataset = _all(plan, workload).usable, workload.dataset
    return choose.warm_up(usable, plan.drawn, dataset.requests, workload.concurrency, dataset.part)


def compared_prompts(plan: RoundPlan) -> tuple[str, ...]:
    """The prompts of parity: the first ones of the first dataset. Raises DatasetError if there are too few: a prompt
    that is asked twice shows nothing."""
    assert plan.parity
    usable, first = _all(plan, plan.workloads[0]).usable, plan.workloads[0].dataset
    if len(usable) < plan.parity.samples:
        raise DatasetError(
            f"parity: {first.source} has {len(usable)} usable prompts, and {plan.parity.samples} are to be compared: "
            "lower parity.samples"
        )
    return usable[: plan.parity.samples]


def tools_are_taken(plan: RoundPlan) -> None:
    """Raises DatasetError if the servers would refuse requests for their tools."""
    adapter = ENGINES[plan.engine]
    given = {word.partition("=")[0].replace("_", "-") for word in plan.arms[0].argv}
    for workload in plan.workloads:
        found = _all(plan, workload)
        bodies = map(json.loads, found.usable if found.chats else ())
        needed = {flag for body in bodies for flag in adapter.tools_need(body)}
        if missing := sorted(needed - given):
            raise DatasetError(
                f"{workload.name}: {workload.dataset.source} has requests with tools, which {plan.engine} refuses "
                f"without {' and '.join(missing)}: add to engine.args, or leave out the tools"
            )


def question(plan: RoundPlan, arm: ArmCommand, prompt: int) -> Mapping[str, Any]:
    """The request for one prompt of parity. Of a chat only its messages: what calls a tool is no text to compare."""
    assert plan.parity
    probe = ENGINES[plan.engine].probe(plan.engine_version)
    asked = _asked(compared_prompts(plan)[prompt], chats=_all(plan, plan.workloads[0]).chats)
    model = model_of(plan, plan.workloads[0])
    body = request_body(plan.parity, model, asked["messages"], candidate=arm.candidate)
    return {**probe.body(PARITY), **probe.whole, **body}


def sample(plan: RoundPlan, workload: Workload) -> list[Mapping[str, Any]]:
    """The requests of a `Sample`: the workload's first prompts, as its load had them."""
    probe = ENGINES[plan.engine].probe(plan.engine_version)
    assert probe.histogram
    name, tokens = f"{name_of(workload, warm_up=False)}-sample", min(positions.TOKENS, workload.dataset.max_tokens)
    fields = {**_fields(plan, workload, name=name, tokens=tokens), **probe.histogram.body}
    chats = _all(plan, workload).chats
    return [{**fields, **_asked(prompt, chats=chats)} for prompt in prompts(plan, workload)[: positions.SAMPLES]]


def _asked(prompt: str, *, chats: bool) -> Mapping[str, Any]:
    """The fields of a request for one of `Prompts.usable`."""
    fields: Mapping[str, Any] = json.loads(prompt) if chats else {"messages": [{"role": "user", "content": prompt}]}
    return fields


def digests(plan: RoundPlan) -> dict[str, str]:
    """Dataset → the first 12 hex digits of its SHA-256, for a file those of sha256sum."""
    return {workload.dataset.name: _all(plan, workload).sha256[:12] for workload in plan.workloads}


def sizes(plan: RoundPlan) -> dict[str, int]:
    """Dataset → how many usable prompts it has."""
    return {workload.dataset.name: len(_all(plan, workload).usable) for workload in plan.workloads}


def _all(plan: RoundPlan, workload: Workload) -> Prompts:
    """The prompts of a dataset. Those of which SGLang's client cannot send all are chats, whatever their file has."""
    dataset = workload.dataset
    if dataset.address.scheme is Scheme.BUILTIN:
        found = _built_in(dataset.address.name)
    elif dataset.name in plan.files:
        found = read(Path(plan.files[dataset.name]), dataset.address)
    else:
        raise DatasetError(f"{workload.name}: cannot read {dataset.source}")
    own = dataset.response_format or dataset.arrivals == Arrivals.REPLAYED or dataset.ramp_from is not None
    return _as_chats(found) if own else found


@cache
def _built_in(name: str) -> Prompts:
    usable = datasets.load(name)
    return Prompts(usable=usable, sha256=hashlib.sha256(json.dumps(usable).encode()).hexdigest())


@cache
def _as_chats(found: Prompts) -> Prompts:
    """Made once: every load of every arm asks for it, some more than once."""
    if found.chats:
        return found
    bodies = (Conversation(messages=({"role": "user", "content": text},)).body for text in found.usable)
    return replace(found, usable=tuple(bodies), chats=True)


def name_of(workload: Workload, *, warm_up: bool) -> str:
    """The name of a load, unique on its server process. It adds letters, digits and "-" to the dataset's name."""
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
    """The command that sends `requests` of the file's prompts and writes one line of JSON to `report`.

    At a `rate` requests never wait for a slot: the client's times begin when a request is sent, so a wait would be
    missing from them. Every arm has the arrivals of the same seed.
    """
    pace = ("--request-rate", f"{rate:g}") if rate else ("--max-concurrency", str(workload.concurrency))
    probe = ENGINES[plan.engine].probe(plan.engine_version)
    body = {**probe.body(name), **COUNTED, "max_completion_tokens": tokens, **_sampling(plan, workload)}
    return [
        sys.executable, "-m", "paceline.pods.round.bench_client",
        "--backend", probe.backend,
        "--base-url", f"http://127.0.0.1:{plan.port}",
        "--ready-check-timeout-sec", "0",
        "--model", model_of(plan, workload),
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


def model_of(plan: RoundPlan, workload: Workload) -> str:
    """The model of a workload's requests, which names its adapter."""
    name = ENGINES[plan.engine].probe(plan.engine_version).adapter
    adapter = workload.dataset.adapter
    return name(plan.served_name, adapter) if adapter and name else plan.served_name


def _sampling(plan: RoundPlan, workload: Workload) -> Mapping[str, Any]:
    """The temperature in the request's body. The client sends 0 unless the body has one. For the server's own default,
    the body has null, or the default's value if the engine does not accept null."""
    temperature = workload.dataset.temperature
    if temperature == 0:
        return {}
    own = ENGINES[plan.engine].probe(plan.engine_version).own_temperature
    return {"temperature": own if temperature is None else temperature}


def send(plan: RoundPlan, workload: Workload, scratch: Path, key: str, *, warm_up: bool) -> Loaded:
    """Run the client to its end. Raises LoadError, or subprocess.TimeoutExpired."""
    chosen = warm_up_prompts(plan, workload) if warm_up else prompts(plan, workload)
    tokens = min(workload.dataset.max_tokens, WARM_UP_TOKENS) if warm_up else workload.dataset.max_tokens
    dataset, report = scratch / "prompts.json", scratch / "report.jsonl"
    report.unlink(missing_ok=True)
    name = name_of(workload, warm_up=warm_up)
    rate = None if warm_up else workload.rate
    if chats := _all(plan, workload).chats:
        levels = None if warm_up else workload.levels or None
        to_send = chat_load(plan, workload, chosen, name=name, tokens=tokens, rate=rate, levels=levels)
        dataset.write_text(to_send.to_json())
        argv = [sys.executable, "-m", "paceline.pods.round.chat_client", str(dataset), str(report)]
    else:
        dataset.write_text(json.dumps([_conversation(prompt) for prompt in chosen]))
        options: dict[str, Any] = {"name": name, "requests": len(chosen), "tokens": tokens, "rate": rate}
        argv = command(plan, workload, dataset=dataset, report=report, **options)
    _run(argv, scratch, key, timeout=plan.timeout_of(workload))
    shared = shared_share_of_chats(chosen) if chats else shared_share(chosen)
    return Loaded(report=_read_report(report), shared_prompts=shared, chats=chats)


def chat_load(
    plan: RoundPlan,
    workload: Workload,
    chosen: Sequence[str],
    *,
    name: str,
    tokens: int,
    rate: float | None,
    levels: tuple[int, ...] | None = None,
) -> ChatLoad:
    """What Paceline's own client is to send: `chosen` are bodies of requests. Every arm has the same arrivals, or the
    same `levels` of a ramp."""
    shared = {**_fields(plan, workload, name=name, tokens=tokens), **COUNTED, "stream": True}
    return ChatLoad(
        url=f"http://127.0.0.1:{plan.port}{CHAT}",
        bodies=tuple({**shared, **json.loads(prompt)} for prompt in chosen),
        concurrency=workload.concurrency,
        arrivals=_arrivals(plan, workload, rate, len(chosen)) if rate else None,
        levels=levels,
    )


def _fields(plan: RoundPlan, workload: Workload, *, name: str, tokens: int) -> Mapping[str, Any]:
    """What all requests of a load have, where Paceline sends them itself."""
    return {
        **ENGINES[plan.engine].probe(plan.engine_version).body(name),
        "model": model_of(plan, workload),
        "max_completion_tokens": tokens,
        "temperature": 0,
        **_sampling(plan, workload),
        **({"response_format": json.loads(form)} if (form := workload.dataset.response_format) else {}),
    }


def _arrivals(plan: RoundPlan, workload: Workload, rate: float, requests: int) -> tuple[float, ...]:
    if workload.dataset.arrivals == Arrivals.REPLAYED:
        return replayed(plan, workload, rate)
    return arrivals(rate, requests)


def arrivals(rate: float, requests: int) -> tuple[float, ...]:
    """Seconds after the start: the first at once, the others after exponential gaps (a Poisson process)."""
    chance = random.Random(SEED)
    gaps = (chance.expovariate(rate) for _ in range(requests - 1))
    return tuple(itertools.accumulate(gaps, initial=0.0))


def _run(argv: Sequence[str], scratch: Path, key: str, *, timeout: float) -> None:
    ended = subprocess.run(
        argv, env=_environment(key), cwd=scratch, capture_output=True, text=True, timeout=timeout, check=False
    )
    if ended.returncode != 0:
        log = (ended.stderr or ended.stdout).strip().splitlines() or [""]
        raise LoadError(f"the benchmark client exited with {ended.returncode}: {log[-1]}")


def _read_report(file: Path) -> Mapping[str, Any]:
    """Without `server_info`, which contains the server's keys."""
    try:
        if (size := file.stat().st_size) > LARGEST_REPORT:
            raise LoadError(f"{size >> 20} MiB of answers were reported; {LARGEST_REPORT >> 20} are read")
        report: Mapping[str, Any] = json.loads(file.read_text().splitlines()[-1])
        return {name: value for name, value in report.items() if name != "server_info"}
    except (OSError, ValueError, IndexError, RecursionError, AttributeError) as error:
        raise LoadError(f"the benchmark client left no report: {error}") from error


def _environment(key: str) -> dict[str, str]:
    """Without proxies, and with the server's key if it has one."""
    inherited = {name: value for name, value in os.environ.items() if name.lower() not in PROXIES}
    return inherited | ({BEARER: key} if key else {})


def _conversation(prompt: str) -> dict[str, Any]:
    messages = [{"from": "human", "value": prompt}, {"from": "gpt", "value": datasets.PLACEHOLDER}]
    return {"conversations": messages}
