"""The requests of a workload, and the client that sends them. Every arm gets the same requests in the same order."""

import hashlib
import itertools
import json
import multiprocessing
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from paceline.core import Arrivals, Scheme, Workload
from paceline.core.text import count, error_text
from paceline.engines import ENGINES, Probe
from paceline.evidence import ArmCommand, RoundPlan
from paceline.pods import datasets
from paceline.pods.conversation import Conversation
from paceline.pods.prompt_file import DatasetError, Prompts, read_prompts
from paceline.pods.round import choose, positions, replay
from paceline.pods.round.client import Requests, send_file
from paceline.pods.round.contamination import bare, shared_share
from paceline.pods.round.parity import request_body
from paceline.pods.round.steps import Loaded

SEED = 42
WARM_UP_TOKENS = 32
"""Most tokens of an answer in a window of warm-up."""
FEWEST_WARM_UP = 4
"""Requests of a window at concurrency 1, so that one slow answer does not move their median."""
PARITY = "parity"
"""The name of the load that compares outputs; `_name_of` names the others."""
COUNTED = {"stream_options": {"include_usage": True}}
"""Fields of every request: with them the server counts the tokens of its answer."""
CHAT = "/v1/chat/completions"
CLIENTS = multiprocessing.get_context("forkserver")
"""Each client is a process with its imports already done: they take half a second, as long as a short load."""
CLIENTS.set_forkserver_preload(["paceline.pods.round.client"])
LARGEST_LOAD = 400 << 20
"""Maximum characters of the requests of a load; parsed they take four times as much of the client's 4 GiB, and twice
that for a moment."""
LARGEST_REPORT = 256 << 20
"""Maximum bytes of the client's report, which contains every answer. A million tokens are some 25 MB."""


class LoadError(RuntimeError):
    """The client left no usable report."""


def prompts_of_load(plan: RoundPlan, workload: Workload) -> tuple[str, ...]:
    """One prompt per request of the workload, in the order of sending."""
    return tuple(itertools.chain.from_iterable(conversations_of_load(plan, workload)))


def conversations_of_load(plan: RoundPlan, workload: Workload) -> tuple[tuple[str, ...], ...]:
    """The prompts of the workload, different ones in each round (`choose`). A smaller built-in set repeats prompts
    within the round. A user's smaller set raises DatasetError: a cache makes repeated prompts look fast."""
    found, requests = _all(plan, workload), workload.dataset.requests
    if found.usable < requests and workload.dataset.address.scheme is not Scheme.BUILTIN:
        raise DatasetError(
            f"{workload.name}: {workload.dataset.source} has {count(found.usable, 'usable prompt')}, but {requests} "
            "requests are to be sent (requests, or five times the concurrency, times turns, if that is more): add "
            "prompts, or lower these"
        )
    if workload.dataset.arrivals == Arrivals.REPLAYED:
        places = replay.places_of_round(_times(plan, workload), plan.drawn, requests)
        return tuple((found.conversations[place].body(0),) for place in places)
    if workload.dataset.turns == 1 and any(one.waits for one in found.conversations):
        raise DatasetError(
            f"{workload.name}: {workload.dataset.source} has no answers: set turns; its history then has the servers'"
        )
    chosen = choose.measured_prompts(_shuffled(found), plan.drawn, requests, workload.dataset.stride)
    if (size := sum(len(prompt) for turns in chosen for prompt in turns)) > LARGEST_LOAD:
        raise DatasetError(
            f"{workload.name}: {workload.dataset.source}: {requests} requests have {size >> 20} MiB of text, at most "
            f"{LARGEST_LOAD >> 20} are sent: lower requests, the concurrency or turns, or leave out the longest"
        )
    return chosen


def _times(plan: RoundPlan, workload: Workload) -> tuple[float, ...]:
    """The arrival times of all usable prompts. Raises DatasetError if a prompt has no time."""
    found = [one.time for one in _all(plan, workload).conversations]
    times = tuple(time for time in found if time is not None)
    if missing := len(found) - len(times):
        raise DatasetError(
            f"{workload.name}: {missing} of {len(found)} prompts of {workload.dataset.source} have no timestamp: write "
            "one in each entry, or leave arrivals out"
        )
    return times


def replayed(plan: RoundPlan, workload: Workload, rate: float) -> tuple[float, ...]:
    """Arrival times of this round's requests. Raises DatasetError."""
    times = _times(plan, workload)
    try:
        places = replay.places_of_round(times, plan.drawn, workload.dataset.requests)
        return replay.replayed_arrivals([times[place] for place in places], rate)
    except ValueError as error:
        raise DatasetError(f"{workload.name}: {workload.dataset.source}: {error}") from error


def warm_up_prompts(plan: RoundPlan, workload: Workload, own: Sequence[str]) -> tuple[str, ...]:
    """Two prompts per concurrent slot, so that half of them arrive one by one beside running requests, as most of a
    load's do. All windows send the same ones. `own`: those of the load."""
    places = min(max(FEWEST_WARM_UP, 2 * workload.concurrency), workload.dataset.requests)
    return choose.warm_up(_shuffled(_all(plan, workload)), frozenset(own), places)


