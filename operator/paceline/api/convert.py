"""A manifest into core types, once and with every default filled in; and a RunSpec back into a BenchmarkRun's spec.

Fields of one name are converted by `by_name`; what this module names is what differs.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from paceline import core
from paceline.api.by_name import decimal, duration, duration_text, given, to_core, to_manifest
from paceline.api.cache import CacheSpec, ClaimSpec
from paceline.api.deployment import BUILTIN, BenchmarkSpec, SpeculativeDeploymentSpec
from paceline.api.draft import DraftSpec, TreeSpec
from paceline.api.engine import AcceleratorSpec, EngineSpec
from paceline.api.gate import GateSpec, LimitSpec, TimeoutsSpec
from paceline.api.load import GOOD_SECONDS, MOST_REQUESTS, LoadSpec, lasting
from paceline.api.pool import WITH_TREES, CandidateSpec, PoolSpec
from paceline.api.problems import InvalidManifestError, Problem, broken_rules, read, sent
from paceline.api.prompts import DatasetSpec, PromptsSpec
from paceline.api.run import ArmSpec, BenchmarkRunSpec, RunCache, RunDraft, RunTarget, WorkloadSpec
from paceline.api.slo import SloSpec, from_slo, to_slo
from paceline.engines.grid import searched

BUILTIN_SETS = tuple(DatasetSpec(name=name, source=f"builtin://{name}") for name in BUILTIN)
CHAIN = CandidateSpec(name="chain", tree=TreeSpec(num_steps=3))
"""The candidate of a deployment that names none."""
REQUESTS = 64
FEWEST_REQUESTS = 16
"""Of a closed loop whose `requests` nobody has written, in rounds after the first."""
MAX_TOKENS = 512
OWN_SAMPLING = "model"
"""In place of a temperature: requests name none."""
TOKEN_VARIABLE = "HF_TOKEN"
"""What huggingface_hub reads its token from."""
UNNAMED = "0" * 40
"""The commit of a model on a claim, which its path identifies."""


KEPT = 1024
"""Specs of a kind that are not read again: every reconciliation asks for its object's and for those of its runs."""


def deployment(manifest: Mapping[str, Any], *, ruled: bool = True) -> core.DeploymentSpec:
    """Raises InvalidManifestError where `problems` would find something in the spec; not `ruled`, only where a field
    has the wrong shape."""
    name = (manifest.get("metadata") or {}).get("name") or ""
    return _deployment(sent(manifest), name, ruled)


