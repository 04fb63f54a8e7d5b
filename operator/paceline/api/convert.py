"""A manifest into core types, once and with every default filled in; and a RunSpec back into a BenchmarkRun's spec.

Fields of one name are converted by `by_name`; what this module names is what differs.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from paceline import core
from paceline.api.by_name import decimal, duration, given, to_core, to_manifest
from paceline.api.cache import CacheSpec
from paceline.api.deployment import BUILTIN, BenchmarkSpec, GuardSpec, PromotionSpec, SpeculativeDeploymentSpec
from paceline.api.draft import DraftSpec
from paceline.api.engine import AcceleratorSpec, EngineSpec
from paceline.api.gate import GateSpec, LimitSpec, TimeoutsSpec
from paceline.api.pool import CandidateSpec, PoolSpec
from paceline.api.problems import InvalidManifestError, Problem, broken_rules, read, sent
from paceline.api.prompts import GOOD_SECONDS, MOST_REQUESTS, DatasetSpec, PromptsSpec, lasting
from paceline.api.run import ArmSpec, BenchmarkRunSpec, RunCache, RunDraft, RunGate, RunTarget, WorkloadSpec
from paceline.api.slo import SloSpec, from_slo, to_slo
from paceline.engines.grid import searched

REQUESTS = 64
FEWEST_REQUESTS = 16
"""Of a closed loop whose `requests` nobody has written, in rounds after the first."""
MAX_TOKENS = 512
OWN_SAMPLING = "model"
"""In place of a temperature: requests name none."""
TOKEN_VARIABLE = "HF_TOKEN"
"""What huggingface_hub reads its token from."""
MOST_DIGITS = 99_999
"""Hours, minutes or seconds: `Duration` has five digits of each."""
UNNAMED = "0" * 40
"""The commit of a model on a claim, which its path identifies."""


KEPT = 1024
"""Specs of a kind that are not read again: every reconciliation asks for its object's and for those of its runs."""


def deployment(manifest: Mapping[str, Any], *, ruled: bool = True) -> core.DeploymentSpec:
    """Raises InvalidManifestError where `problems` would find something in the spec; not `ruled`, only where a field
    has the wrong shape."""
    return _deployment(sent(manifest), ruled)


@lru_cache(maxsize=KEPT)
def _deployment(text: str, ruled: bool) -> core.DeploymentSpec:
    spec = read(SpeculativeDeploymentSpec, text)
    _refuse(broken_rules(spec, "spec") if ruled else ())
    benchmark, claim = spec.benchmark or BenchmarkSpec(), spec.cache.claim
    server = core.Server(
        engine=to_core(core.Engine, spec.engine),
        target=to_core(core.Model, spec.target),
        served_name=spec.target.served_name,
        accelerator=_accelerator(spec.accelerator),
        cache=_cache(spec.cache),
        largest_concurrency=max(max(pool.concurrency) for pool in spec.pools),
    )
    return core.DeploymentSpec(
        suspend=spec.suspend,
        server=server,
        pools=tuple(_pool(pool, spec, benchmark, server) for pool in spec.pools),
        cache_claim=to_core(core.ClaimTemplate, claim) if claim else None,
        promotion=to_core(core.PromotionSpec, spec.promotion or PromotionSpec()),
        guard=to_core(core.GuardSpec, spec.guard or GuardSpec()),
        gateway=to_core(core.Gateway, spec.gateway) if spec.gateway else None,
        run_gpu_hours=float(benchmark.budget.gpu_hours) if benchmark.budget else None,
        run_timeouts=_timeouts(benchmark.timeouts),
        **given(core.DeploymentSpec, benchmark),
        **given(core.DeploymentSpec, spec.cache),
    )


def run(manifest: Mapping[str, Any]) -> core.RunSpec:
    """Raises InvalidManifestError where `problems` would find something in the spec."""
    return _run(sent(manifest))


@lru_cache(maxsize=KEPT)
def _run(text: str) -> core.RunSpec:
    spec = read(BenchmarkRunSpec, text)
    _refuse(broken_rules(spec, "spec"))
    gate = _gate(spec.gate, decide_after_rounds=spec.gate.decide_after_rounds, arms=len(spec.arms))
    if spec.purpose is core.Purpose.SWEEP:  # all rounds are wanted, and the gate decides only after the last
        gate = dataclasses.replace(gate, decide_after_rounds=gate.decide_after_rounds[-1:])
    server = core.Server(
        engine=to_core(core.Engine, spec.engine),
        target=_pinned(spec.target),
        served_name=spec.target.served_name,
        accelerator=_accelerator(spec.accelerator),
        cache=to_core(core.Cache, spec.cache),
        largest_concurrency=spec.largest_concurrency or max(workload.concurrency for workload in spec.workloads),
        node_selector=spec.node_selector,
    )
    return to_core(
        core.RunSpec,
        spec,
        server=server,
        arms=tuple(_arm(arm, arm.draft) for arm in spec.arms),
        workloads=tuple(map(_workload, spec.workloads)),
        gate=gate,
        trigger=spec.trigger.reason,
        token=spec.trigger.token,
        gpu_hours=float(spec.budget.gpu_hours) if spec.budget else None,
        timeouts=_timeouts(spec.timeouts),
    )


