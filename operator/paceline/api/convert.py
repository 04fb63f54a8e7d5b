"""Converts a manifest to core types, with every default filled in; and a RunSpec back to a BenchmarkRun's spec."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from paceline import core
from paceline.api.cache import CacheSpec
from paceline.api.compatibility import FIELDS_OF_SHAPE
from paceline.api.deployment import BUILTIN, BenchmarkSpec, SpeculativeDeploymentSpec
from paceline.api.draft import DraftSpec, ShapeSpec
from paceline.api.engine import EngineChange, EngineSpec
from paceline.api.gate import BudgetSpec, GateSpec
from paceline.api.load import GOOD_SECONDS, MOST_REQUESTS, LoadSpec, lasting
from paceline.api.model import plain
from paceline.api.pod import EnvVar, Toleration
from paceline.api.pool import WITH_TREES, CandidateSpec, PoolSpec
from paceline.api.problems import InvalidManifestError, Problem, broken_rules, read_spec, sent, with_defaults
from paceline.api.prompts import DatasetSpec, PromptsSpec
from paceline.api.run import (
    ArmSpec,
    BenchmarkRunSpec,
    RunCache,
    RunDraft,
    RunGate,
    RunSearch,
    RunSweep,
    RunTarget,
    WorkloadSpec,
)
from paceline.core.text import plain_decimal
from paceline.engines.grid import searchable_arms

BUILTIN_SETS = tuple(DatasetSpec(name=name, source=f"builtin://{name}") for name in BUILTIN)
CHAIN = CandidateSpec(name="chain", tree=core.Tree(num_steps=3))
"""The default candidate of a deployment."""
_MAIN = PoolSpec(name=core.MAIN, load=(LoadSpec(concurrency=(1, 16)),))
"""The default pool of a deployment."""
_DEPLOYMENT = "SpeculativeDeployment"
_REQUESTS = 64
FEWEST_REQUESTS = 16
"""Fewest requests of a closed loop without `requests`, in rounds after the first."""
MAX_TOKENS = 512
OWN_SAMPLING = "model"
"""Value of `temperature` with which requests name no temperature."""
TOKEN_VARIABLE = "HF_TOKEN"
"""The variable from which huggingface_hub reads its token."""
UNNAMED = "0" * 40
"""The commit of a model on a claim, which its path identifies."""


_KEPT = 1024
"""Maximum number of parsed specs kept for each kind: every reconciliation needs the specs of its object and of its
runs."""


def deployment(manifest: Mapping[str, Any], *, ruled: bool = True) -> core.DeploymentSpec:
    """Convert a SpeculativeDeployment. Raises InvalidManifestError if `problems` would find something in the spec;
    without `ruled`, only if a field has the wrong shape."""
    name = (manifest.get("metadata") or {}).get("name") or ""
    return _deployment(sent(manifest), name, ruled)


@lru_cache(maxsize=_KEPT)
def _deployment(text: str, name: str, ruled: bool) -> core.DeploymentSpec:
    spec = read_spec(SpeculativeDeploymentSpec, text)
    _refuse(broken_rules(spec, text) if ruled else ())
    benchmark, claim, pools = spec.benchmark or BenchmarkSpec(), spec.cache.claim, spec.pools or (_MAIN,)
    if claim and not claim.name:
        claim = replace(claim, name=f"{name}-models")
    server = core.Server(
        engine=spec.engine.whole(),
        target=core.Model(source=spec.target.source, revision=spec.target.revision),
        served_name=spec.target.name_in_requests,
        accelerator=spec.accelerator,
        cache=_cache(spec.cache, claim),
        max_concurrency=max(load.largest for pool in pools for load in pool.load),
        node_selector=spec.node_selector,
        tolerations=plain(spec.tolerations),
    )
    return core.DeploymentSpec(
        suspend=spec.suspend,
        server=server,
        pools=tuple(_pool(pool, spec, benchmark, server) for pool in pools),
        cache_claim=claim,
        promotion=spec.promotion,
        guard=spec.guard,
        gateway=spec.gateway,
        window=benchmark.window,
        keep_revisions=spec.cache.keep_revisions,
        run_pod_labels=benchmark.pod_labels,
        run_queue_name=benchmark.queue_name or "",
        run_gpu_hours=_gpu_hours(benchmark.budget),
        run_parity=benchmark.parity,
        run_timeouts=benchmark.timeouts or core.Timeouts(),
        **_written(benchmark, "max_evidence_age", "capacity_policy", "min_serving"),
    )


def stored(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest of ours as the API server stores it; a deployment without pools gets the default pool."""
    spec = with_defaults(manifest)
    if manifest["kind"] == _DEPLOYMENT:
        spec.setdefault("pools", [_MAIN.model_dump(mode="json", by_alias=True, exclude_none=True)])
    return {**manifest, "spec": spec}