def with_prompts_to_compare(plan: RoundPlan) -> RoundPlan:
    """The plan, in which a comparison of outputs that is not required has no more samples than there are prompts.
    Raises DatasetError if a required one has too few: repeating a prompt shows nothing."""
    if plan.parity is None:
        return plan
    usable, first = len(_all(plan, plan.workloads[0]).conversations), plan.workloads[0].dataset
    if usable < plan.parity.samples and plan.parity_required:
        raise DatasetError(
            f"parity: {first.source} has {count(usable, 'usable prompt')}, but {plan.parity.samples} are to be "
            "compared: lower parity.samples"
        )
    return replace(plan, parity=replace(plan.parity, samples=min(usable, plan.parity.samples)))


def tools_are_taken(plan: RoundPlan) -> None:
    """Raises DatasetError if the servers would refuse requests because of their tools."""
    for arm in _first_of_each_engine(plan):
        given = {word.partition("=")[0].replace("_", "-") for word in arm.argv}
        for workload in plan.workloads:
            asked = ({**one.options, "messages": one.messages} for one in _all(plan, workload).conversations)
            needed = {flag for body in asked for flag in ENGINES[arm.engine].tools_need(body)}
            if missing := sorted(needed - given):
                raise DatasetError(
                    f"{workload.name}: {workload.dataset.source} has requests with tools, which {arm.engine} refuses "
                    f"without {' and '.join(missing)}: add to engine.args, or leave out the tools"
                )


def _first_of_each_engine(plan: RoundPlan) -> tuple[ArmCommand, ...]:
    """Arms that share an engine have the same flags, apart from speculation."""
    shared = next((arm for arm in plan.arms if arm.held is None), None)
    return (*((shared,) if shared else ()), *(arm for arm in plan.arms if arm.held is not None))


def parity_question(plan: RoundPlan, arm: ArmCommand, prompt: int) -> Mapping[str, Any]:
    """The request for one prompt of parity, with only the messages of a chat: a tool call is not comparable text."""
    assert plan.parity
    probe = probe_of(arm)
    asked = json.loads(_all(plan, plan.workloads[0]).conversations[prompt].body(0))
    model = model_of(plan, arm, plan.workloads[0])
    body = request_body(plan.parity, model, asked["messages"], candidate=arm.candidate)
    return {**probe.body(PARITY), **probe.whole, **body}


def sample(plan: RoundPlan, arm: ArmCommand, workload: Workload) -> list[Mapping[str, Any]]:
    """The requests of a `SampleAgain`: the workload's first prompts, as in its load."""
    probe = probe_of(arm)
    assert probe.histogram
    name, tokens = f"{_name_of(workload)}-sample", min(positions.TOKENS, workload.dataset.max_tokens)
    fields = {**_fields(plan, arm, workload, name=name, tokens=tokens), **probe.histogram.body}
    return [{**fields, **json.loads(prompt)} for prompt in prompts_of_load(plan, workload)[: positions.SAMPLES]]


def digests(plan: RoundPlan) -> dict[str, str]:
    """Dataset → the first 12 hex digits of its SHA-256; for a file, as printed by sha256sum."""
    return {workload.dataset.name: _all(plan, workload).sha256[:12] for workload in plan.workloads}


def usable_prompts(plan: RoundPlan) -> dict[str, int]:
    """Dataset → number of its usable prompts."""
    return {workload.dataset.name: _all(plan, workload).usable for workload in plan.workloads}


def _all(plan: RoundPlan, workload: Workload) -> Prompts:
    """The prompts of a dataset."""
    dataset = workload.dataset
    if dataset.address.scheme is Scheme.BUILTIN:
        return _built_in(dataset.address.name)
    if dataset.name in plan.files:
        return read_prompts(Path(plan.files[dataset.name]), dataset.address, dataset.turns)
    raise DatasetError(f"{workload.name}: cannot read {dataset.source}")


@cache
def _shuffled(prompts: Prompts) -> tuple[Conversation, ...]:
    return choose.shuffled(prompts.conversations)


@cache
def _built_in(name: str) -> Prompts:
    texts = datasets.load_dataset(name)
    asked = tuple(Conversation(messages=({"role": "user", "content": text},), turns=(1,)) for text in texts)
    return Prompts(conversations=asked, sha256=hashlib.sha256(json.dumps(texts).encode()).hexdigest())


def _name_of(workload: Workload, window: int = 0) -> str:
    """The name of a load, unique for its server process. It adds letters, digits and "-" to the dataset's name."""
    return f"{workload.dataset.name}-{workload.concurrency}{f'-warm-up-{window}' if window else ''}"


def probe_of(arm: ArmCommand) -> Probe:
    return ENGINES[arm.engine].probe(arm.engine_version)


def model_of(plan: RoundPlan, arm: ArmCommand, workload: Workload) -> str:
    """The model in a workload's requests, which may name its adapter."""
    name = probe_of(arm).adapter
    adapter = workload.dataset.adapter
    return name(plan.served_name, adapter) if adapter and name else plan.served_name


