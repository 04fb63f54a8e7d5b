"""Converts a SpeculativeDeployment to core types, with every default filled in."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from paceline import core
from paceline.api.cache import CacheSpec
from paceline.api.compatibility import FIELDS_OF_SHAPE
from paceline.api.deployment import BUILTIN, BenchmarkSpec, SpeculativeDeploymentSpec
from paceline.api.draft import DraftSpec, ShapeSpec
from paceline.api.gate import BudgetSpec, GateSpec
from paceline.api.load import GOOD_SECONDS, MOST_REQUESTS, LoadSpec, lasting
from paceline.api.model import plain
from paceline.api.pool import WITH_TREES, CandidateSpec, PoolSpec
from paceline.api.problems import InvalidManifestError, Problem, broken_rules, read_spec, sent, with_defaults
from paceline.api.prompts import DatasetSpec, PromptsSpec
from paceline.api.run import (
    ArmSpec,
    RunDraft,
    RunTarget,
    WorkloadSpec,
)
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


MOST_PARSED = 1024
"""Maximum number of parsed specs kept for each kind: every reconciliation needs the specs of its object and of its
runs."""


def deployment(manifest: Mapping[str, Any], *, ruled: bool = True) -> core.DeploymentSpec:
    """Convert a SpeculativeDeployment. Raises InvalidManifestError if `problems` would find something in the spec;
    without `ruled`, only if a field has the wrong shape."""
    name = (manifest.get("metadata") or {}).get("name") or ""
    return _deployment(sent(manifest), name, ruled)


@lru_cache(maxsize=MOST_PARSED)
def _deployment(text: str, name: str, ruled: bool) -> core.DeploymentSpec:
    spec = read_spec(SpeculativeDeploymentSpec, text)
    refuse_broken(broken_rules(spec, text) if ruled else ())
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
        run_gpu_hours=hours_of(benchmark.budget),
        run_parity=benchmark.parity,
        run_timeouts=benchmark.timeouts or core.Timeouts(),
        **fields_set(benchmark, "max_evidence_age", "capacity_policy", "min_serving"),
    )


def stored(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest of ours as the API server stores it; a deployment without pools gets the default pool."""
    spec = with_defaults(manifest)
    if manifest["kind"] == _DEPLOYMENT:
        spec.setdefault("pools", [_MAIN.model_dump(mode="json", by_alias=True, exclude_none=True)])
    return {**manifest, "spec": spec}


def refuse_broken(broken: Iterable[Problem]) -> None:
    if problems := list(broken):
        raise InvalidManifestError(problems)


def _pool(
    pool: PoolSpec, spec: SpeculativeDeploymentSpec, benchmark: BenchmarkSpec, server: core.Server
) -> core.PoolSettings:
    named = tuple(arm_of(one, one.draft or spec.draft, server.engine) for one in _candidates(spec) if _is_of(pool, one))
    search = _search(pool, spec)
    found = searchable_arms(server, search, named) if search else named
    return core.PoolSettings(
        name=pool.name,
        replicas=pool.replicas,
        header_value=pool.header_value,
        endpoint_picker_ref=pool.endpoint_picker_ref,
        arms=(core.Arm(name=core.BASELINE), *sorted(found, key=lambda arm: arm.name)),
        workloads=tuple(_workloads(pool, benchmark.datasets or BUILTIN_SETS)),
        gate=gate_of(spec.gate, pool.gate, arms=2 if search else 1 + len(named)),
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
                    yield core.Workload(dataset=dataset_of(dataset, concurrency, load), concurrency=concurrency)


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


def dataset_of(dataset: PromptsSpec, concurrency: int, load: LoadSpec | WorkloadSpec) -> core.Dataset:
    rate = float(load.request_rate) if load.request_rate else None
    ramp_from = load.ramp_from if isinstance(load, WorkloadSpec) else load.ramp.from_ if load.ramp else None
    requests = dataset.requests or _default_requests(rate)
    return core.Dataset(
        name=dataset.name,
        source=dataset.source,
        requests=requests if rate else max(requests, core.fewest_requests(concurrency, dataset.turns)),
        max_tokens=dataset.max_tokens or MAX_TOKENS,
        weight=float(dataset.weight),
        rate=rate,
        temperature=None if dataset.temperature == OWN_SAMPLING else float(dataset.temperature or 0),
        ramp_from=ramp_from,
        arrivals=load.arrivals or core.Arrivals.RANDOM,
        adapter=dataset.adapter or "",
        response_format=dataset.response_format or "",
        slo=dataset.slo,
        turns=dataset.turns or 1,
        min_requests=None if rate or ramp_from or dataset.turns else _fewest(dataset, concurrency),
        **fields_set(dataset, "revision", "commit"),
    )


def _fewest(dataset: PromptsSpec, concurrency: int) -> int | None:
    """Fewest requests of a closed loop; None if a person has written `requests`."""
    if isinstance(dataset, WorkloadSpec) and dataset.min_requests:
        return dataset.min_requests
    return None if dataset.requests else max(FEWEST_REQUESTS, core.fewest_requests(concurrency, dataset.turns))


def _default_requests(rate: float | None) -> int:
    """Requests if a dataset names no number; at a rate, as many as arrive in a minute."""
    return _REQUESTS if rate is None else min(MOST_REQUESTS, max(_REQUESTS, lasting(GOOD_SECONDS, rate)))


def gate_of(*gates: GateSpec | None, arms: int) -> core.Gate:
    """The later of two gates wins, key by key."""
    values: dict[str, Any] = {"decide_after_rounds": core.default_looks(arms)}
    for gate in gates:
        values |= fields_set(gate, *GateSpec.model_fields)
    return core.Gate(**values)


def fields_set(of: Any, *names: str) -> dict[str, Any]:
    """Those of these fields that the object has and that are set."""
    return {name: value for name in names if (value := getattr(of, name, None)) is not None}


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


def hours_of(budget: BudgetSpec | None) -> float | None:
    return float(budget.gpu_hours) if budget else None


def pinned(source: str, model: RunTarget | RunDraft) -> core.Model:
    """A model of a run. Its commit may be absent if it is on a claim (found by its path) or in an image (found by its
    digest)."""
    address = core.Source.parse(source)
    by_itself = UNNAMED if address.scheme is core.Scheme.CLAIM else address.digest
    return core.Model(source=source, revision=model.revision, commit=model.commit or by_itself or None)


def arm_of(arm: CandidateSpec | ArmSpec, draft: DraftSpec | None, engine: core.Engine) -> core.Arm:
    """An arm without a shape has no draft, whatever the default is."""
    written = fields_set(arm, *ShapeSpec.model_fields)
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
        return pinned(draft.source, draft)
    return core.Model(source=draft.source, revision=draft.revision)