def run(manifest: Mapping[str, Any]) -> core.RunSpec:
    """Convert a BenchmarkRun. Raises InvalidManifestError if `problems` would find something in the spec."""
    return _run(sent(manifest))


@lru_cache(maxsize=_KEPT)
def _run(text: str) -> core.RunSpec:
    spec = read_spec(BenchmarkRunSpec, text)
    _refuse(broken_rules(spec, text))
    server = core.Server(
        engine=spec.engine.whole(),
        target=_pinned(spec.target.source, spec.target),
        served_name=spec.target.name_in_requests,
        accelerator=spec.accelerator,
        cache=core.Cache(claim=spec.cache.claim_name, host_path=spec.cache.host_path),
        max_concurrency=spec.max_concurrency or max(workload.concurrency for workload in spec.workloads),
        node_selector=spec.node_selector,
        tolerations=plain(spec.tolerations),
    )
    return core.RunSpec(
        pool=spec.pool,
        server=server,
        arms=tuple(_arm(arm, arm.draft, server.engine) for arm in spec.arms),
        workloads=tuple(map(_workload, spec.workloads)),
        gate=_gate_of(spec),
        purpose=core.Purpose.SWEEP if spec.sweep else core.Purpose.SEARCH if spec.search else core.Purpose.GATE,
        pod_labels=spec.pod_labels,
        queue_name=spec.queue_name or "",
        gpu_hours=_gpu_hours(spec.budget),
        parity=spec.gate.parity if spec.gate else None,
        timeouts=spec.timeouts or core.Timeouts(),
        rounds_of=(spec.gate and spec.gate.rounds_of) or "",
        measured=spec.measured,
    )


def _workload(spec: WorkloadSpec) -> core.Workload:
    return core.Workload(dataset=_dataset(spec, spec.concurrency, spec), concurrency=spec.concurrency)


def run_manifest_spec(spec: core.RunSpec) -> dict[str, Any]:
    """What `run` reads back as the same RunSpec; fractions keep six decimals. The revision of a dataset's commit is
    left out: it is not part of the question."""
    server, target, engine = spec.server, spec.server.target, spec.server.engine
    written = BenchmarkRunSpec(
        pool=spec.pool,
        measured=spec.measured,
        target=RunTarget(
            source=target.source, revision=target.revision, commit=target.commit, served_name=server.served_name
        ),
        engine=EngineSpec(
            type=engine.type,
            version=engine.version,
            image=engine.image,
            args=engine.args,
            trust_remote_code=engine.trust_remote_code,
            eagle3_targets=engine.eagle3_targets or None,
            env=_variables(engine.env),
            api_key_secret_ref=engine.api_key,
            admin_key_secret_ref=engine.admin_key,
            pod_template=dict(engine.pod_template) or None,
        ),
        accelerator=server.accelerator,
        cache=RunCache(claim_name=server.cache.claim, host_path=server.cache.host_path),
        node_selector=dict(server.node_selector),
        tolerations=tuple(Toleration.model_validate(one) for one in server.tolerations),
        max_concurrency=server.max_concurrency,
        arms=tuple(_arm_spec(arm, engine) for arm in spec.arms),
        workloads=tuple(map(_workload_spec, spec.workloads)),
        **_member(spec),
        budget=None if spec.gpu_hours is None else BudgetSpec(gpu_hours=plain_decimal(spec.gpu_hours)),
        timeouts=None if spec.timeouts == core.Timeouts() else spec.timeouts,
        pod_labels=dict(spec.pod_labels),
        queue_name=spec.queue_name or None,
    )
    return written.model_dump(mode="json", by_alias=True, exclude_none=True)


def _arm_spec(arm: core.Arm, engine: core.Engine) -> ArmSpec:
    written: dict[str, Any] = {name: getattr(arm, name) or None for name in ShapeSpec.model_fields} | {"args": arm.args}
    written["engine"] = EngineChange.between(engine, arm.engine) if arm.engine else None
    return ArmSpec(draft=_run_draft(arm.draft) if arm.draft else None, **written)


def _run_draft(draft: core.Draft) -> RunDraft:
    if draft.model is None:
        return RunDraft(algorithm=draft.algorithm, name=draft.name)
    head = draft.model
    return RunDraft(
        algorithm=draft.algorithm, name=draft.name, source=head.source, revision=head.revision, commit=head.commit
    )