@lru_cache(maxsize=KEPT)
def _deployment(text: str, name: str, ruled: bool) -> core.DeploymentSpec:
    spec = read(SpeculativeDeploymentSpec, text)
    _refuse(broken_rules(spec, "spec") if ruled else ())
    benchmark, claim = spec.benchmark or BenchmarkSpec(), _claim(spec.cache.claim, name)
    server = core.Server(
        engine=to_core(core.Engine, spec.engine),
        target=to_core(core.Model, spec.target),
        served_name=spec.target.name_in_requests,
        accelerator=_accelerator(spec.accelerator),
        cache=_cache(spec.cache, claim),
        max_concurrency=max(load.largest for pool in spec.pools for load in pool.load),
    )
    return core.DeploymentSpec(
        suspend=spec.suspend,
        server=server,
        pools=tuple(_pool(pool, spec, benchmark, server) for pool in spec.pools),
        cache_claim=claim,
        promotion=to_core(core.PromotionSpec, spec.promotion),
        guard=to_core(core.GuardSpec, spec.guard),
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
    gate = _gate(spec.gate, arms=len(spec.arms))
    if spec.purpose is core.Purpose.SWEEP:  # all rounds are wanted, and the gate decides only after the last
        gate = dataclasses.replace(gate, decide_after_rounds=gate.decide_after_rounds[-1:])
    server = core.Server(
        engine=to_core(core.Engine, spec.engine),
        target=_pinned(spec.target),
        served_name=spec.target.name_in_requests,
        accelerator=_accelerator(spec.accelerator),
        cache=to_core(core.Cache, spec.cache),
        max_concurrency=spec.max_concurrency or max(workload.concurrency for workload in spec.workloads),
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
    return core.Workload(dataset=_dataset(spec, spec.concurrency, spec), concurrency=spec.concurrency)


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
        max_concurrency=server.max_concurrency,
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
    return (
        {"limits": limits} if spec.purpose is core.Purpose.SEARCH else to_manifest(GateSpec, spec.gate, limits=limits)
    )


def _refuse(broken: Iterable[Problem]) -> None:
    if problems := list(broken):
        raise InvalidManifestError(problems)


def _pool(
    pool: PoolSpec, spec: SpeculativeDeploymentSpec, benchmark: BenchmarkSpec, server: core.Server
) -> core.PoolSpec:
    named = tuple(_arm(one, one.draft or spec.draft) for one in candidates(spec) if _is_of(pool, one))
    search = _search(pool, spec)
    found = searched(server, search, named) if search else named
    return core.PoolSpec(
        name=pool.name,
        replicas=pool.replicas,
        header_value=pool.header_value,
        endpoint_picker=to_core(core.EndpointPicker, pool.endpoint_picker) if pool.endpoint_picker else None,
        arms=(core.Arm(name=core.BASELINE), *sorted(found, key=lambda arm: arm.name)),
        workloads=tuple(_workloads(pool, benchmark.datasets or BUILTIN_SETS)),
        gate=_gate(spec.gate, pool.gate, arms=2 if search else 1 + len(named)),
        search=search,
    )


def candidates(spec: SpeculativeDeploymentSpec) -> tuple[CandidateSpec, ...]:
    """Those that are written, else a chain."""
    if spec.candidates is not None or spec.draft is None or spec.draft.algorithm not in WITH_TREES:
        return spec.candidates or ()
    return () if all(pool.search for pool in spec.pools) else (CHAIN,)


def _is_of(pool: PoolSpec, candidate: CandidateSpec) -> bool:
    return pool.candidates is None or candidate.name in pool.candidates


def _workloads(pool: PoolSpec, datasets: Sequence[DatasetSpec]) -> Iterator[core.Workload]:
    """By rising concurrency; those at a rate or on a ramp stand with the largest."""
    largest = max(load.largest for load in pool.load)
    levels = [(load, load.concurrency or (load.largest or largest,)) for load in pool.load]
    for concurrency in sorted({level for _, each in levels for level in each}):
        for dataset in datasets:
            for load, each in levels:
                if concurrency in each and (load.datasets is None or dataset.name in load.datasets):
                    yield core.Workload(dataset=_dataset(dataset, concurrency, load, pool.slo), concurrency=concurrency)


def _search(pool: PoolSpec, spec: SpeculativeDeploymentSpec) -> core.Search | None:
    draft = spec.draft
    if pool.search is None or draft is None:
        return None
    heads = tuple(core.Head(name=head.name, draft=_draft(head.draft)) for head in pool.search.heads or ())
    return to_core(core.Search, pool.search, draft=_draft(draft), heads=heads)


def _dataset(
    dataset: PromptsSpec, concurrency: int, load: LoadSpec | WorkloadSpec, slo: SloSpec | None = None
) -> core.Dataset:
    """`slo`: of its pool."""
    rate = float(load.request_rate) if load.request_rate else None
    ramp_from = load.ramp_from if isinstance(load, WorkloadSpec) else load.ramp and load.ramp.from_
    requests = dataset.requests or _default_requests(rate)
    return to_core(
        core.Dataset,
        dataset,
        rate=rate,
        ramp_from=ramp_from,
        arrivals=load.arrivals or core.Arrivals.RANDOM,
        requests=requests if rate else max(requests, core.WAVES * concurrency),
        min_requests=None if rate or ramp_from else _fewest(dataset, concurrency),
        max_tokens=dataset.max_tokens or MAX_TOKENS,
        temperature=None if dataset.temperature == OWN_SAMPLING else float(dataset.temperature or 0),
        slo=to_slo(dataset.slo or slo),
    )


def _fewest(dataset: PromptsSpec, concurrency: int) -> int | None:
    """Of a closed loop. None where a person has written how many, and where the steady window needs all of them
    anyway."""
    if isinstance(dataset, WorkloadSpec) and dataset.min_requests:
        return dataset.min_requests
    fewest = max(FEWEST_REQUESTS, core.WAVES * concurrency)
    return None if dataset.requests or fewest >= REQUESTS else fewest


def _default_requests(rate: float | None) -> int:
    """At a rate, those of a minute."""
    return REQUESTS if rate is None else min(MOST_REQUESTS, max(REQUESTS, lasting(GOOD_SECONDS, rate)))


def _gate(*gates: GateSpec | None, arms: int) -> core.Gate:
    """The later of two gates wins, key by key."""
    values: dict[str, Any] = {"decide_after_rounds": core.default_looks(arms)}
    for gate in gates:
        values |= given(core.Gate, gate)
    return core.Gate(**values)


def _accelerator(accelerator: AcceleratorSpec) -> core.Accelerator:
    every = accelerator.count * accelerator.nodes
    return to_core(core.Accelerator, accelerator, tensor_parallel_size=accelerator.tensor_parallel_size or every)


def _claim(claim: ClaimSpec | None, deployment: str) -> core.ClaimTemplate | None:
    return to_core(core.ClaimTemplate, claim, name=claim.name or f"{deployment}-models") if claim else None


def _cache(cache: CacheSpec, claim: core.ClaimTemplate | None) -> core.Cache:
    env: tuple[Mapping[str, Any], ...] = given(core.Cache, cache)["env"]
    if secret := cache.token_secret_ref:
        env += ({"name": TOKEN_VARIABLE, "valueFrom": {"secretKeyRef": {"name": secret.name, "key": secret.key}}},)
    return to_core(core.Cache, cache, claim=claim.name if claim else cache.claim_name, env=env)


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
    limits = {
        name: duration_text(value) for name, value in (("start", start), ("workload", timeouts.workload)) if value
    }
    return limits or None