def _workload(spec: WorkloadSpec) -> core.Workload:
    return core.Workload(dataset=_dataset(spec, spec.concurrency), concurrency=spec.concurrency)


def run_manifest_spec(spec: core.RunSpec) -> dict[str, Any]:
    """What `run` reads back as the same RunSpec; fractions keep six decimals. The revision that a dataset's commit was
    resolved from is left out: it is no part of the question."""
    server = spec.server
    values = to_manifest(
        BenchmarkRunSpec,
        spec,
        trigger={"reason": spec.trigger, "token": spec.token},
        target=to_manifest(RunTarget, server.target, served_name=server.served_name),
        engine=to_manifest(EngineSpec, server.engine),
        accelerator=to_manifest(AcceleratorSpec, server.accelerator),
        cache=to_manifest(RunCache, server.cache),
        node_selector=dict(server.node_selector),
        largest_concurrency=server.largest_concurrency,
        arms=tuple(to_manifest(ArmSpec, arm, draft=_draft_manifest(arm.draft)) for arm in spec.arms),
        workloads=tuple(_workload_manifest(workload) for workload in spec.workloads),
        gate=_gate_manifest(spec),
        budget=None if spec.gpu_hours is None else {"gpu_hours": decimal(spec.gpu_hours)},
        timeouts=_timeouts_manifest(spec.timeouts),
    )
    return BenchmarkRunSpec.model_validate(values).model_dump(mode="json", by_alias=True, exclude_none=True)


def _gate_manifest(spec: core.RunSpec) -> dict[str, Any]:
    """A search judges by no gate; only the limit that is applied in a round goes along."""
    limits = tuple(to_manifest(LimitSpec, limit) for limit in spec.gate.limits)
    return {"limits": limits} if spec.purpose is core.Purpose.SEARCH else to_manifest(RunGate, spec.gate, limits=limits)


def _refuse(broken: Iterable[Problem]) -> None:
    if problems := list(broken):
        raise InvalidManifestError(problems)


def _pool(
    pool: PoolSpec, spec: SpeculativeDeploymentSpec, benchmark: BenchmarkSpec, server: core.Server
) -> core.PoolSpec:
    datasets = benchmark.datasets or tuple(DatasetSpec(name=name, source=f"builtin://{name}") for name in BUILTIN)
    named = tuple(_arm(candidate, candidate.draft or spec.draft) for candidate in pool.candidates or ())
    search = _search(pool, spec)
    candidates = searched(server, search, named) if search else named
    return core.PoolSpec(
        name=pool.name,
        replicas=pool.replicas,
        header_value=pool.header_value,
        endpoint_picker=to_core(core.EndpointPicker, pool.endpoint_picker) if pool.endpoint_picker else None,
        arms=(core.Arm(name=core.BASELINE), *sorted(candidates, key=lambda arm: arm.name)),
        workloads=tuple(
            core.Workload(dataset=_dataset(dataset, concurrency, pool.slo), concurrency=concurrency)
            for concurrency in sorted(pool.concurrency)
            for dataset in datasets
            if pool.datasets is None or dataset.name in pool.datasets
            # At a rate a dataset is measured once: how many requests are under way follows from the rate. So it is on a
            # ramp, which has all concurrencies below the largest.
            if (dataset.request_rate is None and dataset.ramp_from is None) or concurrency == max(pool.concurrency)
        ),
        gate=_gate(
            spec.gate,
            pool.gate,
            decide_after_rounds=benchmark.decide_after_rounds,
            arms=2 if search else 1 + len(named),
        ),
        search=search,
    )


def _search(pool: PoolSpec, spec: SpeculativeDeploymentSpec) -> core.Search | None:
    draft = spec.draft
    if pool.search is None or draft is None:
        return None
    heads = tuple(core.Head(name=head.name, draft=_draft(head.draft)) for head in pool.search.heads or ())
    return to_core(core.Search, pool.search, draft=_draft(draft), heads=heads)


def _dataset(dataset: PromptsSpec, concurrency: int, slo: SloSpec | None = None) -> core.Dataset:
    """`slo`: of its pool."""
    requests = dataset.requests or _default_requests(dataset)
    return to_core(
        core.Dataset,
        dataset,
        requests=requests if dataset.request_rate else max(requests, core.WAVES * concurrency),
        fewest_requests=_fewest(dataset, concurrency),
        max_tokens=dataset.max_tokens or MAX_TOKENS,
        temperature=None if dataset.temperature == OWN_SAMPLING else float(dataset.temperature or 0),
        slo=to_slo(dataset.slo or slo),
    )