def _workload_spec(workload: core.Workload) -> WorkloadSpec:
    dataset = workload.dataset
    return WorkloadSpec(
        name=dataset.name,
        source=dataset.source,
        commit=dataset.commit,
        requests=dataset.requests,
        min_requests=dataset.min_requests,
        max_tokens=dataset.max_tokens,
        weight=int(dataset.weight),
        temperature=OWN_SAMPLING if dataset.temperature is None else plain_decimal(dataset.temperature),
        adapter=dataset.adapter or None,
        response_format=dataset.response_format or None,
        slo=dataset.slo,
        concurrency=workload.concurrency,
        request_rate=None if dataset.rate is None else plain_decimal(dataset.rate),
        ramp_from=dataset.ramp_from,
        arrivals=dataset.arrivals if dataset.rate else None,
    )


def _gate_of(spec: BenchmarkRunSpec) -> core.Gate:
    """The gate that judges the rounds. A sweep measures all rounds, and is judged only after the last."""
    looks = core.default_looks(len(spec.arms))
    if spec.sweep:
        last = spec.sweep.rounds or looks[-1]
        return core.Gate(decide_after_rounds=(last,), **_written(spec.sweep, "confidence"))
    if spec.search:
        limit = core.Limit(metric="retractions", max=spec.search.retractions)
        return core.Gate(decide_after_rounds=looks, limits=(limit,) if spec.search.retractions else ())
    return _gate(spec.gate, arms=len(spec.arms))


def _member(spec: core.RunSpec) -> dict[str, Any]:
    """The member of the run's spec that says its purpose: `gate`, `search` or `sweep`."""
    rule = spec.gate
    if spec.purpose is core.Purpose.SWEEP:
        return {"sweep": RunSweep(confidence=rule.confidence, rounds=rule.decide_after_rounds[-1])}
    if spec.purpose is core.Purpose.SEARCH:
        return {"search": RunSearch(retractions=rule.retractions)}
    values = {name: getattr(rule, name) for name in GateSpec.model_fields}
    values["max_slowdown"] = rule.max_slowdown if rule.max_slowdown != core.Gate().max_slowdown else None
    return {"gate": RunGate(**values, parity=spec.parity, rounds_of=spec.rounds_of or None)}


def _refuse(broken: Iterable[Problem]) -> None:
    if problems := list(broken):
        raise InvalidManifestError(problems)


def _pool(
    pool: PoolSpec, spec: SpeculativeDeploymentSpec, benchmark: BenchmarkSpec, server: core.Server
) -> core.PoolSettings:
    named = tuple(_arm(one, one.draft or spec.draft, server.engine) for one in _candidates(spec) if _is_of(pool, one))
    search = _search(pool, spec)
    found = searchable_arms(server, search, named) if search else named
    return core.PoolSettings(
        name=pool.name,
        replicas=pool.replicas,
        header_value=pool.header_value,
        endpoint_picker_ref=pool.endpoint_picker_ref,
        arms=(core.Arm(name=core.BASELINE), *sorted(found, key=lambda arm: arm.name)),
        workloads=tuple(_workloads(pool, benchmark.datasets or BUILTIN_SETS)),
        gate=_gate(spec.gate, pool.gate, arms=2 if search else 1 + len(named)),
        search=search,
    )


def _candidates(spec: SpeculativeDeploymentSpec) -> tuple[CandidateSpec, ...]:
    """The candidates as written, else a chain."""
    if spec.candidates is not None or spec.draft is None or spec.draft.algorithm not in WITH_TREES:
        return spec.candidates or ()
    return () if all(pool.search for pool in spec.pools or (_MAIN,)) else (CHAIN,)


def _is_of(pool: PoolSpec, candidate: CandidateSpec) -> bool:
    return pool.candidates is None or candidate.name in pool.candidates


def _workloads(pool: PoolSpec, datasets: Sequence[DatasetSpec]) -> Iterator[core.Workload]:
    """The pool's workloads by concurrency. A workload at a rate or on a ramp gets the largest concurrency that its load
    names; if its load names none, the largest of all loads."""
    largest = max(load.largest for load in pool.load)
    levels = [(load, load.concurrency or (load.largest or largest,)) for load in pool.load]
    for concurrency in sorted({level for _, each in levels for level in each}):
        for dataset in datasets:
            for load, each in levels:
                if concurrency in each and (load.datasets is None or dataset.name in load.datasets):
                    yield core.Workload(dataset=_dataset(dataset, concurrency, load), concurrency=concurrency)


def _search(pool: PoolSpec, spec: SpeculativeDeploymentSpec) -> core.Search | None:
    draft, search = spec.draft, pool.search
    if search is None or draft is None:
        return None
    return core.Search(
        draft=_draft(draft),
        num_steps=search.num_steps,
        top_k=search.top_k,
        num_draft_tokens=search.num_draft_tokens,
    )