def send_load(plan: RoundPlan, arm: ArmCommand, workload: Workload, scratch: Path, key: str, window: int = 0) -> Loaded:
    """Run the client to its end; `window` as in `SendLoad`. Raises LoadError, or TimeoutError."""
    chosen = warm_up_requests(plan, arm, workload, window) if window else load_requests(plan, arm, workload)
    source, target = scratch / "requests.json", scratch / "report.json"
    target.unlink(missing_ok=True)
    source.write_text(chosen.to_json())
    _run(source, target, key, timeout=plan.timeout_of(workload))
    return Loaded(report=_read_report(target), shared_prompts=shared_share(chosen.bodies))


def load_requests(plan: RoundPlan, arm: ArmCommand, workload: Workload) -> Requests:
    """The requests of a load: equal for every arm, with the same arrivals, or the same `levels` of a ramp."""
    name, tokens = _name_of(workload), workload.dataset.max_tokens
    conversations = conversations_of_load(plan, workload)
    prompts = tuple(itertools.chain.from_iterable(conversations))
    bodies = _bodies(plan, arm, workload, prompts, name=name, tokens=tokens)
    turns = (number for each in conversations for number in range(len(each)))
    return Requests(
        url=_url(arm),
        bodies=bodies,
        concurrency=workload.concurrency,
        arrivals=_arrivals(plan, workload, workload.rate, len(bodies)) if workload.rate else None,
        levels=workload.levels or None,
        turns=tuple(turns) if workload.dataset.turns > 1 else None,
    )


def warm_up_requests(plan: RoundPlan, arm: ArmCommand, workload: Workload, window: int) -> Requests:
    """A closed loop. The last request is bare: it measures the template's length (`contamination`).

    As in a load, half of the answers end at their limit and the others earlier, so that the next requests come in
    batches of many sizes. Each window gives the same limits to other requests, or it would have the same batches.
    """
    own = prompts_of_load(plan, workload)
    chosen = [*warm_up_prompts(plan, workload, own), bare(own)]
    most = min(workload.dataset.max_tokens, WARM_UP_TOKENS)
    bodies = _bodies(plan, arm, workload, chosen, name=_name_of(workload, window), tokens=most)
    turned = ((place + 3 * window) % len(bodies) for place in range(len(bodies)))
    limits = [most if place % 2 else most - place * 7 % max(1, most * 3 // 4) for place in turned]
    limited = ({**body, "max_completion_tokens": limit} for body, limit in zip(bodies, limits, strict=True))
    return Requests(url=_url(arm), bodies=tuple(limited), concurrency=workload.concurrency)


def _url(arm: ArmCommand) -> str:
    return f"http://127.0.0.1:{arm.port}{CHAT}"


def _bodies(
    plan: RoundPlan, arm: ArmCommand, workload: Workload, chosen: Sequence[str], *, name: str, tokens: int
) -> tuple[Mapping[str, Any], ...]:
    shared = {**_fields(plan, arm, workload, name=name, tokens=tokens), **COUNTED, "stream": True}
    return tuple({**shared, **json.loads(prompt)} for prompt in chosen)


def _fields(plan: RoundPlan, arm: ArmCommand, workload: Workload, *, name: str, tokens: int) -> Mapping[str, Any]:
    """Fields of all requests of a load. For the server's own temperature the field is null, or the default's value if
    the engine does not accept null."""
    probe, temperature = probe_of(arm), workload.dataset.temperature
    return {
        **probe.body(name),
        "model": model_of(plan, arm, workload),
        "max_completion_tokens": tokens,
        "temperature": probe.own_temperature if temperature is None else temperature,
        **({"response_format": json.loads(form)} if (form := workload.dataset.response_format) else {}),
    }


def _arrivals(plan: RoundPlan, workload: Workload, rate: float, requests: int) -> tuple[float, ...]:
    if workload.dataset.arrivals == Arrivals.REPLAYED:
        return replayed(plan, workload, rate)
    return arrivals(rate, requests)


def arrivals(rate: float, requests: int) -> tuple[float, ...]:
    """Seconds after the start: the first at 0, the others after exponential gaps (a Poisson process)."""
    chance = random.Random(SEED)
    gaps = (chance.expovariate(rate) for _ in range(requests - 1))
    return tuple(itertools.accumulate(gaps, initial=0.0))


def _run(source: Path, target: Path, key: str, *, timeout: float) -> None:
    client = CLIENTS.Process(target=send_file, args=(source, target, key))
    client.start()
    client.join(timeout)
    if client.is_alive():
        client.kill()
        client.join()
        raise TimeoutError
    if client.exitcode:
        raise LoadError(f"the client exited with {client.exitcode}; its log says why")


def _read_report(file: Path) -> Mapping[str, Any]:
    try:
        if (size := file.stat().st_size) > LARGEST_REPORT:
            raise LoadError(f"{size >> 20} MiB of answers were reported; only {LARGEST_REPORT >> 20} are read")
        report: Mapping[str, Any] = json.loads(file.read_text())
        return report
    except (OSError, ValueError, RecursionError) as error:
        raise LoadError(f"the client left no report: {error_text(error)}") from error