def _fewest(dataset: PromptsSpec, concurrency: int) -> int | None:
    """None where a person has written how many, at a rate, on a ramp, and where the steady window needs all of them
    anyway."""
    if isinstance(dataset, WorkloadSpec) and dataset.fewest_requests:
        return dataset.fewest_requests
    fewest = max(FEWEST_REQUESTS, core.WAVES * concurrency)
    if dataset.requests or dataset.request_rate or dataset.ramp_from or fewest >= REQUESTS:
        return None
    return fewest


def _default_requests(dataset: PromptsSpec) -> int:
    """At a rate, those of a minute."""
    if dataset.request_rate is None:
        return REQUESTS
    return min(MOST_REQUESTS, max(REQUESTS, lasting(GOOD_SECONDS, float(dataset.request_rate))))


def _gate(*gates: GateSpec | None, decide_after_rounds: tuple[int, ...] | None, arms: int) -> core.Gate:
    """The later of two gates wins, key by key."""
    values: dict[str, Any] = {}
    for gate in gates:
        values |= given(core.Gate, gate)
    return core.Gate(**values | {"decide_after_rounds": decide_after_rounds or core.default_looks(arms)})


def _accelerator(accelerator: AcceleratorSpec) -> core.Accelerator:
    every = accelerator.count * (accelerator.nodes or 1)
    return to_core(core.Accelerator, accelerator, tensor_parallel_size=accelerator.tensor_parallel_size or every)


def _cache(cache: CacheSpec) -> core.Cache:
    env: tuple[Mapping[str, Any], ...] = given(core.Cache, cache)["env"]
    if secret := cache.token_secret_ref:
        env += ({"name": TOKEN_VARIABLE, "valueFrom": {"secretKeyRef": {"name": secret.name, "key": secret.key}}},)
    return to_core(core.Cache, cache, claim=cache.claim.name if cache.claim else cache.existing_claim, env=env)


def _pinned(model: RunTarget | RunDraft) -> core.Model:
    """A model of a run. A model on a claim is found by its path, and that of an image by its digest: its commit need
    not be given."""
    address = core.Source.parse(model.source) if model.source else None
    by_itself = address and (UNNAMED if address.scheme is core.Scheme.CLAIM else address.digest)
    return to_core(core.Model, model, commit=model.commit or by_itself or None)


def _arm(arm: CandidateSpec | ArmSpec, draft: DraftSpec | None) -> core.Arm:
    return to_core(core.Arm, arm, draft=draft and _draft(draft))


def _draft(draft: DraftSpec) -> core.Draft:
    return to_core(core.Draft, draft, model=_head(draft))


def _head(draft: DraftSpec) -> core.Model | None:
    if not draft.source:
        return None
    return _pinned(draft) if isinstance(draft, RunDraft) else to_core(core.Model, draft)


def _draft_manifest(draft: core.Draft | None) -> dict[str, Any] | None:
    if draft is None:
        return None
    return to_manifest(RunDraft, draft.model) | to_manifest(RunDraft, draft)


def _workload_manifest(workload: core.Workload) -> dict[str, Any]:
    temperature = workload.dataset.temperature
    # Greedy sampling, the default, is left out so that fingerprints do not move.
    written = OWN_SAMPLING if temperature is None else decimal(temperature) if temperature else None
    exceptions = {"temperature": written, "slo": from_slo(workload.dataset.slo)}
    return to_manifest(WorkloadSpec, workload.dataset, concurrency=workload.concurrency, **exceptions)


def _timeouts(timeouts: TimeoutsSpec | None) -> core.Timeouts:
    limits = timeouts.model_dump(exclude_none=True) if timeouts else {}
    return core.Timeouts(**{name: duration(limit).total_seconds() for name, limit in limits.items()})


def _timeouts_manifest(timeouts: core.Timeouts) -> dict[str, str] | None:
    """None if they equal the defaults, so that fingerprints do not move."""
    start = None if timeouts.start == core.Timeouts().start else timeouts.start
    limits = {name: _duration(value) for name, value in (("start", start), ("workload", timeouts.workload)) if value}
    return limits or None


def _duration(seconds: float) -> str:
    """In seconds; if they have more than five digits, in hours, minutes and seconds: `Duration` takes five of each."""
    left, text = round(seconds), ""
    for unit, size in (("h", 3600), ("m", 60)):
        if left > MOST_DIGITS:
            count = min(left // size, MOST_DIGITS)
            text += f"{count}{unit}"
            left -= count * size
    return f"{text}{left}s" if left or not text else text