def _dataset(dataset: PromptsSpec, concurrency: int, load: LoadSpec | WorkloadSpec) -> core.Dataset:
    rate = float(load.request_rate) if load.request_rate else None
    ramp_from = load.ramp_from if isinstance(load, WorkloadSpec) else load.ramp.from_ if load.ramp else None
    requests = dataset.requests or _default_requests(rate)
    return core.Dataset(
        name=dataset.name,
        source=dataset.source,
        requests=requests if rate else max(requests, core.WAVES * concurrency),
        max_tokens=dataset.max_tokens or MAX_TOKENS,
        weight=float(dataset.weight),
        rate=rate,
        temperature=None if dataset.temperature == OWN_SAMPLING else float(dataset.temperature or 0),
        ramp_from=ramp_from,
        arrivals=load.arrivals or core.Arrivals.RANDOM,
        adapter=dataset.adapter or "",
        response_format=dataset.response_format or "",
        slo=dataset.slo,
        min_requests=None if rate or ramp_from else _fewest(dataset, concurrency),
        **_written(dataset, "revision", "commit"),
    )


def _fewest(dataset: PromptsSpec, concurrency: int) -> int | None:
    """Fewest requests of a closed loop. None if a person has written `requests`, or if the steady window needs all
    requests."""
    if isinstance(dataset, WorkloadSpec) and dataset.min_requests:
        return dataset.min_requests
    fewest = max(FEWEST_REQUESTS, core.WAVES * concurrency)
    return None if dataset.requests or fewest >= _REQUESTS else fewest


def _default_requests(rate: float | None) -> int:
    """Requests if a dataset names no number; at a rate, as many as arrive in a minute."""
    return _REQUESTS if rate is None else min(MOST_REQUESTS, max(_REQUESTS, lasting(GOOD_SECONDS, rate)))


def _gate(*gates: GateSpec | None, arms: int) -> core.Gate:
    """The later of two gates wins, key by key."""
    values: dict[str, Any] = {"decide_after_rounds": core.default_looks(arms)}
    for gate in gates:
        values |= _written(gate, *GateSpec.model_fields)
    return core.Gate(**values)


def _written(of: Any, *names: str) -> dict[str, Any]:
    """Those of these fields that the object has and that are set."""
    return {name: value for name in names if (value := getattr(of, name, None)) is not None}


def _variables(env: Iterable[Mapping[str, Any]]) -> tuple[EnvVar, ...]:
    return tuple(EnvVar.model_validate(variable) for variable in env)


def _cache(cache: CacheSpec, claim: core.ClaimTemplate | None) -> core.Cache:
    env, groups = plain(cache.env), cache.security_context
    if secret := cache.token_secret_ref:
        env += ({"name": TOKEN_VARIABLE, "valueFrom": {"secretKeyRef": {"name": secret.name, "key": secret.key}}},)
    return core.Cache(
        claim=claim.name if claim else cache.claim_name,
        host_path=cache.host_path,
        env=env,
        security_context=groups.model_dump(by_alias=True, exclude_none=True) if groups else {},
    )


def _gpu_hours(budget: BudgetSpec | None) -> float | None:
    return float(budget.gpu_hours) if budget else None


def _pinned(source: str, model: RunTarget | RunDraft) -> core.Model:
    """A model of a run. Its commit may be absent if it is on a claim (found by its path) or in an image (found by its
    digest)."""
    address = core.Source.parse(source)
    by_itself = UNNAMED if address.scheme is core.Scheme.CLAIM else address.digest
    return core.Model(source=source, revision=model.revision, commit=model.commit or by_itself or None)


def _arm(arm: CandidateSpec | ArmSpec, draft: DraftSpec | None, engine: core.Engine) -> core.Arm:
    """An arm without a shape has no draft, whatever the default is."""
    written = _written(arm, *ShapeSpec.model_fields)
    if change := written.get("engine"):
        written["engine"] = change.of(engine)
    speculates = any(shape in written for shape in FIELDS_OF_SHAPE)
    return core.Arm(draft=_draft(draft) if draft and speculates else None, **written)


def _draft(draft: DraftSpec) -> core.Draft:
    return core.Draft(algorithm=draft.algorithm, model=_head(draft), name=draft.name)


def _head(draft: DraftSpec) -> core.Model | None:
    if not draft.source:
        return None
    if isinstance(draft, RunDraft):
        return _pinned(draft.source, draft)
    return core.Model(source=draft.source, revision=draft.revision)
